//! What is counted of the clients of one cache, and what `stats` tells of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use memcached::{Answer, Answers, Cache, Counts, Fault, Figures, Request, Store};

/// Counts are kept apart for this many threads, so that they do not wait for one another.
const SHARDS: usize = 16;

/// The door of one cache: those who came through it, and what they asked.
#[derive(Debug, Default)]
pub struct Place {
    connections: AtomicU64,
    connections_total: AtomicU64,
    shards: [Mutex<Counts>; SHARDS],
}

/// What `stats` tells of the server.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) started: Instant,
    pub(crate) connections_max: u64,
    pub(crate) connections_rejected: AtomicU64,
    pub(crate) threads: u64,
    pub(crate) tcp_port: u16,
    pub(crate) is_authenticated: bool,
    pub(crate) value_bytes_max: u64,
    pub(crate) version: String,
}

impl Facts {
    /// Seconds since the start.
    pub(crate) fn age_s(&self, now: Instant) -> u32 {
        let age = now.saturating_duration_since(self.started);
        u32::try_from(age.as_secs()).unwrap_or(u32::MAX)
    }
}

impl Place {
    /// Connections now.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// What its connections have counted.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for shard in &self.shards {
            all.add(&shard.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all
    }

    fn reset(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Counts::default();
        }
    }

    fn count(&self, thread: usize, counts: &Counts) {
        let shard = &self.shards[thread % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner).add(counts);
    }

    /// What the cache tells, with what its clients did.
    pub(crate) fn figures(&self, of_cache: Figures) -> Figures {
        Figures {
            counts: self.counts(),
            connections: self.connections(),
            connections_total: self.connections_total.load(Ordering::Relaxed),
            ..of_cache
        }
    }

    /// The same with what the door knows. Of others' clients nothing is told.
    fn figures_at(&self, facts: &Facts, of_cache: Figures) -> Figures {
        let rejected = facts.connections_rejected.load(Ordering::Relaxed);
        Figures {
            pid: std::process::id(),
            uptime_s: facts.started.elapsed().as_secs(),
            version: facts.version.clone(),
            connections_rejected: if facts.is_authenticated { 0 } else { rejected },
            connections_max: facts.connections_max,
            threads: facts.threads,
            tcp_port: facts.tcp_port,
            is_authenticated: facts.is_authenticated,
            value_bytes_max: facts.value_bytes_max,
            ..self.figures(of_cache)
        }
    }
}

/// A client's presence at a place.
#[derive(Debug)]
pub(crate) struct Presence(Arc<Place>);

impl Presence {
    pub(crate) fn at(place: Arc<Place>) -> Self {
        place.connections.fetch_add(1, Ordering::Relaxed);
        place.connections_total.fetch_add(1, Ordering::Relaxed);
        Self(place)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client's cache, with what its door counts.
pub(crate) struct Counted<C> {
    pub(crate) cache: C,
    presence: Presence,
    facts: Arc<Facts>,
    thread: usize,
    /// What nobody has paid for yet.
    pub(crate) unpaid: Counts,
    /// More changes than this are not made at once where others have their turn.
    pub(crate) changes_at_once_max: usize,
}

impl<C> Counted<C> {
    /// For a client of the event thread with this number.
    pub(crate) fn new(cache: C, presence: Presence, facts: Arc<Facts>, thread: usize) -> Self {
        let (unpaid, changes_at_once_max) = (Counts::default(), usize::MAX);
        Self { cache, presence, facts, thread, unpaid, changes_at_once_max }
    }
}

impl<C: Cache> Cache for Counted<C> {
    type Writer = C::Writer;
    type Reader = C::Reader;

    fn run(
        &mut self,
        requests: &[Request<'_>],
        now_s: u64,
        answers: &mut Answers<'_, Self::Reader>,
    ) {
        self.cache.run(requests, now_s, answers);
    }

    fn would_wait(&self, requests: &[Request<'_>], now_s: u64) -> bool {
        let mut changes = requests.iter().filter(|request| request.operation.is_change());
        changes.nth(self.changes_at_once_max).is_some() || self.cache.would_wait(requests, now_s)
    }

    fn begin_store(&mut self, store: &Store<'_>, now_s: u64) -> Result<Self::Writer, Fault> {
        self.cache.begin_store(store, now_s)
    }

    fn finish_store(
        &mut self,
        writer: Self::Writer,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        self.cache.finish_store(writer, store, now_s)
    }

    fn figures(&mut self, now_s: u64) -> Figures {
        self.presence.0.figures_at(&self.facts, self.cache.figures(now_s))
    }

    fn count(&mut self, counts: &Counts) {
        self.unpaid.add(counts);
        self.presence.0.count(self.thread, counts);
    }

    fn limit_bytes(&mut self, bytes: u64) -> bool {
        self.cache.limit_bytes(bytes)
    }

    fn reset_counts(&mut self) {
        self.presence.0.reset();
        self.cache.reset_counts();
    }
}
