//! One tenant of a served store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use accounts::TenantLimits;

use crate::figures::{Counters, Operation, TenantFigures};
use crate::rates::Rates;
use crate::shares::PartyId;
use crate::token_bucket::TokenBucket;

/// A tenant that would have to wait longer than its door lets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tenant is over its rate for {} ms from now", .waits.as_millis())]
pub struct TooFarBehind {
    /// How long it would wait.
    pub waits: Duration,
}

/// One tenant, for every connection of it and any number of threads.
#[derive(Debug)]
pub struct Tenant {
    name: String,
    domain: String,
    party: PartyId,
    /// Where the clock of the tokens begins.
    since: Instant,
    tokens: Mutex<TokenBucket>,
    /// [`u64::MAX`]: none.
    quota_bytes: AtomicU64,
    /// Grows with each change of the rates.
    changes: AtomicU64,
    counters: Counters,
}

impl Tenant {
    pub(crate) fn new(
        name: &str,
        domain: &str,
        party: PartyId,
        limits: &TenantLimits,
        now: Instant,
    ) -> Self {
        Self {
            name: name.to_owned(),
            domain: domain.to_owned(),
            party,
            since: now,
            tokens: Mutex::new(TokenBucket::new(Rates::from(limits), Duration::ZERO)),
            quota_bytes: AtomicU64::new(limits.quota_bytes.unwrap_or(u64::MAX)),
            changes: AtomicU64::new(0),
            counters: Counters::default(),
        }
    }

    /// The name of its account.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dedup domain of its buckets, which is no other tenant's.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// What it is called in a [`Pool`](crate::Pool).
    #[must_use]
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// Most bytes of all its objects together.
    #[must_use]
    pub fn quota_bytes(&self) -> Option<u64> {
        Some(self.quota_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != u64::MAX)
    }

    /// Its rates.
    #[must_use]
    pub fn rates(&self) -> Rates {
        *self.tokens().rates()
    }

    /// Charges a request that is carried out, or bytes of one. None: it is within its rates. Else
    /// nothing more is read from the socket that this came from for so long.
    pub fn charge(&self, requests: u64, bytes: u64, now: Instant) -> Option<Duration> {
        let waits = self.tokens().charge(requests, bytes, self.at(now));
        (!waits.is_zero()).then(|| {
            self.counters.add_throttled(waits);
            waits
        })
    }

    /// The same, for a request that is refused if it would wait longer than `longest`; then nothing
    /// is charged.
    ///
    /// # Errors
    /// [`TooFarBehind`].
    pub fn charge_within(
        &self,
        requests: u64,
        bytes: u64,
        now: Instant,
        longest: Duration,
    ) -> Result<Option<Duration>, TooFarBehind> {
        let waits = {
            let mut tokens = self.tokens();
            let waits = tokens.charge(requests, bytes, self.at(now));
            if waits > longest {
                tokens.refund(requests, bytes);
                return Err(TooFarBehind { waits });
            }
            waits
        };
        Ok((!waits.is_zero()).then(|| {
            self.counters.add_throttled(waits);
            waits
        }))
    }

    /// How long it takes until all is paid that was charged: who waits already looks here after a
    /// change of the rates.
    #[must_use]
    pub fn debt(&self, now: Instant) -> Duration {
        self.tokens().debt(self.at(now))
    }

    /// Grows when its rates change.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Counts an operation that was answered, with the bytes of values that it brought
    /// ([`Operation::Write`]) or took (all others).
    pub fn record(&self, operation: Operation, bytes: u64, latency: Duration) {
        self.counters.record(operation, 1, latency);
        match operation {
            Operation::Write => self.counters.add_bytes_in(bytes),
            _ => self.counters.add_bytes_out(bytes),
        }
    }

    /// Counts operations of one kind that were answered together, each after this time.
    pub fn record_together(&self, operation: Operation, operations: u64, latency: Duration) {
        if operations > 0 {
            self.counters.record(operation, operations, latency);
        }
    }

    /// Counts bytes of values that came, of an operation that is recorded without them.
    pub fn add_bytes_in(&self, bytes: u64) {
        self.counters.add_bytes_in(bytes);
    }

    /// Counts bytes of values that went.
    pub fn add_bytes_out(&self, bytes: u64) {
        self.counters.add_bytes_out(bytes);
    }

    /// What it did up to now.
    #[must_use]
    pub fn figures(&self) -> TenantFigures {
        self.counters.figures()
    }

    pub(crate) fn set_limits(&self, limits: &TenantLimits, now: Instant) {
        self.quota_bytes.store(limits.quota_bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
        let (rates, at) = (Rates::from(limits), self.at(now));
        let mut tokens = self.tokens();
        if *tokens.rates() != rates {
            tokens.set_rates(rates, at);
            drop(tokens);
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    fn tokens(&self) -> MutexGuard<'_, TokenBucket> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
