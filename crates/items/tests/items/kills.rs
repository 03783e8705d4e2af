//! A kill at any write of a cache's bucket leaves the items of a prefix of what was asked.

use std::sync::{Arc, Mutex};

use items::{Items, ItemsOptions};
use objects::bucket::{Bucket, BucketOptions, OpenOptions};
use objects::volume::BucketVolume;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use store::{
    CreateOptions, Options, RequestError, Reservation, ReservedFor, Store, Volume, WriteOptions,
    WriteRoom,
};

use crate::rig::{client, noise};

/// One write, or one trimmed range.
#[derive(Clone)]
enum Written {
    Bytes(u64, Vec<u8>),
    Trim(u64, u64),
}

/// A volume that remembers what was written to it.
struct RecordedVolume {
    inner: Volume,
    written: Mutex<Vec<Written>>,
}

impl RecordedVolume {
    fn new(store: &Store, name: &str) -> Arc<Self> {
        let inner = store.create_volume(name, 1 << 50).unwrap();
        Arc::new(Self { inner, written: Mutex::default() })
    }

    fn record(&self, writes: &[(u64, &[u8])]) {
        let writes = writes.iter().map(|(at, bytes)| Written::Bytes(*at, bytes.to_vec()));
        self.written.lock().unwrap().extend(writes);
    }

    fn count(&self) -> usize {
        self.written.lock().unwrap().len()
    }
}

impl BucketVolume for RecordedVolume {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.inner.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.record(writes);
        self.inner.write_vectored_at(writes, options)
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.inner.reserve_blocking(room, reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.record(writes);
        self.inner.write_reserved_at(reservation, writes, options)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.written.lock().unwrap().push(Written::Trim(offset_bytes, length_bytes));
        self.inner.trim_blocking(offset_bytes, length_bytes)
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush_blocking()
    }
}

const KEYS: &str = "get a b c d\r\n";

fn command() -> impl Strategy<Value = Vec<u8>> {
    let key = || (0..4_usize).prop_map(|number| ["a", "b", "c", "d"][number]);
    let length = prop_oneof![3 => 0..600_usize, 2 => 4000..9000_usize, 1 => 60_000..90_000_usize];
    let store = (0..3_usize, key(), length, any::<u64>()).prop_map(|(verb, key, length, seed)| {
        let line = format!("{} {key} 3 0 {length}\r\n", ["set", "set", "append"][verb]);
        [line.as_bytes(), &noise(length, seed), b"\r\n"].concat()
    });
    prop_oneof![
        6 => store,
        1 => key().prop_map(|key| format!("delete {key}\r\n").into_bytes()),
        1 => key().prop_map(|key| format!("md {key} I T90\r\n").into_bytes()),
        1 => key().prop_map(|key| format!("set {key} 0 0 1\r\n5\r\nincr {key} 7\r\n").into_bytes()),
        1 => key().prop_map(|key| format!("touch {key} 50\r\n").into_bytes()),
        1 => (0..2_usize).prop_map(|_| b"flush_all\r\n".to_vec()),
    ]
}

fn open(volume: &Arc<RecordedVolume>) -> Items {
    let bucket = Bucket::open(Arc::clone(volume) as _, &OpenOptions::default()).unwrap();
    Items::over(bucket, ItemsOptions { has_upkeep: false, ..ItemsOptions::default() }).unwrap()
}

proptest! {
    #![proptest_config(Config { cases: 12, ..Config::default() })]

    #[test]
    fn a_kill_leaves_a_prefix(commands in vec(command(), 1..12)) {
        let disk = store::create_in_memory(&CreateOptions::new(512 << 20), 1).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let volume = RecordedVolume::new(&store, "bucket");
        Bucket::create(Arc::clone(&volume) as _, &BucketOptions::new([7; 16])).unwrap();
        let mut client = client(&open(&volume));
        // What clients see after this number of writes.
        let mut states = vec![(volume.count(), client.say(KEYS))];
        for command in &commands {
            client.say(command);
            states.push((volume.count(), client.say(KEYS)));
        }
        let written = volume.written.lock().unwrap().clone();
        for cut in states[0].0..=written.len() {
            let killed = RecordedVolume::new(&store, &format!("killed{cut}"));
            for one in &written[..cut] {
                match one {
                    Written::Bytes(at, bytes) => killed.inner.write_at(*at, bytes).unwrap(),
                    Written::Trim(at, length) => {
                        killed.inner.trim_blocking(*at, *length).unwrap();
                    }
                }
            }
            let found = crate::rig::client(&open(&killed)).say(KEYS);
            let at = states.iter().rposition(|(count, _)| *count <= cut).unwrap();
            let next = states.get(at + 1).map(|(_, state)| state);
            assert!(
                found == states[at].1 || Some(&found) == next,
                "write {cut}: neither what command {at} left nor what the next did",
            );
        }
        drop(client);
        store.close().unwrap();
    }
}
