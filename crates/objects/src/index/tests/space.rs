//! A store that is full.

use std::sync::Arc;

use store::{Durability, RequestError, Store, Volume, WriteRoom};

use super::watched::{Model, TestVolume, apply, create, open, remove, set, store_of};
use crate::index::locks::lock;
use crate::index::{Change, Index, IndexError, Table, VolumeIndex};

/// Chunks that do not compress and are no duplicates.
fn noise(number: u64, bytes: &mut [u8]) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

/// Fills the store by another volume until it takes nothing more; returns how far.
fn fill(filler: &Volume, seed: u64) -> u64 {
    let mut bytes = vec![0; 64 << 10];
    let mut at = 0;
    let mut length = bytes.len();
    while length >= 4096 {
        noise(seed << 32 | at, &mut bytes);
        match filler.write_at(at, &bytes[..length]) {
            Ok(()) => at += length as u64,
            Err(RequestError::NoSpace) => length /= 4,
            Err(error) => panic!("{error}"),
        }
    }
    at
}

fn value(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 400];
    noise(u64::from(number), &mut bytes);
    bytes
}

fn entry(number: u32) -> Change {
    set(Table::Objects, number.wrapping_mul(0x9e37_79b1).to_be_bytes(), value(number))
}

fn is_full<T>(result: Result<T, IndexError>) -> bool {
    match result {
        Ok(_) => false,
        Err(IndexError::Volume(RequestError::NoSpace)) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Puts until the store or the index refuses; returns the next number.
fn put_until_full(index: &VolumeIndex, model: &mut Model, from: u32) -> u32 {
    for number in from..from + 4000 {
        let change = vec![entry(number)];
        if is_full(index.apply(change.clone(), Durability::Acknowledged)) {
            return number;
        }
        model.apply(&change);
    }
    from + 4000
}

fn bucket(store: &Store) -> (Arc<TestVolume>, VolumeIndex) {
    let volume = TestVolume::new(store, "bucket");
    let index = create(&volume, 1 << 20);
    (volume, index)
}

#[test]
fn a_full_store_refuses_changes_takes_deletes_and_loses_nothing_ten_times() {
    let store = store_of(64 << 20);
    // What deletes need: log, and the steps of a merge.
    store.client().keep_for_release(WriteRoom::of_chunks(1500, 1500));
    let (volume, index) = bucket(&store);
    let filler = store.create_volume("filler", 1 << 40).unwrap();
    let mut model = Model::default();
    let mut next = 0;
    for round in 0..10 {
        let filled_bytes = fill(&filler, round);
        let end = put_until_full(&index, &mut model, next);
        assert!(is_full(index.apply(vec![entry(end)], Durability::Acknowledged)), "round {round}");
        assert_eq!(Model::of(&index), model, "round {round}");
        // Deletes go on, and so does their merge.
        let keys: Vec<_> = model.0.keys().step_by(2).cloned().collect();
        for (table, key) in keys {
            let change = vec![remove(table, key)];
            model.apply(&change);
            index.apply(change, Durability::Acknowledged).unwrap();
        }
        index.merge().unwrap();
        assert_eq!(Model::of(&index), model, "round {round}");
        filler.trim_blocking(0, filled_bytes).unwrap();
        next = end;
        // There is room, and all goes on.
        for number in next..next + 50 {
            model.apply(&[entry(number)]);
            apply(&index, vec![entry(number)]);
        }
        next += 50;
        index.merge().unwrap();
    }
    assert_eq!(Model::of(&index), model);
    assert_eq!(index.check().unwrap().damage, [""; 0]);
    drop(index);
    assert_eq!(Model::of(&open(&volume)), model);
}

#[test]
fn a_merge_without_room_leaves_everything_as_it_was() {
    let store = store_of(64 << 20);
    let (volume, index) = bucket(&store);
    let mut model = Model::default();
    for number in 0..200 {
        model.apply(&[entry(number)]);
        apply(&index, vec![entry(number)]);
    }
    let filler = store.create_volume("filler", 1 << 40).unwrap();
    let filled_bytes = fill(&filler, 1);
    let before = volume.written_count();
    assert!(is_full(index.merge()));
    assert!(is_full(index.merge()), "and again");
    assert_eq!(volume.written_count(), before, "nothing is written without room for all of it");
    assert!(index.merge_is_due());
    assert_eq!(Model::of(&index), model);
    assert_eq!(Model::of(&open(&volume)), model);
    filler.trim_blocking(0, filled_bytes).unwrap();
    assert_eq!(index.merge().unwrap().changes, 200);
    assert_eq!(Model::of(&index), model);
    assert_eq!(index.check().unwrap().damage, [""; 0]);
    assert_eq!(Model::of(&open(&volume)), model);
}

#[test]
fn in_a_group_that_finds_no_room_each_has_its_own_answer() {
    let store = store_of(64 << 20);
    store.client().keep_for_release(WriteRoom::of_chunks(300, 300));
    let (_volume, index) = bucket(&store);
    for number in 0..50 {
        apply(&index, vec![entry(number)]);
    }
    fill(&store.create_volume("filler", 1 << 40).unwrap(), 7);
    let mut model = Model::of(&index);
    put_until_full(&index, &mut model, 100);
    let key = model.0.keys().next().unwrap().1.clone();
    let log = lock(&index.log);
    let index = &index;
    let call = move |changes| index.apply(changes, Durability::Acknowledged);
    std::thread::scope(|scope| {
        let leader = scope.spawn(move || call(vec![entry(9000)]));
        while index.sharing.waiting() > 0 || !index.sharing.is_led() {
            std::thread::yield_now();
        }
        let put = scope.spawn(move || call(vec![entry(9001)]));
        let gone = key.clone();
        let deletion = scope.spawn(move || call(vec![remove(Table::Objects, gone)]));
        while index.sharing.waiting() < 2 {
            std::thread::yield_now();
        }
        drop(log);
        assert!(is_full(leader.join().unwrap()) && is_full(put.join().unwrap()));
        deletion.join().unwrap().unwrap();
    });
    model.apply(&[remove(Table::Objects, key)]);
    assert_eq!(Model::of(index), model);
}
