//! The engine dies, at any moment, on a disk in memory.

use std::sync::Arc;

use store::{CreateOptions, Durability, Options, Store};

use super::watched::{LITTLE, Model, UUID, remove, set};
use crate::index::{Index, IndexCreateOptions, Table, VolumeIndex};

fn options() -> Options {
    let mut options = Options::default();
    options.engine.memory_bytes = 64 << 20;
    options.engine.worker_threads = 0;
    options
}

#[test]
fn after_a_kill_the_index_is_as_after_one_of_its_calls_and_no_earlier_than_the_last_durable_one() {
    let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 5).unwrap();
    let store = Store::open_in_memory(&disk, options()).unwrap();
    let volume = Arc::new(store.create_volume("bucket", 1 << 50).unwrap());
    let create = IndexCreateOptions { ring_bytes: 64 << 10, ..IndexCreateOptions::new(UUID) };
    VolumeIndex::create(volume.clone(), &create).unwrap();
    volume.flush_blocking().unwrap();
    let index = VolumeIndex::open(volume, &LITTLE).unwrap();
    let mut history = vec![Model::default()];
    let mut durable = 0;
    let mut behind = 0;
    for round in 0..400_u32 {
        let key = |number: u32| (number.wrapping_mul(0x9e37_79b1) >> 22).to_be_bytes();
        let mut changes: Vec<_> = (0..7)
            .map(|part| set(Table::Objects, key(round * 7 + part), vec![round as u8; 150]))
            .collect();
        changes.push(remove(Table::Objects, key(round * 3)));
        let mut model = history.last().unwrap().clone();
        model.apply(&changes);
        history.push(model);
        let is_durable = round % 29 == 3;
        let durability = if is_durable { Durability::Durable } else { Durability::Acknowledged };
        index.apply(changes, durability).unwrap();
        if is_durable {
            durable = history.len() - 1;
        }
        if round % 50 == 31 {
            index.merge().unwrap();
        }
        if round % 13 == 5 {
            let left = disk.left_by_kill(u64::from(round));
            let store = Store::open_in_memory(&left, options()).unwrap();
            let volume = Arc::new(store.volume("bucket").unwrap());
            let index = VolumeIndex::open(volume, &LITTLE).unwrap();
            let found = Model::of(&index);
            let place = history.iter().rposition(|model| *model == found);
            let place = place.unwrap_or_else(|| panic!("round {round}: it is as after no call"));
            assert!(place >= durable, "round {round}: {place} is before {durable}");
            behind += history.len() - 1 - place;
            assert_eq!(index.check().unwrap().damage, [""; 0]);
        }
    }
    assert!(behind > 0, "some kills lose what was not durable");
}
