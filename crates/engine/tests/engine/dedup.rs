//! Volumes without deduplication: what is written to them is stored each time, found by nobody, and
//! in all else a chunk like any other; and the first of a store comes without a moment that harms.

use disk::MemoryDisk;
use engine::{
    Address, CollectRequest, Dedup, NewVolume, OpenVolume, RequestError, ScrubPosition,
    ScrubRequest, SnapshotRequest, VolumeInfo, repair,
};
use format::superblock::{GEOMETRY_BLOCKS, Geometry};

use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, check_clean, fresh, spoil};

/// More than a container holds.
const CHUNKS: u64 = 1200;

fn volume(stand: &Stand, name: &str, dedup: Dedup) -> OpenVolume {
    let (name, size_bytes) = (name.to_owned(), 64 * MIB);
    let new = NewVolume { name: name.clone(), size_bytes, ..NewVolume::default() };
    stand.client.ask(new).unwrap();
    assert_eq!(stand.client.set_dedup(&name, dedup).unwrap().dedup, dedup);
    stand.client.volume(&name).unwrap()
}

fn contents() -> Vec<u8> {
    fresh(1, CHUNKS * CHUNK)
}

/// The same contents twice in `a`, once in `b`, and once in `v`, which looks for duplicates.
fn filled(wish: &Wish) -> Stand {
    let stand = wish.stand();
    let (a, b) = (volume(&stand, "a", Dedup::Off), volume(&stand, "b", Dedup::Off));
    stand.write(&a, 0, &contents());
    stand.write(&a, 8 * MIB, &contents());
    stand.write(&b, 0, &contents());
    stand.write(&volume(&stand, "v", Dedup::On), 0, &contents());
    stand.flush();
    stand
}

fn assert_reads(stand: &Stand) {
    for (name, offset_bytes) in [("a", 0), ("a", 8 * MIB), ("b", 0), ("v", 0)] {
        let volume = stand.client.volume(name).unwrap();
        let read = stand.read(&volume, offset_bytes, CHUNKS * CHUNK);
        assert!(read == contents(), "{name} at {offset_bytes}");
    }
}

fn scrub_finds_nothing(stand: &Stand) {
    let mut position = Some(ScrubPosition::default());
    while let Some(at) = position {
        let request = ScrubRequest { position: at, fingerprints: true };
        let step = stand.client.ask(request).unwrap();
        assert!(step.findings.is_empty(), "{:?}", step.findings);
        position = step.next;
    }
}

fn collect_all(stand: &Stand) {
    let mut position = None;
    loop {
        let request = CollectRequest { position, recompress: None };
        position = stand.client.ask(request).unwrap().next;
        if position.is_none() {
            return;
        }
    }
}

#[test]
fn every_chunk_is_stored_and_none_is_found() {
    let stand = filled(&Wish::default());
    let stats = stand.stats();
    assert_eq!(stats.unique_chunks, 4 * CHUNKS);
    assert_eq!(stats.counters.lookups_skipped, 3 * CHUNKS);
    // What looks for duplicates finds what was entered, and nothing else.
    stand.write(&stand.client.volume("v").unwrap(), 16 * MIB, &contents());
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, 4 * CHUNKS);
    let aside = |name: &str| {
        let explained = stand.client.explain(name, Address::Lba(3)).unwrap();
        explained.chunk.unwrap().place.unwrap().frame.unwrap().unindexed
    };
    assert_eq!([aside("a"), aside("b"), aside("v")], [true, true, false]);
    scrub_finds_nothing(&stand);
    assert_reads(&stand);
    let disk = stand.close();
    check_clean(&disk);
    let stand = Wish::default().open(disk);
    assert_reads(&stand);
    // It still is off, and a clone of it too.
    let request = SnapshotRequest { volumes: vec!["a".into()], name: "s".into(), taken_unix_s: 1 };
    stand.client.ask(request).unwrap();
    assert_eq!(stand.client.clone_volume("a@s", "c").unwrap().dedup, Dedup::Off);
    stand.write(&stand.client.volume("c").unwrap(), 0, &contents());
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, 5 * CHUNKS);
    check_clean(&stand.close());
}

#[test]
fn the_switch_is_about_what_is_written_later() {
    let stand = filled(&Wish::default());
    assert_eq!(stand.client.set_dedup("a", Dedup::On).unwrap().dedup, Dedup::On);
    stand.write(&stand.client.volume("a").unwrap(), 24 * MIB, &contents());
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, 4 * CHUNKS);
    // What v has as well is not lost with it, nor its entry with what is aside.
    stand.client.delete_volume("b").unwrap();
    stand.client.delete_volume("a").unwrap();
    stand.wait_until("both have been given back", |stats| stats.deletions == 0);
    collect_all(&stand);
    stand.write(&stand.client.volume("v").unwrap(), 32 * MIB, &contents());
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, CHUNKS);
    check_clean(&stand.close());
}

#[test]
fn moves_repairs_and_replays_keep_chunks_aside() {
    let wish = Wish::default();
    let stand = filled(&wish);
    // Moved records and frames that no sync covers are judged without an entry.
    collect_all(&stand);
    assert_reads(&stand);
    let disk = stand.kill(3);
    check_clean(&disk);
    let disk = wish.open(disk).close();
    for structure in ["young entries, leaf", "directory", "PBN-PBA table, leaf"] {
        spoil(&disk, structure);
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert_eq!(report.lost_chunks, 0, "{structure}");
        check_clean(&disk);
    }
    let stand = wish.open(disk);
    assert_reads(&stand);
    scrub_finds_nothing(&stand);
    check_clean(&stand.close());
}

/// Contents of which nobody else has any.
const FRESH_CHUNKS: u64 = 4 << 10;

fn info_of(stand: &Stand, name: &str) -> VolumeInfo {
    stand.client.volumes().unwrap().into_iter().find(|volume| volume.name == name).unwrap()
}

#[test]
fn auto_stops_looking_where_nothing_repeats_and_begins_again_where_something_does() {
    let wish = Wish::default();
    let stand = wish.stand();
    let a = volume(&stand, "a", Dedup::Auto);
    let bytes = fresh(7, FRESH_CHUNKS * CHUNK);
    let info = || info_of(&stand, "a");
    assert!(info().dedup_active);
    stand.write(&a, 0, &bytes);
    stand.flush();
    let (once, stats) = (info(), stand.stats());
    assert!(!once.dedup_active);
    assert_eq!((stats.unique_chunks, stats.counters.chunks_duplicate), (FRESH_CHUNKS, 0));
    assert_eq!(once.unindexed_chunks, stats.counters.lookups_skipped);
    let entered = FRESH_CHUNKS - once.unindexed_chunks;
    assert!(entered < FRESH_CHUNKS / 2, "{entered}");
    // The same again: what judged is found, then all are looked for, and entered.
    stand.write(&a, FRESH_CHUNKS * CHUNK, &bytes);
    stand.flush();
    let (twice, stats) = (info(), stand.stats());
    assert!(twice.dedup_active);
    let missed = FRESH_CHUNKS - stats.counters.chunks_duplicate;
    assert!((once.unindexed_chunks..FRESH_CHUNKS).contains(&missed), "{missed}");
    let before = stats.counters.chunks_duplicate;
    stand.write(&a, 2 * FRESH_CHUNKS * CHUNK, &bytes);
    stand.flush();
    assert_eq!(stand.stats().counters.chunks_duplicate - before, FRESH_CHUNKS);
    for pass in 0..3 {
        let read = stand.read(&a, pass * FRESH_CHUNKS * CHUNK, FRESH_CHUNKS * CHUNK);
        assert!(read == bytes, "pass {pass}");
    }
    scrub_finds_nothing(&stand);
    let disk = stand.close();
    check_clean(&disk);
    // It stays so, and begins anew.
    let stand = wish.open(disk);
    let info = info_of(&stand, "a");
    assert_eq!((info.dedup, info.dedup_active, info.unindexed_chunks), (Dedup::Auto, true, 0));
}

#[test]
fn what_has_no_switch_is_refused_and_changes_nothing() {
    let stand = Wish::default().stand();
    volume(&stand, "v", Dedup::On);
    let request = SnapshotRequest { volumes: vec!["v".into()], name: "s".into(), taken_unix_s: 1 };
    stand.client.ask(request).unwrap();
    let refused = stand.client.set_dedup("v@s", Dedup::Auto).unwrap_err();
    assert!(matches!(refused, RequestError::NotAVolume { .. }), "{refused}");
    let refused = stand.client.set_dedup("w", Dedup::Off).unwrap_err();
    assert!(matches!(refused, RequestError::NoSuchVolume { .. }), "{refused}");
    // On is what it is, and takes nothing to say so.
    assert_eq!(stand.client.set_dedup("v", Dedup::On).unwrap().dedup, Dedup::On);
    let disk = stand.close();
    assert!(GEOMETRY_BLOCKS.iter().all(|&block| !geometry(&disk, block).detection.asides));
    // The others are said in the geometry first.
    for dedup in [Dedup::Off, Dedup::Auto] {
        let stand = Wish::default().stand();
        volume(&stand, "v", dedup);
        let disk = stand.close();
        for block in GEOMETRY_BLOCKS {
            let geometry = geometry(&disk, block);
            assert_eq!((geometry.detection.asides, geometry.version), (true, 3));
        }
    }
}

fn geometry(disk: &MemoryDisk, block: u64) -> Geometry {
    let bytes = disk.peek(engine::Zone::Superblock, block * 4096, 4096);
    Geometry::decode(&bytes).unwrap()
}
