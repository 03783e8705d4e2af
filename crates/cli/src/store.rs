//! A store that this process opens, with its engine on a thread of its own. Commands that only ask
//! or change settings do not need it for themselves: [`crate::control`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ::store::{LockWait, OpenError};
use disk::{Access, IoEngine, StoreFiles};
use engine::{Client, OpenReport, Options, VolumeInfo};

use crate::args::EngineArgs;
use crate::error::{CliError, PlaceError};
use crate::output;
use crate::recall;

/// Memory of an engine that only answers a question.
const MEMORY_BYTES_FOR_QUESTIONS: u64 = 256 << 20;
/// Memory for each thread that fingerprints and compresses; unasked no more of them are made.
const MEMORY_BYTES_PER_THREAD: u64 = 8 << 20;

/// A store that runs in this process.
pub(crate) struct OpenStore {
    store: ::store::Store,
    is_read_only: bool,
}

/// The files of the store at `path`, locked.
pub(crate) fn open_files(path: &Path) -> Result<StoreFiles, CliError> {
    Ok(::store::open_files(path, Access::ReadWrite, IoEngine::Auto, &lock_wait(path))?)
}

/// The same for commands that only read.
pub(crate) fn open_files_to_read(path: &Path) -> Result<StoreFiles, CliError> {
    open_for_reading(|access| ::store::open_files(path, access, IoEngine::Auto, &lock_wait(path)))
}

/// Opens for writing, which recovers the store, and read-only where this process may not write its
/// files.
fn open_for_reading<T>(open: impl Fn(Access) -> Result<T, OpenError>) -> Result<T, CliError> {
    match open(Access::ReadWrite) {
        Err(error) if is_only_readable(&error) => Ok(open(Access::ReadOnly)?),
        opened => Ok(opened?),
    }
}

/// Whether a store was not opened because this process may not write its files.
fn is_only_readable(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Files(
            disk::OpenError::ReadOnlyMedium { .. } | disk::OpenError::NotPermitted { .. }
        )
    )
}

/// A lock is waited for while no server answers for it: a killed one keeps it for a moment.
fn lock_wait(path: &Path) -> LockWait {
    let path = path.to_owned();
    let is_served = move || matches!(admin::Client::connect(&path), Ok(Some(_)) | Err(_));
    LockWait { holder_lives: Some(Box::new(is_served)), ..LockWait::default() }
}

/// Whether a store is at `path`.
pub(crate) fn is_there(path: &Path) -> bool {
    path.join("superblock").symlink_metadata().is_ok()
}

/// The volumes and snapshots of the store at `path`, of which nothing is changed: it is not
/// recovered, and not waited for. None where it cannot be read so.
pub(crate) fn volumes_unchanged(path: &Path) -> Option<Vec<VolumeInfo>> {
    let mut options = question_options();
    options.engine.read_only = true;
    options.lock_wait = LockWait::none();
    let store = ::store::Store::open(path, options).ok()?;
    let volumes = store.client().volumes().ok();
    let _ = store.close();
    volumes
}

/// Checks that a store is at `path`.
pub(crate) fn check_there(path: &Path) -> Result<(), CliError> {
    match path.join("superblock").symlink_metadata() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(PlaceError::no_directory(path).into())
        }
        Err(_) => Err(CliError::NoStore { store: path.to_owned() }),
    }
}

impl OpenStore {
    /// Opens the store at `path`, and has the engine learn what damage is remembered of it.
    pub(crate) fn open(path: &Path, options: ::store::Options) -> Result<Self, CliError> {
        Ok(Self::open_with(path, options)?)
    }

    fn open_with(path: &Path, options: ::store::Options) -> Result<Self, OpenError> {
        let options = ::store::Options { lock_wait: lock_wait(path), ..options };
        let is_read_only = options.engine.read_only;
        let store = ::store::Store::open(path, options)?;
        let report = store.report();
        if report.older_root && report.cut {
            output::say(
                "warning: the newest root is damaged, and the journal was cut before a record \
                 whose chunks are not all there: if that was flushed, what was written last before \
                 the store was closed or killed is gone as if never made",
            );
        }
        recall::at_opening(path, store.client());
        Ok(Self { store, is_read_only })
    }

    /// As [`Self::open`], for commands that can do with reading: where this process may not write
    /// the store's files it opens them read-only, and everything that would change them is refused.
    pub(crate) fn open_to_read(
        path: &Path,
        options: impl Fn() -> ::store::Options,
    ) -> Result<Self, CliError> {
        open_for_reading(|access| {
            let mut options = options();
            options.engine.read_only = access == Access::ReadOnly;
            Self::open_with(path, options)
        })
    }

    /// The way to its engine.
    pub(crate) fn client(&self) -> &Client {
        self.store.client()
    }

    /// Whether everything that would change it is refused.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// What opening found.
    pub(crate) fn report(&self) -> &OpenReport {
        self.store.report()
    }

    /// How long opening took: with a store that was not closed cleanly, the recovery.
    pub(crate) fn opened_in(&self) -> Duration {
        self.store.opened_in()
    }

    /// What is slower about its files than it could be, in a sentence.
    pub(crate) fn slower(&self) -> Option<&str> {
        self.store.identity()?.note.as_deref()
    }

    /// Writes everything out and marks the store clean.
    pub(crate) fn close(self) -> Result<(), CliError> {
        Ok(self.store.close()?)
    }

    /// Opens the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        options: Options,
        work: impl FnOnce(&Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let options = ::store::Options { engine: options, ..Default::default() };
        let store = Self::open(path, options)?;
        let result = work(&store);
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }
}

/// What a command's words say of its engine; `sync` acknowledges only what is durable.
pub(crate) fn engine_options(args: &EngineArgs, sync: bool) -> Options {
    let threads = || threads_in(args.memory, processors());
    let worker_threads = args.threads.map_or_else(threads, usize::from);
    Options { memory_bytes: args.memory, worker_threads, sync, ..Default::default() }
}

pub(crate) fn question_options() -> ::store::Options {
    let engine = Options {
        memory_bytes: MEMORY_BYTES_FOR_QUESTIONS,
        worker_threads: threads_in(MEMORY_BYTES_FOR_QUESTIONS, processors()),
        sync: false,
        ..Default::default()
    };
    ::store::Options { engine, ..Default::default() }
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
    use super::threads_in;

    #[test]
    fn there_are_no_more_threads_than_the_memory_is_for() {
        let threads = [(1 << 30, 2), (1 << 30, 96), (64 << 20, 96), (1, 96)];
        assert_eq!(
            threads.map(|(memory, processors)| threads_in(memory, processors)),
            [2, 96, 8, 1]
        );
    }
}
