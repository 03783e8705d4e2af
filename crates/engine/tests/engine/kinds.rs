//! A store made with any kind of fingerprint finds its duplicates, by that kind, in every room that
//! makes fingerprints: writing, replay, scrub, mending, repair, explaining.

use engine::{Address, Caches, CreateOptions, Detection, FingerprintKind, PlanError, Zone, repair};
use format::detection::FilterBlocks;
use reduce::Fingerprinter;

use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, check_clean, fresh, spoil};

/// More than a container holds.
const CHUNKS: u64 = 1200;

/// Kinds that need no comparing.
fn wishes() -> impl Iterator<Item = (FingerprintKind, Wish)> {
    let strong = FingerprintKind::ALL.into_iter().filter(|kind| kind.is_strong());
    strong.map(|kind| {
        let detection = Detection { kind, verify: false, ..Default::default() };
        (kind, Wish { detection, ..Wish::default() })
    })
}

fn filled(wish: &Wish) -> Stand {
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, CHUNKS * CHUNK));
    stand.flush();
    stand
}

/// All that is stored, written again elsewhere: nothing of it is new.
fn assert_all_found(stand: &Stand, offset_bytes: u64) {
    let volume = stand.client.volume("v").unwrap();
    stand.write(&volume, offset_bytes, &fresh(1, CHUNKS * CHUNK));
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, CHUNKS);
}

fn assert_named_by(stand: &Stand, kind: FingerprintKind) {
    let told = stand.client.explain("v", Address::Lba(7)).unwrap();
    let frame = told.chunk.unwrap().place.unwrap().frame.unwrap();
    let chunk = &fresh(1, CHUNKS * CHUNK)[7 * CHUNK as usize..][..CHUNK as usize];
    let expected = Fingerprinter::new(kind).one(chunk).unwrap();
    assert_eq!((frame.fingerprint, frame.named_pbn.is_some()), (expected.to_string(), true));
}

#[test]
fn duplicates_are_found_before_and_after_a_power_loss() {
    for (kind, wish) in wishes() {
        let stand = filled(&wish);
        assert_all_found(&stand, 8 * MIB);
        assert_eq!(
            (stand.stats().fingerprint.as_str(), stand.stats().verify),
            (kind.name(), false)
        );
        assert_named_by(&stand, kind);
        let stand = wish.open(stand.cut_power_flushed(5));
        assert!(stand.report.records_replayed > 0 && !stand.report.cut, "{kind}");
        assert_all_found(&stand, 16 * MIB);
        let disk = stand.close();
        assert_eq!(check_clean(&disk).stored_chunks, CHUNKS, "{kind}");
    }
}

/// A power loss before anything else than the writes was durable: replay fingerprints every frame.
#[test]
fn replay_believes_frames_by_their_fingerprints() {
    for (kind, wish) in wishes() {
        let stand = filled(&wish);
        let stand = wish.open(stand.kill(3));
        assert!(stand.report.frames_checked > 0 && !stand.report.cut, "{kind}");
        assert_all_found(&stand, 8 * MIB);
        check_clean(&stand.close());
    }
}

#[test]
fn a_repair_names_chunks_as_the_store_does() {
    for (kind, wish) in wishes() {
        let disk = filled(&wish).close();
        for structure in ["directory", "young entries, leaf"] {
            spoil(&disk, structure);
        }
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert_eq!(report.lost_chunks, 0, "{kind}");
        check_clean(&disk);
        let stand = wish.open(disk);
        assert_all_found(&stand, 8 * MIB);
        assert_named_by(&stand, kind);
        check_clean(&stand.close());
    }
}

/// Whatever the filters take, all is found: as it was written, opened again, and made again.
#[test]
fn filters_of_every_size_deny_nothing_that_is_stored() {
    let mut filter_bytes = Vec::new();
    for bits in [3, 10, 26] {
        let filter = FilterBlocks::nearest_to(bits).unwrap();
        let detection = Detection { filter, ..Default::default() };
        let cache = Caches {
            pages: 4096,
            dirty_pages_max: 64,
            young_max: 100,
            directory_entries: 0,
            frame_bytes: 1 << 20,
            lends: false,
        };
        let wish = Wish { detection, cache: Some(cache), ..Wish::default() };
        let stand = filled(&wish);
        filter_bytes.push(stand.stats().tables.filter_bytes);
        assert_all_found(&stand, 8 * MIB);
        let disk = stand.close();
        check_clean(&disk);
        let stand = wish.open(disk);
        assert_all_found(&stand, 16 * MIB);
        let disk = stand.close();
        spoil(&disk, "young entries, leaf");
        repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        check_clean(&disk);
        assert_all_found(&wish.open(disk), 24 * MIB);
    }
    assert!(filter_bytes[0] > 0 && filter_bytes[0] < filter_bytes[2], "{filter_bytes:?}");
}

/// The directory of a killed store's sealed container is made again from its frames.
#[test]
fn a_scrub_with_fingerprints_finds_nothing_wrong() {
    for (kind, wish) in wishes() {
        let stand = filled(&wish);
        let footer_at = 4 * MIB - 30;
        stand.disk.corrupt(Zone::Data(0), footer_at, |byte| *byte ^= 1);
        let mut position = Some(engine::ScrubPosition::default());
        let mut frames = 0;
        let mut findings = Vec::new();
        while let Some(at) = position {
            let request = engine::ScrubRequest { position: at, fingerprints: true };
            let step = stand.client.ask(request).unwrap();
            frames += step.frames;
            findings.extend(step.findings);
            position = step.next;
        }
        assert_eq!(frames, CHUNKS, "{kind}");
        assert!(findings.iter().all(|finding| finding.healed), "{kind}: {findings:?}");
        assert_eq!(findings.len(), 1, "{kind}: {findings:?}");
        check_clean(&stand.close());
    }
}

#[test]
fn a_fingerprint_that_two_chunks_may_share_is_no_name() {
    let options = |detection| CreateOptions {
        capacity_bytes: vec![128 * MIB],
        chunk_bytes: CHUNK as u32,
        compression: Wish::default().compression,
        detection,
        tables_bytes: None,
        journal_bytes: None,
        uuid: [3; 16],
        bucket_seed: [5; 16],
    };
    for kind in FingerprintKind::ALL {
        let planned =
            engine::plan(&options(Detection { kind, verify: false, ..Default::default() }));
        let weak = || PlanError::Weak { kind };
        assert_eq!(planned.err(), (!kind.is_strong()).then(weak), "{kind}");
    }
}
