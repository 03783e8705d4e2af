//! What a caller chooses each time a store is opened.

use std::fmt;

use disk::IoEngine;
use engine::{Caches, DomainSecret, Observer};

use crate::files::LockWait;

/// How a store is opened. The default is an engine of 1 GiB of memory and two threads for
/// fingerprints and compression, on io_uring where the kernel has it.
#[derive(Debug, Default)]
pub struct Options {
    /// Memory, threads, and whether only what is durable is acknowledged.
    pub engine: engine::Options,
    /// What drives the files.
    pub io: IoEngine,
    /// How long a held lock is waited for.
    pub lock_wait: LockWait,
    /// Sizes of the caches; without them the engine divides its memory itself.
    pub caches: Option<Caches>,
    /// Percentages of used room at which [`engine::Notice::RoomRunsOut`] is told; without them
    /// those of [`engine::WARN_PERCENT_DEFAULT`].
    pub warn_percents: Option<Vec<u8>>,
    /// References above which a chunk gets a second copy; without it
    /// [`engine::COPIES_ABOVE_DEFAULT`].
    pub copies_above: Option<u32>,
    /// What the keys of the store's first keyed domain are made from; without it random bytes.
    pub domain_secret: Option<DomainSecret>,
    /// Who hears of what happens inside.
    pub hooks: Hooks,
}

/// Who hears of what happens inside a running store.
#[derive(Default)]
pub struct Hooks {
    /// Hears each [`engine::Notice`]; called on the engine's thread, which waits for it.
    pub observer: Option<Observer>,
    /// Called once when the engine has ended, by a close, an abandonment or a panic: its server
    /// must not go on alone. Called on the engine's thread, when every request has been answered.
    pub when_over: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("observer", &self.observer.is_some())
            .field("when_over", &self.when_over.is_some())
            .finish()
    }
}
