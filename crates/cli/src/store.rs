//! A store that this process opens, with its engine on a thread of its own. Commands that only ask
//! or change settings do not need it for themselves: [`crate::control`].

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use disk::{DiskIdentity, Doorbell, IoEngine, OpenError, StoreFiles, open_store_files};
use engine::{Client, Clock, DomainSecret, Engine, OpenReport, Options, RequestError};

use crate::args::EngineArgs;
use crate::error::CliError;
use crate::output;
use crate::randomness::random_bytes;
use crate::recall;

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

/// What a command's words say of its engine; `sync` acknowledges only what is durable.
pub(crate) fn engine_options(args: &EngineArgs, sync: bool) -> Options {
    let threads = || threads_in(args.memory, processors());
    let worker_threads = args.threads.map_or_else(threads, usize::from);
    Options { memory_bytes: args.memory, worker_threads, sync, ..Default::default() }
}

pub(crate) fn question_options() -> Options {
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
