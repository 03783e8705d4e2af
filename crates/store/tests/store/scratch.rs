//! Places for stores, and the stores that tests use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use disk::MemoryDisk;
use store::{CreateOptions, LockWait, Options, Store};

/// Capacity of every store here: the least there is.
pub(crate) const CAPACITY_BYTES: u64 = 64 << 20;

/// A directory of its own below the temporary one, which vanishes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An engine that takes little, and no wait for locks.
pub(crate) fn small() -> Options {
    let engine =
        engine::Options { memory_bytes: 64 << 20, worker_threads: 1, ..Default::default() };
    Options { engine, lock_wait: LockWait::none(), ..Default::default() }
}

/// A new store in memory.
pub(crate) fn in_memory() -> (MemoryDisk, Store) {
    let disk = store::create_in_memory(&CreateOptions::new(CAPACITY_BYTES), 3).unwrap();
    let store = Store::open_in_memory(&disk, small()).unwrap();
    (disk, store)
}
