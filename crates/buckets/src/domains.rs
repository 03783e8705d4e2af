//! Quotas that the buckets of a dedup domain have together: those of tenants.
//!
//! ```text
//! open ── in a domain with a quota ──> its bytes count ──> the others of the domain, once
//!                                                          a minute: those not known are opened
//! ```
//!
//! A bucket that is closed holds what it held when it was closed. Who opens one of a domain has all
//! of the domain known first (`counting.rs`), so that a quota counts what nobody has opened yet.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use objects::bucket::{Bucket, SharedQuota};

/// The quota of a domain, in bytes.
type QuotaOfDomain = dyn Fn(&str) -> Option<u64> + Send + Sync;

/// Says how many bytes the buckets of a domain may hold together; none: any number. It is asked for
/// each change, and must not wait.
#[derive(Clone)]
pub struct DomainQuotas(Arc<QuotaOfDomain>);

impl DomainQuotas {
    /// Quotas that `quota_of` says.
    pub fn new(quota_of: impl Fn(&str) -> Option<u64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(quota_of))
    }

    pub(crate) fn of(&self, domain: &str) -> Option<u64> {
        (self.0)(domain)
    }
}

impl Debug for DomainQuotas {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DomainQuotas")
    }
}

/// The domains of open buckets.
#[derive(Debug)]
pub(crate) struct Domains {
    pub(crate) quotas: Option<DomainQuotas>,
    by_name: Mutex<HashMap<String, Arc<Domain>>>,
}

#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) quota: Arc<SharedQuota>,
    /// When its buckets were counted; the lock is held while they are.
    pub(crate) counted: Mutex<Option<Instant>>,
}

impl Domains {
    pub(crate) fn new(quotas: Option<DomainQuotas>) -> Self {
        Self { quotas, by_name: Mutex::default() }
    }

    pub(crate) fn domain(&self, name: &str, quotas: &DomainQuotas) -> Arc<Domain> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let made = by_name.entry(name.to_owned()).or_insert_with(|| {
            let (quotas, name) = (quotas.clone(), name.to_owned());
            let quota = Arc::new(SharedQuota::new(move || quotas.of(&name)));
            Arc::new(Domain { quota, counted: Mutex::default() })
        });
        Arc::clone(made)
    }

    /// A bucket of a domain has been opened, and nobody has it yet.
    pub(crate) fn join(&self, domain: Option<&str>, id: u32, bucket: &Bucket) {
        if let (Some(domain), Some(quotas)) = (domain, &self.quotas) {
            bucket.share_quota(Arc::clone(&self.domain(domain, quotas).quota), id);
        }
    }
}
