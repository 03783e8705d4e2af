//! A running store: an engine on a thread of its own, and what its owner holds of it.
//!
//! [`Store::close`] takes the store by value, so a store is closed once. Dropping one instead ends
//! its engine as a crash would: nothing is written out, the thread is joined, the locks are free,
//! and the next opening recovers what was flushed. Only where a join could wait for ever is it left
//! out: while the dropping thread panics (the engine may be what failed), and on the engine's own
//! thread (a hook owns the store); then the engine ends by itself, soon after.

use std::path::Path;
use std::process;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use disk::{Access, Disk, DiskIdentity, Doorbell, MemoryDisk, OverlayDisk};
use engine::{Client, Clock, DomainSecret, NewVolume, OpenReport, Opener, RequestError};

use crate::error::{CloseError, MachineError, OpenError};
use crate::files::{new_doorbell, open_ringing};
use crate::options::Options;
use crate::randomness::random_bytes;
use crate::volume::Volume;

/// Name of the thread that an engine runs on.
pub const CORE_THREAD: &str = "core";

/// What a store that is only read keeps of its journal's changes is at most this part of the
/// engine's memory.
const OVERLAY_PART: u64 = 2;

type CoreHandle = JoinHandle<Result<(), RequestError>>;

/// A store whose engine runs in this process; [the crate](crate) has an example.
pub struct Store {
    client: Client,
    /// None once the thread has been joined.
    core: Option<CoreHandle>,
    report: OpenReport,
    opened_in: Duration,
    identity: Option<DiskIdentity>,
}

impl Store {
    /// Opens the store at `path` and starts its engine. With [`engine::Options::read_only`] its
    /// files are only read, also by several processes at once: what its journal changes lies in
    /// memory, half as much as the engine's at most, and goes with the store.
    ///
    /// # Errors
    /// Each variant of [`OpenError`] says what to do about it.
    pub fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let begun = Instant::now();
        let doorbell = new_doorbell()?;
        let engine = &options.engine;
        let access = if engine.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let files = open_ringing(path, access, options.io, &doorbell, &options.lock_wait)?;
        let disk = match access {
            Access::ReadWrite => files.disk,
            Access::ReadOnly => {
                let memory_bytes_max = engine.memory_bytes / OVERLAY_PART;
                Box::new(OverlayDisk::new(files.disk, memory_bytes_max, &doorbell))
            }
        };
        Self::start(disk, doorbell, options, (begun, Some(files.identity)))
    }

    /// Opens the store on `disk`, whose completions ring `doorbell`, and starts its engine. What
    /// [`Options`] say of files and locks has no meaning here.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        disk: Box<dyn Disk>,
        doorbell: Doorbell,
        options: Options,
    ) -> Result<Self, OpenError> {
        Self::start(disk, doorbell, options, (Instant::now(), None))
    }

    /// Opens the store on a disk in memory, of which the caller keeps a handle.
    ///
    /// # Errors
    /// As [`Store::open`].
    ///
    /// ```
    /// use store::{CreateOptions, Options, Store};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
    /// let store = Store::open_in_memory(&disk, Options::default())?;
    /// store.create_volume("disk0", 1 << 20)?;
    /// store.close()?;
    /// assert!(Store::open_in_memory(&disk, Options::default())?.report().clean);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_in_memory(disk: &MemoryDisk, options: Options) -> Result<Self, OpenError> {
        let doorbell = new_doorbell()?;
        disk.set_doorbell(&doorbell);
        Self::open_on(Box::new(disk.clone()), doorbell, options)
    }

    fn start(
        disk: Box<dyn Disk>,
        doorbell: Doorbell,
        options: Options,
        (begun, identity): (Instant, Option<DiskIdentity>),
    ) -> Result<Self, OpenError> {
        let Options { engine: chosen, caches, warn_percents, copies_above, hooks, .. } = options;
        let secret = match options.domain_secret {
            Some(secret) => secret,
            None => DomainSecret(random_bytes()?),
        };
        let (mut engine, client, report) = match caches {
            Some(caches) => engine::open_with_cache(disk, doorbell, &chosen, caches)?,
            None => engine::open(disk, doorbell, &chosen)?,
        };
        let opened_in = begun.elapsed();
        engine.offer_secret(secret);
        threads::calibrate_ticks();
        engine.keep_time(Clock { ticks: threads::read_ticks, ns: threads::ticks_to_ns });
        if let Some(observer) = hooks.observer {
            engine.observe(observer);
        }
        if let Some(percents) = warn_percents {
            engine.warn_at(&percents);
        }
        if let Some(references) = copies_above {
            engine.copy_above(references);
        }
        let over = WhenOver(hooks.when_over);
        let run = move || {
            let _over = over;
            engine.run()
        };
        let core = thread::Builder::new()
            .name(CORE_THREAD.to_owned())
            .spawn(run)
            .map_err(|source| MachineError { action: "start the engine's thread", source })?;
        Ok(Self { client, core: Some(core), report, opened_in, identity })
    }

    /// The way to its engine, for doors; clones may outlive the store and then answer
    /// [`RequestError::Closing`].
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What opening found: whether the store had been closed cleanly, and what was replayed.
    #[must_use]
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// How long opening took: where the store was not closed cleanly, the recovery.
    #[must_use]
    pub fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// How its files are driven; None on a disk of the caller's.
    #[must_use]
    pub fn identity(&self) -> Option<&DiskIdentity> {
        self.identity.as_ref()
    }

    /// Makes a thin volume, durable when this returns.
    ///
    /// # Errors
    /// [`RequestError::VolumeExists`], [`RequestError::BadName`], [`RequestError::BadSize`], and
    /// what the device comes to.
    pub fn create_volume(&self, name: &str, size_bytes: u64) -> Result<Volume, RequestError> {
        let volume = NewVolume { name: name.to_owned(), size_bytes, ..NewVolume::default() };
        self.client.ask(volume)?;
        self.volume(name)
    }

    /// Opens the volume or snapshot of this name, until the last clone of what comes back is
    /// dropped. Its register names this process ([`Client::opens`]).
    ///
    /// # Errors
    /// [`RequestError::NoSuchVolume`]; [`RequestError::RollingBack`], for a moment.
    pub fn volume(&self, name: &str) -> Result<Volume, RequestError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_unix_s = since.map_or(0, |since| since.as_secs());
        let opener = Opener::new(format!("process {}", process::id()), since_unix_s);
        Ok(Volume::new(self.client.clone(), self.client.open_volume(name, opener)?))
    }

    /// Flushes, writes a checkpoint, marks the store clean, and joins the engine's thread.
    ///
    /// # Errors
    /// [`CloseError`]; the next opening recovers the store.
    pub fn close(mut self) -> Result<(), CloseError> {
        let closed = self.client.close();
        // `core` is there: only this and the drop that follows take it.
        let ended = self.core.take().map_or(Ok(Ok(())), JoinHandle::join);
        let ended = ended.map_err(|_| CloseError::Panicked)?;
        Ok(ended.and(closed)?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else { return };
        self.client.abandon();
        if !thread::panicking() && core.thread().id() != thread::current().id() {
            // A panic of the engine has been told to `when_over`.
            let _ = core.join();
        }
    }
}

/// Calls the hook when it is dropped, so by a panic as well.
struct WhenOver(Option<Box<dyn FnOnce() + Send>>);

impl Drop for WhenOver {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}
