//! Figures that people decide by, against a recount: what each volume took, what is stored, ratios,
//! and how much can still be written.

use std::collections::{BTreeMap, BTreeSet};

use engine::{RequestError, Stats, VolumeWritten};
use proptest::prelude::*;

use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, cases, check_clean, fresh};

const VOLUME_CHUNKS: u64 = 64;
/// A frame of noise, with its header.
const FRAME_BYTES: u64 = CHUNK + 16;

/// What a chunk of a write holds.
#[derive(Clone, Copy, Debug)]
enum Content {
    Zeros,
    New,
    /// What some volume or snapshot holds already.
    Stored(usize),
}

#[derive(Clone, Debug)]
enum Act {
    Write { volume: usize, first: u64, contents: Vec<Content> },
    Trim { volume: usize, first: u64, chunks: u64 },
    Snapshot { volume: usize },
    DeleteSnapshot { which: usize },
    RollBack { which: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let content = prop_oneof![
        1 => Just(Content::Zeros),
        3 => Just(Content::New),
        3 => any::<usize>().prop_map(Content::Stored),
    ];
    let contents = prop::collection::vec(content, 1..8);
    let (volume, first) = (0..2_usize, 0..VOLUME_CHUNKS - 8);
    prop_oneof![
        6 => (volume.clone(), first.clone(), contents)
            .prop_map(|(volume, first, contents)| Act::Write { volume, first, contents }),
        2 => (volume.clone(), first, 1..8_u64)
            .prop_map(|(volume, first, chunks)| Act::Trim { volume, first, chunks }),
        2 => volume.prop_map(|volume| Act::Snapshot { volume }),
        1 => any::<usize>().prop_map(|which| Act::DeleteSnapshot { which }),
        1 => any::<usize>().prop_map(|which| Act::RollBack { which }),
    ]
}

/// The number of each chunk's content, by its address.
type Map = BTreeMap<u64, u64>;

/// What a plain recount says.
#[derive(Default)]
struct Model {
    volumes: [Map; 2],
    written: [VolumeWritten; 2],
    /// By name: of which volume, and what it held.
    snapshots: BTreeMap<String, (usize, Map)>,
    made: u64,
}

impl Model {
    fn maps(&self) -> impl Iterator<Item = &Map> {
        self.volumes.iter().chain(self.snapshots.values().map(|(_, map)| map))
    }

    fn stored(&self) -> BTreeSet<u64> {
        self.maps().flat_map(|map| map.values().copied()).collect()
    }

    fn snapshot(&self, which: usize) -> Option<(String, usize)> {
        let at = which.checked_rem(self.snapshots.len())?;
        self.snapshots.iter().nth(at).map(|(name, (volume, _))| (name.clone(), *volume))
    }

    /// The content of a chunk that is written next, and its bytes.
    fn write(&mut self, volume: usize, lba: u64, content: Content) -> Vec<u8> {
        let stored = self.stored();
        let known = match content {
            Content::Stored(which) => which.checked_rem(stored.len()),
            Content::Zeros | Content::New => None,
        };
        let known = known.and_then(|at| stored.iter().nth(at).copied());
        let written = &mut self.written[volume];
        if let Content::Zeros = content {
            self.volumes[volume].remove(&lba);
            return vec![0; CHUNK as usize];
        }
        let number = known.unwrap_or(self.made);
        match known {
            Some(_) => written.duplicate_bytes += CHUNK,
            None => {
                self.made += 1;
                written.unique_bytes += CHUNK;
                written.stored_bytes += FRAME_BYTES;
            }
        }
        self.volumes[volume].insert(lba, number);
        fresh(number, CHUNK)
    }

    fn check(&self, stats: &Stats) {
        let mapped = |maps: &mut dyn Iterator<Item = &Map>| -> u64 {
            maps.map(|map| map.len() as u64 * CHUNK).sum()
        };
        let logical_bytes = mapped(&mut self.volumes.iter());
        let snapshot_bytes = mapped(&mut self.snapshots.values().map(|(_, map)| map));
        let unique = self.stored().len() as u64;
        assert_eq!(
            (stats.logical_bytes, stats.snapshot_bytes, stats.unique_bytes, stats.stored_bytes),
            (logical_bytes, snapshot_bytes, unique * CHUNK, unique * FRAME_BYTES)
        );
        let all_bytes = (logical_bytes + snapshot_bytes) as f64;
        let ratio = |bytes: u64| (bytes > 0).then(|| all_bytes / bytes as f64);
        assert_eq!(stats.dedup_ratio, ratio(unique * CHUNK));
        assert!(stats.dedup_ratio.is_none_or(|ratio| ratio >= 1.0));
        let whole = ratio(unique * FRAME_BYTES);
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert_eq!(stats.reduction_ratio.is_some(), whole.is_some());
        assert!(stats.reduction_ratio.zip(whole).is_none_or(|(one, other)| near(one, other)));
        for (name, written) in ["a", "b"].into_iter().zip(&self.written) {
            assert_eq!(stats.written_into(name), *written, "{name}");
        }
    }
}

fn carry_out(stand: &Stand, model: &mut Model, at: usize, act: &Act) {
    let names = ["a", "b"];
    match act {
        Act::Write { volume, first, contents } => {
            let mut bytes = Vec::new();
            for (lba, content) in (*first..).zip(contents) {
                bytes.extend(model.write(*volume, lba, *content));
            }
            stand.write(&stand.client.volume(names[*volume]).unwrap(), first * CHUNK, &bytes);
        }
        Act::Trim { volume, first, chunks } => {
            let open = stand.client.volume(names[*volume]).unwrap();
            stand.trim(&open, first * CHUNK, chunks * CHUNK);
            model.volumes[*volume].retain(|lba, _| !(*first..first + chunks).contains(lba));
        }
        Act::Snapshot { volume } => {
            let name = format!("{}@{at}", names[*volume]);
            let (volumes, own) = (vec![names[*volume].to_owned()], at.to_string());
            let request = engine::SnapshotRequest { volumes, name: own, taken_unix_s: 0 };
            stand.client.ask(request).unwrap();
            model.snapshots.insert(name, (*volume, model.volumes[*volume].clone()));
        }
        Act::DeleteSnapshot { which } => {
            let Some((name, _)) = model.snapshot(*which) else { return };
            stand.client.delete_volume(&name).unwrap();
            model.snapshots.remove(&name);
        }
        Act::RollBack { which } => {
            let Some((name, volume)) = model.snapshot(*which) else { return };
            let asked =
                engine::control::Rollback { snapshot: name.clone(), volume: None, id: None };
            stand.client.ask(asked).unwrap();
            model.volumes[volume] = model.snapshots[&name].1.clone();
        }
    }
    // Whatever is written over within a group is absorbed, and counted nowhere.
    stand.flush();
    stand.wait_until("the end of all deletions", |stats| stats.deletions == 0);
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn every_figure_is_what_a_recount_says(acts in prop::collection::vec(act(), 1..40)) {
        let stand = Wish { capacities: vec![64 * MIB], ..Wish::default() }.stand();
        for name in ["a", "b"] {
            stand.volume(name, VOLUME_CHUNKS * CHUNK);
        }
        let mut model = Model::default();
        for (at, act) in acts.iter().enumerate() {
            carry_out(&stand, &mut model, at, act);
            model.check(&stand.stats());
        }
        check_clean(&stand.close());
    }
}

/// 20 MiB, a snapshot, 19 MiB of the volume trimmed: row U8 of the trials by users.
#[test]
fn a_ratio_counts_what_snapshots_hold() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    assert_eq!((stand.stats().dedup_ratio, stand.stats().reduction_ratio), (None, None));
    stand.write(&volume, 0, &fresh(1, 20 * MIB));
    let (volumes, name) = (vec!["v".to_owned()], "s".to_owned());
    stand.client.ask(engine::SnapshotRequest { volumes, name, taken_unix_s: 0 }).unwrap();
    stand.trim(&volume, 0, 19 * MIB);
    stand.flush();
    let stats = stand.stats();
    assert_eq!((stats.logical_bytes, stats.snapshot_bytes), (MIB, 20 * MIB));
    assert_eq!(stats.dedup_ratio, Some(21.0 / 20.0));
}

/// Noise is written until nothing fits: at no moment was less written from there on than had been
/// called free, and little more than was free at the beginning.
#[test]
fn what_is_free_can_be_written() {
    const PIECE_BYTES: u64 = MIB / 4;
    let stand = Wish { capacities: vec![64 * MIB], ..Wish::default() }.stand();
    let volume = stand.volume("v", 1 << 30);
    let mut free = Vec::new();
    loop {
        // What is acknowledged has been given its room, in containers or not.
        free.push(stand.stats().free_bytes);
        let number = free.len() as u64;
        let bytes = fresh(number << 32, PIECE_BYTES);
        match stand.client.write_at(&volume, number * PIECE_BYTES, &bytes) {
            Ok(()) => {}
            Err(RequestError::NoSpace) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let written_bytes = |from: usize| (free.len() - 1 - from) as u64 * PIECE_BYTES;
    for (at, free_bytes) in free.iter().enumerate() {
        assert!(written_bytes(at) + PIECE_BYTES >= *free_bytes, "{at}: {free_bytes} of {free:?}");
    }
    assert!(written_bytes(0) < free[0] + 4 * MIB, "{} written, {free:?}", written_bytes(0));
    stand.close();
}
