//! A store as commands see it: opened here, or served by another process.
//!
//! Who asks for volumes or figures does not care which, so [`Store`] answers both ways. Who moves
//! bytes or checks needs the store for itself and asks for an [`OpenStore`].
//!
//! ```text
//! Store::open ── a server answers at control.sock ──> Served (admin::Client)
//!            └── nobody does ── lock, files, engine thread ──> Here (OpenStore)
//! ```

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use disk::{DiskIdentity, Doorbell, IoEngine, OpenError, StoreFiles, open_store_files};
use engine::{
    Address, Client, Clock, CollectRequest, CollectStep, Compression, Dedup, DeleteRequest,
    DifferenceRequest, DifferenceStep, DomainSecret, Engine, Explanation, NewVolume, OpenReport,
    Options, RequestError, ScrubRequest, ScrubStep, SnapshotRequest, Stats, VolumeInfo,
    WeightRequest, WeightStep,
};

use crate::args::EngineArgs;
use crate::error::CliError;
use crate::output;
use crate::randomness::random_bytes;
use crate::recall;
use crate::staging::{check_name, check_snapshots};

/// A killed server's kernel side finishes its I/O before it lets the files go: for so long a lock
/// that nobody answers for is waited for.
const LOCK_RETRY: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 60;

/// Memory of an engine that only answers a question.
const MEMORY_BYTES_FOR_QUESTIONS: u64 = 256 << 20;
/// Memory for each thread that fingerprints and compresses; unasked no more of them are made.
const MEMORY_BYTES_PER_THREAD: u64 = 8 << 20;

/// An engine that runs in this process, on a thread of its own.
pub(crate) struct OpenStore {
    client: Client,
    core: JoinHandle<Result<(), RequestError>>,
    /// What opening found.
    pub(crate) report: OpenReport,
    /// How long opening took: with a store that was not closed cleanly, the recovery.
    pub(crate) opened_in: Duration,
    /// How its files are driven.
    pub(crate) identity: DiskIdentity,
}

/// The files of the store at `path`, locked; completions ring `doorbell`.
pub(crate) fn open_files(path: &Path, doorbell: &Doorbell) -> Result<StoreFiles, CliError> {
    let mut tries_left = LOCK_TRIES;
    loop {
        match open_store_files(path, IoEngine::Auto, doorbell) {
            Err(OpenError::Locked { .. }) if tries_left > 0 && !is_served(path) => {
                tries_left -= 1;
                std::thread::sleep(LOCK_RETRY);
            }
            Err(OpenError::NoStore { .. }) => {
                return Err(CliError::NoStore { store: path.to_owned() });
            }
            Err(OpenError::Locked { .. }) => {
                return Err(CliError::InUse { store: path.to_owned() });
            }
            outcome => return outcome.map_err(CliError::OpenFiles),
        }
    }
}

/// Whether a server answers for the store.
fn is_served(path: &Path) -> bool {
    matches!(admin::Client::connect(path), Ok(Some(_)) | Err(_))
}

/// What an engine and its disk sleep on.
pub(crate) fn new_doorbell() -> Result<Doorbell, CliError> {
    Doorbell::new().map_err(CliError::OpenFiles)
}

/// Whether a store is at `path`.
pub(crate) fn is_there(path: &Path) -> bool {
    path.join("superblock").symlink_metadata().is_ok()
}

impl OpenStore {
    /// Opens the store at `path`; `watch` may say who is told what happens inside, and `when_over`
    /// is called when its engine has ended.
    pub(crate) fn open(
        path: &Path,
        options: Options,
        watch: impl FnOnce(&mut Engine),
        when_over: impl FnOnce() + Send + 'static,
    ) -> Result<Self, CliError> {
        let started = Instant::now();
        let doorbell = new_doorbell()?;
        let files = open_files(path, &doorbell)?;
        let (mut engine, client, report) = engine::open(files.disk, doorbell, &options)?;
        let opened_in = started.elapsed();
        if report.older_root && report.cut {
            output::say(
                "warning: the newest root is damaged, and the journal was cut before a record \
                 whose chunks are not all there: if that was flushed, what was written last before \
                 the store was closed or killed is gone as if never made",
            );
        }
        engine.offer_secret(DomainSecret(random_bytes()?));
        threads::calibrate_ticks();
        engine.keep_time(Clock { ticks: threads::read_ticks, ns: threads::ticks_to_ns });
        watch(&mut engine);
        let core = thread::Builder::new()
            .name("core".to_owned())
            .spawn(move || {
                let _over = WhenOver(Some(when_over));
                engine.run()
            })
            .map_err(|source| CliError::System { action: "a thread cannot be made", source })?;
        recall::at_opening(path, &client);
        Ok(Self { client, core, report, opened_in, identity: files.identity })
    }

    /// The way to its engine.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Writes everything out and marks the store clean.
    pub(crate) fn close(self) -> Result<(), CliError> {
        let closed = self.client.close();
        let ended = self.core.join().map_err(|_| CliError::EngineVanished)?;
        Ok(ended.and(closed)?)
    }

    /// Opens the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        options: Options,
        work: impl FnOnce(&Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let store = Self::open(path, options, |_| (), || ())?;
        let result = work(&store);
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }
}

/// What is called when an engine has ended, by a panic as well: its server must not go on alone.
struct WhenOver<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for WhenOver<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// A store for questions and small changes.
pub(crate) enum Store {
    /// Opened by this command.
    Here(OpenStore),
    /// Served by another process.
    Served(admin::Client),
}

/// Its server, when the store at `path` is being served.
pub(crate) fn connect(path: &Path) -> Result<Option<admin::Client>, CliError> {
    Ok(admin::Client::connect(path)?)
}

impl Store {
    /// Reaches the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let mut store = match connect(path)? {
            Some(client) => Self::Served(client),
            None => Self::Here(OpenStore::open(path, question_options(), |_| (), || ())?),
        };
        let result = work(&mut store);
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }

    fn close(self) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.close(),
            Self::Served(_) => Ok(()),
        }
    }

    /// Whether another process has it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// All volumes and snapshots, by name.
    pub(crate) fn volumes(&mut self) -> Result<Vec<VolumeInfo>, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.volumes()?,
            Self::Served(client) => client.volumes()?,
        })
    }

    /// The volume or snapshot of this name in the store at `path`.
    pub(crate) fn volume(&mut self, path: &Path, name: &str) -> Result<VolumeInfo, CliError> {
        let found = self.volumes()?.into_iter().find(|volume| volume.name == name);
        found.ok_or_else(|| CliError::NoVolume { store: path.to_owned(), name: name.to_owned() })
    }

    /// Makes a thin volume.
    pub(crate) fn create_volume(&mut self, volume: NewVolume) -> Result<VolumeInfo, CliError> {
        check_name(&volume.name)?;
        Ok(match self {
            Self::Here(store) => store.client.make_volume(volume)?,
            Self::Served(client) => client.create_volume(volume)?,
        })
    }

    /// Gives a volume another size; a smaller one only if that is meant.
    pub(crate) fn resize_volume(
        &mut self,
        name: &str,
        size_bytes: u64,
        may_shrink: bool,
    ) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.set_size(name, size_bytes, may_shrink)?,
            Self::Served(client) => client.resize_volume(name, size_bytes, may_shrink)?,
        })
    }

    /// Lets a volume map so many bytes and no more, or any amount.
    pub(crate) fn set_quota(
        &mut self,
        name: &str,
        quota_bytes: Option<u64>,
    ) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.set_quota(name, quota_bytes)?,
            Self::Served(client) => client.set_quota(name, quota_bytes)?,
        })
    }

    /// Whether duplicates are looked for among what is written to a volume from now on.
    pub(crate) fn set_dedup(&mut self, name: &str, dedup: Dedup) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.set_dedup(name, dedup)?,
            Self::Served(client) => client.set_dedup(name, dedup)?,
        })
    }

    /// Gives a volume another name.
    pub(crate) fn rename_volume(
        &mut self,
        name: &str,
        new_name: &str,
    ) -> Result<VolumeInfo, CliError> {
        check_name(new_name)?;
        Ok(match self {
            Self::Here(store) => store.client.rename_volume(name, new_name)?,
            Self::Served(client) => client.rename_volume(name, new_name)?,
        })
    }

    /// Deletes a volume or a snapshot; a volume's snapshots only if that is meant.
    pub(crate) fn delete_volume(&mut self, request: DeleteRequest) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.client.delete(request)?,
            Self::Served(client) => client.delete_volume(request)?,
        }
        Ok(())
    }

    /// Takes snapshots, all at one moment.
    pub(crate) fn take_snapshots(&mut self, request: SnapshotRequest) -> Result<(), CliError> {
        check_snapshots(&request)?;
        match self {
            Self::Here(store) => store.client.take_snapshots(request)?,
            Self::Served(client) => client.take_snapshots(request)?,
        }
        Ok(())
    }

    /// Makes a volume that begins as a snapshot.
    pub(crate) fn clone_volume(
        &mut self,
        snapshot: &str,
        name: &str,
    ) -> Result<VolumeInfo, CliError> {
        check_name(name)?;
        Ok(match self {
            Self::Here(store) => store.client.clone_volume(snapshot, name)?,
            Self::Served(client) => client.clone_volume(snapshot, name)?,
        })
    }

    /// Lets a volume hold again what this snapshot of it holds.
    pub(crate) fn roll_back(&mut self, snapshot: &VolumeInfo) -> Result<VolumeInfo, CliError> {
        let (name, id) = (&snapshot.name, Some(snapshot.id));
        Ok(match self {
            Self::Here(store) => store.client.roll_back_to(name, id)?,
            Self::Served(client) => client.roll_back(name, id)?,
        })
    }

    /// Sets what new frames are compressed with.
    pub(crate) fn set_compression(&mut self, compression: Compression) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.client.set_compression(compression)?,
            Self::Served(client) => client.set_compression(compression)?,
        }
        Ok(())
    }

    /// One address of a volume, walked through the tables.
    pub(crate) fn explain(
        &mut self,
        volume: &str,
        address: Address,
    ) -> Result<Explanation, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.explain(volume, address)?,
            Self::Served(client) => client.explain(volume, address)?,
        })
    }

    /// One step of a comparison of two versions.
    pub(crate) fn difference(
        &mut self,
        request: DifferenceRequest,
    ) -> Result<DifferenceStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.difference(request)?,
            Self::Served(client) => client.difference(request)?,
        })
    }

    /// One step of a volume's weighing.
    pub(crate) fn weigh(&mut self, request: WeightRequest) -> Result<WeightStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.weigh(request)?,
            Self::Served(client) => client.weigh(request)?,
        })
    }

    /// One step of a scrub.
    pub(crate) fn scrub(&mut self, request: ScrubRequest) -> Result<ScrubStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.scrub(request)?,
            Self::Served(client) => client.scrub(request)?,
        })
    }

    /// Collects one container.
    pub(crate) fn collect(&mut self, request: CollectRequest) -> Result<CollectStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.collect(request)?,
            Self::Served(client) => client.collect(request)?,
        })
    }

    /// Figures of the store.
    pub(crate) fn stats(&mut self) -> Result<Stats, CliError> {
        Ok(match self {
            Self::Here(store) => store.client.stats()?,
            Self::Served(client) => client.stats()?,
        })
    }
}

/// What a command's words say of its engine; `sync` acknowledges only what is durable.
pub(crate) fn engine_options(args: &EngineArgs, sync: bool) -> Options {
    let threads = || threads_in(args.memory, processors());
    let worker_threads = args.threads.map_or_else(threads, usize::from);
    Options { memory_bytes: args.memory, worker_threads, sync, ..Default::default() }
}

fn question_options() -> Options {
    Options {
        memory_bytes: MEMORY_BYTES_FOR_QUESTIONS,
        worker_threads: threads_in(MEMORY_BYTES_FOR_QUESTIONS, processors()),
        sync: false,
        ..Default::default()
    }
}

/// Threads that fingerprint and compress, where nobody said how many: each takes memory.
fn threads_in(memory_bytes: u64, processors: usize) -> usize {
    let most = usize::try_from(memory_bytes / MEMORY_BYTES_PER_THREAD).unwrap_or(usize::MAX);
    processors.min(most).max(1)
}

/// Processors that this process may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Name of the file of a zone in the store at `path`.
pub(crate) fn zone_file_name(path: &Path, zone: &str) -> String {
    let file = disk::zone_file(path, zone);
    file.file_name().map_or_else(|| zone.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Where the store at `path` is, in full: for lines that are pasted elsewhere.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::{WhenOver, threads_in};

    #[test]
    fn there_are_no_more_threads_than_the_memory_is_for() {
        let threads = [(1 << 30, 2), (1 << 30, 96), (64 << 20, 96), (1, 96)];
        assert_eq!(
            threads.map(|(memory, processors)| threads_in(memory, processors)),
            [2, 96, 8, 1]
        );
    }

    #[test]
    fn the_end_of_an_engine_is_heard_of_when_it_panics_too() {
        let (ended, hears) = channel();
        let core = thread::spawn(move || {
            let _over = WhenOver(Some(move || ended.send(()).unwrap()));
            panic!("as by a mistake of ours");
        });
        hears.recv().unwrap();
        assert!(core.join().is_err());
    }
}
