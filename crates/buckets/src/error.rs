//! Why something was not done with a bucket, by what the caller can do about it.

use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;
use store::RequestError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum BucketsError {
    /// The store has no bucket of this name.
    #[error("there is no bucket {name}")]
    NoSuchBucket {
        /// The name.
        name: String,
    },
    /// The name is that of a bucket, a volume or a bucket being made.
    #[error("the store has a volume or bucket {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// Nobody may give a bucket this name.
    #[error(
        "{name:?} cannot be the name of a bucket: that has 3 to 63 lower-case letters, digits, \
         hyphens and single dots, and begins and ends with a letter or digit"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// The bucket holds objects or unfinished uploads.
    #[error("bucket {name} is not empty: it holds {objects} objects and {parts} parts of uploads")]
    NotEmpty {
        /// Its name.
        name: String,
        /// Objects that it holds.
        objects: u64,
        /// Parts of uploads that are not finished.
        parts: u64,
    },
    /// Requests are being answered from the bucket, or another program has it open.
    #[error("bucket {name} is in use")]
    InUse {
        /// Its name.
        name: String,
    },
    /// The bucket is the replica of one on another server.
    #[error("bucket {name} is a replica, which answers nobody until it is promoted")]
    IsReplica {
        /// Its name.
        name: String,
    },
    /// What was asked for does not go with how the bucket is replicated.
    #[error("bucket {name}: {reason}")]
    Replication {
        /// Its name.
        name: String,
        /// Why, in a sentence.
        reason: String,
    },
    /// A repair has made an index that is not whole; the bucket is as it was.
    #[error("bucket {name} is not repaired, and is as it was: the new index has faults: {first}")]
    NotRepaired {
        /// Its name.
        name: String,
        /// The first fault.
        first: String,
    },
    /// A bucket is at home in a store of 4-KiB chunks alone.
    #[error("buckets need a store of 4096-byte chunks; this one has chunks of {chunk_bytes} bytes")]
    ChunkSize {
        /// Chunk size of the store.
        chunk_bytes: u32,
    },
    /// The process is ending.
    #[error("the store is being closed")]
    Closing,
    /// The bucket did not do what it was asked to.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The store did not do what it was asked to.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The machine gives no random bytes.
    #[error("{0}")]
    Machine(#[from] store::MachineError),
}

impl BucketsError {
    /// Whether two buckets do not share chunks, so that bytes are written again.
    #[must_use]
    pub fn is_other_domain(&self) -> bool {
        let Self::Bucket(BucketError::Value(ValueError::Volume(error))) = self else {
            return false;
        };
        matches!(error, RequestError::OtherDomain { .. })
    }
}

impl From<IndexError> for BucketsError {
    fn from(error: IndexError) -> Self {
        Self::Bucket(error.into())
    }
}
