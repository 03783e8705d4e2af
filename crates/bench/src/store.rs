//! A store on the real disk, made for one round, and its engine on a thread of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use disk::{Doorbell, IoEngine, create_store_files, open_store_files};
use engine::{Client, Clock, CreateOptions, Options, RequestError};

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
pub(crate) const CORE: &str = "core";

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

/// A running engine.
pub(crate) struct Store {
    pub(crate) client: Client,
    core: JoinHandle<Result<(), RequestError>>,
}

impl Store {
    /// Makes a store of `capacity_bytes` at `path`.
    pub(crate) fn make(path: &Path, capacity_bytes: u64) -> Result<(), Failure> {
        let geometry = engine::plan(&CreateOptions {
            capacity_bytes: vec![capacity_bytes],
            chunk_bytes: CHUNK_BYTES as u32,
            compression: COMPRESSION,
            detection: Default::default(),
            tables_bytes: None,
            journal_bytes: None,
            uuid: [7; 16],
            bucket_seed: [9; 16],
        })?;
        let zones: Vec<_> = geometry.zones().collect();
        create_store_files(path, &zones, &[], geometry.uuid)?;
        let disk = open_store_files(path, IoEngine::Auto, &Doorbell::new()?)?.disk;
        Ok(engine::create(disk, &geometry, COMPRESSION)?)
    }

    /// Opens the store at `path` and starts its engine.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, Failure> {
        let doorbell = Doorbell::new()?;
        let files = open_store_files(path, IoEngine::Auto, &doorbell)?;
        let (mut engine, client, _) = engine::open(files.disk, doorbell, options)?;
        threads::calibrate_ticks();
        engine.keep_time(Clock { ticks: threads::read_ticks, ns: threads::ticks_to_ns });
        let core = thread::Builder::new()
            .name(CORE.to_owned())
            .spawn(move || engine.run())
            .map_err(Failure::Thread)?;
        Ok(Self { client, core })
    }

    /// Writes everything out and ends the engine.
    pub(crate) fn close(self) -> Result<(), Failure> {
        let closed = self.client.close();
        let ended = self.core.join().map_err(|_| Failure::EngineVanished)?;
        Ok(closed.and(ended)?)
    }
}

/// For tests that run an engine: one at a time, since threads are found by their names, and those
/// of another engine that ends meanwhile take their time with them.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
