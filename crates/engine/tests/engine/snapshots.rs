//! Versions of volumes against plain copies of their contents: whatever is taken, cloned, rolled
//! back, trimmed, overwritten and deleted in whatever order, each reads as its copy, and every
//! reference, byte and figure is what an independent count says.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    Ask, DeleteRequest, NewVolume, OpenVolume, Opener, Origin, Reply, RequestError,
    SnapshotRequest, Zone, control,
};

use crate::stand::{CHUNK, Dice, Hand, Holder, MIB, Opens, Stand, Wish, check_clean, fresh, spoil};

/// A leaf of a map covers so many chunks.
const LEAF_CHUNKS: u64 = 677;

fn snap(stand: &Stand, volumes: &[&str], name: &str) {
    let volumes = volumes.iter().map(|&volume| volume.to_owned()).collect();
    let request = SnapshotRequest { volumes, name: name.to_owned(), taken_unix_s: 7 };
    stand.client.ask(request).unwrap();
}

fn open(stand: &Stand, name: &str) -> OpenVolume {
    stand.client.volume(name).unwrap()
}

fn settled(stand: &Stand) {
    stand.wait_until("the end of all deletions", |stats| stats.deletions == 0);
}

#[test]
fn a_snapshot_stays_what_it_was() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, 4 * MIB));
    snap(&stand, &["v"], "one");
    stand.write(&volume, MIB, &fresh(2, MIB));
    stand.client.trim_blocking(&volume, 2 * MIB, MIB).unwrap();
    let one = open(&stand, "v@one");
    assert!(one.read_only() && one.is_snapshot() && one.name() == "v@one");
    assert_eq!(stand.read(&one, 0, 4 * MIB), fresh(1, 4 * MIB));
    assert_eq!(stand.read(&volume, MIB, MIB), fresh(2, MIB));
    let refused = stand.client.write_at(&one, 0, &[1; 512]).unwrap_err();
    assert_eq!(refused, RequestError::ReadOnly { volume: "v@one".to_owned() });
    assert_eq!(stand.stats().logical_bytes, 3 * MIB, "snapshots are not counted");
    assert_eq!(stand.stats().unique_chunks, 5 * MIB / CHUNK);
    drop((one, volume));
    let stand = Wish::default().open(stand.close());
    assert_eq!(stand.read(&open(&stand, "v@one"), 0, 4 * MIB), fresh(1, 4 * MIB));
    stand.client.delete_volume("v@one").unwrap();
    settled(&stand);
    assert_eq!(stand.stats().unique_chunks, 3 * MIB / CHUNK);
    check_clean(&stand.close());
}

/// What a snapshot is a copy of stays known, whatever the store goes through; what is made from it
/// is no copy.
#[test]
fn a_copy_of_a_snapshot_says_of_which() {
    let origin = Origin { uuid: [9; 16], number: 77 };
    let origin_of = |stand: &Stand, name: &str| {
        let all = stand.client.volumes().unwrap();
        all.into_iter().find(|volume| volume.name == name).unwrap().origin
    };
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, MIB));
    drop(volume);
    let stand = Wish::default().open(stand.close());
    let (volumes, name) = (vec!["v".to_owned()], "a".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
    stand.client.ask(control::TakeCopied { snapshots: request, origin }).unwrap();
    snap(&stand, &["v"], "b");
    stand.client.clone_volume("v@a", "w").unwrap();
    snap(&stand, &["w"], "a");
    let mut disk = stand.cut_power_flushed(3);
    for round in 0..3 {
        if round == 1 {
            spoil(&disk, "PBN-PBA table, leaf");
            let repaired = engine::repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
            assert_eq!((repaired.found.is_empty(), repaired.lost_chunks), (false, 0));
        }
        let stand = Wish::default().open(disk);
        assert_eq!(origin_of(&stand, "v@a"), Some(origin));
        for name in ["v", "v@b", "w", "w@a"] {
            assert_eq!(origin_of(&stand, name), None, "{name}");
        }
        disk = if round == 0 { stand.cut_power_flushed(4) } else { stand.close() };
    }
    check_clean(&disk);
}

/// A read, and a question for extents, of a snapshot that is deleted while they wait: for reads of
/// this zone, of which so many have ended one after the other.
fn overtaken_by_a_deletion(zone: Zone, ended: u32) -> (Hand, u64, u64) {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", 64 * MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    // Volume and snapshot share what is on the device, and a deletion passes over it unread.
    let mut hand = Hand::open(&wish, hand.close());
    let (volumes, name) = (vec!["v".to_owned()], "one".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
    hand.beside(|client| client.ask(request)).unwrap();
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let one = hand.beside(|client| client.volume("v@one").unwrap());
    held.hold(zone);
    let (read, done) = hand.done();
    hand.client.read(&one, 0, CHUNK as u32, done);
    let (extents, done) = hand.done();
    hand.client.extents(&one, 0, CHUNK, 1, done);
    hand.steps(100);
    for _ in 0..ended {
        held.let_by();
        hand.steps(100);
    }
    held.hold_no_more();
    hand.beside(|client| client.delete_volume("v@one")).unwrap();
    hand.steps(100);
    assert_eq!(hand.beside(|client| client.stats()).unwrap().deletions, 0);
    assert!(held.count() > 0);
    held.let_go();
    (hand, read, extents)
}

/// What they wait for goes with the snapshot: nothing is found then, which is not to say that zeros
/// were there. Who waits for a frame has found it.
#[test]
fn who_waits_for_a_snapshot_that_is_deleted_meanwhile_gets_no_zeros() {
    let gone = RequestError::NoSuchVolume { name: "v@one".to_owned() };
    for ended in 0..2 {
        let (mut hand, read, extents) = overtaken_by_a_deletion(Zone::Tables, ended);
        assert_eq!(hand.wait(read).expect_err("a read of it"), gone);
        assert_eq!(hand.wait(extents).expect_err("extents of it"), gone);
        check_clean(&hand.close());
    }
    let (mut hand, read, _) = overtaken_by_a_deletion(Zone::Data(0), 0);
    assert!(hand.bytes_of(read) == fresh(1, CHUNK));
    check_clean(&hand.close());
}

#[test]
fn a_volume_rolls_back_and_a_clone_goes_its_own_way() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, 2 * MIB));
    snap(&stand, &["v"], "one");
    stand.write(&volume, 0, &fresh(2, 2 * MIB));
    snap(&stand, &["v"], "two");
    let opens = stand.client.opens("v").unwrap();
    assert_eq!(opens.len(), 1);
    let in_use = RequestError::InUse { name: "v".to_owned(), opens };
    assert_eq!(stand.client.roll_back("v@one").unwrap_err(), in_use);
    stand.flush();
    drop(volume);
    stand.client.roll_back("v@one").unwrap();
    assert_eq!(stand.read(&open(&stand, "v"), 0, 2 * MIB), fresh(1, 2 * MIB));
    assert_eq!(stand.read(&open(&stand, "v@two"), 0, 2 * MIB), fresh(2, 2 * MIB));
    let info = stand.client.clone_volume("v@two", "c").unwrap();
    assert_eq!((info.parent.as_deref(), info.read_only), (Some("v@two"), false));
    stand.write(&open(&stand, "c"), MIB, &fresh(3, MIB));
    let many = RequestError::HasSnapshots { name: "v".to_owned(), count: 2 };
    assert_eq!(stand.client.delete_volume("v").unwrap_err(), many);
    stand.client.delete_volume_with_snapshots("v").unwrap();
    settled(&stand);
    assert_eq!(stand.read(&open(&stand, "c"), 0, MIB), fresh(2, 2 * MIB)[..MIB as usize]);
    assert_eq!(stand.read(&open(&stand, "c"), MIB, MIB), fresh(3, MIB));
    assert_eq!(stand.stats().unique_chunks, 2 * MIB / CHUNK);
    assert_eq!(stand.client.volumes().unwrap().len(), 1);
    check_clean(&stand.close());
}

/// It keeps its snapshots and its number, and needs nothing of the other volume any more.
#[test]
fn a_volume_takes_what_a_snapshot_of_another_holds() {
    let mut stand = Wish::default().stand();
    drop(stand.volume("v", 8 * MIB));
    drop(stand.volume("new", 4 * MIB));
    stand.write(&open(&stand, "v"), 0, &fresh(1, 2 * MIB));
    snap(&stand, &["v"], "one");
    stand.write(&open(&stand, "v"), MIB, &fresh(2, 2 * MIB));
    stand.write(&open(&stand, "new"), 0, &fresh(3, MIB));
    snap(&stand, &["new"], "whole");
    let id = stand.client.volumes().unwrap().iter().find(|of| of.name == "v").map(|of| of.id);
    let take = control::Rollback {
        snapshot: "new@whole".to_owned(),
        volume: Some("v".to_owned()),
        id: None,
    };
    let into_snapshot = control::Rollback { volume: Some("v@one".to_owned()), ..take.clone() };
    let refused = RequestError::NotAVolume { name: "v@one".to_owned() };
    assert_eq!(stand.client.ask(into_snapshot).unwrap_err(), refused);
    stand.flush();
    let taken = stand.client.ask(take).unwrap();
    assert_eq!((Some(taken.id), taken.size_bytes, taken.mapped_bytes), (id, 4 * MIB, MIB));
    stand.client.delete_volume_with_snapshots("new").unwrap();
    for _ in 0..2 {
        settled(&stand);
        let expected = [fresh(3, MIB), vec![0; 3 * MIB as usize]].concat();
        assert!(stand.read(&open(&stand, "v"), 0, 4 * MIB) == expected);
        assert_eq!(stand.read(&open(&stand, "v@one"), 0, 2 * MIB), fresh(1, 2 * MIB));
        assert_eq!(stand.stats().unique_chunks, 3 * MIB / CHUNK);
        stand = Wish::default().open(stand.close());
    }
    check_clean(&stand.close());
}

/// Asks for a change, and steps nothing.
fn ask(hand: &mut Hand, verb: impl Ask) -> u64 {
    let (tag, done) = hand.done();
    hand.client.administer(verb, done);
    tag
}

/// A volume with a quota that has become something else since its snapshot `v@s`.
fn changed_since(hand: &mut Hand) -> OpenVolume {
    let volume = hand.volume("v", 8 * MIB);
    hand.write(&volume, 0, &fresh(1, 2 * CHUNK));
    hand.beside(|client| {
        let volumes = vec!["v".to_owned()];
        let request = SnapshotRequest { volumes, name: "s".to_owned(), taken_unix_s: 7 };
        client.ask(request).unwrap();
        client.set_quota("v", Some(4 * MIB)).unwrap();
    });
    hand.write(&volume, 0, &fresh(2, 2 * CHUNK));
    volume
}

fn rollback() -> control::Rollback {
    control::Rollback { snapshot: "v@s".to_owned(), ..control::Rollback::default() }
}

/// What is stored around a part that a client writes now would be of before the rollback, and so
/// would the volume's size.
#[test]
fn nobody_opens_or_resizes_a_volume_while_it_is_rolled_back() {
    let mut hand = Hand::new(&Wish::default());
    drop(changed_since(&mut hand));
    let name = || "v".to_owned();
    let rolled_back = ask(&mut hand, rollback());
    let resize = control::ResizeVolume {
        name: name(),
        size_bytes: MIB,
        may_shrink: true,
        even_if_open: true,
    };
    for refused in [
        ask(&mut hand, control::Open { name: name(), opener: Opener::new("a test", 0) }),
        ask(&mut hand, resize),
        ask(&mut hand, rollback()),
    ] {
        assert_eq!(hand.wait(refused).err(), Some(RequestError::RollingBack { name: name() }));
    }
    hand.wait(rolled_back).unwrap();
    let volume = hand.beside(|client| client.volume("v").unwrap());
    hand.write(&volume, 0, &[9; 512]);
    let expected = [&[9; 512], &fresh(1, 2 * CHUNK)[512..]].concat();
    assert_eq!(hand.read(&volume, 0, 2 * CHUNK as u32), expected);
    drop(volume);
    check_clean(&hand.close());
}

/// It has its place before the rollback, whoever sent it is gone.
#[test]
fn what_is_buffered_of_a_volume_keeps_nobody_from_rolling_it_back() {
    let mut hand = Hand::new(&Wish::default());
    let volume = changed_since(&mut hand);
    hand.trim(&volume, 0, 8 * MIB);
    drop(volume);
    let rolled_back = ask(&mut hand, rollback());
    hand.wait(rolled_back).unwrap();
    let volume = hand.beside(|client| client.volume("v").unwrap());
    assert_eq!(hand.read(&volume, 0, 2 * CHUNK as u32), fresh(1, 2 * CHUNK));
    drop(volume);
    check_clean(&hand.close());
}

/// What is read ahead of a client that is gone is read for nobody.
#[test]
fn what_is_read_ahead_of_a_volume_keeps_nobody_from_rolling_it_back() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = changed_since(&mut hand);
    // Leaves of the map, of which the reader comes to the end of the first.
    for leaf in 0..2 {
        hand.write(&volume, (LEAF_CHUNKS * leaf + 600) * CHUNK, &fresh(3 + leaf, 77 * CHUNK));
    }
    drop(volume);
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    for chunk in LEAF_CHUNKS - 24..LEAF_CHUNKS {
        if chunk + 1 == LEAF_CHUNKS {
            held.hold(Zone::Tables);
        }
        hand.read(&volume, chunk * CHUNK, CHUNK as u32);
    }
    hand.settle();
    assert!(held.count() > 0, "what follows waits for its leaf");
    drop(volume);
    let rolled_back = ask(&mut hand, rollback());
    hand.settle();
    held.let_go();
    hand.wait(rolled_back).unwrap();
    let volume = hand.beside(|client| client.volume("v").unwrap());
    assert_eq!(hand.read(&volume, 0, 2 * CHUNK as u32), fresh(1, 2 * CHUNK));
    drop(volume);
    check_clean(&hand.close());
}

/// Snapshots of one moment are one record: what does not fit into one would stand before all others
/// for ever.
#[test]
fn more_snapshots_than_a_record_holds_are_refused_and_hold_nobody_up() {
    const MOST: usize = 3840;
    let mut hand = Hand::new(&Wish::default());
    let names: Vec<String> = (0..=MOST).map(|number| format!("v{number:04}")).collect();
    for name in &names {
        let volume = NewVolume { name: name.clone(), size_bytes: MIB, ..NewVolume::default() };
        ask(&mut hand, volume);
    }
    hand.settle();
    let request = |count: usize, first: &str| {
        let (volumes, name) = (names[..count].to_vec(), first.repeat(255));
        SnapshotRequest { volumes, name, taken_unix_s: 7 }
    };
    let refused = ask(&mut hand, request(MOST + 1, "a"));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let many = RequestError::TooManySnapshots { count: MOST + 1, count_max: MOST };
    assert_eq!(hand.outcome(refused).unwrap().err(), Some(many));
    let taken = ask(&mut hand, request(MOST, "b"));
    hand.wait(taken).unwrap();
    assert_eq!(hand.beside(|client| client.volumes()).unwrap().len(), 2 * MOST + 1);
    check_clean(&hand.close());
}

#[test]
fn a_volume_with_thousands_of_snapshots_is_deleted_at_once() {
    const SNAPSHOTS: usize = 3200;
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    stand.write(&volume, 0, &fresh(1, CHUNK));
    // Many hands, so that many requests share a flush.
    std::thread::scope(|scope| {
        for hand in 0..16 {
            let stand = &stand;
            scope.spawn(move || {
                for number in (hand..SNAPSHOTS).step_by(16) {
                    snap(stand, &["v"], &format!("s{number}"));
                }
            });
        }
    });
    assert_eq!(stand.client.volumes().unwrap().len(), SNAPSHOTS + 1);
    stand.client.delete_volume_with_snapshots("v").unwrap();
    settled(&stand);
    let stats = stand.stats();
    assert_eq!((stats.unique_chunks, stats.logical_bytes, stats.volumes.len()), (0, 0, 0));
    check_clean(&stand.close());
}

/// What is trimmed in a large range comes back in the background, and nothing else does.
#[test]
fn a_large_trim_is_cut_off_and_comes_back() {
    for with_snapshot in [false, true] {
        let stand = Wish::default().stand();
        let volume = stand.volume("v", 1 << 40);
        let leaf_bytes = LEAF_CHUNKS * CHUNK;
        for leaf in 0..200 {
            stand.write(&volume, leaf * leaf_bytes + CHUNK, &fresh(leaf, CHUNK));
        }
        if with_snapshot {
            snap(&stand, &["v"], "before");
        }
        stand.client.trim_blocking(&volume, leaf_bytes / 2, 150 * leaf_bytes).unwrap();
        stand.write(&volume, 20 * leaf_bytes, &fresh(1000, CHUNK));
        stand.flush();
        settled(&stand);
        let left = 1 + 49 + 1;
        assert_eq!(stand.stats().logical_bytes, left * CHUNK);
        let unique = if with_snapshot { 201 } else { left };
        assert_eq!(stand.stats().unique_chunks, unique);
        for leaf in [0, 1, 150, 151, 199] {
            let held = stand.read(&volume, leaf * leaf_bytes + CHUNK, CHUNK);
            let is_there = leaf == 0 || leaf > 150;
            let expected = if is_there { fresh(leaf, CHUNK) } else { vec![0; CHUNK as usize] };
            assert!(held == expected, "leaf {leaf}");
        }
        check_clean(&stand.close());
    }
}

/// A volume holds again what it held before a snapshot: with that goes one of the two references.
#[test]
fn what_has_come_back_behind_a_deleted_snapshot_is_counted_once() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 4 * MIB);
    for (content, name) in [(1, "before"), (2, "between"), (1, "behind")] {
        stand.write(&volume, 0, &fresh(content, MIB));
        snap(&stand, &["v"], name);
    }
    stand.client.delete_volume("v@between").unwrap();
    settled(&stand);
    assert_eq!(stand.stats().unique_chunks, MIB / CHUNK);
    check_clean(&stand.close());
}

/// What a volume has from a snapshot is still that one's where its deletion has not come to, up to
/// the leaf at which the next piece begins.
#[test]
fn a_volume_is_written_while_the_snapshot_that_it_came_from_is_deleted() {
    const LEAVES: u64 = 400;
    const LEAVES_PER_PIECE: u64 = 8;
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", LEAVES * LEAF_CHUNKS * CHUNK);
    let write = |hand: &mut Hand, leaf: u64, at: u64, content: u64| {
        let offset_bytes = (leaf * LEAF_CHUNKS + at) * CHUNK;
        hand.write(&volume, offset_bytes, &fresh(content * LEAVES + leaf, CHUNK));
    };
    for (content, name) in [(1, "older"), (2, "newer")] {
        for leaf in 0..LEAVES {
            write(&mut hand, leaf, 0, 2 * content);
            write(&mut hand, leaf, 1, 2 * content + 1);
        }
        hand.beside(|client| {
            let (volumes, name) = (vec!["v".to_owned()], name.to_owned());
            client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
        });
    }
    for leaf in 0..LEAVES {
        write(&mut hand, leaf, 0, 6);
        // What were released once too often would be missed here.
        write(&mut hand, leaf, 2, 5);
    }
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let deletion = DeleteRequest::of("v@newer");
    let deletion = ask(&mut hand, deletion);
    hand.wait(deletion).unwrap();
    (0..LEAVES).step_by(LEAVES_PER_PIECE as usize).for_each(|leaf| write(&mut hand, leaf, 1, 7));
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let stats = ask(&mut hand, control::GetStats {});
    let Reply::Stats(stats) = hand.wait(stats).unwrap() else { panic!("no figures") };
    assert_eq!(stats.deletions, 1, "the deletion was over too soon to be met");
    hand.settle();
    check_clean(&hand.close());
}

/// Everything at random, over crashes, against copies.
#[test]
fn versions_are_what_their_copies_say() {
    for seed in 0..3 {
        random_life(seed);
    }
}

const VOLUME_CHUNKS: u64 = 40 * LEAF_CHUNKS;

type Copies = BTreeMap<String, BTreeMap<u64, u64>>;

fn random_life(seed: u64) {
    let mut dice = Dice(seed);
    let mut stand = Wish { seed, ..Wish::default() }.stand();
    let mut copies = Copies::new();
    stand.volume("v0", VOLUME_CHUNKS * CHUNK);
    copies.insert("v0".to_owned(), BTreeMap::new());
    for step in 0..400 {
        random_step(&stand, &mut copies, &mut dice, step);
        if step % 130 == 129 {
            stand.flush();
            let disk = stand.cut_power(seed + step);
            check_clean(&disk);
            stand = Wish::default().open(disk);
            compare(&stand, &copies);
        }
    }
    compare(&stand, &copies);
    settled(&stand);
    // Of what several clones share, a deleted snapshot keeps what it has until one is left.
    let volumes: Vec<&String> = copies.keys().filter(|name| !name.contains('@')).collect();
    let (last, others) = volumes.split_last().unwrap();
    for volume in others {
        stand.client.delete_volume_with_snapshots(volume).unwrap();
    }
    settled(&stand);
    assert_eq!(stand.stats().deletions_held, 0);
    let kept = copies.iter().filter(|(name, _)| name.split('@').next() == Some(last));
    let stored: BTreeSet<u64> = kept.flat_map(|(_, copy)| copy.values().copied()).collect();
    assert_eq!(stand.stats().unique_chunks, stored.len() as u64, "seed {seed}");
    check_clean(&stand.close());
}

fn pick(copies: &Copies, dice: &mut Dice, snapshots: bool) -> Option<String> {
    let names: Vec<&String> =
        copies.keys().filter(|name| name.contains('@') == snapshots).collect();
    (!names.is_empty()).then(|| names[dice.below(names.len() as u64) as usize].clone())
}

fn random_step(stand: &Stand, copies: &mut Copies, dice: &mut Dice, step: u64) {
    match dice.below(20) {
        0..9 => {
            let Some(name) = pick(copies, dice, false) else { return };
            let (lba, content) = (dice.below(VOLUME_CHUNKS), dice.below(60));
            let count = 1 + dice.below(4).min(VOLUME_CHUNKS - lba - 1);
            let copy = copies.get_mut(&name).unwrap();
            for lba in lba..lba + count {
                stand.write(&open(stand, &name), lba * CHUNK, &fresh(content, CHUNK));
                copy.insert(lba, content);
            }
        }
        9..12 => {
            let Some(name) = pick(copies, dice, false) else { return };
            let first = dice.below(VOLUME_CHUNKS);
            let longest = if dice.below(2) == 0 { 300 } else { VOLUME_CHUNKS };
            let count = (1 + dice.below(longest)).min(VOLUME_CHUNKS - first);
            let volume = open(stand, &name);
            stand.client.trim_blocking(&volume, first * CHUNK, count * CHUNK).unwrap();
            copies.get_mut(&name).unwrap().retain(|lba, _| !(first..first + count).contains(lba));
        }
        12..15 => {
            let Some(name) = pick(copies, dice, false) else { return };
            let snapshot = format!("s{step}");
            snap(stand, &[&name], &snapshot);
            copies.insert(format!("{name}@{snapshot}"), copies[&name].clone());
        }
        15 => {
            let Some(snapshot) = pick(copies, dice, true) else { return };
            stand.client.clone_volume(&snapshot, &format!("v{step}")).unwrap();
            copies.insert(format!("v{step}"), copies[&snapshot].clone());
        }
        16 => {
            let Some(snapshot) = pick(copies, dice, true) else { return };
            stand.flush();
            stand.client.roll_back(&snapshot).unwrap();
            let volume = snapshot.split('@').next().unwrap().to_owned();
            copies.insert(volume, copies[&snapshot].clone());
        }
        17..19 => {
            let Some(snapshot) = pick(copies, dice, true) else { return };
            stand.client.delete_volume(&snapshot).unwrap();
            copies.remove(&snapshot);
        }
        _ => {
            let Some(name) = pick(copies, dice, false) else { return };
            if copies.keys().filter(|name| !name.contains('@')).count() > 1 {
                stand.client.delete_volume_with_snapshots(&name).unwrap();
                let prefix = format!("{name}@");
                copies.retain(|other, _| *other != name && !other.starts_with(&prefix));
            }
        }
    }
}

fn compare(stand: &Stand, copies: &Copies) {
    let names: Vec<String> =
        stand.client.volumes().unwrap().into_iter().map(|volume| volume.name).collect();
    assert_eq!(names, copies.keys().cloned().collect::<Vec<_>>());
    for (name, copy) in copies {
        let volume = open(stand, name);
        for (&lba, &content) in copy {
            let held = stand.read(&volume, lba * CHUNK, CHUNK);
            assert!(held == fresh(content, CHUNK), "{name} chunk {lba}");
        }
    }
}
