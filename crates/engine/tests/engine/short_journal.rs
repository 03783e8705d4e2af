//! A journal whose file was cut short: what was flushed and may be gone is told, and only then.

use disk::{Loss, MemoryDisk};
use engine::{GivenUp, Problem, RepairReport, Zone, repair_without, structures};

use crate::stand::{CHUNK, Looker, MIB, Opens, Wish, fresh};

const WRITES: u64 = 12;

/// A killed store with a record for each chunk, each flushed, and where records begin and end.
fn killed() -> (MemoryDisk, Vec<(u64, u64)>) {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    for number in 0..WRITES {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
        stand.flush();
    }
    let disk = stand.kill(1);
    let map = structures(Box::new(disk.clone())).unwrap();
    let records = map.iter().filter(|structure| structure.zone == Zone::Journal);
    let ends = |record: &engine::Structure| {
        (record.offset_bytes, record.offset_bytes + record.length_bytes)
    };
    let mut records: Vec<_> = records.map(ends).collect();
    records.sort_unstable();
    (disk, records)
}

/// A repair after the file of the journal was cut short here and made long again.
fn repaired_from(disk: &MemoryDisk, at_bytes: u64) -> (MemoryDisk, RepairReport) {
    let disk = disk.left_by_power_loss(0, Loss::None);
    (at_bytes..MIB).for_each(|at| disk.corrupt(Zone::Journal, at, |byte| *byte = 0));
    let given_up = GivenUp { journal_from_bytes: Some(at_bytes), ..GivenUp::default() };
    let report = repair_without(Box::new(disk.clone()), &given_up, &mut |_| {}).unwrap();
    (disk, report)
}

#[test]
fn what_was_flushed_behind_a_cut_is_told_as_gone() {
    let (disk, records) = killed();
    let last = &records[records.len() - 3..];
    for &(start, end) in last {
        for at_bytes in [start, start + 1, end - 1] {
            let (disk, report) = repaired_from(&disk, at_bytes);
            assert!(report.short_journal, "cut at {at_bytes}: {report:?}");
            let is_told = |problem: &Problem| matches!(problem, Problem::ShortJournal { .. });
            assert!(report.found.iter().any(is_told), "cut at {at_bytes}: {report:?}");
            if (start, end) == last[0] {
                let stand = Wish::default().open(disk);
                let volume = stand.client.volume("v").unwrap();
                let newest = stand.read(&volume, (WRITES - 1) * CHUNK, CHUNK);
                assert!(newest != fresh(WRITES - 1, CHUNK), "nothing is gone");
            }
        }
    }
}

#[test]
fn nothing_is_told_as_gone_with_what_no_record_was_written_to() {
    let (disk, records) = killed();
    let end = records[records.len() - 1].1;
    // Where the next record would begin nothing is left that says there was none.
    assert!(repaired_from(&disk, end).1.short_journal);
    let (disk, report) = repaired_from(&disk, end + 4096);
    assert!(!report.short_journal && report.lost_records == 0, "{report:?}");
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    for number in 0..WRITES {
        assert!(stand.read(&volume, number * CHUNK, CHUNK) == fresh(number, CHUNK), "{number}");
    }
}

/// The file of a journal becomes longer when the repair has ended. Until then each repair is told
/// that it is short, wherever the one before was killed, and says so.
#[test]
fn a_repair_that_was_killed_is_told_again_by_the_next() {
    let (disk, records) = killed();
    let cut = records[records.len() - 2].0;
    let disk = disk.left_by_power_loss(0, Loss::None);
    (cut..MIB).for_each(|at| disk.corrupt(Zone::Journal, at, |byte| *byte = 0));
    let given_up = GivenUp { journal_from_bytes: Some(cut), ..GivenUp::default() };
    let journal = disk.peek(Zone::Journal, 0, MIB as usize);
    let (looker, left) = Looker::new(disk.clone());
    let report = repair_without(Box::new(looker), &given_up, &mut |_| {}).unwrap();
    assert!(report.short_journal, "{report:?}");
    let left = std::mem::take(&mut *left.lock().unwrap());
    assert!(left.len() > 5, "{} moments", left.len());
    for (moment, left) in left.into_iter().chain([disk]).enumerate() {
        // What was written to it would be lost, or be taken for what stood there.
        assert!(left.peek(Zone::Journal, 0, MIB as usize) == journal, "moment {moment}");
        let left = left.left_by_power_loss(0, Loss::All);
        let again = repair_without(Box::new(left), &given_up, &mut |_| {}).unwrap();
        assert!(again.short_journal, "moment {moment}: {again:?}");
    }
}
