//! What a salvage reads of a damaged index.

use std::sync::Arc;

use format::objects::header::{INDEX_COPIES_AT_BYTES, RING_AT_BYTES};

use super::watched::{CHUNK, LITTLE, Model, Watched, apply, create, set, store_of};
use crate::index::{Change, IndexError, Salvaged, Table, VolumeIndex, salvage};

const COPY: u64 = INDEX_COPIES_AT_BYTES[0];
const MIRROR: u64 = INDEX_COPIES_AT_BYTES[1];

fn entry(number: u32) -> Change {
    set(Table::Objects, number.to_be_bytes(), number.to_be_bytes().repeat(25))
}

fn salvaged(volume: &Arc<Watched>) -> (Salvaged, Model) {
    let mut model = Model::default();
    let found = salvage(volume.clone(), |change| {
        model.apply(&[change]);
        Ok(())
    });
    (found.unwrap(), model)
}

/// 3,000 entries in redb, some with long values, and 40 changes of 1,000 bytes in the log.
fn filled(volume: &Arc<Watched>) -> Model {
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

#[test]
fn all_of_a_whole_index_is_salvaged() {
    let store = store_of(64 << 20);
    let volume = Watched::new(&store, "bucket");
    let model = filled(&volume);
    let (found, entries) = salvaged(&volume);
    assert_eq!(found, Salvaged { entries: 3005, log_changes: 40, lost: Vec::new() });
    assert_eq!(entries, model);
}

#[test]
fn whatever_page_is_damaged_the_others_are_salvaged() {
    let store = store_of(64 << 20);
    let volume = Watched::new(&store, "bucket");
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
        without_place += u32::from(found.lost.iter().any(|error| error.contains("goes on")));
        assert!(lost == 0 || !found.lost.is_empty(), "{found:?}");
        of_one_leaf += u32::from((1..60).contains(&lost));
    }
    let counts = (opened, of_one_leaf, without_place);
    assert!(opened > 50 && of_one_leaf > 50 && without_place > 0, "{counts:?}");
}

#[test]
fn the_log_is_salvaged_around_what_is_damaged_in_it() {
    let store = store_of(64 << 20);
    let volume = Watched::new(&store, "bucket");
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
        assert_eq!(found.lost.len(), 1, "{found:?}");
        assert!((33..40).contains(&found.log_changes), "{found:?}");
        assert_eq!(entries.0.len(), model.0.len());
        let differ = model.0.iter().filter(|(key, value)| entries.0.get(*key) != Some(value));
        assert_eq!(differ.count(), 40 - found.log_changes as usize);
    }
}
