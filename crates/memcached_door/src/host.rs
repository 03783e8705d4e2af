//! The seam: who comes in, and which cache answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memcached::{Cache, Counts};
use tenants::PartyId;

use crate::place::Place;

/// Lets clients in.
pub trait Host: Send + Sync + 'static {
    /// What answers one client.
    type Cache: Cache<Writer: Send, Reader: Send> + Send;

    /// Lets a client in that has not said who it is; `None` where each must.
    fn without_name(&self) -> Option<Guest<Self::Cache>>;

    /// Lets in the client that gives this name and this password. It may wait: for a bucket that is
    /// opened, say.
    fn by_name(&self, user: &[u8], password: &[u8]) -> Option<Guest<Self::Cache>>;

    /// Whether a client that was let in under this name may stay. It is asked about once a second,
    /// and does not wait.
    fn may_stay(&self, name: &str) -> bool;

    /// Is called about once a second, to give back what nobody uses any more. It does not wait.
    fn give_back_unused(&self, now: Instant) {
        let _ = now;
    }
}

impl<H: Host> Host for Arc<H> {
    type Cache = H::Cache;

    fn without_name(&self) -> Option<Guest<H::Cache>> {
        self.as_ref().without_name()
    }

    fn by_name(&self, user: &[u8], password: &[u8]) -> Option<Guest<H::Cache>> {
        self.as_ref().by_name(user, password)
    }

    fn may_stay(&self, name: &str) -> bool {
        self.as_ref().may_stay(name)
    }

    fn give_back_unused(&self, now: Instant) {
        self.as_ref().give_back_unused(now);
    }
}

/// A client that was let in.
pub struct Guest<C> {
    /// What answers it.
    pub cache: C,
    /// What is counted of the cache's clients.
    pub place: Arc<Place>,
    /// The name under which it came, if it gave one.
    pub name: Option<Arc<str>>,
    /// Who pays for what it asks; `None` where nobody counts.
    pub meter: Option<Arc<dyn Meter>>,
    /// Parties take turns where something has to be waited for.
    pub party: PartyId,
}

/// Takes the cost of what a tenant's clients ask.
pub trait Meter: Send + Sync {
    /// Takes a cost that has come up already, and says how long its client is not to be read from.
    fn charge(&self, requests: u64, bytes: u64, now: Instant) -> Option<Duration>;

    /// Takes note of what was answered, and of how long that took.
    fn record(&self, counts: &Counts, took: Duration);
}
