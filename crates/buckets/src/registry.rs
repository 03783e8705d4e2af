//! The buckets of a store by name: made, opened, listed, deleted. [`crate::slots`] has those that
//! are open.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use engine::control::{DeleteRequest, ListVolumes, NewVolume};
use engine::{Client, VolumeKind};
use format::BLOCK_BYTES;
use objects::bucket::{Bucket, BucketError, BucketOptions, OpenOptions};
use objects::index::IndexError;
use segments::SegmentPolicy;
use store::{Durability, RequestError, random_bytes};

use crate::copies::{check_may_go_back, state_of};
use crate::error::BucketsError;
use crate::name::check_bucket_name;
use crate::now_unix_ms;
use crate::opened::{Hosted, OpenBucket};
use crate::slots::{BucketsOptions, Shared, Slot, lock};
use crate::upkeep;

/// A bucket's volume: thin, and as large as a volume can be.
const BUCKET_VOLUME_BYTES: u64 = 1 << 50;
const _: () = assert!(BUCKET_VOLUME_BYTES >= format::objects::header::VALUES_AT_BYTES);
/// Volumes that are listed in one request.
const LISTED_AT_ONCE: usize = 4096;
/// How long a deletion or closing waits for requests that are being answered.
const UNUSED_WAIT: Duration = Duration::from_secs(5);
/// How often it looks whether they have ended.
const UNUSED_LOOK: Duration = Duration::from_millis(5);

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
    /// Number of its volume; no other of the store's life has it.
    pub id: u32,
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

impl Buckets {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Over the store of `client`; starts upkeep.
    ///
    /// # Errors
    /// [`BucketsError::Machine`] when the machine gives no thread.
    pub fn start(client: Client, options: BucketsOptions) -> Result<Self, BucketsError> {
        let is_read_only = options.is_read_only;
        let shared = Arc::new(Shared::new(client, options));
        if !is_read_only {
            shared.set_upkeep(upkeep::start(Arc::clone(&shared))?);
        }
        Ok(Self { shared })
    }

    /// Makes a bucket, durable when this returns; one whose making was cut off is made anew.
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
        let options = BucketOptions {
            segments: new.segments,
            created_unix_ms: Some(now_unix_ms()),
            ..BucketOptions::new(random_bytes()?)
        };
        let slot = self.shared.slot(name)?;
        let made = {
            let _alone = lock(&slot);
            self.create_alone(name, new, &options)
        };
        self.shared.give_back(name, slot);
        made
    }

    /// As [`Buckets::create`], by who has the slot of the name.
    fn create_alone(
        &self,
        name: &str,
        new: &NewBucket,
        options: &BucketOptions,
    ) -> Result<(), BucketsError> {
        let client = &self.shared.client;
        let make = || {
            client.ask(NewVolume {
                name: name.to_owned(),
                size_bytes: BUCKET_VOLUME_BYTES,
                kind: VolumeKind::Bucket,
                domain: new.domain.clone(),
                ..NewVolume::default()
            })
        };
        let made = match make() {
            Err(RequestError::VolumeExists { .. }) if self.is_unfinished(name) => {
                client.ask(DeleteRequest::of(name))?;
                make()
            }
            made => made,
        };
        let made = made.map_err(|error| match error {
            RequestError::VolumeExists { .. } => BucketsError::Exists { name: name.to_owned() },
            error => error.into(),
        })?;
        let filled = self.shared.volume(name).and_then(|volume| {
            Bucket::create(Arc::new(volume.clone()), options)?;
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

    /// Whether the making of the bucket was cut off; for who has the slot of the name. What a
    /// primary has not filled yet is a replica.
    fn is_unfinished(&self, name: &str) -> bool {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        let Ok(volume) = self.shared.volume(name) else { return false };
        if !matches!(state_of(name, &volume), Ok(None)) {
            return false;
        }
        let opened = Bucket::open(Arc::new(volume), &options);
        matches!(opened, Err(BucketError::Index(IndexError::Unfinished)))
    }

    /// Opens a bucket, or `BUCKET@SNAPSHOT` read-only.
    ///
    /// # Errors
    /// [`BucketsError::NoSuchBucket`], of one whose making was cut off as well; [`BucketsError`].
    pub fn open(&self, name: &str) -> Result<OpenBucket, BucketsError> {
        let open = self.open_made(name).map_err(|error| match error {
            BucketsError::Bucket(BucketError::Index(IndexError::Unfinished)) => {
                BucketsError::NoSuchBucket { name: name.to_owned() }
            }
            error => error,
        })?;
        self.count_domain_of(&open);
        Ok(open)
    }

    pub(crate) fn open_made(&self, name: &str) -> Result<OpenBucket, BucketsError> {
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
                shared.give_back(name, slot);
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
                id: volume.id,
                mapped_bytes: volume.mapped_bytes,
                domain: volume.domain,
                taken_unix_s: volume.taken_unix_s,
            }));
            if is_last {
                return Ok(all);
            }
        }
    }

    /// When a bucket was made, in milliseconds since 1970. The bucket is opened for it once in the
    /// life of this process. None: nobody knows, or it cannot be opened.
    #[must_use]
    pub fn created_unix_ms(&self, bucket: &BucketInfo) -> Option<u64> {
        if let Some(created_unix_ms) = lock(&self.shared.created_unix_ms).get(&bucket.id) {
            return *created_unix_ms;
        }
        let created_unix_ms = self.open(&bucket.name).ok()?.created_unix_ms();
        lock(&self.shared.created_unix_ms).insert(bucket.id, created_unix_ms);
        created_unix_ms
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
        let mut held = lock_unused(&slot, name)?;
        // Somebody may have put an object meanwhile; nobody does from here on.
        if let Some(hosted) = held.as_ref().filter(|_| !with_objects) {
            hosted.check_empty()?;
        }
        *held = None;
        let deleted = shared.cut_off(name, || {
            shared.client.ask(DeleteRequest::of(name)).map_err(|error| match error {
                RequestError::InUse { name, .. } => BucketsError::InUse { name },
                error => error.into(),
            })
        });
        drop(held);
        shared.give_back(name, slot);
        deleted
    }

    /// Closes the bucket or snapshot of this name, if it is open here, so that its volume can be
    /// rolled back or deleted. The next request for it opens it again.
    ///
    /// # Errors
    /// [`BucketsError::Replication`] when another server has a copy, which would not hear of it;
    /// [`BucketsError::InUse`] when requests are answered from it for some time;
    /// [`BucketsError::Bucket`] when its log could not be merged: it is closed all the same.
    pub fn close_bucket(&self, name: &str) -> Result<(), BucketsError> {
        if let Ok(volume) = self.shared.volume(name) {
            check_may_go_back(name, &volume)?;
        }
        let slot = self.shared.slot(name)?;
        let mut held = lock_unused(&slot, name)?;
        let closed = match held.take() {
            Some(hosted) => hosted.bucket.clone().close(),
            None => Ok(()),
        };
        drop(held);
        self.shared.give_back(name, slot);
        Ok(closed?)
    }

    /// Whether there is a bucket of this name, and it holds nothing or may hold something.
    fn check_deletable(&self, name: &str, with_objects: bool) -> Result<(), BucketsError> {
        match self.open_made(name) {
            Ok(_) if with_objects => Ok(()),
            Ok(bucket) => {
                let now_ms = now_unix_ms();
                while !bucket.is_read_only() && !bucket.expire_some(now_ms, u64::MAX)?.is_done {}
                bucket.hosted().check_empty()
            }
            // Nobody has put anything into it.
            Err(BucketsError::Bucket(BucketError::Index(
                IndexError::Unfinished | IndexError::NoBucket(_),
            ))) => Ok(()),
            // A damaged bucket can be deleted with what it holds, and so can a replica.
            Err(BucketsError::Bucket(_) | BucketsError::IsReplica { .. }) if with_objects => Ok(()),
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
        let mut outcome = Ok(());
        for hosted in self.shared.end() {
            let closed = hosted.bucket.clone().close();
            outcome = outcome.and(closed.map_err(BucketsError::from));
        }
        outcome
    }
}

/// The slot's lock when no request holds the bucket, which is waited for.
///
/// # Errors
/// [`BucketsError::InUse`] when one still does after [`UNUSED_WAIT`].
pub(crate) fn lock_unused<'a>(
    slot: &'a Slot,
    name: &str,
) -> Result<MutexGuard<'a, Option<Arc<Hosted>>>, BucketsError> {
    let began = Instant::now();
    loop {
        let held = lock(slot);
        if held.as_ref().is_none_or(|hosted| Arc::strong_count(hosted) == 1) {
            return Ok(held);
        }
        drop(held);
        if began.elapsed() > UNUSED_WAIT {
            return Err(BucketsError::InUse { name: name.to_owned() });
        }
        std::thread::sleep(UNUSED_LOOK);
    }
}
