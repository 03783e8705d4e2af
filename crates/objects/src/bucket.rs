//! A bucket: objects with keys, conditions, uploads, expiry and a quota over index and values.
//!
//! ```text
//! put ─ value written, no lock ─┐
//! copy, completion, delete ─────┼─> Edit: stripes of the keys locked ─ record read ─ judged
//!                               │    └─ record, counts, expiry, extents: one apply ─> flush
//! get, head, list ─ no lock ────┴─> the index; a reader pins what the record names
//! ```
//!
//! The states of a key, and why each operation leaves one of them after any crash: decision 061.
//! Nothing here has a clock, a thread or randomness: callers pass the time, and a thread above
//! calls [`Bucket::merge_if_due`], [`Bucket::trim_some`] and [`Bucket::expire_some`].
//!
//! Locks are taken in this order: stripes by their numbers; then those of the values and the index.

mod check;
mod condition;
mod copy;
mod delete;
mod documents;
mod edit;
mod error;
mod expiry;
mod get;
mod info;
mod list;
mod locks;
mod moments;
mod put;
mod repair;
mod shared_quota;
mod tags;
#[cfg(test)]
mod tests;
mod transaction;
mod unreadable;
mod uploads;
mod usage;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use format::objects::settings::{
    CREATED_SETTING, FIGURES_SETTING, Figures, QUOTA_SETTING, SEGMENTS_AUTO, SEGMENTS_CDC,
    SEGMENTS_FIXED, SEGMENTS_SETTING, STRIPES, VERSIONS_SETTING, decode_number, encode_number,
};
use store::Durability;

use crate::index::{
    Change, Index, IndexCreateOptions, IndexError, IndexOptions, Merged, Table, VolumeIndex,
};
use crate::values::{TrimProgress, Values};
use crate::volume::BucketVolume;
use locks::Stripes;
use moments::Moments;
use segments::SegmentPolicy;
use usage::Usage;
use versions::Versions;

pub use check::{BucketCheck, BucketProblem, CheckOptions};
pub use condition::Condition;
pub use copy::{CopiedMetadata, CopyOptions};
pub use delete::DeleteOptions;
pub use documents::{DOCUMENT_BYTES_MAX, DOCUMENT_NAME_BYTES_MAX};
pub use error::{BucketError, Found, QuotaOf};
pub use expiry::Expired;
pub use get::Reader;
pub use info::{Metadata, ObjectInfo};
pub use list::{ListOptions, Listed, Listing, position_behind_key, position_behind_prefix};
pub use moments::{MOMENT_COUNTS, Moment, moment_number};
pub use put::{FinishOptions, Put, PutOptions, Writer};
pub use repair::{
    BucketRepair, DamagedObject, LostPart, Owner, RepairOptions, RepairProgress, RepairStage,
    repair,
};
pub use shared_quota::SharedQuota;
pub use tags::TagOptions;
pub use transaction::{Description, Transaction};
pub use unreadable::UnreadableObjects;
pub use uploads::{
    CompleteOptions, CopyPartOptions, ExpiredUploads, PartInfo, PartOptions, PartWriter, UploadId,
    UploadInfo, UploadOptions, UploadsListing,
};

/// What is fixed when a bucket is made.
#[derive(Clone, Copy, Debug)]
pub struct BucketOptions {
    /// Identity of the bucket: random bytes of the caller's, shown to no tenant.
    pub uuid: [u8; 16],
    /// How values are cut into segments.
    pub segments: SegmentPolicy,
    /// Length of the log's ring, thin.
    pub ring_bytes: u64,
    /// When the bucket is made, in milliseconds since 1970; none: nobody is to know.
    pub created_unix_ms: Option<u64>,
}

impl BucketOptions {
    /// A bucket that chooses by the content how it cuts, with a ring of 256 MiB.
    #[must_use]
    pub fn new(uuid: [u8; 16]) -> Self {
        let ring_bytes = IndexCreateOptions::new(uuid).ring_bytes;
        Self { uuid, segments: SegmentPolicy::Auto, ring_bytes, created_unix_ms: None }
    }
}

/// What is chosen each time a bucket is opened.
pub type OpenOptions = IndexOptions;

/// Ranges that wait to be freed before changes free some themselves: 64 MiB of short values.
const RELEASED_MAX: usize = 16_384;
/// Ranges that a change frees then.
const FREED_BY_A_CHANGE: u64 = 256;

/// A bucket, for any number of threads; a clone is the same bucket.
///
/// ```
/// # use std::sync::Arc;
/// use objects::bucket::{
///     Bucket, BucketOptions, Condition, FinishOptions, OpenOptions, PutOptions,
/// };
/// # use store::{CreateOptions, Options, Store};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// # let now_ms = 1_700_000_000_000;
/// # let md5 = [7; 16];
/// let volume = Arc::new(store.create_volume("bucket", 1 << 50)?);
/// Bucket::create(volume.clone(), &BucketOptions::new([7; 16]))?;
/// let bucket = Bucket::open(volume, &OpenOptions::default())?;
/// let mut writer = bucket.put(b"key", PutOptions::new(now_ms))?;
/// writer.write(b"hello")?;
/// writer.finish(FinishOptions::new(md5))?;
/// let mut reader = bucket.get(b"key", &Condition::None, now_ms)?.ok_or("it is there")?;
/// let mut bytes = [0; 5];
/// reader.read_at(0, &mut bytes)?;
/// assert_eq!(&bytes, b"hello");
/// # drop(reader);
/// bucket.close()?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bucket {
    core: Arc<Core>,
}

/// What the operations of a bucket share.
struct Core {
    index: Arc<VolumeIndex>,
    values: Arc<Values>,
    segments: SegmentPolicy,
    is_read_only: bool,
    stripes: Stripes,
    moments: Moments,
    usage: Usage,
    versions: Versions,
    created_unix_ms: Option<u64>,
    /// Objects removed because their time was over, since the opening.
    expired: AtomicU64,
}

impl Bucket {
    /// Makes a bucket in an empty volume. A crash leaves a bucket, or none that can be opened.
    ///
    /// # Errors
    /// [`BucketError::Index`].
    pub fn create(
        volume: Arc<dyn BucketVolume>,
        options: &BucketOptions,
    ) -> Result<(), BucketError> {
        let BucketOptions { uuid, ring_bytes, segments, created_unix_ms } = *options;
        VolumeIndex::create(Arc::clone(&volume), &IndexCreateOptions { uuid, ring_bytes })?;
        let index = VolumeIndex::open(volume, &IndexOptions::default())?;
        let set = |key: &[u8], value| {
            let (table, key) = (Table::Settings, key.to_vec());
            Change::Set { table, key, value }
        };
        let mut changes = vec![set(SEGMENTS_SETTING, vec![segments_number(segments)])];
        changes.extend(created_unix_ms.map(|ms| set(CREATED_SETTING, encode_number(ms))));
        Ok(index.apply(changes, Durability::Acknowledged)?)
    }

    /// Opens the bucket that the volume holds, after a kill as well. Nothing is written.
    ///
    /// # Errors
    /// [`BucketError::Index`] with [`IndexError::NoBucket`] when the volume holds none, and with
    /// [`IndexError::Unfinished`] when its making was cut off;
    /// [`BucketError`].
    pub fn open(volume: Arc<dyn BucketVolume>, options: &OpenOptions) -> Result<Self, BucketError> {
        let index = Arc::new(VolumeIndex::open(Arc::clone(&volume), options)?);
        let values = Values::open(volume, Arc::clone(&index) as Arc<dyn Index>)?;
        let segments = read_segments(&*index)?;
        let figures = read_figures(&*index)?;
        let quota_bytes = read_number(&*index, QUOTA_SETTING)?;
        let versions = Versions::new(read_number(&*index, VERSIONS_SETTING)?.unwrap_or(1));
        let usage = Usage::new(&figures, quota_bytes);
        let stripes = Stripes::new(figures);
        let is_read_only = options.read_only;
        let created_unix_ms = read_number(&*index, CREATED_SETTING)?;
        let core = Core {
            index,
            values,
            segments,
            is_read_only,
            stripes,
            moments: Moments::new(),
            usage,
            versions,
            created_unix_ms,
            expired: AtomicU64::new(0),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Merges the log into the index, so that the next opening is quick, and makes all durable.
    ///
    /// # Errors
    /// [`BucketError::Index`]; nothing that was acknowledged is lost by it.
    pub fn close(self) -> Result<(), BucketError> {
        if self.core.is_read_only {
            return Ok(()); // There is nothing to write.
        }
        self.core.index.merge()?;
        self.core.make_durable(Durability::Durable)
    }

    /// The bucket's identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.core.index.uuid()
    }

    /// When the bucket was made, in milliseconds since 1970; a clone has the time of its origin.
    /// None: an earlier version made it.
    #[must_use]
    pub fn created_unix_ms(&self) -> Option<u64> {
        self.core.created_unix_ms
    }

    /// How values are cut into segments.
    #[must_use]
    pub fn segments(&self) -> SegmentPolicy {
        self.core.segments
    }

    /// What the bucket holds.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.core.usage.figures()
    }

    /// Objects that [`Bucket::expire_some`] has removed since the opening.
    #[must_use]
    pub fn expired_objects(&self) -> u64 {
        self.core.expired.load(Ordering::Relaxed)
    }

    /// Most bytes that objects and parts may have together.
    #[must_use]
    pub fn quota_bytes(&self) -> Option<u64> {
        self.core.usage.quota_bytes()
    }

    /// Sets the quota. A bucket that holds more keeps it, and takes nothing that makes it grow.
    ///
    /// # Errors
    /// [`BucketError::Index`].
    pub fn set_quota(
        &self,
        quota_bytes: Option<u64>,
        durability: Durability,
    ) -> Result<(), BucketError> {
        let (table, key) = (Table::Settings, QUOTA_SETTING.to_vec());
        let change = match quota_bytes {
            Some(bytes) => Change::Set { table, key, value: encode_number(bytes) },
            None => Change::Remove { table, key },
        };
        self.core.usage.set_quota(quota_bytes, || {
            Ok(self.core.index.apply(vec![change], Durability::Acknowledged)?)
        })?;
        self.core.make_durable(durability)
    }

    /// Has the bucket share a quota with others, beside its own: from now on it counts there as
    /// number `bucket`. The opener does this before others have it.
    pub fn share_quota(&self, quota: Arc<SharedQuota>, bucket: u32) {
        self.core.usage.share(quota, bucket);
    }

    /// Takes the log into the index where that is due.
    ///
    /// # Errors
    /// [`BucketError::Index`]; the bucket goes on.
    pub fn merge_if_due(&self) -> Result<Option<Merged>, BucketError> {
        match self.core.index.merge_is_due() && !self.core.is_read_only {
            true => Ok(Some(self.core.index.merge()?)),
            false => Ok(None),
        }
    }

    /// Frees up to `entries_max` ranges that changes have released since the opening, without a
    /// look for others.
    ///
    /// # Errors
    /// [`BucketError`]; [`Bucket::trim_some`] finds them again.
    pub fn free_released(&self, entries_max: u64) -> Result<TrimProgress, BucketError> {
        self.core.check_writable()?;
        Ok(self.core.values.free_released(entries_max)?)
    }

    /// Frees up to about `entries_max` ranges of what no object names.
    ///
    /// # Errors
    /// [`BucketError`]; what was begun is found again.
    pub fn trim_some(&self, entries_max: u64) -> Result<TrimProgress, BucketError> {
        self.core.check_writable()?;
        Ok(self.core.values.trim_some(entries_max)?)
    }
}

impl Core {
    fn check_writable(&self) -> Result<(), BucketError> {
        match self.is_read_only {
            true => Err(IndexError::ReadOnly.into()),
            false => Ok(()),
        }
    }

    /// Frees some of what changes have released, where they release faster than upkeep frees: else
    /// a cache that is written over would fill the store with what nobody names.
    fn help_to_free(&self) {
        if self.values.released() > RELEASED_MAX {
            // What fails here is tried again by upkeep; the change is made.
            let _ = self.values.free_released(FREED_BY_A_CHANGE);
        }
    }

    /// Returns when what was applied before cannot be lost, if that is asked for. No lock is held
    /// meanwhile, and many callers share a flush.
    fn make_durable(&self, durability: Durability) -> Result<(), BucketError> {
        Ok(self.index.apply(Vec::new(), durability)?)
    }
}

fn segments_number(segments: SegmentPolicy) -> u8 {
    match segments {
        SegmentPolicy::Auto => SEGMENTS_AUTO,
        SegmentPolicy::Fixed => SEGMENTS_FIXED,
        SegmentPolicy::Cdc => SEGMENTS_CDC,
    }
}

fn read_segments(index: &dyn Index) -> Result<SegmentPolicy, BucketError> {
    let found = index.get(Table::Settings, SEGMENTS_SETTING)?;
    match found.as_deref() {
        Some([SEGMENTS_AUTO]) => Ok(SegmentPolicy::Auto),
        Some([SEGMENTS_FIXED]) => Ok(SegmentPolicy::Fixed),
        Some([SEGMENTS_CDC]) => Ok(SegmentPolicy::Cdc),
        Some(_) => Err(no_bucket("a newer program chose how it cuts values")),
        None => Err(IndexError::Unfinished.into()),
    }
}

fn no_bucket(reason: &str) -> BucketError {
    IndexError::NoBucket(reason.to_owned()).into()
}

fn read_number(index: &dyn Index, setting: &[u8]) -> Result<Option<u64>, BucketError> {
    match index.get(Table::Settings, setting)? {
        Some(value) => Ok(Some(decode_number(&value)?)),
        None => Ok(None),
    }
}

fn read_figures(index: &dyn Index) -> Result<Vec<Figures>, BucketError> {
    let mut figures = vec![Figures::default(); STRIPES];
    for (key, value) in index.scan(Table::Settings, FIGURES_SETTING, STRIPES)? {
        if let Some([stripe]) = key.strip_prefix(FIGURES_SETTING) {
            figures[usize::from(*stripe)] = Figures::decode(&value)?;
        }
    }
    Ok(figures)
}
