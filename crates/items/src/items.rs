//! Opening a bucket as a cache, and what all its connections share.

use std::sync::Arc;

use buckets::OpenBucket;
use memcached::Figures;
use objects::bucket::{Bucket, BucketError};
use store::Durability;

use crate::cache::ItemsConnection;
use crate::evict::Eviction;
use crate::flush::Flushes;
use crate::hot::HotItems;
use crate::shared::{Shared, WaitingChanges};
use crate::totals::Totals;
use crate::upkeep::{Cleaning, STEP_OBJECTS, Upkeep};

/// How a bucket serves as a cache.
#[derive(Clone, Copy, Debug)]
pub struct ItemsOptions {
    /// Memory for items that are read often, in bytes: keys, values, and about 136 bytes with each.
    pub hot_bytes: u64,
    /// Whether a change is answered when it is in the store's order, or when no crash can take it
    /// back.
    pub durability: Durability,
    /// What the bucket may hold, in bytes of values and 64 for each object: what nobody reads goes
    /// when there is more. None: nothing goes.
    pub bytes_max: Option<u64>,
    /// Whether a thread deletes what a flush has ended; else [`Items::clean_some`] is to be called.
    pub has_upkeep: bool,
}

impl Default for ItemsOptions {
    /// 64 MiB; acknowledged; without a bound; with upkeep.
    fn default() -> Self {
        let durability = Durability::Acknowledged;
        Self { hot_bytes: 64 << 20, durability, bytes_max: None, has_upkeep: true }
    }
}

/// Why a bucket cannot serve as a cache.
#[derive(Debug, thiserror::Error)]
pub enum ItemsError {
    /// The bucket did not answer.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The bucket's note of its last flush is damaged, or of a newer program.
    #[error("the bucket's document memcached.flush is none that this program can read")]
    Flushes,
    /// The machine gives no thread.
    #[error("start the thread that cleans a cache: {0}")]
    Thread(#[source] std::io::Error),
}

/// The items of a bucket, for any number of connections; a clone is the same.
///
/// ```
/// # use buckets::{Buckets, BucketsOptions, NewBucket};
/// # use store::{CreateOptions, Options, Store};
/// use items::{Items, ItemsOptions};
/// use memcached::{Connection, Limits, Next};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// # let buckets = Buckets::start(store.client().clone(), BucketsOptions::default())?;
/// buckets.create("sessions", &NewBucket::default())?;
/// let items = Items::open(buckets.open("sessions")?, ItemsOptions::default())?;
/// let mut cache = items.connection();
/// let mut connection = Connection::new(Limits::default());
/// let request = b"set a 0 0 2\r\nhi\r\nget a\r\n";
/// connection.room()[..request.len()].copy_from_slice(request);
/// connection.received(request.len());
/// assert_eq!(connection.run(&mut cache, 1_700_000_000), Next::Send);
/// assert_eq!(connection.chunk()?, b"STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n");
/// # drop((connection, cache, items));
/// # buckets.close()?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Items {
    shared: Arc<Shared>,
    upkeep: Option<Arc<Upkeep>>,
}

impl Items {
    /// The items of an open bucket.
    ///
    /// # Errors
    /// [`ItemsError`].
    pub fn open(bucket: OpenBucket, options: ItemsOptions) -> Result<Self, ItemsError> {
        Self::of((*bucket).clone(), Some(bucket), options)
    }

    /// As [`Items::open`], of a bucket that its caller keeps open.
    ///
    /// # Errors
    /// [`ItemsError`].
    pub fn over(bucket: Bucket, options: ItemsOptions) -> Result<Self, ItemsError> {
        Self::of(bucket, None, options)
    }

    fn of(
        bucket: Bucket,
        open: Option<OpenBucket>,
        options: ItemsOptions,
    ) -> Result<Self, ItemsError> {
        let flushes = Flushes::open(&bucket)?.ok_or(ItemsError::Flushes)?;
        let shared = Arc::new(Shared {
            bucket,
            durability: options.durability,
            hot: HotItems::new(options.hot_bytes),
            flushes,
            totals: Totals::default(),
            waiting: WaitingChanges::default(),
            eviction: options.bytes_max.map(Eviction::new),
            open,
        });
        let upkeep = match options.has_upkeep {
            true => Some(Arc::new(Upkeep::start(&shared).map_err(ItemsError::Thread)?)),
            false => None,
        };
        Ok(Self { shared, upkeep })
    }

    /// A cache for one connection, or for one thread with many.
    #[must_use]
    pub fn connection(&self) -> ItemsConnection {
        ItemsConnection::new(Arc::clone(&self.shared), self.upkeep.clone())
    }

    /// What the cache tells of itself.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures()
    }

    /// What hot items take now: their number, and bytes of memory.
    #[must_use]
    pub fn hot_figures(&self) -> (u64, u64) {
        let figures = self.shared.hot.figures();
        (figures.items, figures.bytes)
    }

    /// Deletes up to about `objects_max` objects that a flush has ended; returns whether there may
    /// be more.
    ///
    /// # Errors
    /// [`BucketError`]; what was deleted stays so.
    pub fn clean_some(&self, objects_max: usize, now_s: u64) -> Result<bool, BucketError> {
        let mut cleaning = Cleaning::default();
        let mut left = objects_max;
        loop {
            let step = left.min(STEP_OBJECTS);
            if !cleaning.step(&self.shared, step, now_s)? {
                return Ok(false);
            }
            left -= step;
            if left == 0 {
                return Ok(true);
            }
        }
    }
}
