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
    let mut named = BTreeSet::new();
    for problem in check(&disk).problems {
        if let Problem::OlderChunks { volume, lba, count, bytes } = problem {
            assert_eq!((volume.as_str(), bytes), ("v", count * CHUNK));
            named.extend(lba..lba + count);
        }
    }
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
