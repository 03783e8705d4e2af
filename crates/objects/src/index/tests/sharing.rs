//! Many threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use store::Durability;

use super::watched::{CHUNK, Model, TestVolume, apply, create, open, set, store_of};
use crate::index::locks::lock;
use crate::index::{Index, Table};

#[test]
fn who_waits_for_a_leader_shares_the_next_group() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 1 << 20);
    let log = lock(&index.log);
    let before = log.next().sequence;
    let change = |number: u8| vec![set(Table::Objects, [number], [number])];
    thread::scope(|scope| {
        let index = &index;
        let call = |number: u8| scope.spawn(move || apply(index, change(number)));
        let calls: Vec<_> = (0..6).map(call).collect();
        while index.sharing.waiting() < 5 {
            thread::yield_now();
        }
        drop(log);
        assert!(calls.into_iter().all(|call| call.join().is_ok()));
    });
    assert_eq!(lock(&index.log).next().sequence, before + 2, "the leader's and that of five");
    assert_eq!(Model::of(&open(&volume)).0.len(), 6);
}

#[test]
fn threads_share_groups_and_read_what_they_wrote_while_others_merge() {
    let store = store_of(128 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 64 * CHUNK as u64);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..6_u32)
            .map(|writer| {
                let index = &index;
                scope.spawn(move || {
                    for number in 0..250_u32 {
                        let key = [writer.to_be_bytes(), number.to_be_bytes()].concat();
                        let pair =
                            [Table::Objects, Table::Expiry].map(|table| set(table, &key, &key));
                        let durability = match number % 50 {
                            0 => Durability::Durable,
                            _ => Durability::Acknowledged,
                        };
                        index.apply(pair.to_vec(), durability).unwrap();
                        assert_eq!(index.get(Table::Objects, &key).unwrap(), Some(key.clone()));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                index.merge().unwrap();
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let objects = index.scan(Table::Objects, b"", 10_000).unwrap().len();
                let expiry = index.scan(Table::Expiry, b"", 10_000).unwrap().len();
                assert!(objects <= expiry, "both are made together: {objects} and {expiry}");
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_eq!(Model::of(&index).0.len(), 3000);
    drop(index);
    assert_eq!(Model::of(&open(&volume)).0.len(), 3000);
}
