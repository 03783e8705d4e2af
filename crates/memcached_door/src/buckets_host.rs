//! Buckets behind the door: who may come in, to which bucket, and at whose cost.
//!
//! ```text
//! ACCESS-KEY SECRET         ──> the one bucket that the account may write
//! ACCESS-KEY@BUCKET SECRET  ──> that bucket, if the account may write it
//! nothing at all            ──> the bucket of everybody, where the operator has named one
//! ```
//!
//! A bucket is opened as a cache by the first client that comes to it, and stays open while it has
//! clients and for a while after the last, so that clients that connect for each request find its
//! hot items. Meanwhile it is in use: nobody deletes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use accounts::Account;
use buckets::{Buckets, BucketsError};
use items::{Items, ItemsConnection, ItemsError, ItemsOptions};
use memcached::{Counts, Figures};
use tenants::{PartyId, Tenant, Tenants};

use crate::host::{Guest, Host, Meter};
use crate::place::Place;

/// How long a bucket without clients stays open.
const KEPT_TIME: Duration = Duration::from_secs(30);
/// Buckets of no tenant are parties from this number on: tenants are counted from 1.
const FIRST_BUCKET: u64 = 1 << 63;

/// Why a bucket does not serve as a cache.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The bucket cannot be opened.
    #[error(transparent)]
    Bucket(#[from] BucketsError),
    /// It is a snapshot, or the store is served read-only.
    #[error("bucket {name} is read-only, and a cache is written to")]
    ReadOnly {
        /// Its name.
        name: String,
    },
    /// It cannot serve as a cache.
    #[error("bucket {name} cannot be served over memcached: {source}")]
    Items {
        /// Its name.
        name: String,
        /// Why.
        source: ItemsError,
    },
}

/// How buckets are served.
pub struct HostOptions {
    /// The bucket of those who do not say who they are; none: each must.
    pub bucket: Option<String>,
    /// How each bucket serves as a cache.
    pub items: ItemsOptions,
    /// Takes notes for the operator.
    pub observer: Box<dyn Fn(&str) + Send + Sync>,
}

/// The buckets of a store, for clients of memcached.
pub struct BucketsHost {
    buckets: Buckets,
    tenants: Arc<Tenants>,
    options: HostOptions,
    /// Of those who do not say who they are; it stays open.
    shared: Option<Arc<Served>>,
    open: Mutex<HashMap<String, Kept>>,
}

/// A bucket that serves as a cache.
struct Served {
    name: String,
    items: Items,
    place: Arc<Place>,
    /// The number that its clients have as a party where they are of no tenant.
    party: u64,
}

/// A bucket that serves as a cache, as it is told.
#[derive(Clone, Debug)]
pub struct CacheFigures {
    /// Its name.
    pub bucket: String,
    /// What it holds, and what its clients did.
    pub figures: Figures,
    /// Items that are in memory, and the bytes that they take there.
    pub hot: (u64, u64),
}

struct Kept {
    served: Arc<Served>,
    /// When it was first seen without clients.
    unused_since: Option<Instant>,
}

impl BucketsHost {
    /// Opens the bucket of everybody, if there is one.
    ///
    /// # Errors
    /// [`HostError`] of that bucket.
    pub fn new(
        buckets: Buckets,
        tenants: Arc<Tenants>,
        options: HostOptions,
    ) -> Result<Self, HostError> {
        let (shared, open) = (None, Mutex::default());
        let mut host = Self { buckets, tenants, options, shared, open };
        if let Some(name) = host.options.bucket.clone() {
            host.shared = Some(Arc::new(host.open_bucket(&name, FIRST_BUCKET)?));
        }
        Ok(host)
    }

    /// The buckets that serve as caches now, by name. It waits for one that is being opened.
    #[must_use]
    pub fn caches(&self) -> Vec<CacheFigures> {
        let open = self.open();
        let all = self.shared.iter().chain(open.values().map(|kept| &kept.served));
        let mut caches: Vec<_> = all.map(|served| served.figures()).collect();
        caches.sort_by(|one, other| one.bucket.cmp(&other.bucket));
        caches
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bucket as a cache, opened if it is not yet. It may wait for a log that is replayed, with
    /// the lock: those who come in meanwhile wait as well.
    fn served(&self, name: &str) -> Result<Arc<Served>, HostError> {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.name == name) {
            return Ok(Arc::clone(shared));
        }
        let mut open = self.open();
        if let Some(kept) = open.get_mut(name) {
            kept.unused_since = None;
            return Ok(Arc::clone(&kept.served));
        }
        let newest = open.values().map(|kept| kept.served.party).max();
        let party = newest.unwrap_or(FIRST_BUCKET) + 1;
        let served = Arc::new(self.open_bucket(name, party)?);
        let kept = Kept { served: Arc::clone(&served), unused_since: None };
        open.insert(name.to_owned(), kept);
        Ok(served)
    }

    fn open_bucket(&self, name: &str, party: u64) -> Result<Served, HostError> {
        let bucket = self.buckets.open(name)?;
        if bucket.is_read_only() {
            return Err(HostError::ReadOnly { name: name.to_owned() });
        }
        let items = Items::open(bucket, self.options.items)
            .map_err(|source| HostError::Items { name: name.to_owned(), source })?;
        Ok(Served { name: name.to_owned(), items, place: Arc::default(), party })
    }

    /// The one bucket that an account may write, where it names none.
    fn only_bucket(&self, account: &Account) -> Option<String> {
        let all = self.buckets.list().ok()?;
        let mut may_write = all
            .into_iter()
            .filter(|bucket| bucket.taken_unix_s.is_none() && account.may_write(&bucket.name));
        let only = may_write.next()?;
        may_write.next().is_none().then_some(only.name)
    }

    fn account(&self, access_key: &str) -> Option<Arc<Account>> {
        match self.tenants.accounts().by_access_key(access_key) {
            Ok(account) => account,
            Err(error) => {
                (self.options.observer)(&format!("memcached cannot read the accounts: {error}"));
                None
            }
        }
    }
}

impl Served {
    fn figures(&self) -> CacheFigures {
        let figures = self.place.figures(self.items.figures());
        CacheFigures { bucket: self.name.clone(), figures, hot: self.items.hot_figures() }
    }
}

fn guest(
    served: &Arc<Served>,
    name: Option<&str>,
    tenant: Option<Arc<Tenant>>,
) -> Guest<ItemsConnection> {
    let party = tenant.as_ref().map_or(PartyId::new(served.party), |tenant| tenant.party());
    Guest {
        place: Arc::clone(&served.place),
        cache: served.items.connection(),
        name: name.map(Arc::from),
        meter: tenant.map(|tenant| Arc::new(Charged(tenant)) as Arc<dyn Meter>),
        party,
    }
}

impl Host for BucketsHost {
    type Cache = ItemsConnection;

    fn without_name(&self) -> Option<Guest<ItemsConnection>> {
        self.shared.as_ref().map(|shared| guest(shared, None, None))
    }

    fn by_name(&self, user: &[u8], password: &[u8]) -> Option<Guest<ItemsConnection>> {
        let user = std::str::from_utf8(user).ok()?;
        let (access_key, bucket) = match user.split_once('@') {
            Some((access_key, bucket)) => (access_key, Some(bucket.to_owned())),
            None => (user, None),
        };
        let account = self.account(access_key)?;
        if !is_same_secret(account.secret.reveal().as_bytes(), password) {
            return None;
        }
        let bucket = bucket.or_else(|| self.only_bucket(&account))?;
        if !account.may_write(&bucket) {
            return None;
        }
        let _ = self.tenants.refresh();
        match self.served(&bucket) {
            Ok(served) => {
                let name = format!("{access_key}@{bucket}");
                Some(guest(&served, Some(&name), self.tenants.of(&account)))
            }
            Err(HostError::Bucket(BucketsError::NoSuchBucket { .. })) => None,
            Err(error) => {
                (self.options.observer)(&format!("memcached: {error}"));
                None
            }
        }
    }

    fn may_stay(&self, name: &str) -> bool {
        let Some((access_key, bucket)) = name.split_once('@') else {
            unreachable!("a client comes in under its access key and its bucket");
        };
        // Where the file cannot be read nobody comes in, and nobody has to go.
        let known = self.tenants.accounts().by_access_key(access_key);
        known.map_or(true, |account| account.is_some_and(|account| account.may_write(bucket)))
    }

    /// Closes buckets that have had no client for a while, on another thread.
    fn give_back_unused(&self, now: Instant) {
        let Ok(mut open) = self.open.try_lock() else { return };
        let unused: Vec<Kept> = open
            .extract_if(|_, kept| {
                // Each client has a handle of the place, and one that comes in of the bucket.
                let served = &kept.served;
                let is_used = Arc::strong_count(served) + Arc::strong_count(&served.place) > 2;
                let since = *kept.unused_since.get_or_insert(now);
                if is_used {
                    kept.unused_since = None;
                }
                !is_used && now.saturating_duration_since(since) >= KEPT_TIME
            })
            .map(|(_, kept)| kept)
            .collect();
        drop(open);
        if !unused.is_empty() {
            // Without a thread they are dropped here.
            let _ = thread::Builder::new().spawn(move || drop(unused));
        }
    }
}

/// Compares all bytes, wherever the first difference is.
fn is_same_secret(secret: &[u8], given: &[u8]) -> bool {
    let pairs = secret.iter().zip(given);
    let differences = pairs.fold(0, |differences, (one, other)| differences | (one ^ other));
    std::hint::black_box(differences) == 0 && secret.len() == given.len()
}

/// A tenant's account pays.
struct Charged(Arc<Tenant>);

impl Meter for Charged {
    fn charge(&self, requests: u64, bytes: u64, now: Instant) -> Option<Duration> {
        self.0.charge(requests, bytes, now)
    }

    fn record(&self, counts: &Counts, took: Duration) {
        let sums = counts.incr_hits + counts.incr_misses + counts.decr_hits + counts.decr_misses;
        for (kind, operations) in [
            (tenants::Operation::Read, counts.cmd_get + counts.cmd_meta),
            (tenants::Operation::Write, counts.cmd_set + counts.cmd_touch + sums),
            (tenants::Operation::Delete, counts.delete_hits + counts.delete_misses),
            (tenants::Operation::Other, counts.cmd_flush),
        ] {
            self.0.record_together(kind, operations, took);
        }
        self.0.add_bytes_in(counts.bytes_read);
        self.0.add_bytes_out(counts.bytes_written);
    }
}
