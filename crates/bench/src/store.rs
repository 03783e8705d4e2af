//! A store on the real disk, made for one round, and its engine on a thread of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use engine::Client;

use ::store::{CORE_THREAD, CreateOptions, Options};

use crate::failure::Failure;
use crate::fio::write_once;
use crate::kernels::COMPRESSION;
use crate::source::CHUNK_BYTES;

/// Room of every measured store. A store promises room for the worst case of what is buffered: one
/// much smaller than any that people make would be measured waiting for promises.
pub(crate) const CAPACITY_BYTES: u64 = 16 << 30;
/// Room of a store into which so much is written: that, or less for what a test writes, so that it
/// needs no such disk.
pub(crate) fn capacity_for(written_bytes: u64) -> u64 {
    (32 * written_bytes).min(CAPACITY_BYTES)
}

/// What a running thread took is added up when it leaves its processor, or at the next tick of the
/// scheduler: at the latest so long afterwards.
const TICK_MAX: Duration = Duration::from_millis(10);

/// Processor time of each kind of thread, with all that was spent before this was called.
pub(crate) fn settled_times_ns() -> BTreeMap<String, u64> {
    thread::sleep(TICK_MAX);
    threads::cpu_times_ns()
}

/// Name of the engine's thread.
pub(crate) const CORE: &str = CORE_THREAD;

/// The file of a store's data zone, when it has one.
pub(crate) fn data_file(store: &Path) -> PathBuf {
    store.join("data")
}

/// The first block of a new data zone says whose it is: a store without it is not opened.
pub(crate) const MARK_BYTES: u64 = 4096;

/// Writes the first bytes of a new store's data file once ([`write_once`]), and its mark again.
pub(crate) fn write_data_once(store: &Path, size_bytes: u64) -> Result<(), Failure> {
    let path = data_file(store);
    let mut mark = [0; MARK_BYTES as usize];
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(Failure::file(&path))?;
    file.read_exact_at(&mut mark, 0).map_err(Failure::file(&path))?;
    write_once(&path, size_bytes)?;
    let written = file.write_all_at(&mark, 0).and_then(|()| file.sync_all());
    written.map_err(Failure::file(&path))
}

/// A running store.
pub(crate) struct Store {
    store: ::store::Store,
}

impl Store {
    /// Makes a store of `capacity_bytes` at `path`.
    pub(crate) fn make(path: &Path, capacity_bytes: u64) -> Result<(), Failure> {
        let options = CreateOptions {
            chunk_bytes: CHUNK_BYTES as u32,
            compression: COMPRESSION,
            uuid: Some([7; 16]),
            bucket_seed: Some([9; 16]),
            ..CreateOptions::new(capacity_bytes)
        };
        ::store::create(path, &options)?;
        Ok(())
    }

    /// Opens the store at `path` and starts its engine.
    pub(crate) fn open(path: &Path, options: &engine::Options) -> Result<Self, Failure> {
        let options = Options { engine: options.clone(), ..Default::default() };
        Ok(Self { store: ::store::Store::open(path, options)? })
    }

    /// The way to its engine.
    pub(crate) fn client(&self) -> &Client {
        self.store.client()
    }

    /// Writes everything out and ends the engine.
    pub(crate) fn close(self) -> Result<(), Failure> {
        Ok(self.store.close()?)
    }
}

/// For tests that run an engine: one at a time, since threads are found by their names, and those
/// of another engine that ends meanwhile take their time with them.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
