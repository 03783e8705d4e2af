//! A bucket that is open in this process.

use std::ops::Deref;
use std::sync::Arc;

use objects::bucket::Bucket;
use store::Volume;

use crate::error::BucketsError;

/// An open bucket or snapshot of one; a clone is the same. While one lives, the bucket is neither
/// closed nor deleted, so a request drops it when it has been answered.
#[derive(Clone)]
pub struct OpenBucket {
    hosted: Arc<Hosted>,
}

/// What all handles of a bucket share.
pub(crate) struct Hosted {
    pub(crate) name: String,
    pub(crate) is_read_only: bool,
    pub(crate) bucket: Bucket,
    pub(crate) volume: Volume,
    /// Changes go to another server as well: all of them must pass the bucket.
    pub(crate) is_mirrored: bool,
}

impl OpenBucket {
    pub(crate) fn new(hosted: Arc<Hosted>) -> Self {
        Self { hosted }
    }

    pub(crate) fn hosted(&self) -> &Hosted {
        &self.hosted
    }

    /// Its name, `BUCKET@SNAPSHOT` for a snapshot.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.hosted.name
    }

    /// Whether it refuses changes: it is a snapshot, or the store is served read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.hosted.is_read_only
    }
}

impl Deref for OpenBucket {
    type Target = Bucket;

    fn deref(&self) -> &Bucket {
        &self.hosted.bucket
    }
}

impl Hosted {
    /// # Errors
    /// [`BucketsError::NotEmpty`].
    pub(crate) fn check_empty(&self) -> Result<(), BucketsError> {
        let figures = self.bucket.figures();
        let (objects, parts, name) = (figures.objects, figures.parts, self.name.clone());
        match objects == 0 && parts == 0 {
            true => Ok(()),
            false => Err(BucketsError::NotEmpty { name, objects, parts }),
        }
    }
}
