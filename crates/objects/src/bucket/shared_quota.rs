//! A quota that several buckets have together, and what each of them holds of it.
//!
//! ```text
//! reserve ─ batch applied ─> change: what the bucket holds
//!    └────── release: what was reserved is free again
//! ```
//!
//! The opener of the buckets makes each known here before the quota counts.
//!
//! Invariant: what the known buckets hold and what is reserved together are at most the quota,
//! unless the quota was lowered or a bucket became known since.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{BucketError, QuotaOf};

/// A quota of several buckets.
pub struct SharedQuota {
    /// Asked each time, so that a change counts at once.
    quota_bytes: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_bucket: HashMap<u32, u64>,
    held_bytes: u64,
    reserved_bytes: u64,
}

impl SharedQuota {
    /// With a quota that is asked for; none: no bound.
    pub fn new(quota_bytes: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self { quota_bytes: Box::new(quota_bytes), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bucket that is open holds so many bytes.
    pub fn set(&self, bucket: u32, bytes: u64) {
        let mut state = self.lock();
        let before = state.by_bucket.insert(bucket, bytes).unwrap_or(0);
        state.held_bytes = (state.held_bytes + bytes).saturating_sub(before);
    }

    /// Only these buckets are left.
    pub fn retain(&self, is_left: impl Fn(u32) -> bool) {
        let mut state = self.lock();
        state.by_bucket.retain(|bucket, _| is_left(*bucket));
        state.held_bytes = state.by_bucket.values().sum();
    }

    /// Whether a bucket is known.
    #[must_use]
    pub fn knows(&self, bucket: u32) -> bool {
        self.lock().by_bucket.contains_key(&bucket)
    }

    /// Bytes of objects and parts of all buckets that are known.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.lock().held_bytes
    }

    /// # Errors
    /// [`BucketError::QuotaExceeded`].
    pub(super) fn check(&self, growth_bytes: u64) -> Result<(), BucketError> {
        self.lock().check((self.quota_bytes)(), growth_bytes)
    }

    /// # Errors
    /// As [`SharedQuota::check`]; then nothing is reserved.
    pub(super) fn reserve(&self, growth_bytes: u64) -> Result<(), BucketError> {
        let quota_bytes = (self.quota_bytes)();
        let mut state = self.lock();
        state.check(quota_bytes, growth_bytes)?;
        state.reserved_bytes += growth_bytes;
        Ok(())
    }

    pub(super) fn release(&self, growth_bytes: u64) {
        self.lock().reserved_bytes -= growth_bytes;
    }
}

impl State {
    fn check(&self, quota_bytes: Option<u64>, growth_bytes: u64) -> Result<(), BucketError> {
        let used_bytes = self.held_bytes.saturating_add(self.reserved_bytes);
        match quota_bytes {
            Some(quota_bytes)
                if growth_bytes > 0 && used_bytes.saturating_add(growth_bytes) > quota_bytes =>
            {
                let of = QuotaOf::Tenant;
                Err(BucketError::QuotaExceeded { of, quota_bytes, used_bytes, growth_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl Debug for SharedQuota {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQuota").field("state", &*self.lock()).finish_non_exhaustive()
    }
}
