//! A store in memory with a bucket, and clients of caches without a socket.

use buckets::{Buckets, BucketsOptions, NewBucket};
use items::{Items, ItemsConnection, ItemsOptions};
use memcached::{Cache, Connection, Limits, Next};
use store::{CreateOptions, Options, Store};

/// When the tests happen, in seconds since 1970: later than the machine's own time, by which upkeep
/// of buckets removes what has expired.
pub(crate) const NOW_S: u64 = 4_000_000_000;

/// A store with one bucket, `cache`.
pub(crate) struct Rig {
    pub(crate) buckets: Buckets,
    store: Option<Store>,
    open: Box<dyn Fn() -> Store>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let disk = store::create_in_memory(&CreateOptions::new(256 << 20), 1).unwrap();
        let open = move || Store::open_in_memory(&disk, Options::default()).unwrap();
        let rig = Self::over(Box::new(open));
        rig.buckets.create("cache", &NewBucket::default()).unwrap();
        rig
    }

    fn over(open: Box<dyn Fn() -> Store>) -> Self {
        let store = open();
        let buckets = Buckets::start(store.client().clone(), BucketsOptions::default()).unwrap();
        Self { buckets, store: Some(store), open }
    }

    pub(crate) fn items(&self, hot_bytes: u64) -> Items {
        let options = ItemsOptions { hot_bytes, has_upkeep: false, ..ItemsOptions::default() };
        Items::open(self.buckets.open("cache").unwrap(), options).unwrap()
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// The same store, closed and opened again.
    pub(crate) fn reopened(mut self) -> Self {
        self.buckets.close().unwrap();
        self.store.take().unwrap().close().unwrap();
        Self::over(self.open)
    }
}

/// A client of a cache.
pub(crate) struct Client<C: Cache> {
    connection: Connection<C>,
    pub(crate) cache: C,
    pub(crate) now_s: u64,
}

impl<C: Cache> Client<C> {
    pub(crate) fn new(cache: C) -> Self {
        Self { connection: Connection::new(Limits::default()), cache, now_s: NOW_S }
    }

    /// Sends bytes as one piece, and gives back all that is answered.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut rest = bytes.as_ref();
        let mut answers = Vec::new();
        while !rest.is_empty() {
            let room = self.connection.room();
            let length = room.len().min(rest.len());
            room[..length].copy_from_slice(&rest[..length]);
            self.connection.received(length);
            rest = &rest[length..];
            while self.connection.run(&mut self.cache, self.now_s) == Next::Send {
                self.take(&mut answers);
            }
        }
        answers
    }

    /// Sends bytes that are read at once; returns what is answered without waiting, if that is all.
    pub(crate) fn say_without_waiting(&mut self, bytes: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let bytes = bytes.as_ref();
        self.connection.room()[..bytes.len()].copy_from_slice(bytes);
        self.connection.received(bytes.len());
        let mut answers = Vec::new();
        while self.connection.run_without_waiting(&mut self.cache, self.now_s)? == Next::Send {
            self.take(&mut answers);
        }
        Some(answers)
    }

    /// Goes on with what would have waited.
    pub(crate) fn wait(&mut self) -> Vec<u8> {
        let mut answers = Vec::new();
        while self.connection.run(&mut self.cache, self.now_s) == Next::Send {
            self.take(&mut answers);
        }
        answers
    }

    pub(crate) fn text(&mut self, bytes: impl AsRef<[u8]>) -> String {
        String::from_utf8_lossy(&self.say(bytes)).into_owned()
    }

    fn take(&mut self, answers: &mut Vec<u8>) {
        loop {
            let chunk = self.connection.chunk().unwrap();
            if chunk.is_empty() {
                return;
            }
            let length = chunk.len();
            answers.extend_from_slice(chunk);
            self.connection.sent(length);
        }
    }
}

pub(crate) fn client(items: &Items) -> Client<ItemsConnection> {
    Client::new(items.connection())
}

/// Bytes that are no others'.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'a' + (state % 26) as u8
    };
    (0..length).map(|_| next()).collect()
}
