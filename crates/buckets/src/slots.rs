//! Which buckets are open in this process.
//!
//! Each name has a slot, and who opens or deletes the bucket holds the slot's lock, so a bucket is
//! opened once and none is opened while it is being deleted. The map of slots has a lock of its
//! own. Nobody holds it while a bucket is opened, which replays a log; who has it only tries a
//! slot.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::{Client, Opener, VolumeKind};
use objects::bucket::{Bucket, OpenOptions};
use store::{RequestError, Volume, WriteRoom};

use crate::copies::{Held, Replicator};
use crate::domains::{DomainQuotas, Domains};
use crate::error::BucketsError;
use crate::now_unix_ms;
use crate::opened::{Hosted, OpenBucket};

/// Part of the memory that one bucket works in.
const MEMORY_PARTS: u64 = 4;
/// Least and most memory that one bucket works in.
const BUCKET_MEMORY_BYTES: RangeInclusive<u64> = (8 << 20)..=(256 << 20);
/// Buckets open at once, however small the memory.
const OPEN_BUCKETS_MIN: usize = 8;

/// Chunks kept for deletions in a full store: their log, and the steps of a merge.
const KEPT_CHUNKS: u64 = 2048;

/// How the buckets of a store are opened.
#[derive(Clone, Debug)]
pub struct BucketsOptions {
    /// Memory for all open buckets together, about; each has up to 256 MiB.
    pub memory_bytes: u64,
    /// Refuse changes.
    pub is_read_only: bool,
    /// Who opens the volumes, as the store lists it.
    pub opened_by: String,
    /// How long an upload may stay unfinished before upkeep aborts it.
    pub upload_age_max: Duration,
    /// How much the buckets of a dedup domain may hold together; none: nobody bounds them.
    pub domain_quotas: Option<DomainQuotas>,
}

impl Default for BucketsOptions {
    /// 256 MiB; uploads stay a week.
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            is_read_only: false,
            opened_by: format!("buckets, pid {}", std::process::id()),
            upload_age_max: Duration::from_hours(7 * 24),
            domain_quotas: None,
        }
    }
}

/// A bucket's place: who opens, closes or deletes it holds the lock.
pub(crate) type Slot = Arc<Mutex<Option<Arc<Hosted>>>>;

/// What all handles of the buckets share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) options: BucketsOptions,
    pub(crate) domains: Domains,
    /// Who keeps the connections of replicated buckets, if anybody does.
    pub(crate) replicator: OnceLock<Arc<dyn Replicator>>,
    state: Mutex<State>,
    /// When buckets were made, by the number of their volumes: those that were asked for.
    pub(crate) created_unix_ms: Mutex<HashMap<u32, Option<u64>>>,
    /// Wakes upkeep when it is to end.
    ending: Condvar,
}

#[derive(Default)]
struct State {
    slots: HashMap<String, Named>,
    /// Grows with each opening, so that the bucket that waited longest is known.
    openings: u64,
    is_closing: bool,
    upkeep: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Named {
    slot: Slot,
    opened_last: u64,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(client: Client, options: BucketsOptions) -> Self {
        let (state, created_unix_ms) = (Mutex::default(), Mutex::default());
        let domains = Domains::new(options.domain_quotas.clone());
        let (replicator, ending) = (OnceLock::new(), Condvar::new());
        Self { client, options, domains, replicator, state, created_unix_ms, ending }
    }

    /// Has `upkeep` joined when buckets are closed.
    pub(crate) fn set_upkeep(&self, upkeep: JoinHandle<()>) {
        lock(&self.state).upkeep = Some(upkeep);
    }

    /// From now on nothing is opened; returns what is open, when upkeep has ended.
    pub(crate) fn end(&self) -> Vec<Arc<Hosted>> {
        let (slots, upkeep) = {
            let mut state = lock(&self.state);
            state.is_closing = true;
            (std::mem::take(&mut state.slots), state.upkeep.take())
        };
        self.ending.notify_all();
        // A panic of upkeep has been printed; buckets are closed all the same.
        let _ = upkeep.map(JoinHandle::join);
        slots.into_values().filter_map(|named| lock(&named.slot).take()).collect()
    }

    /// The slot of a name, made if need be.
    pub(crate) fn slot(&self, name: &str) -> Result<Slot, BucketsError> {
        let mut state = lock(&self.state);
        if state.is_closing {
            return Err(BucketsError::Closing);
        }
        state.openings += 1;
        let openings = state.openings;
        let named = state.slots.entry(name.to_owned()).or_default();
        named.opened_last = openings;
        Ok(Arc::clone(&named.slot))
    }

    /// Gives a slot back: one that holds no bucket takes no room from then on.
    pub(crate) fn give_back(&self, name: &str, slot: Slot) {
        let mut state = lock(&self.state);
        drop(slot);
        let is_empty = state.slots.get(name).is_some_and(|named| {
            let held = named.slot.try_lock();
            Arc::strong_count(&named.slot) == 1 && held.is_ok_and(|held| held.is_none())
        });
        if is_empty {
            state.slots.remove(name);
        }
    }

    pub(crate) fn volume(&self, name: &str) -> Result<Volume, BucketsError> {
        let opener = Opener::new(self.options.opened_by.clone(), now_unix_ms() / 1000);
        let opened = self.client.open_volume(name, opener).map_err(|error| match error {
            RequestError::NoSuchVolume { .. } => no_such_bucket(name),
            error => error.into(),
        })?;
        match opened.kind() {
            VolumeKind::Bucket => Ok(Volume::new(self.client.clone(), opened)),
            VolumeKind::Block => Err(no_such_bucket(name)),
        }
    }

    pub(crate) fn open_closed(&self, name: &str) -> Result<Arc<Hosted>, BucketsError> {
        let volume = self.volume(name)?;
        let is_read_only = self.options.is_read_only || volume.handle().read_only();
        if !is_read_only {
            self.client.keep_for_release(WriteRoom::of_chunks(KEPT_CHUNKS, KEPT_CHUNKS));
        }
        let memory_bytes = self.bucket_memory_bytes();
        let held = Held::of(name, &volume, is_read_only, self.replicator.get())?;
        let Held { volume: through, is_mirrored, is_read_only } = held;
        let options = OpenOptions { memory_bytes, read_only: is_read_only };
        let bucket = Bucket::open(through, &options)?;
        if !is_read_only {
            self.domains.join(volume.handle().domain(), volume.handle().id().0, &bucket);
        }
        let name = name.to_owned();
        Ok(Arc::new(Hosted { name, is_read_only, bucket, volume, is_mirrored }))
    }

    /// Does `work` on a bucket that is closed while no other server has a connection to it; for
    /// who has its slot.
    ///
    /// # Errors
    /// [`BucketsError::InUse`] when a connection does not end for some time; those of `work`.
    pub(crate) fn cut_off(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<(), BucketsError>,
    ) -> Result<(), BucketsError> {
        let Some(replicator) = self.replicator.get() else { return work() };
        let done = match replicator.suspend(name) {
            true => work(),
            false => Err(BucketsError::InUse { name: name.to_owned() }),
        };
        replicator.resume(name);
        done
    }

    fn bucket_memory_bytes(&self) -> u64 {
        let (least, most) = BUCKET_MEMORY_BYTES.into_inner();
        (self.options.memory_bytes / MEMORY_PARTS).clamp(least, most)
    }

    fn open_buckets_max(&self) -> usize {
        let fit = self.options.memory_bytes / self.bucket_memory_bytes();
        usize::try_from(fit).unwrap_or(usize::MAX).max(OPEN_BUCKETS_MIN)
    }

    /// Closes what was opened longest ago and nobody holds, while more are open than memory is for.
    pub(crate) fn close_idle(&self) {
        loop {
            let (name, slot) = {
                let state = lock(&self.state);
                let open = || state.slots.iter().filter(|(_, named)| is_open_and_idle(named));
                if state.slots.len() <= self.open_buckets_max() {
                    return;
                }
                let Some((name, named)) = open().min_by_key(|(_, named)| named.opened_last) else {
                    return; // All are held.
                };
                (name.clone(), Arc::clone(&named.slot))
            };
            let mut held = lock(&slot);
            if let Some(hosted) = held.take_if(|hosted| Arc::strong_count(hosted) == 1) {
                // What cannot be merged is replayed when the bucket is opened next.
                let _ = hosted.bucket.clone().close();
            }
            drop(held);
            self.give_back(&name, slot);
        }
    }

    /// Names that may have an open bucket.
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.state).slots.keys().cloned().collect()
    }

    /// The bucket of a name, if it is open and takes changes.
    pub(crate) fn open_for_changes(&self, name: &str) -> Option<OpenBucket> {
        let slot = Arc::clone(&lock(&self.state).slots.get(name)?.slot);
        let hosted = slot.try_lock().ok()?.clone()?;
        (!hosted.is_read_only).then(|| OpenBucket::new(hosted))
    }

    /// Waits; returns whether upkeep is to end.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        let state = lock(&self.state);
        if state.is_closing {
            return true;
        }
        let rested = self.ending.wait_timeout(state, time);
        rested.unwrap_or_else(PoisonError::into_inner).0.is_closing
    }
}

fn is_open_and_idle(named: &Named) -> bool {
    let held = named.slot.try_lock();
    held.is_ok_and(|held| held.as_ref().is_some_and(|hosted| Arc::strong_count(hosted) == 1))
}

fn no_such_bucket(name: &str) -> BucketsError {
    BucketsError::NoSuchBucket { name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use store::{CreateOptions, Options, Store};

    use super::lock;
    use crate::{Buckets, BucketsOptions, NewBucket};

    #[test]
    fn names_without_buckets_take_no_room() {
        let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let buckets = Buckets::start(store.client().clone(), BucketsOptions::default()).unwrap();
        let slots = || lock(&buckets.shared().state).slots.len();
        for number in 0..100 {
            assert!(buckets.open(&format!("no-{number}")).is_err());
        }
        assert!(buckets.create("Bad", &NewBucket::default()).is_err());
        buckets.create("good", &NewBucket::default()).unwrap();
        assert_eq!(slots(), 0);
        buckets.open("good").unwrap();
        assert_eq!(slots(), 1);
        buckets.delete("good", false).unwrap();
        assert_eq!(slots(), 0);
        buckets.close().unwrap();
    }
}
