//! A copy between volumes maps what the source maps, at its place in the order of all requests, and
//! moves no bytes.

use std::collections::BTreeMap;

use disk::{Fault, MemoryDisk};
use engine::{Client, NewVolume, OpenVolume, Reply, RequestError, SnapshotRequest, Zone};
use proptest::prelude::*;

use crate::stand::{CHUNK, Dice, Hand, Holder, MIB, Opens, Stand, Wish, cases, check_clean, fresh};

const LEAF_CHUNKS: u64 = 677;

/// A copy of `chunks`, from and to places in chunks.
fn copy(
    client: &Client,
    (from, from_lba): (&OpenVolume, u64),
    (to, to_lba): (&OpenVolume, u64),
    chunks: u64,
) -> Result<(), RequestError> {
    let [from_bytes, to_bytes, length_bytes] = [from_lba, to_lba, chunks].map(|lba| lba * CHUNK);
    client.copy_range_blocking(from, from_bytes, to, to_bytes, length_bytes, false)
}

/// The same, stepped by hand: the tag of its answer.
fn send_copy(
    hand: &mut Hand,
    (from, from_lba): (&OpenVolume, u64),
    (to, to_lba): (&OpenVolume, u64),
    chunks: u64,
) -> u64 {
    let (tag, done) = hand.done();
    let [from_bytes, to_bytes, length_bytes] = [from_lba, to_lba, chunks].map(|lba| lba * CHUNK);
    hand.client.copy_range(from, from_bytes, to, to_bytes, length_bytes, false, done);
    tag
}

fn snapshot(stand: &Stand, volume: &str, name: &str) -> OpenVolume {
    let (volumes, taken_unix_s) = (vec![volume.to_owned()], 0);
    let request = SnapshotRequest { volumes, name: name.to_owned(), taken_unix_s };
    stand.client.ask(request).unwrap();
    stand.client.volume(&format!("{volume}@{name}")).unwrap()
}

#[test]
fn the_target_maps_what_the_source_maps_and_nothing_is_stored() {
    let stand = Wish::default().stand();
    let (from, to) = (stand.volume("v", 64 * MIB), stand.volume("w", 64 * MIB));
    let bytes = fresh(1, 2000 * CHUNK);
    stand.write(&from, 3 * CHUNK, &bytes);
    stand.write(&to, 0, &fresh(2, 3000 * CHUNK));
    stand.flush();
    let before = stand.stats();
    copy(&stand.client, (&from, 3), (&to, 690), 2000).unwrap();
    stand.flush();
    let after = stand.stats();
    assert_eq!(after.counters.frame_bytes_stored, before.counters.frame_bytes_stored);
    assert_eq!(after.unique_chunks, before.unique_chunks - 2000);
    // Each goes on by itself.
    stand.write(&from, 3 * CHUNK, &fresh(3, 10 * CHUNK));
    stand.trim(&from, 20 * CHUNK, 10 * CHUNK);
    let whole = |stand: &Stand, to: &OpenVolume| {
        assert!(stand.read(to, 0, 690 * CHUNK) == fresh(2, 690 * CHUNK));
        assert!(stand.read(to, 690 * CHUNK, 2000 * CHUNK) == bytes);
        let rest = stand.read(to, 2690 * CHUNK, 310 * CHUNK);
        assert!(rest == fresh(2, 3000 * CHUNK)[2690 * CHUNK as usize..]);
    };
    whole(&stand, &to);
    let stand = Wish::default().open(stand.cut_power_flushed(7));
    whole(&stand, &stand.client.volume("w").unwrap());
    stand.client.delete_volume("v").unwrap();
    stand.wait_until("giving back", |stats| stats.deletions == 0);
    whole(&stand, &stand.client.volume("w").unwrap());
    check_clean(&stand.close());
}

#[test]
fn a_hole_of_the_source_is_a_hole_of_the_target() {
    let stand = Wish::default().stand();
    let (from, to) = (stand.volume("v", 256 * MIB), stand.volume("w", 256 * MIB));
    stand.write(&from, 0, &fresh(1, CHUNK));
    stand.write(&from, 40 * LEAF_CHUNKS * CHUNK, &fresh(2, CHUNK));
    for leaf in 0..60 {
        stand.write(&to, (leaf * LEAF_CHUNKS + 5) * CHUNK, &fresh(100 + leaf, 2 * CHUNK));
    }
    stand.flush();
    let chunks = 50 * LEAF_CHUNKS;
    copy(&stand.client, (&from, 0), (&to, 6), chunks).unwrap();
    assert!(stand.read(&to, 5 * CHUNK, CHUNK) == fresh(100, CHUNK));
    assert!(stand.read(&to, 6 * CHUNK, CHUNK) == fresh(1, CHUNK));
    assert!(stand.read(&to, (6 + 40 * LEAF_CHUNKS) * CHUNK, CHUNK) == fresh(2, CHUNK));
    stand.flush();
    // The first chunk before the range, two in it, and ten leaves behind it, of one of which the
    // range has taken the first chunk.
    let mapped = stand.client.volumes().unwrap()[1].mapped_bytes / CHUNK;
    assert_eq!(mapped, 1 + 2 + 20 - 1);
    let extents = stand.client.extents_blocking(&to, 7 * CHUNK, 39 * LEAF_CHUNKS * CHUNK, 9);
    assert!(extents.unwrap().iter().all(|extent| extent.hole));
    check_clean(&stand.close());
}

#[test]
fn what_cannot_be_copied_is_refused_and_changes_nothing() {
    let stand = Wish::default().stand();
    let client = &stand.client;
    let (from, to) = (stand.volume("v", MIB), stand.volume("w", MIB));
    stand.write(&from, 0, &fresh(1, MIB));
    let chunk_bytes = CHUNK as u32;
    let ragged = [(512, 0, CHUNK), (0, 512, CHUNK), (0, 0, CHUNK + 512)];
    for (from_bytes, to_bytes, length_bytes) in ragged {
        let refused =
            client.copy_range_blocking(&from, from_bytes, &to, to_bytes, length_bytes, false);
        assert_eq!(refused, Err(RequestError::RaggedCopy { chunk_bytes }));
    }
    let new = |name: &str, read_only, domain: Option<&str>| {
        let (name, domain) = (name.to_owned(), domain.map(str::to_owned));
        let size_bytes = MIB;
        let volume =
            NewVolume { name: name.clone(), size_bytes, read_only, domain, ..NewVolume::default() };
        client.ask(volume).unwrap();
        client.volume(&name).unwrap()
    };
    let (fixed, other) = (new("fixed", true, None), new("other", false, Some("D")));
    let named = |from: &str, to: &str| RequestError::OtherDomain {
        from: from.to_owned(),
        to: to.to_owned(),
    };
    assert_eq!(copy(client, (&from, 0), (&other, 0), 1), Err(named("v", "other")));
    assert_eq!(copy(client, (&other, 0), (&from, 0), 1), Err(named("other", "v")));
    let refused = copy(client, (&from, 0), (&fixed, 0), 1);
    assert_eq!(refused, Err(RequestError::ReadOnly { volume: "fixed".to_owned() }));
    let refused = copy(client, (&from, 0), (&from, 1), 2);
    assert_eq!(refused, Err(RequestError::OverlappingCopy { volume: "v".to_owned() }));
    for (from_lba, to_lba) in [(256, 0), (0, 256), (255, 0), (u64::MAX >> 12, 0)] {
        let refused = copy(client, (&from, from_lba), (&to, to_lba), 2);
        assert!(matches!(refused, Err(RequestError::OutOfRange { .. })), "{refused:?}");
    }
    client.delete_volume("fixed").unwrap();
    let gone = Err(RequestError::NoSuchVolume { name: "fixed".to_owned() });
    assert_eq!(copy(client, (&fixed, 0), (&to, 0), 1), gone);
    // Nothing, wherever.
    copy(client, (&from, 256), (&to, 256), 0).unwrap();
    client.copy_range_blocking(&from, 0, &to, 0, 0, true).unwrap();
    assert!(stand.read(&to, 0, MIB) == vec![0; MIB as usize]);
    assert!(stand.read(&from, 0, MIB) == fresh(1, MIB));
    copy(client, (&from, 0), (&from, 128), 128).unwrap();
    assert!(stand.read(&from, MIB / 2, MIB / 2) == fresh(1, MIB / 2));
    check_clean(&stand.close());
}

/// The writes before it are in the write buffer still, and so are those behind it.
#[test]
fn it_sees_what_was_acknowledged_before_it_and_nothing_later() {
    let mut hand = Hand::new(&Wish::default());
    let (from, to) = (hand.volume("v", MIB), hand.volume("w", MIB));
    assert_eq!(hand.write(&from, 0, &fresh(1, 8 * CHUNK)), None);
    assert_eq!(hand.write(&to, 0, &fresh(2, 10 * CHUNK)), None);
    let zeroed = hand.trim(&from, 4 * CHUNK, CHUNK);
    let copied = send_copy(&mut hand, (&from, 0), (&to, 1), 8);
    assert_eq!(hand.write(&from, 0, &fresh(3, 8 * CHUNK)), None);
    assert_eq!(hand.write(&to, CHUNK, &fresh(4, CHUNK)), None);
    // Over what the copy brings.
    let sectors = hand.write(&to, 2 * CHUNK + 512, &[7; 1024]).unwrap();
    let trimmed = hand.trim(&to, 7 * CHUNK, CHUNK);
    let back = send_copy(&mut hand, (&to, 0), (&from, 100), 10);

    let mut expected = fresh(2, 10 * CHUNK);
    let chunk = |lba: u64| (lba * CHUNK) as usize..((lba + 1) * CHUNK) as usize;
    expected[CHUNK as usize..(9 * CHUNK) as usize].copy_from_slice(&fresh(1, 8 * CHUNK));
    expected[chunk(5)].fill(0);
    expected[chunk(1)].copy_from_slice(&fresh(4, CHUNK));
    expected[chunk(2)][512..1536].fill(7);
    expected[chunk(7)].fill(0);
    assert!(hand.read(&to, 0, (10 * CHUNK) as u32) == expected);
    assert!(hand.read(&from, 0, (8 * CHUNK) as u32) == fresh(3, 8 * CHUNK));
    assert!(hand.read(&from, 100 * CHUNK, (10 * CHUNK) as u32) == expected);
    for tag in [zeroed, copied, sectors, trimmed, back] {
        assert!(matches!(hand.wait(tag), Ok(Reply::Done)));
    }
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let mut hand = Hand::open(&Wish::default(), hand.disk.crash(3));
    let [from, to] = ["v", "w"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
    assert!(hand.read(&to, 0, (10 * CHUNK) as u32) == expected);
    assert!(hand.read(&from, 100 * CHUNK, (10 * CHUNK) as u32) == expected);
    check_clean(&hand.close());
}

#[test]
fn snapshots_are_copied_from_and_targets_keep_theirs() {
    let stand = Wish::default().stand();
    let (from, to) = (stand.volume("v", 16 * MIB), stand.volume("w", 16 * MIB));
    stand.write(&from, 0, &fresh(1, 1500 * CHUNK));
    stand.write(&to, 0, &fresh(2, 1500 * CHUNK));
    let (old, kept) = (snapshot(&stand, "v", "old"), snapshot(&stand, "w", "kept"));
    stand.write(&from, 0, &fresh(3, 1500 * CHUNK));
    copy(&stand.client, (&old, 10), (&to, 0), 1400).unwrap();
    // What the parent maps at the same place, and what it maps elsewhere.
    copy(&stand.client, (&kept, 700), (&to, 700), 50).unwrap();
    copy(&stand.client, (&kept, 0), (&to, 1400), 50).unwrap();
    let last = snapshot(&stand, "w", "last");
    copy(&stand.client, (&from, 0), (&to, 0), 1500).unwrap();
    let refused = copy(&stand.client, (&from, 0), (&kept, 0), 1);
    assert_eq!(refused, Err(RequestError::ReadOnly { volume: "w@kept".to_owned() }));
    let mut expected = fresh(2, 1500 * CHUNK);
    let at = |lba: u64| (lba * CHUNK) as usize;
    expected[..at(1400)].copy_from_slice(&fresh(1, 1500 * CHUNK)[at(10)..at(1410)]);
    expected[at(700)..at(750)].copy_from_slice(&fresh(2, 1500 * CHUNK)[at(700)..at(750)]);
    expected[at(1400)..at(1450)].copy_from_slice(&fresh(2, 1500 * CHUNK)[..at(50)]);
    assert!(stand.read(&last, 0, 1500 * CHUNK) == expected);
    assert!(stand.read(&kept, 0, 1500 * CHUNK) == fresh(2, 1500 * CHUNK));
    assert!(stand.read(&to, 0, 1500 * CHUNK) == fresh(3, 1500 * CHUNK));
    drop((old, kept, from));
    stand.client.delete_volume_with_snapshots("v").unwrap();
    stand.client.delete_volume("w@kept").unwrap();
    stand.wait_until("giving back", |stats| stats.deletions == 0);
    assert!(stand.read(&last, 0, 1500 * CHUNK) == expected);
    assert!(stand.read(&to, 0, 1500 * CHUNK) == fresh(3, 1500 * CHUNK));
    check_clean(&stand.close());
}

#[test]
fn the_quota_of_the_target_holds() {
    let stand = Wish::default().stand();
    let (from, to) = (stand.volume("v", 16 * MIB), stand.volume("w", 16 * MIB));
    stand.write(&from, 0, &fresh(1, 1000 * CHUNK));
    stand.write(&to, 0, &fresh(2, 100 * CHUNK));
    stand.flush();
    stand.client.set_quota("w", Some(400 * CHUNK)).unwrap();
    let mapped = || stand.client.volumes().unwrap()[1].mapped_bytes / CHUNK;
    // Over what is mapped, it adds nothing.
    copy(&stand.client, (&from, 0), (&to, 0), 100).unwrap();
    assert_eq!(mapped(), 100);
    copy(&stand.client, (&from, 0), (&to, 200), 300).unwrap();
    assert_eq!(mapped(), 400);
    let at_quota = Err(RequestError::QuotaExceeded { volume: "w".to_owned() });
    assert_eq!(copy(&stand.client, (&from, 0), (&to, 1000), 1), at_quota);
    // Holes give some back.
    copy(&stand.client, (&from, 2000), (&to, 0), 100).unwrap();
    assert_eq!(mapped(), 300);
    // The piece in front fits.
    assert_eq!(copy(&stand.client, (&from, 0), (&to, 1300), 900), at_quota);
    assert!((300..=400).contains(&mapped()));
    let done = mapped() - 300;
    assert!(stand.read(&to, 1300 * CHUNK, done * CHUNK) == fresh(1, done * CHUNK));
    stand.client.set_quota("w", None).unwrap();
    copy(&stand.client, (&from, 0), (&to, 1300), 900).unwrap();
    check_clean(&stand.close());
}

/// A store with a leaf of volume `v`'s map that nobody can read: its second.
fn with_a_damaged_leaf() -> (MemoryDisk, Vec<u8>) {
    let stand = Wish::default().stand();
    let from = stand.volume("v", 16 * MIB);
    stand.volume("w", 16 * MIB);
    let bytes = fresh(1, 3 * LEAF_CHUNKS * CHUNK);
    stand.write(&from, 0, &bytes);
    let disk = stand.close();
    let map = engine::structures(Box::new(disk.clone())).unwrap();
    let mut leaves: Vec<_> = map.iter().filter(|found| found.kind.contains("map")).collect();
    leaves.retain(|leaf| leaf.zone == Zone::Tables);
    for leaf in &leaves {
        let (crashed, at) = (disk.left_by_kill(1), leaf.offset_bytes + leaf.length_bytes / 2);
        crashed.corrupt(leaf.zone, at, |byte| *byte ^= 0x40);
        let stand = Wish::default().open(crashed);
        let from = stand.client.volume("v").unwrap();
        let lost = |lba: u64| stand.try_read(&from, lba * CHUNK, CHUNK).is_err();
        if !lost(LEAF_CHUNKS - 1) && lost(LEAF_CHUNKS) && !lost(2 * LEAF_CHUNKS) {
            disk.corrupt(leaf.zone, at, |byte| *byte ^= 0x40);
            return (disk, bytes);
        }
    }
    panic!("no such leaf among {leaves:?}");
}

#[test]
fn a_page_that_cannot_be_read_fails_the_copy_and_names_the_chunk() {
    let (disk, bytes) = with_a_damaged_leaf();
    let stand = Wish::default().open(disk);
    let (from, to) = (stand.client.volume("v").unwrap(), stand.client.volume("w").unwrap());
    let failed = copy(&stand.client, (&from, 100), (&to, 0), 1000);
    let Err(RequestError::NotCopied { volume, lba, reason }) = failed else { panic!("{failed:?}") };
    assert_eq!((volume.as_str(), lba), ("v", LEAF_CHUNKS));
    assert!(matches!(*reason, RequestError::DamagedTable { .. }));
    let front = (LEAF_CHUNKS - 100) * CHUNK;
    let read = stand.read(&to, 0, 1000 * CHUNK);
    assert!(read[..front as usize] == bytes[(100 * CHUNK) as usize..][..front as usize]);
    assert!(read[front as usize..].iter().all(|&byte| byte == 0));
    // The store goes on.
    copy(&stand.client, (&from, 2 * LEAF_CHUNKS), (&to, 1000), 100).unwrap();
    stand.write(&to, 0, &fresh(5, CHUNK));
    stand.flush();
    stand.close();
}

#[test]
fn what_comes_behind_it_does_not_change_what_it_copies() {
    let mut hand = Hand::new(&Wish::default());
    let (from, to) = (hand.volume("v", 16 * MIB), hand.volume("w", 16 * MIB));
    let bytes = fresh(1, 1500 * CHUNK);
    hand.write(&from, 0, &bytes);
    let copied = send_copy(&mut hand, (&from, 0), (&to, 5), 1500);
    drop((from, to));
    hand.beside(|client| {
        client.resize_volume("v", MIB).unwrap();
        client.resize_volume("v", 16 * MIB).unwrap();
        client.delete_volume("v").unwrap();
    });
    assert!(matches!(hand.outcome(copied), Some(Ok(Reply::Done))));
    let to = hand.beside(|client| client.volume("w").unwrap());
    assert!(hand.read(&to, 5 * CHUNK, (1500 * CHUNK) as u32) == bytes);
    while hand.deletions() > 0 {
        hand.steps(10);
    }
    assert!(hand.read(&to, 5 * CHUNK, (1500 * CHUNK) as u32) == bytes);
    check_clean(&hand.close());
}

#[test]
fn a_volume_is_rolled_back_behind_a_copy_or_not_at_all() {
    let mut hand = Hand::new(&Wish::default());
    let (from, to) = (hand.volume("v", MIB), hand.volume("w", MIB));
    hand.write(&from, 0, &fresh(1, MIB));
    hand.beside(|client| {
        let volumes = vec!["v".to_owned(), "w".to_owned()];
        let request = SnapshotRequest { volumes, name: "s".to_owned(), taken_unix_s: 0 };
        client.ask(request).unwrap();
    });
    hand.write(&from, 0, &fresh(2, MIB));
    // The core has taken it, and it has a place in the order.
    let copied = send_copy(&mut hand, (&from, 0), (&to, 0), 256);
    let same = send_copy(&mut hand, (&from, 0), (&from, 128), 128);
    drop((from, to));
    hand.steps(1);
    hand.beside(|client| {
        client.roll_back("v@s").unwrap();
        client.roll_back("w@s").unwrap();
    });
    for tag in [copied, same] {
        assert!(matches!(hand.outcome(tag), Some(Ok(Reply::Done))));
    }
    let [from, to] = ["v", "w"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
    assert!(hand.read(&from, 0, MIB as u32) == fresh(1, MIB));
    assert!(hand.read(&to, 0, MIB as u32).iter().all(|&byte| byte == 0));
    while hand.deletions() > 0 {
        hand.steps(10);
    }
    check_clean(&hand.close());
}

/// Behind a copy that will never be applied all is read as it was before it.
#[test]
fn who_waits_for_a_copy_goes_on_when_the_writing_stops() {
    let wish = Wish::default();
    let disk = {
        let stand = wish.stand();
        let from = stand.volume("v", 16 * MIB);
        stand.volume("w", 16 * MIB);
        stand.write(&from, 0, &fresh(1, 100 * CHUNK));
        stand.close()
    };
    let (mut hand, held) = Holder::open(&wish, disk);
    let [from, to] = ["v", "w"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
    hand.write(&to, 0, &fresh(2, 2 * CHUNK));
    held.hold(Zone::Tables);
    let copied = send_copy(&mut hand, (&from, 0), (&to, 0), 100);
    let sectors = hand.write(&to, CHUNK + 512, &[7; 512]).unwrap();
    let (read, done) = hand.done();
    hand.client.read(&to, 0, (3 * CHUNK) as u32, done);
    let (extents, done) = hand.done();
    hand.client.extents(&to, 0, 16 * MIB, 9, done);
    hand.steps(50);
    for tag in [copied, sectors, read, extents] {
        assert!(hand.outcome(tag).is_none(), "{tag}");
    }
    hand.disk.inject(Fault::Sync { zone: Zone::Journal });
    let flushed = hand.flush();
    for _ in 0..20 {
        hand.steps(50);
        hand.engine.tick();
    }
    assert!(hand.outcome(copied).unwrap().is_err() && hand.wait(flushed).is_err());
    held.let_go();
    let mut expected = fresh(2, 3 * CHUNK);
    expected[(2 * CHUNK) as usize..].fill(0);
    expected[CHUNK as usize + 512..CHUNK as usize + 1024].fill(7);
    assert!(hand.bytes_of(read) == expected);
    assert!(matches!(hand.wait(extents), Ok(Reply::Extents(_))));
}

/// It takes a while: everybody's writes wait for room meanwhile, and so do copies.
#[test]
fn a_full_store_refuses_it_and_one_with_room_again_does_not() {
    let stand = Wish::default().stand();
    let (from, to) = (stand.volume("v", 256 * MIB), stand.volume("w", 256 * MIB));
    let mut written = 0;
    let refused = loop {
        match stand.client.write_at(&from, written * MIB, &fresh(written, MIB)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, RequestError::NoSpace);
    let copied = copy(&stand.client, (&from, 0), (&to, 0), 1000);
    assert!(matches!(copied, Ok(()) | Err(RequestError::NoSpace)), "{copied:?}");
    stand.trim(&from, (written - 8) * MIB, 8 * MIB);
    copy(&stand.client, (&from, 0), (&to, 0), 1000).unwrap();
    assert!(stand.read(&to, 0, MIB) == fresh(0, MIB));
    check_clean(&stand.close());
}

/// Wherever the power goes, what is in front of a long copy is done, and nothing else.
#[test]
fn a_crash_keeps_the_pieces_in_front() {
    let wish = Wish::default();
    let chunks = 30 * LEAF_CHUNKS;
    let mut stand = wish.stand();
    let from = stand.volume("v", 128 * MIB);
    stand.volume("w", 128 * MIB);
    for leaf in 0..30 {
        stand.write(&from, (leaf * LEAF_CHUNKS + 300) * CHUNK, &fresh(leaf, 2 * CHUNK));
    }
    drop(from);
    let mut partly = 0;
    for seed in 0..20 {
        let disk = stand.cut_power_flushed(seed);
        let mut hand = Hand::open(&wish, disk);
        let [from, to] =
            ["v", "w"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
        let trimmed = hand.trim(&to, 0, 128 * MIB);
        hand.wait(trimmed).unwrap();
        let flushed = hand.flush();
        hand.wait(flushed).unwrap();
        send_copy(&mut hand, (&from, 0), (&to, 17), chunks);
        hand.steps(seed / 2);
        stand = wish.open(hand.disk.crash(seed));
        let to = stand.client.volume("w").unwrap();
        let is_there = |leaf: u64| {
            let read = stand.read(&to, (leaf * LEAF_CHUNKS + 317) * CHUNK, 2 * CHUNK);
            assert!(read == fresh(leaf, 2 * CHUNK) || read.iter().all(|&byte| byte == 0));
            read == fresh(leaf, 2 * CHUNK)
        };
        let there: Vec<bool> = (0..30).map(is_there).collect();
        assert!(there.is_sorted_by(|one, next| one >= next), "{there:?}");
        partly += u32::from(there[0] && !there[29]);
    }
    assert!(partly > 0);
    check_clean(&stand.close());
}

const MODEL_CHUNKS: u64 = 60;
const NAMES: [&str; 2] = ["v", "w"];

/// What the volumes hold, chunk by chunk; absent is zeros.
type Model = BTreeMap<(usize, u64), Vec<u8>>;

fn modelled(model: &Model, volume: usize, lba: u64) -> Vec<u8> {
    model.get(&(volume, lba)).cloned().unwrap_or_else(|| vec![0; CHUNK as usize])
}

fn assert_modelled(hand: &mut Hand, handles: &[OpenVolume; 2], model: &Model) {
    for (volume, handle) in handles.iter().enumerate() {
        let read = hand.read(handle, 0, (MODEL_CHUNKS * CHUNK) as u32);
        for (lba, chunk) in (0..).zip(read.chunks(CHUNK as usize)) {
            assert!(chunk == modelled(model, volume, lba), "chunk {lba} of {}", NAMES[volume]);
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Writes, parts of chunks, trims, copies and snapshots, each met by the others at any stage.
    #[test]
    fn any_order_of_requests_is_that_of_a_plain_model(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let wish = Wish { copies_above: 3, seed, ..Wish::default() };
        let mut hand = Hand::new(&wish);
        let handles = NAMES.map(|name| hand.volume(name, MODEL_CHUNKS * CHUNK));
        let mut model = Model::new();
        for number in 0..80 {
            let (volume, lba) = (dice.below(2) as usize, dice.below(MODEL_CHUNKS - 12));
            let chunks = 1 + dice.below(12);
            match dice.below(8) {
                0..2 => {
                    let bytes = fresh(number, chunks * CHUNK);
                    hand.write(&handles[volume], lba * CHUNK, &bytes);
                    for (at, chunk) in (lba..).zip(bytes.chunks(CHUNK as usize)) {
                        model.insert((volume, at), chunk.to_vec());
                    }
                }
                2 => {
                    hand.write(&handles[volume], lba * CHUNK + 1024, &[number as u8; 512]);
                    let mut chunk = modelled(&model, volume, lba);
                    chunk[1024..1536].fill(number as u8);
                    model.insert((volume, lba), chunk);
                }
                3 => {
                    hand.trim(&handles[volume], lba * CHUNK, chunks * CHUNK);
                    model.retain(|&(of, at), _| of != volume || !(lba..lba + chunks).contains(&at));
                }
                4..7 => {
                    let (to, to_lba) = (dice.below(2) as usize, dice.below(MODEL_CHUNKS - 12));
                    if to == volume && lba.abs_diff(to_lba) < chunks {
                        continue;
                    }
                    send_copy(&mut hand, (&handles[volume], lba), (&handles[to], to_lba), chunks);
                    for at in 0..chunks {
                        match model.get(&(volume, lba + at)).cloned() {
                            Some(chunk) => model.insert((to, to_lba + at), chunk),
                            None => model.remove(&(to, to_lba + at)),
                        };
                    }
                }
                _ => {
                    let name = NAMES[volume].to_owned();
                    hand.beside(move |client| {
                        let name = (vec![name], number.to_string());
                        let request =
                            SnapshotRequest { volumes: name.0, name: name.1, taken_unix_s: 0 };
                        client.ask(request).unwrap();
                    });
                }
            }
            hand.steps(dice.below(6));
            if dice.below(6) == 0 {
                assert_modelled(&mut hand, &handles, &model);
            }
        }
        let flushed = hand.flush();
        hand.wait(flushed).unwrap();
        let mut hand = Hand::open(&wish, hand.disk.crash(seed));
        let handles = NAMES.map(|name| hand.beside(move |client| client.volume(name).unwrap()));
        assert_modelled(&mut hand, &handles, &model);
        check_clean(&hand.close());
    }
}
