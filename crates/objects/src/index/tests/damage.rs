//! Chunks that cannot be read, and chunks that hold something else.

use format::objects::header::{
    HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, RING_AT_BYTES, VALUES_AT_BYTES,
};
use std::sync::Arc;

use super::watched::{CHUNK, LITTLE, Model, TestVolume, apply, create, open, set, store_of};
use crate::index::{Change, Index, IndexError, Table, VolumeIndex};

const COPY: u64 = INDEX_COPIES_AT_BYTES[0];
const MIRROR: u64 = INDEX_COPIES_AT_BYTES[1];

fn entry(number: u32) -> Change {
    set(Table::Objects, number.to_be_bytes(), number.to_be_bytes().repeat(25))
}

/// A volume with 2,000 entries in redb and 10 in the log.
fn filled(volume: &Arc<TestVolume>) -> Model {
    let index = create(volume, 1 << 20);
    let mut model = Model::default();
    for from in (0..2000).step_by(50) {
        let changes: Vec<_> = (from..from + 50).map(entry).collect();
        model.apply(&changes);
        apply(&index, changes);
    }
    index.merge().unwrap();
    for number in 2000..2010 {
        model.apply(&[entry(number)]);
        apply(&index, vec![entry(number)]);
    }
    model
}

#[test]
fn one_copy_of_every_chunk_is_enough_and_heals_the_other() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let pages = volume.places(COPY, MIRROR);
    for place in &pages {
        volume.damage(*place);
    }
    let damaged = volume.damaged_count();
    let index = open(&volume);
    assert_eq!(Model::of(&index), model);
    assert!(volume.damaged_count() < damaged / 2, "what was read was written again");
    apply(&index, vec![entry(3000)]);
    index.merge().unwrap();
    volume.heal();

    for place in volume.places(MIRROR, VALUES_AT_BYTES) {
        volume.damage(place);
    }
    let index = open(&volume);
    assert_eq!(Model::of(&index).0.len(), 2011);
    let check = index.check().unwrap();
    assert!(check.damage.iter().any(|error| error.contains("mirror")), "{check:?}");
    volume.heal();
    assert_eq!(index.check().unwrap().damage, [""; 0]);
    assert_eq!(index.check().unwrap().entries, 2011);
}

#[test]
fn where_both_copies_are_damaged_only_what_they_hold_is_lost() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let pages = volume.places(COPY + CHUNK as u64 + 1, MIRROR);
    let (mut lost_some, mut opened) = (0, 0);
    for place in pages {
        volume.heal();
        volume.damage(place);
        volume.damage(place - COPY + MIRROR);
        let index = match VolumeIndex::open(volume.clone(), &LITTLE) {
            Ok(index) => index,
            Err(IndexError::Damaged(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        opened += 1;
        let mut lost = 0;
        for ((table, key), value) in &model.0 {
            match index.get(*table, key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                Err(IndexError::Damaged(_)) => lost += 1,
                Err(error) => panic!("{error}"),
            }
        }
        lost_some += u32::from(lost > 0 && lost < 200);
        // Changes go on, and a merge that needs the page fails and leaves them.
        apply(&index, vec![entry(5000)]);
        let _ = index.merge();
        assert!(index.get(Table::Objects, &5000_u32.to_be_bytes()).unwrap().is_some());
    }
    assert!(opened > 30 && lost_some > 30, "{opened} {lost_some}");
}

#[test]
fn a_merge_that_met_damage_goes_on_when_it_is_healed() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let mut model = filled(&volume);
    let index = open(&volume);
    for place in volume.places(COPY + 2 * CHUNK as u64, MIRROR) {
        volume.damage(place);
        volume.damage(place - COPY + MIRROR);
    }
    assert!(matches!(index.merge(), Err(IndexError::Damaged(_))));
    assert!(index.merge_is_due());
    for number in 7000..7050 {
        model.apply(&[entry(number)]);
        apply(&index, vec![entry(number)]);
    }
    volume.heal();
    index.merge().unwrap();
    assert_eq!(Model::of(&index), model);
    index.merge().unwrap();
    assert_eq!(Model::of(&open(&volume)), model);
}

#[test]
fn a_damaged_log_is_an_error_and_no_shorter_log() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let log = volume.places(RING_AT_BYTES, COPY);
    for place in log.iter().rev().take(1) {
        volume.damage(*place);
    }
    let error = VolumeIndex::open(volume.clone(), &LITTLE).err();
    assert!(matches!(error, Some(IndexError::Damaged(_))), "{error:?}");
    volume.heal();
    assert_eq!(Model::of(&open(&volume)), model);
}

#[test]
fn one_header_and_one_length_are_enough() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    for copy in 0..2 {
        volume.heal();
        volume.damage(HEADER_COPIES_AT_BYTES[copy]);
        volume.damage(INDEX_COPIES_AT_BYTES[copy]);
        let index = open(&volume);
        assert_eq!(Model::of(&index), model);
        assert_eq!(index.check().unwrap().damage.len(), 2);
    }
    HEADER_COPIES_AT_BYTES.into_iter().for_each(|at| volume.damage(at));
    let error = VolumeIndex::open(volume.clone(), &LITTLE).err();
    assert!(matches!(error, Some(IndexError::NoBucket(_))), "{error:?}");
    volume.heal();
    INDEX_COPIES_AT_BYTES.into_iter().for_each(|at| volume.damage(at));
    let error = VolumeIndex::open(volume, &LITTLE).err();
    assert!(matches!(error, Some(IndexError::Damaged(_))), "{error:?}");
}

/// Bytes of an imported volume may be anything: redb does not look at checksums when it reads, so
/// answers may be wrong, but each is an answer, and a check notices.
#[test]
fn pages_that_hold_something_else_never_end_the_program() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let model = filled(&volume);
    let written = volume.written();
    let mut noticed = 0;
    for (number, place) in volume.places(COPY + 1, MIRROR).into_iter().enumerate().step_by(3) {
        let hostile = TestVolume::new(&store, &format!("hostile-{number}"));
        hostile.repeat(&written);
        let mut page = [0; CHUNK];
        hostile.inner.read_at(place, &mut page).unwrap();
        page.iter_mut().skip(number % 40).step_by(41).for_each(|byte| *byte ^= 0x5a);
        hostile.inner.write_at(place, &page).unwrap();
        let Ok(index) = VolumeIndex::open(hostile.clone(), &LITTLE) else {
            noticed += 1;
            continue;
        };
        for (table, key) in model.0.keys().step_by(97) {
            let _ = index.get(*table, key);
        }
        let _ = index.scan(Table::Objects, b"", 3000);
        noticed += u32::from(!index.check().unwrap().damage.is_empty());
        let _ = index.merge();
    }
    assert!(noticed > 15, "{noticed}");
}
