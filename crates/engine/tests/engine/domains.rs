//! Volumes in keyed domains share nothing with others, in every room that makes fingerprints; and
//! the first domain of a store comes into being without a moment that harms it.

use disk::{Loss, MemoryDisk};
use engine::{
    Codec, CollectRequest, Compression, Detection, DomainSecret, FingerprintKind, NewVolume,
    OpenVolume, Problem, RequestError, ScrubPosition, ScrubRequest, SnapshotRequest, Zone, repair,
};
use format::superblock::{GEOMETRY_BLOCKS, Geometry};

use crate::stand::{
    CHUNK, Hand, Looker, MIB, Opens, Stand, Wish, check, check_clean, fresh, spoil,
};

/// More than a container holds.
const CHUNKS: u64 = 1200;
const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 3 };

/// Every strong kind, and one that compares.
fn wishes() -> impl Iterator<Item = (FingerprintKind, Wish)> {
    let kinds = FingerprintKind::ALL.into_iter().filter(|kind| kind.is_strong());
    kinds.chain([FingerprintKind::Xxh3]).map(|kind| {
        let detection = Detection { kind, verify: !kind.is_strong(), ..Default::default() };
        (kind, Wish { detection, ..Wish::default() })
    })
}

fn new_volume(name: &str, domain: Option<&str>) -> NewVolume {
    let (name, domain) = (name.to_owned(), domain.map(str::to_owned));
    NewVolume { name, size_bytes: 64 * MIB, read_only: false, domain, ..NewVolume::default() }
}

fn volume(stand: &Stand, name: &str, domain: Option<&str>) -> OpenVolume {
    let made = stand.client.ask(new_volume(name, domain)).unwrap();
    assert_eq!(made.domain.as_deref(), domain);
    let volume = stand.client.volume(name).unwrap();
    assert_eq!(volume.domain(), domain);
    volume
}

/// Half of each chunk is text, so that frames may be made anew.
fn contents() -> Vec<u8> {
    let mut bytes = fresh(1, CHUNKS * CHUNK);
    for chunk in bytes.chunks_exact_mut(CHUNK as usize) {
        let (_, text) = chunk.split_at_mut(2048);
        text.iter_mut().enumerate().for_each(|(at, byte)| *byte = b"domains "[at % 8]);
    }
    bytes
}

/// The same contents in two volumes of one domain, in one of another, and in one without.
fn filled(wish: &Wish) -> Stand {
    let stand = wish.stand();
    for (name, domain) in [("v", None), ("a", Some("A")), ("aa", Some("A")), ("b", Some("B"))] {
        let volume = volume(&stand, name, domain);
        stand.write(&volume, 0, &contents());
    }
    stand.flush();
    stand
}

/// All that is stored, written again elsewhere in each domain and in turns: nothing of it is new.
fn assert_all_found(stand: &Stand, offset_bytes: u64) {
    let volumes = ["v", "a", "aa", "b"].map(|name| stand.client.volume(name).unwrap());
    for (at, chunk) in (0..).zip(contents().chunks_exact(3 * CHUNK as usize)) {
        let at = offset_bytes + at * 3 * CHUNK;
        volumes.iter().for_each(|volume| stand.write(volume, at, chunk));
    }
    stand.flush();
    assert_eq!((stand.stats().unique_chunks, stand.stats().domains), (3 * CHUNKS, 2));
    for volume in &volumes {
        assert!(stand.read(volume, offset_bytes, CHUNKS * CHUNK) == contents());
    }
}

fn assert_scrub_finds_nothing(stand: &Stand) {
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
        let request = CollectRequest { position, recompress: Some(ZSTD) };
        position = stand.client.ask(request).unwrap().next;
        if position.is_none() {
            return;
        }
    }
}

#[test]
fn a_chunk_is_shared_inside_its_domain_only() {
    for (kind, wish) in wishes() {
        let stand = filled(&wish);
        assert_all_found(&stand, 8 * MIB);
        let stand = wish.open(stand.cut_power_flushed(5));
        assert!(stand.report.records_replayed > 0 && !stand.report.cut, "{kind}");
        assert_all_found(&stand, 16 * MIB);
        assert_scrub_finds_nothing(&stand);
        collect_all(&stand);
        assert_scrub_finds_nothing(&stand);
        assert_all_found(&stand, 24 * MIB);
        check_clean(&stand.close());
    }
}

/// Nothing but the writes: replay makes the fingerprint of every frame, in its domain.
#[test]
fn replay_believes_frames_of_every_domain() {
    for (kind, wish) in wishes() {
        let stand = filled(&wish);
        let stand = wish.open(stand.kill(3));
        assert!(stand.report.frames_checked > 0 && !stand.report.cut, "{kind}");
        assert_all_found(&stand, 8 * MIB);
        check_clean(&stand.close());
    }
}

#[test]
fn a_repair_keeps_domains_apart() {
    for (kind, wish) in wishes().filter(|(kind, _)| kind.is_strong()) {
        let disk = filled(&wish).close();
        for structure in ["directory", "young entries, leaf"] {
            spoil(&disk, structure);
        }
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert_eq!(report.lost_chunks, 0, "{kind}");
        check_clean(&disk);
        let stand = wish.open(disk);
        assert_all_found(&stand, 8 * MIB);
        assert_scrub_finds_nothing(&stand);
        let disk = stand.close();
        check_clean(&disk);
        // Numbers of domains go on where they were.
        let stand = wish.open(disk);
        volume(&stand, "c", Some("C"));
        stand.write(&stand.client.volume("c").unwrap(), 0, &contents());
        stand.flush();
        assert_eq!(stand.stats().unique_chunks, 4 * CHUNKS);
    }
}

/// Chunks of which nobody knows what they were share no chunk.
#[test]
fn what_is_lost_in_two_domains_is_not_shared_by_them() {
    let wish = Wish::default();
    // Once more, so that both roots name the maps.
    let disk = wish.open(filled(&wish).close()).close();
    let map = engine::structures(Box::new(disk.left_by_power_loss(0, Loss::None))).unwrap();
    for leaf in map.iter().filter(|structure| structure.kind == "map, leaf") {
        // Both roots may name it.
        disk.corrupt(Zone::Tables, leaf.offset_bytes + 600, |byte| *byte = 0xa5);
    }
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert!(report.lost_chunks > CHUNKS, "{report:?}");
    let left = check(&disk).problems;
    let is_lost = |problem: &Problem| matches!(problem, Problem::LostChunks { .. });
    assert!(!left.is_empty() && left.iter().all(is_lost), "{:?}", left.first());
}

/// A damaged chunk heals from a write in its own domain, and from no other.
#[test]
fn a_chunk_heals_from_its_own_domain() {
    let wish = Wish::default();
    let stand = wish.stand();
    let [a, b] = [("a", "A"), ("b", "B")].map(|(name, of)| volume(&stand, name, Some(of)));
    stand.write(&a, 0, &fresh(1, CHUNK));
    let disk = stand.close();
    let map = engine::structures(Box::new(disk.clone())).unwrap();
    let frame = map.iter().find(|structure| structure.kind.contains("frame")).unwrap();
    disk.corrupt(frame.zone, frame.offset_bytes + 100, |byte| *byte ^= 1);
    drop(b);
    let stand = wish.open(disk);
    let [a, b] = ["a", "b"].map(|name| stand.client.volume(name).unwrap());
    let request = ScrubRequest { position: ScrubPosition::default(), fingerprints: false };
    let mut position = Some(request.position);
    while let Some(at) = position {
        position = stand.client.ask(ScrubRequest { position: at, ..request }).unwrap().next;
    }
    assert_eq!(stand.stats().damaged_chunks, 1);
    stand.write(&b, 0, &fresh(1, CHUNK));
    stand.flush();
    assert_eq!(stand.stats().damaged_chunks, 1, "a chunk healed from another domain");
    stand.write(&a, CHUNK, &fresh(1, CHUNK));
    stand.flush();
    assert_eq!(stand.stats().damaged_chunks, 0);
    assert!(stand.read(&a, 0, CHUNK) == fresh(1, CHUNK));
    assert_scrub_finds_nothing(&stand);
    check_clean(&stand.close());
}

#[test]
fn snapshots_and_clones_stay_in_the_domain() {
    let wish = Wish::default();
    let stand = filled(&wish);
    let (volumes, name) = (vec!["a".to_owned()], "s".to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 1 }).unwrap();
    stand.client.clone_volume("a@s", "clone").unwrap();
    stand.client.rename_volume("clone", "copy").unwrap();
    let listed = stand.client.volumes().unwrap();
    let domains = ["a", "a@s", "copy", "v"]
        .map(|name| listed.iter().find(|volume| volume.name == name).unwrap().domain.clone());
    assert_eq!(domains, [Some("A".into()), Some("A".into()), Some("A".into()), None]);
    let clone = stand.client.volume("copy").unwrap();
    stand.write(&clone, 32 * MIB, &contents());
    stand.flush();
    assert_eq!(stand.stats().unique_chunks, 3 * CHUNKS);
    check_clean(&stand.close());
}

/// A name may come back, its chunks not: whoever has it now learns nothing of what was there.
#[test]
fn a_domain_that_has_ended_begins_anew() {
    let wish = Wish::default();
    let stand = wish.stand();
    for round in 1..=3 {
        let a = volume(&stand, "a", Some("A"));
        stand.write(&a, 0, &fresh(1, CHUNK));
        stand.flush();
        let unique = stand.stats().counters.chunks_unique;
        assert_eq!(unique, round, "a chunk of an ended domain was revived");
        drop(a);
        stand.client.delete_volume("a").unwrap();
        stand.wait_until("the deletion's end", |stats| stats.unique_chunks == 0);
        let gone = |client: &engine::Client| client.volumes().unwrap().is_empty();
        assert!(gone(&stand.client) && stand.stats().domains == 0);
        assert_scrub_finds_nothing(&stand);
        stand.wait_until("the version's end", |stats| stats.deletions == 0);
    }
    let disk = stand.close();
    check_clean(&disk);
    let stand = wish.open(disk);
    let a = volume(&stand, "a", Some("A"));
    stand.write(&a, 0, &fresh(1, CHUNK));
    stand.flush();
    assert_eq!(stand.stats().counters.chunks_unique, 1, "after another opening");
}

#[test]
fn what_cannot_be_a_domain_is_refused_and_changes_nothing() {
    let wish = Wish::default();
    let stand = wish.stand();
    for name in ["", "-a", "a/b", "a@b", &"x".repeat(65)] {
        let refused = stand.client.ask(new_volume("a", Some(name)));
        assert_eq!(refused, Err(RequestError::BadDomain { name: name.to_owned() }));
    }
    let mut bad = new_volume("a", Some("A"));
    bad.size_bytes = 1;
    assert!(matches!(stand.client.ask(bad), Err(RequestError::BadSize { .. })));
    assert_eq!(geometry(&stand.close(), 0).version, 2);
}

fn geometry(disk: &MemoryDisk, block: u64) -> Geometry {
    Geometry::decode(&disk.peek(Zone::Superblock, block * 4096, 4096)).unwrap()
}

/// The power goes at every write of the first domain's making: the store is one without domains or
/// with one, and whatever says that it is of a domain has its key.
#[test]
fn a_first_domain_may_be_cut_off_at_every_write() {
    let wish = Wish::default();
    let stand = wish.stand();
    let v = stand.volume("v", 64 * MIB);
    stand.write(&v, 0, &fresh(7, 16 * CHUNK));
    drop(v);
    let (mut hand, left) = Looker::open(&wish, stand.close());
    hand.engine.offer_secret(DomainSecret([0xd0; 32]));
    let make = |hand: &mut Hand, name: &str, domain| {
        let (tag, done) = hand.done();
        let request = new_volume(name, Some(domain));
        hand.client.administer(request, done);
        tag
    };
    // Two at once: both get what they asked for, under one secret.
    let tags = [make(&mut hand, "a", "A"), make(&mut hand, "b", "B")];
    tags.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    let a = hand.beside(|client| client.volume("a").unwrap());
    hand.write(&a, 0, &fresh(7, 16 * CHUNK));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    drop(hand);
    let mut seen = [0; 3];
    for disk in std::mem::take(&mut *left.lock().unwrap()) {
        let versions = GEOMETRY_BLOCKS.map(|block| geometry(&disk, block).version);
        seen[versions.iter().filter(|&&version| version == 3).count()] += 1;
        assert!(versions[0] >= versions[1], "the second block was raised first");
        let stand = wish.open(wish.use_again(disk));
        let volumes = stand.client.volumes().unwrap();
        let has_domain = volumes.iter().any(|volume| volume.domain.is_some());
        assert!(!has_domain || versions == [3, 3], "a domain without a durable secret");
        if let Ok(a) = stand.client.volume("a") {
            let found = stand.read(&a, 0, 16 * CHUNK);
            assert!(found == fresh(7, 16 * CHUNK) || found.starts_with(&[0; 512]));
        }
        assert_scrub_finds_nothing(&stand);
        // And a domain can be made now.
        volume(&stand, "c", Some("A"));
        check_clean(&stand.close());
    }
    assert!(seen.iter().all(|&count| count > 0), "none, one, both: {seen:?}");
}

/// Whoever opens a store and has no secret for it makes no domain, and uses those that are there.
#[test]
fn no_domain_begins_without_a_secret() {
    let wish = Wish::default();
    let stand = wish.stand();
    let v = stand.volume("v", 64 * MIB);
    stand.write(&v, 0, &fresh(7, 16 * CHUNK));
    drop(v);
    let (mut hand, _) = Looker::open(&wish, stand.close());
    let refused = hand.beside(|client| client.ask(new_volume("a", Some("A"))));
    assert_eq!(refused, Err(RequestError::NoSecret));
    let disk = hand.close();
    assert_eq!(GEOMETRY_BLOCKS.map(|block| geometry(&disk, block).version), [2, 2]);
    let stand = wish.open(disk);
    volume(&stand, "a", Some("A"));
    let (mut hand, _) = Looker::open(&wish, stand.close());
    hand.beside(|client| client.ask(new_volume("b", Some("B")))).unwrap();
    assert!(format!("{:?}", geometry(&hand.close(), 0)).contains("DomainSecret(..)"));
}
