//! What the buckets of a domain hold: for figures, and for the quota that they share.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::error::BucketsError;
use crate::opened::OpenBucket;
use crate::registry::{BucketInfo, Buckets};
use crate::slots::lock;

/// How long the buckets of a domain are taken to be those that are known: clones come unseen.
const KNOWN_TIME: Duration = Duration::from_mins(1);

/// What the buckets of a domain hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainUsage {
    /// Buckets, without their snapshots.
    pub buckets: u64,
    /// Objects in them.
    pub objects: u64,
    /// Bytes of the objects, and of parts of uploads, as they were put.
    pub logical_bytes: u64,
    /// Bytes that the volumes map: index, log and values, before deduplication.
    pub mapped_bytes: u64,
}

impl Buckets {
    /// What the buckets of a domain hold; those that are closed are opened for it.
    ///
    /// # Errors
    /// [`BucketsError`] of a bucket that cannot be opened.
    pub fn domain_usage(&self, domain: &str) -> Result<DomainUsage, BucketsError> {
        let mut usage = DomainUsage::default();
        for info in self.of_domain(domain)? {
            let figures = match self.open(&info.name) {
                Ok(bucket) => bucket.figures(),
                Err(BucketsError::NoSuchBucket { .. }) => continue, // Deleted meanwhile.
                Err(error) => return Err(error),
            };
            usage.buckets += 1;
            usage.objects += figures.objects;
            usage.logical_bytes += figures.object_bytes.saturating_add(figures.part_bytes);
            usage.mapped_bytes += info.mapped_bytes;
        }
        Ok(usage)
    }

    /// The buckets of a domain, by name, without snapshots.
    ///
    /// # Errors
    /// [`BucketsError::Request`].
    pub fn of_domain(&self, domain: &str) -> Result<Vec<BucketInfo>, BucketsError> {
        let all = self.list()?.into_iter();
        let is_of_it = |info: &BucketInfo| info.domain.as_deref() == Some(domain);
        Ok(all.filter(|info| is_of_it(info) && info.taken_unix_s.is_none()).collect())
    }

    /// Has all buckets counted whose quota this bucket shares.
    pub(crate) fn count_domain_of(&self, bucket: &OpenBucket) {
        let domains = &self.shared().domains;
        let hosted = bucket.hosted();
        let domain = hosted.volume.handle().domain();
        let (Some(name), Some(quotas), false) = (domain, &domains.quotas, hosted.is_read_only)
        else {
            return;
        };
        if quotas.of(name).is_none() {
            return;
        }
        let domain = domains.domain(name, quotas);
        let mut counted = lock(&domain.counted);
        if counted.is_some_and(|at| at.elapsed() < KNOWN_TIME) {
            return;
        }
        let Ok(all) = self.of_domain(name) else { return };
        let ids: HashSet<u32> = all.iter().map(|info| info.id).collect();
        domain.quota.retain(|id| ids.contains(&id));
        for info in all.iter().filter(|info| !domain.quota.knows(info.id)) {
            // One that cannot be opened counts nothing, and takes nothing that makes it grow.
            let _ = self.open_made(&info.name);
        }
        *counted = Some(Instant::now());
    }
}
