//! A record of the journal is damaged: what the records behind it changed is named, chunk by chunk.

use std::collections::BTreeSet;

use engine::{Problem, Zone, repair, structures};

use crate::stand::{CHUNK, MIB, Opens, Wish, check, fresh};

const WRITES: u64 = 12;

#[test]
fn what_went_back_is_named_but_for_the_damaged_record_itself() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 8 * MIB);
    for number in 0..WRITES {
        stand.write(&volume, 10 * number * CHUNK, &fresh(number, CHUNK));
        stand.flush();
    }
    let disk = stand.kill(1);
    let map = structures(Box::new(disk.clone())).unwrap();
    let records = map.iter().filter(|structure| structure.zone == Zone::Journal);
    let record = records.filter(|record| record.proven).nth_back(WRITES as usize / 2).unwrap();
    disk.corrupt(Zone::Journal, record.offset_bytes + 100, |byte| *byte ^= 1);
    let (mut named, mut unread) = (BTreeSet::new(), 0);
    for problem in check(&disk).problems {
        match problem {
            Problem::OlderChunks { volume, lba, count, bytes } => {
                assert_eq!((volume.as_str(), bytes), ("v", count * CHUNK));
                named.extend(lba..lba + count);
            }
            Problem::UnreadRecords { count, .. } => unread += count,
            _ => {}
        }
    }
    assert_eq!(unread, 1, "the damaged one");
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert!(report.lost_records > 0 && report.lost_chunks == 0, "{report:?}");
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    let is_gone =
        |number: &u64| stand.read(&volume, 10 * number * CHUNK, CHUNK) != fresh(*number, CHUNK);
    let gone: BTreeSet<u64> = (0..WRITES).filter(is_gone).map(|number| 10 * number).collect();
    assert!(named.len() > 3 && named.is_subset(&gone), "{named:?} of {gone:?}");
    assert!(gone.difference(&named).count() <= 1, "{named:?} of {gone:?}");
}

#[test]
fn volumes_that_left_out_records_made_are_named_as_gone() {
    let stand = Wish::default().stand();
    stand.volume("v", MIB);
    stand.flush();
    stand.volume("w", MIB);
    let w = stand.client.volume("w").unwrap();
    stand.write(&w, 0, &fresh(1, CHUNK));
    stand.flush();
    stand.write(&w, 0, &fresh(2, CHUNK));
    stand.flush();
    let disk = stand.kill(1);
    let map = structures(Box::new(disk.clone())).unwrap();
    let mut records: Vec<_> =
        map.iter().filter(|structure| structure.zone == Zone::Journal).collect();
    records.sort_unstable_by_key(|record| record.offset_bytes);
    let mut gone = BTreeSet::new();
    for record in records.iter().filter(|record| record.proven) {
        let disk = disk.left_by_power_loss(0, disk::Loss::None);
        disk.corrupt(Zone::Journal, record.offset_bytes + 100, |byte| *byte ^= 1);
        let named = check(&disk).problems.into_iter().filter_map(|problem| match problem {
            Problem::GoneVolume { volume } => Some(volume),
            _ => None,
        });
        let named: BTreeSet<String> = named.collect();
        if repair(Box::new(disk.clone()), &mut |_| {}).is_ok() {
            let stand = Wish::default().open(disk);
            let is_there = |name: &str| stand.client.volume(name).is_ok();
            assert!(named.iter().all(|name| !is_there(name)), "{named:?}");
        }
        gone.extend(named);
    }
    assert_eq!(gone, ["v".to_owned(), "w".to_owned()].into());
}
