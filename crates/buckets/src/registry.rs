//! The buckets of a store by name: made, opened, listed, deleted.
//!
//! Each name has a slot, and who opens or deletes the bucket holds the slot's lock, so a bucket is
//! opened once and none is opened while it is being deleted. The map of slots has a lock of its own,
//! which nobody holds while a bucket is opened: that replays a log.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::control::{DeleteRequest, ListVolumes, NewVolume};
use engine::{Client, Opener, VolumeKind};
use format::BLOCK_BYTES;
use objects::bucket::{Bucket, BucketError, BucketOptions, OpenOptions};
use objects::index::IndexError;
use objects::values::cutter::SegmentPolicy;
use store::{Durability, RequestError, Volume, random_bytes};

use crate::error::BucketsError;
use crate::name::check_bucket_name;
use crate::now_unix_ms;
use crate::opened::{Hosted, OpenBucket};
use crate::upkeep;

/// A bucket's volume: thin, and as large as a volume can be.
const BUCKET_VOLUME_BYTES: u64 = 1 << 50;
/// Part of the memory that one bucket works in.
const MEMORY_PARTS: u64 = 4;
/// Least and most memory that one bucket works in.
const BUCKET_MEMORY_BYTES: std::ops::RangeInclusive<u64> = (8 << 20)..=(256 << 20);
/// Buckets open at once, however small the memory.
const OPEN_BUCKETS_MIN: usize = 8;
/// Volumes that are listed in one request.
const LISTED_AT_ONCE: usize = 4096;
/// How long a deletion waits for requests that are being answered.
const DELETE_WAIT: Duration = Duration::from_secs(2);
/// How often it looks whether they have ended.
const DELETE_LOOK: Duration = Duration::from_millis(5);

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
}

impl Default for BucketsOptions {
    /// 256 MiB; uploads stay a week.
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            is_read_only: false,
            opened_by: format!("buckets, pid {}", std::process::id()),
            upload_age_max: Duration::from_hours(7 * 24),
        }
    }
}

/// What a new bucket is like.
#[derive(Clone, Debug)]
pub struct NewBucket {
    /// How values are cut into segments.
    pub segments: SegmentPolicy,
    /// The domain inside which its chunks are deduplicated; none: the default one.
    pub domain: Option<String>,
    /// Most bytes of its objects together.
    pub quota_bytes: Option<u64>,
}

impl Default for NewBucket {
    /// Cut as its content has it, in the default domain, without a quota.
    fn default() -> Self {
        Self { segments: SegmentPolicy::Auto, domain: None, quota_bytes: None }
    }
}

/// A bucket as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name, `BUCKET@SNAPSHOT` for a snapshot.
    pub name: String,
    /// Bytes that its volume maps: index, log and values, before deduplication.
    pub mapped_bytes: u64,
    /// The domain inside which its chunks are deduplicated; none: the default one.
    pub domain: Option<String>,
    /// Of a snapshot, when it was taken, in seconds since 1970.
    pub taken_unix_s: Option<u64>,
}

/// The buckets of a running store, for any number of threads; a clone is the same.
///
/// ```
/// # use store::{CreateOptions, Options, Store};
/// use buckets::{Buckets, BucketsOptions, NewBucket, now_unix_ms};
/// use objects::bucket::PutOptions;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// let buckets = Buckets::start(store.client().clone(), BucketsOptions::default())?;
/// buckets.create("photos", &NewBucket::default())?;
/// let photos = buckets.open("photos")?;
/// let mut writer = photos.put_hashed(b"2026/cat.jpg", PutOptions::new(now_unix_ms()))?;
/// writer.write(b"...")?;
/// writer.finish()?;
/// drop(photos);
/// buckets.close()?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Buckets {
    shared: Arc<Shared>,
}

type Slot = Arc<Mutex<Option<Arc<Hosted>>>>;

pub(crate) struct Shared {
    client: Client,
    pub(crate) options: BucketsOptions,
    state: Mutex<State>,
    /// Wakes upkeep when it is to end.
    pub(crate) ending: Condvar,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buckets {
    /// Over the store of `client`; starts upkeep.
    ///
    /// # Errors
    /// [`BucketsError::Machine`] when the machine gives no thread.
    pub fn start(client: Client, options: BucketsOptions) -> Result<Self, BucketsError> {
        let is_read_only = options.is_read_only;
        let (state, ending) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { client, options, state, ending });
        if !is_read_only {
            let upkeep = upkeep::start(Arc::clone(&shared))?;
            lock(&shared.state).upkeep = Some(upkeep);
        }
        Ok(Self { shared })
    }

    /// Makes a bucket, durable when this returns.
    ///
    /// # Errors
    /// [`BucketsError::BadName`], [`BucketsError::Exists`], [`BucketsError::ChunkSize`];
    /// [`BucketsError`].
    pub fn create(&self, name: &str, new: &NewBucket) -> Result<(), BucketsError> {
        check_bucket_name(name)?;
        let client = &self.shared.client;
        let chunk_bytes = client.geometry()?.chunk_bytes;
        if chunk_bytes as usize != BLOCK_BYTES {
            return Err(BucketsError::ChunkSize { chunk_bytes });
        }
        let options =
            BucketOptions { segments: new.segments, ..BucketOptions::new(random_bytes()?) };
        let slot = self.shared.slot(name)?;
        let _alone = lock(&slot);
        let made = client.ask(NewVolume {
            name: name.to_owned(),
            size_bytes: BUCKET_VOLUME_BYTES,
            kind: VolumeKind::Bucket,
            domain: new.domain.clone(),
            ..NewVolume::default()
        });
        let made = made.map_err(|error| match error {
            RequestError::VolumeExists { .. } => BucketsError::Exists { name: name.to_owned() },
            error => error.into(),
        })?;
        let filled = self.shared.volume(name).and_then(|volume| {
            Bucket::create(Arc::new(volume.clone()), &options)?;
            if new.quota_bytes.is_some() {
                let bucket = Bucket::open(Arc::new(volume.clone()), &OpenOptions::default())?;
                bucket.set_quota(new.quota_bytes, Durability::Acknowledged)?;
                bucket.close()?;
            }
            Ok(volume.flush_blocking()?)
        });
        if filled.is_err() {
            // A volume that is no bucket helps nobody; that it was not filled is the error to tell.
            let id = Some(made.id);
            let _ = client.ask(DeleteRequest { id, ..DeleteRequest::of(name) });
        }
        filled
    }

    /// Opens a bucket, or `BUCKET@SNAPSHOT` read-only.
    ///
    /// # Errors
    /// [`BucketsError::NoSuchBucket`]; [`BucketsError`].
    pub fn open(&self, name: &str) -> Result<OpenBucket, BucketsError> {
        let shared = &self.shared;
        let slot = shared.slot(name)?;
        let mut held = lock(&slot);
        if let Some(hosted) = &*held {
            return Ok(OpenBucket::new(Arc::clone(hosted)));
        }
        match shared.open_closed(name) {
            Ok(hosted) => {
                *held = Some(Arc::clone(&hosted));
                drop(held);
                shared.close_idle();
                Ok(OpenBucket::new(hosted))
            }
            Err(error) => {
                drop(held);
                shared.forget_empty(name);
                Err(error)
            }
        }
    }

    /// All buckets and their snapshots, by name.
    ///
    /// # Errors
    /// [`BucketsError::Request`].
    pub fn list(&self) -> Result<Vec<BucketInfo>, BucketsError> {
        let mut all: Vec<BucketInfo> = Vec::new();
        let mut after = None;
        loop {
            let some = self.shared.client.ask(ListVolumes { after, most: LISTED_AT_ONCE })?;
            after = some.last().map(|last| last.name.clone());
            let is_last = some.len() < LISTED_AT_ONCE;
            let of_buckets = some.into_iter().filter(|volume| volume.kind == VolumeKind::Bucket);
            all.extend(of_buckets.map(|volume| BucketInfo {
                name: volume.name,
                mapped_bytes: volume.mapped_bytes,
                domain: volume.domain,
                taken_unix_s: volume.taken_unix_s,
            }));
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Deletes a bucket; one that holds objects only with `with_objects`. Its snapshots must have
    /// been deleted before.
    ///
    /// # Errors
    /// [`BucketsError::NoSuchBucket`], [`BucketsError::NotEmpty`], [`BucketsError::InUse`] when
    /// requests are answered from it for some time; [`BucketsError`].
    pub fn delete(&self, name: &str, with_objects: bool) -> Result<(), BucketsError> {
        let shared = &self.shared;
        self.check_deletable(name, with_objects)?;
        let slot = shared.slot(name)?;
        let began = Instant::now();
        let mut held = loop {
            let held = lock(&slot);
            if held.as_ref().is_none_or(|hosted| Arc::strong_count(hosted) == 1) {
                break held;
            }
            drop(held);
            if began.elapsed() > DELETE_WAIT {
                return Err(BucketsError::InUse { name: name.to_owned() });
            }
            std::thread::sleep(DELETE_LOOK);
        };
        // Somebody may have put an object meanwhile; nobody does from here on.
        if let Some(hosted) = held.as_ref().filter(|_| !with_objects) {
            hosted.check_empty()?;
        }
        *held = None;
        let deleted = shared.client.ask(DeleteRequest::of(name));
        drop(held);
        shared.forget_empty(name);
        deleted.map_err(|error| match error {
            RequestError::InUse { name, .. } => BucketsError::InUse { name },
            error => error.into(),
        })
    }

    /// Whether there is a bucket of this name, and it holds nothing or may hold something.
    fn check_deletable(&self, name: &str, with_objects: bool) -> Result<(), BucketsError> {
        match self.open(name) {
            Ok(_) if with_objects => Ok(()),
            Ok(bucket) => {
                let now_ms = now_unix_ms();
                while !bucket.is_read_only() && !bucket.expire_some(now_ms, u64::MAX)?.is_done {}
                bucket.hosted().check_empty()
            }
            // Its making did not end, so nobody has put anything into it.
            Err(BucketsError::Bucket(BucketError::Index(IndexError::NoBucket(_)))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Closes all buckets, so that they open quickly, and ends upkeep; what is asked later is
    /// refused. Who still holds an [`OpenBucket`] may use it, and its log is replayed when it is
    /// opened next.
    ///
    /// # Errors
    /// The first that a bucket could not be closed for; nothing that was acknowledged is lost.
    pub fn close(&self) -> Result<(), BucketsError> {
        let (slots, upkeep) = {
            let mut state = lock(&self.shared.state);
            state.is_closing = true;
            (std::mem::take(&mut state.slots), state.upkeep.take())
        };
        self.shared.ending.notify_all();
        // A panic of upkeep has been printed; buckets are closed all the same.
        let _ = upkeep.map(JoinHandle::join);
        let mut outcome = Ok(());
        for named in slots.into_values() {
            let hosted = lock(&named.slot).take();
            let closed = match hosted {
                Some(hosted) => hosted.bucket.clone().close(),
                None => Ok(()),
            };
            outcome = outcome.and(closed.map_err(BucketsError::from));
        }
        outcome
    }
}

impl Shared {
    /// The slot of a name, made if need be.
    fn slot(&self, name: &str) -> Result<Slot, BucketsError> {
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

    /// Names that nobody has a bucket of take no room.
    fn forget_empty(&self, name: &str) {
        let mut state = lock(&self.state);
        let is_empty = state.slots.get(name).is_some_and(|named| {
            Arc::strong_count(&named.slot) == 1 && lock(&named.slot).is_none()
        });
        if is_empty {
            state.slots.remove(name);
        }
    }

    fn volume(&self, name: &str) -> Result<Volume, BucketsError> {
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

    fn open_closed(&self, name: &str) -> Result<Arc<Hosted>, BucketsError> {
        let volume = self.volume(name)?;
        let is_read_only = self.options.is_read_only || volume.handle().read_only();
        let memory_bytes = self.bucket_memory_bytes();
        let options = OpenOptions { memory_bytes, read_only: is_read_only };
        let bucket = Bucket::open(Arc::new(volume), &options)?;
        Ok(Arc::new(Hosted { name: name.to_owned(), is_read_only, bucket }))
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
    fn close_idle(&self) {
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
            drop(slot);
            self.forget_empty(&name);
        }
    }

    /// The buckets that are open and take changes.
    pub(crate) fn open_for_changes(&self) -> Vec<OpenBucket> {
        let slots: Vec<Slot> =
            lock(&self.state).slots.values().map(|named| Arc::clone(&named.slot)).collect();
        let hosted =
            slots.iter().filter_map(|slot| slot.try_lock().ok().and_then(|held| held.clone()));
        hosted.filter(|hosted| !hosted.is_read_only).map(OpenBucket::new).collect()
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

const _: () = assert!(BUCKET_VOLUME_BYTES >= format::objects::header::VALUES_AT_BYTES);
