//! What people and programs are told of a store.

use std::time::Duration;

use engine::{Counters, Problem, ScrubFinding, ScrubStep, Stats, VolumeStats};

use super::{Rates, Report, lost, text};
use crate::scrub_record::{ScrubRecord, ScrubRun};

fn stats() -> Stats {
    Stats {
        logical_bytes: 40 << 30,
        unique_chunks: 2_621_440,
        unique_bytes: 10 << 30,
        stored_bytes: 5 << 30,
        dedup_ratio: Some(4.0),
        compression_ratio: Some(2.0),
        reduction_ratio: Some(8.0),
        chunk_bytes: 4096,
        fingerprint: "blake3".to_owned(),
        compression: "lz4".to_owned(),
        volumes: vec![VolumeStats::default()],
        ..Stats::default()
    }
}

/// What people see of a store that is served.
fn told_of(stats: Stats) -> String {
    let rates = Some(Rates::between(&stats, &stats, Duration::from_secs(1)));
    text(&Report { stats, served: true, rates, ..Report::default() }, true)
}

#[test]
fn people_see_the_way_down() {
    let text = text(&Report { stats: stats(), ..Report::default() }, true);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "mapped by volumes    40 GiB         1 volume");
    assert_eq!(lines[1], "after deduplication  10 GiB  4.00x  2,621,440 unique chunks of 4 KiB");
    assert_eq!(lines[2], "after compression     5 GiB  2.00x  lz4");
    assert_eq!(lines[3], "reduction in all             8.00x");
}

#[test]
fn a_store_that_stopped_writing_says_so_first() {
    let stats = Stats { writing_stopped: Some("the device failed".to_owned()), ..stats() };
    let text = text(&Report { stats, served: true, ..Report::default() }, true);
    assert!(text.starts_with("writing has stopped, reads go on: the device failed\n"), "{text}");
}

#[test]
fn a_store_that_is_only_read_has_not_stopped() {
    let writing_stopped = Some(engine::RequestError::StoreReadOnly.to_string());
    let stats = Stats { writing_stopped, ..stats() };
    let text = text(&Report { stats, served: true, ..Report::default() }, true);
    assert!(text.starts_with("read-only: the store is open read-only"), "{text}");
    assert!(!text.contains("stopped"), "{text}");
}

#[test]
fn snapshots_and_deletions_are_told_where_there_are_any() {
    let of = |name: &str| VolumeStats { name: name.to_owned(), ..VolumeStats::default() };
    let volumes = vec![of("v"), of("v@a"), of("v@b")];
    let stats = Stats { volumes, deletions: 3, deletions_held: 1, ..stats() };
    let told = text(&Report { stats: stats.clone(), ..Report::default() }, true);
    assert!(told.contains("  1 volume\n"), "{told}");
    let line_of = |told: &str, name: &str| {
        told.lines().find(|line| line.starts_with(name)).map(str::to_owned)
    };
    assert!(line_of(&told, "deletions").is_some_and(|line| line.contains(" 3  on their way")));
    let held = line_of(&told, "held").unwrap();
    assert!(held.contains(" 1  deleted snapshots whose clones"), "{told}");
    let line_of = |deletions, deletions_held| {
        let stats = Stats { deletions, deletions_held, ..stats.clone() };
        let told = text(&Report { stats, ..Report::default() }, true);
        told.lines().find(|line| line.starts_with("deletions")).map(str::to_owned)
    };
    assert!(line_of(3, 0).is_some_and(|line| line.contains(" 3  on their way")));
    let line = line_of(3, 0).unwrap();
    assert!(line.contains("comes back while the store is served"), "nothing runs: {line}");
    let stats = Stats { deletions: 3, ..stats.clone() };
    let told = text(&Report { stats, served: true, ..Report::default() }, true);
    assert!(told.contains("comes back in the background"), "{told}");
    assert_eq!(line_of(0, 0), None);
}

#[test]
fn one_of_anything_is_told_as_one() {
    let one = Stats { unique_chunks: 1, copied_chunks: 1, domains: 1, ..stats() };
    let told = text(&Report { stats: one, ..Report::default() }, true);
    for words in ["1 volume, 1 domain of its own", " 1 unique chunk of 4 KiB", "of 1 chunk that"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn a_percentage_is_told_when_it_is_reached() {
    let nearly = Stats { data_used_ratio: 0.798, tables_used_ratio: 0.8, ..stats() };
    let told = text(&Report { stats: nearly, ..Report::default() }, true);
    assert!(told.contains("79% used") && told.contains("80% used"), "{told}");
}

#[test]
fn second_copies_are_told_where_there_are_any() {
    let none = text(&Report { stats: stats(), ..Report::default() }, true);
    assert!(!none.contains("second copies"), "{none}");
    let stats = Stats { copied_chunks: 3, copy_bytes: 12 << 10, ..stats() };
    let told = text(&Report { stats, ..Report::default() }, true);
    let line = told.lines().find(|line| line.starts_with("second copies")).unwrap();
    assert!(line.ends_with(" 12 KiB  of 3 chunks that many share"), "{told}");
}

#[test]
fn look_ups_are_told_where_bytes_are_compared() {
    let told = |verify| {
        let counters = Counters { lookups_differ: 7, chunks_unindexed: 8, ..Counters::default() };
        told_of(Stats { verify, counters, ..stats() })
    };
    assert!(!told(false).contains("unindexed"), "{}", told(false));
    let told = told(true);
    let line = |name| told.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("other bytes").ends_with(" 7  under the fingerprint of a stored chunk"));
    assert!(line("unindexed").ends_with(" 8  new chunks without an entry in the Hash-PBN table"));
}

#[test]
fn chunks_that_were_not_looked_up_are_told_where_there_are_any() {
    let told = |lookups_skipped| {
        let counters = Counters { lookups_skipped, ..Counters::default() };
        told_of(Stats { counters, ..stats() })
    };
    assert!(!told(0).contains("not looked up"), "{}", told(0));
    let told = told(1024);
    let line = told.lines().find(|line| line.starts_with("not looked up")).unwrap();
    let end = " 4 MiB  1,024 chunks of volumes with --dedup off or auto";
    assert!(line.ends_with(end), "{told}");
}

#[test]
fn chunks_that_were_not_tried_are_told_where_there_are_any() {
    let told = |chunks_spared| {
        let counters = Counters { chunks_spared, ..Counters::default() };
        told_of(Stats { counters, ..stats() })
    };
    assert!(!told(0).contains("noise"), "{}", told(0));
    let told = told(1234);
    let line = told.lines().find(|line| line.starts_with("new frames")).unwrap();
    assert!(line.ends_with("to the device; 1,234 chunks not compressed, like noise"), "{told}");
}

#[test]
fn what_a_repair_gave_up_is_told_until_a_scrub_has_found_it_nowhere() {
    let stats = Stats { given_up_chunks: 3, ..stats() };
    let mut record = ScrubRecord::default();
    assert_eq!(lost(&Stats::default(), &record), None);
    assert!(lost(&stats, &record).unwrap().contains("abandoned 3 chunks"));
    let found = |volume: &str| {
        let (volume, lba, count, bytes) = (volume.to_owned(), 7, 2, 8192);
        let problem = Problem::LostChunks { volume, lba, count, bytes };
        ScrubFinding { problem, healed: false }
    };
    let mut run = ScrubRun::begin(false);
    let findings = vec![found("v"), found("v@s")];
    run.add(&ScrubStep { findings, given_up_chunks: 3, ..ScrubStep::default() }, 1.0);
    record.ended(run);
    assert!(lost(&stats, &record).unwrap().contains("4 chunks when last scrubbed"));
    record.repaired(1);
    assert!(lost(&stats, &record).unwrap().contains("abandoned"));
    let mut run = ScrubRun::begin(false);
    run.add(&ScrubStep { given_up_chunks: 3, ..ScrubStep::default() }, 1.0);
    record.ended(run);
    assert_eq!(lost(&stats, &record), None);
    let more = Stats { given_up_chunks: 4, ..stats };
    assert!(lost(&more, &record).is_some());
}

#[test]
fn programs_find_every_promised_key_at_the_top() {
    let json = serde_json::to_value(Report { stats: stats(), ..Report::default() });
    let json = json.unwrap();
    for key in [
        "logical_bytes",
        "unique_chunks",
        "unique_bytes",
        "stored_bytes",
        "table_bytes",
        "journal_bytes",
        "device_bytes",
        "free_bytes",
        "promised_bytes",
        "kept_bytes",
        "garbage_bytes",
        "reclaimable_bytes",
        "given_up_chunks",
        "data_used_ratio",
        "data_taken_ratio",
        "tables_used_ratio",
        "watermark_percent",
        "dedup_ratio",
        "compression_ratio",
        "reduction_ratio",
        "memory_bytes",
        "volumes",
        "deletions",
        "deletions_held",
        "copied_chunks",
        "copy_bytes",
        "written",
        "served",
        "rates",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in ["name", "size_bytes", "mapped_bytes"] {
        assert!(json["volumes"][0].get(key).is_some(), "{key}");
    }
}

#[test]
fn rates_are_differences_by_the_second() {
    let counters = Counters { writes: 50, bytes_written: 1000, ..Counters::default() };
    let second = Stats { counters, ..Stats::default() };
    let rates = Rates::between(&Stats::default(), &second, Duration::from_millis(500));
    assert!((rates.writes_per_second - 100.0).abs() < 1e-9);
    assert!((rates.written_bytes_per_second - 2000.0).abs() < 1e-9);
    let backwards = Rates::between(&second, &Stats::default(), Duration::from_millis(500));
    assert!(backwards.writes_per_second.abs() < 1e-9);
}
