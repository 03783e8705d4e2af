//! Scrub beside a page of the tables that cannot be had: what the page says is not known, and
//! nothing may be written as if it said nothing.

use disk::{Fault, MemoryDisk};
use engine::{Caches, Problem, ScrubFinding, ScrubPosition, ScrubStep, Structure, Zone, repair};

use crate::scrub::{filled, place_of, scrub, scrub_from, sentences, spoil};
use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);
const CHUNKS: u64 = 3000;
const COPIED: u64 = 2500;
const PER_PAGE: u64 = format::pba_page::SLOTS as u64;
const COPIES: &str = "table of second copies, leaf";
const CONTAINERS: ScrubPosition = ScrubPosition::Containers { container: 0 };
/// The containers, each with its directory.
const SEALED_BYTES: usize = 12 << 20;

/// A closed store without an open container: an opening brings no page of places into the cache.
fn closed() -> MemoryDisk {
    let disk = filled(CHUNKS).0.close();
    spoil_middle(&disk, &structure(&disk, "PBN-PBA table, leaf", 0));
    // It seals all that is open.
    repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    check_clean(&disk);
    disk
}

/// The structure of this number among those of a kind.
fn structure(disk: &MemoryDisk, kind: &str, number: usize) -> Structure {
    let map = engine::structures(Box::new(disk.clone())).unwrap();
    map.into_iter().filter(|structure| structure.kind == kind).nth(number).unwrap()
}

fn spoil_middle(disk: &MemoryDisk, structure: &Structure) {
    spoil(disk, structure.zone, structure.offset_bytes + structure.length_bytes / 2);
}

fn is_about_a_page(finding: &ScrubFinding) -> bool {
    let problem = &finding.problem;
    matches!(problem, Problem::DamagedPage { .. } | Problem::DamagedInnerPage { .. })
}

fn directories_found(found: &ScrubStep) -> usize {
    let is_directory =
        |finding: &&ScrubFinding| matches!(finding.problem, Problem::Directory { .. });
    found.findings.iter().filter(is_directory).count()
}

/// Containers that were not judged whole.
fn unjudged(found: &ScrubStep) -> Vec<u32> {
    let container = |finding: &ScrubFinding| match finding.problem {
        Problem::UnjudgedContainer { container } => Some(container),
        _ => None,
    };
    found.findings.iter().filter_map(container).collect()
}

fn assert_all_there(stand: &Stand) {
    let volume = stand.client.volume("a").unwrap();
    for number in 0..CHUNKS {
        let read = stand.read(&volume, number * CHUNK, CHUNK);
        assert!(read == fresh(number, CHUNK), "chunk {number}");
    }
}

#[test]
fn a_lost_page_of_places_costs_no_directory_and_a_repair_finds_every_chunk() {
    for (kind, directory_too) in [
        ("PBN-PBA table, leaf", false),
        ("PBN-PBA table, leaf", true),
        ("PBN-PBA table, inner page", false),
        ("PBN-PBA table, inner page", true),
    ] {
        let disk = closed();
        let page = structure(&disk, kind, usize::from(kind.ends_with("leaf")));
        if directory_too {
            spoil(&disk, DATA, 4 * MIB - 30);
        }
        let before = disk.peek(DATA, 0, SEALED_BYTES);
        let stand = Wish::default().open(disk);
        spoil_middle(&stand.disk, &page);
        let found = scrub(&stand.client, true);
        let told = sentences(&found.findings);
        let disk = stand.close();
        assert!(disk.peek(DATA, 0, SEALED_BYTES) == before, "{kind}: {told:?}");
        assert!(found.findings.iter().all(|finding| !finding.healed), "{kind}: {told:?}");
        assert!(found.findings.iter().any(is_about_a_page), "{kind}: {told:?}");
        assert_eq!(directories_found(&found), usize::from(directory_too), "{kind}: {told:?}");
        assert!(unjudged(&found).contains(&0), "{kind}: {told:?}");

        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert_eq!(report.lost_chunks, 0, "{kind}: {:?}", report.found);
        check_clean(&disk);
        assert_all_there(&Wish::default().open(disk));
    }
}

#[test]
fn a_page_that_could_not_be_read_once_costs_no_directory() {
    let disk = closed();
    let Structure { zone, offset_bytes, .. } = structure(&disk, "PBN-PBA table, leaf", 1);
    let before = disk.peek(DATA, 0, SEALED_BYTES);
    let stand = Wish::default().open(disk);
    stand.disk.inject(Fault::Read { zone, offset_bytes });
    let found = scrub_from(&stand.client, CONTAINERS, false);
    let told = sentences(&found.findings);
    assert_eq!((unjudged(&found), told.len()), (vec![0], 1), "{told:?}");
    stand.disk.heal();
    let disk = stand.close();
    assert!(disk.peek(DATA, 0, SEALED_BYTES) == before);
    check_clean(&disk);
    let stand = Wish::default().open(disk);
    assert_eq!(sentences(&scrub(&stand.client, true).findings), Vec::<String>::new());
    assert_all_there(&stand);
}

#[test]
fn a_page_that_could_not_be_read_once_is_used_again_when_a_scrub_has_read_it() {
    for kind in ["PBN-PBA table, leaf", "PBN-PBA table, inner page", "map, leaf"] {
        let disk = closed();
        let Structure { zone, offset_bytes, .. } = structure(&disk, kind, 0);
        let stand = Wish::default().open(disk);
        stand.disk.inject(Fault::Read { zone, offset_bytes });
        let volume = stand.client.volume("a").unwrap();
        assert!(stand.try_read(&volume, CHUNK, CHUNK).is_err(), "{kind}");
        stand.disk.heal();
        let found = scrub(&stand.client, false);
        assert_eq!(sentences(&found.findings), Vec::<String>::new(), "{kind}");
        assert_eq!(found.frames, CHUNKS, "{kind}");
        assert_all_there(&stand);
    }
}

/// A store whose chunks are all stored twice, and what opens it with hardly a cache.
fn copied() -> (Wish, MemoryDisk) {
    let wish = Wish { copies_above: 1, ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("a", 64 * MIB);
    for number in 0..COPIED {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    for number in 0..COPIED {
        stand.write(&volume, 32 * MIB + number * CHUNK, &fresh(number, CHUNK));
    }
    stand.flush();
    stand.wait_until("second copies", |stats| stats.copied_chunks == COPIED);
    let (directory_entries, frame_bytes, lends) = (0, 0, false);
    let (pages, dirty_pages_max, young_max) = (8, 6, 10_000);
    let cache = Caches { pages, dirty_pages_max, young_max, directory_entries, frame_bytes, lends };
    (Wish { cache: Some(cache), ..wish }, stand.close())
}

/// Also when it is known that the page of copies is lost, and the page of places has not come yet.
#[test]
fn a_lost_page_of_second_copies_hides_no_chunk_from_a_scrub() {
    let (wish, disk) = copied();
    spoil_middle(&disk, &structure(&disk, COPIES, 0));
    let before = disk.peek(DATA, 0, SEALED_BYTES);
    let stand = wish.open(disk);
    let volume = stand.client.volume("a").unwrap();
    let look = || {
        let found = scrub_from(&stand.client, CONTAINERS, false);
        let told = sentences(&found.findings);
        assert_eq!(directories_found(&found), 0, "{told:?}");
        // All but second copies, of which nothing is known.
        assert!(found.frames >= 2 * COPIED - PER_PAGE, "{found:?}");
        assert_eq!(unjudged(&found).len(), told.len(), "{told:?}");
        // Other pages take the place in the cache.
        (300..COPIED).for_each(|number| drop(stand.read(&volume, number * CHUNK, CHUNK)));
        unjudged(&found)
    };
    let first = look();
    assert!(!first.is_empty() && !first.contains(&0), "{first:?}");
    assert_eq!(look(), first);
    assert!(stand.close().peek(DATA, 0, SEALED_BYTES) == before);
}

/// Where a page that the change needs is lost, a recovery could not make it.
#[test]
fn nothing_heals_by_a_change_that_needs_a_lost_page() {
    let (wish, disk) = copied();
    let lost = COPIED / PER_PAGE;
    let page = structure(&disk, COPIES, lost as usize);
    let stand = wish.open(disk);
    let volume = stand.client.volume("a").unwrap();
    for number in COPIED..COPIED + 50 {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    stand.flush();
    // Other pages take the place in the cache.
    (0..lost * PER_PAGE).for_each(|number| drop(stand.read(&volume, number * CHUNK, CHUNK)));
    spoil_middle(&stand.disk, &page);
    spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(COPIED + 10, CHUNK)) + 300);
    let found = scrub_from(&stand.client, CONTAINERS, false);
    let told = sentences(&found.findings);
    let is_frame =
        |finding: &&ScrubFinding| matches!(finding.problem, Problem::DamagedFrame { .. });
    let frames: Vec<_> = found.findings.iter().filter(is_frame).collect();
    assert!(frames.len() == 1 && !frames[0].healed, "{told:?}");
}
