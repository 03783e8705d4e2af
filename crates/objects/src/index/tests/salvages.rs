//! What a salvage reads of a damaged index.

use std::sync::Arc;

use format::objects::header::{HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, RING_AT_BYTES};

use super::watched::{
    CHUNK, LITTLE, Model, TestVolume, UUID, apply, create, remove, set, store_of,
};
use crate::index::{
    Change, IndexCreateOptions, IndexError, Loss, Salvaged, Table, VolumeIndex, identity, salvage,
};

const COPY: u64 = INDEX_COPIES_AT_BYTES[0];
const MIRROR: u64 = INDEX_COPIES_AT_BYTES[1];

fn entry(number: u32) -> Change {
    set(Table::Objects, number.to_be_bytes(), number.to_be_bytes().repeat(25))
}

fn salvaged(volume: &Arc<TestVolume>) -> (Salvaged, Model) {
    let mut model = Model::default();
    let found = salvage(volume.clone(), |change| {
        model.apply(&[change]);
        Ok(())
    });
    (found.unwrap(), model)
}

/// 3,000 entries in redb, some with long values, and 40 changes of 1,000 bytes in the log.
fn filled(volume: &Arc<TestVolume>) -> Model {
    let index = create(volume, 1 << 20);
    let mut model = Model::default();
    let mut make = |changes: Vec<Change>| {
        model.apply(&changes);
        apply(&index, changes);
    };
    for from in (0..3000).step_by(50) {
        make((from..from + 50).map(entry).collect());
    }
    for number in 0..5_u8 {
        make(vec![set(Table::Settings, [number], vec![number; 20_000])]);
    }
    index.merge().unwrap();
    for number in 0..40_u32 {
        make(vec![set(Table::Objects, (number * 9).to_be_bytes(), vec![number as u8; 1000])]);
    }
    model
}

/// Whether a salvage says that this key may be lost.
fn is_named(found: &Salvaged, (table, key): &(Table, Vec<u8>)) -> bool {
    found.losses.told().iter().any(|loss| match loss {
        Loss::Page { keys, .. } => keys.of(*table).is_some_and(|(behind, last)| {
            behind.is_none_or(|behind| behind < *key) && last.is_none_or(|last| *key <= last)
        }),
        Loss::Log { .. } | Loss::Redundant { .. } => false,
    })
}

#[test]
fn all_of_a_whole_index_is_salvaged() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let (found, entries) = salvaged(&volume);
    assert_eq!(found, Salvaged { entries: 3005, log_changes: 40, ..Salvaged::default() });
    assert_eq!(entries, model);
}

#[test]
fn whatever_page_is_damaged_the_others_are_salvaged() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let (mut opened, mut of_one_leaf, mut without_place) = (0, 0, 0);
    for place in volume.places(COPY, MIRROR).into_iter() {
        volume.heal();
        volume.damage(place);
        volume.damage(place - COPY + MIRROR);
        let (found, entries) = salvaged(&volume);
        opened += u32::from(VolumeIndex::open(volume.clone(), &LITTLE).is_ok());
        for (key, value) in &entries.0 {
            assert_eq!(model.0.get(key), Some(value));
        }
        let lost = model.0.len() - entries.0.len();
        assert_eq!(found.log_changes, 40, "{found:?}");
        without_place +=
            u32::from(found.losses.told().iter().any(|loss| loss.to_string().contains("goes on")));
        let is_named = |key: &(Table, Vec<u8>)| is_named(&found, key);
        assert!(lost == 0 || found.losses.count() != 0, "{found:?}");
        let mut missing = model.0.keys().filter(|key| !entries.0.contains_key(*key));
        assert!(missing.all(is_named), "{found:?}");
        let kept = entries.0.keys().filter(|key| is_named(key)).count();
        assert!(kept <= 40, "only what the log has is in what is named: {kept} {found:?}");
        if place == COPY + CHUNK as u64 {
            assert_eq!((lost, found.losses.count()), (0, 1), "the tree is found: {found:?}");
        }
        of_one_leaf += u32::from((1..60).contains(&lost));
    }
    let counts = (opened, of_one_leaf, without_place);
    assert!(opened > 50 && of_one_leaf > 50 && without_place > 0, "{counts:?}");
}

#[test]
fn the_log_is_salvaged_around_what_is_damaged_in_it() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let log: Vec<u64> = volume.places(RING_AT_BYTES, COPY).into_iter().collect();
    let end = log.iter().rposition(|at| {
        let mut chunk = [0; CHUNK];
        volume.inner.read_at(*at, &mut chunk).unwrap();
        chunk != [0; CHUNK]
    });
    let end = end.unwrap();
    for place in &log[end - 7..end - 1] {
        volume.heal();
        volume.damage(*place);
        let error = VolumeIndex::open(volume.clone(), &LITTLE).err();
        assert!(matches!(error, Some(IndexError::Damaged(_))), "{error:?}");
        let (found, entries) = salvaged(&volume);
        assert_eq!(found.losses.count(), 1, "{found:?}");
        assert!((33..40).contains(&found.log_changes), "{found:?}");
        assert_eq!(entries.0.len(), model.0.len());
        let differ = model.0.iter().filter(|(key, value)| entries.0.get(*key) != Some(value));
        assert_eq!(differ.count(), 40 - found.log_changes as usize);
    }
}

/// Steps of a merge leave trees of the same place in the log; behind them come merges that change
/// all of the map.
#[test]
fn whenever_the_first_page_is_lost_the_newest_tree_is_found() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let mut model = filled(&volume);
    for round in 0..6_u32 {
        let index = VolumeIndex::open(volume.clone(), &LITTLE).unwrap();
        for number in 0..150_u32 {
            let number = (number * 19 + round * 7) % 3000;
            let changes = match (number + round) % 3 {
                0 => vec![remove(Table::Objects, number.to_be_bytes())],
                _ => vec![set(Table::Objects, number.to_be_bytes(), [round as u8; 120])],
            };
            model.apply(&changes);
            apply(&index, changes);
        }
        index.merge().unwrap();
        drop(index);
        for place in [COPY, MIRROR].map(|copy| copy + CHUNK as u64) {
            volume.damage(place);
        }
        let without_length = round % 2 == 0;
        if without_length {
            [COPY, MIRROR].into_iter().for_each(|copy| volume.damage(copy));
        }
        let (found, entries) = salvaged(&volume);
        volume.heal();
        assert_eq!(found.losses.pages(), 0, "{found:?}");
        assert!(entries == model, "round {round}");
    }
}

#[test]
fn a_header_that_is_lost_twice_is_taken_from_beside_the_pages() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let ring_bytes = IndexCreateOptions::new(UUID).ring_bytes;
    let index = create(&volume, ring_bytes);
    apply(&index, vec![entry(1)]);
    index.merge().unwrap();
    apply(&index, vec![entry(2)]);
    drop(index);
    HEADER_COPIES_AT_BYTES.into_iter().for_each(|at| volume.damage(at));
    assert_eq!(identity(&*volume).unwrap().options, IndexCreateOptions { uuid: UUID, ring_bytes });
    let (found, entries) = salvaged(&volume);
    assert_eq!((entries.0.len(), found.losses.count()), (2, 1));
    [COPY, MIRROR].into_iter().for_each(|copy| volume.damage(copy));
    assert!(matches!(identity(&*volume), Err(IndexError::NoBucket(_))));
}
