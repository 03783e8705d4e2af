//! What the bucket holds in all, and its quota.
//!
//! ```text
//! reserve ─ batch applied ─> settle: the counts change
//!    └────── dropped: what was reserved is free again
//! ```
//!
//! Invariant: what is held and what is reserved together are at most the quota, unless the quota
//! was lowered since. So of many puts side by side none gets past it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::objects::settings::Figures;

use super::error::{BucketError, QuotaOf};
use super::locks::{add, subtract};
use super::shared_quota::SharedQuota;

pub(super) struct Usage(Mutex<UsageState>);

struct UsageState {
    figures: Figures,
    /// Bytes that batches on their way add.
    reserved_bytes: u64,
    quota_bytes: Option<u64>,
    /// The quota that it has with others, and what it is called there.
    shared: Option<(Arc<SharedQuota>, u32)>,
}

/// Bytes that a batch on its way may add.
#[must_use]
pub(super) struct GrowthReservation<'a> {
    usage: &'a Usage,
    shared: Option<Arc<SharedQuota>>,
    growth_bytes: u64,
}

impl Usage {
    pub(super) fn new(stripes: &[Figures], quota_bytes: Option<u64>) -> Self {
        let mut figures = Figures::default();
        stripes.iter().for_each(|stripe| add(&mut figures, stripe));
        Self(Mutex::new(UsageState { figures, reserved_bytes: 0, quota_bytes, shared: None }))
    }

    fn lock(&self) -> MutexGuard<'_, UsageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn figures(&self) -> Figures {
        self.lock().figures
    }

    pub(super) fn quota_bytes(&self) -> Option<u64> {
        self.lock().quota_bytes
    }

    /// Sets the quota behind `apply`; nobody reserves meanwhile.
    pub(super) fn set_quota(
        &self,
        quota_bytes: Option<u64>,
        apply: impl FnOnce() -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let mut state = self.lock();
        apply()?;
        state.quota_bytes = quota_bytes;
        Ok(())
    }

    /// Has this bucket share a quota with others, in which it has the number `bucket`.
    pub(super) fn share(&self, quota: Arc<SharedQuota>, bucket: u32) {
        let mut state = self.lock();
        quota.set(bucket, bytes_of(&state.figures));
        state.shared = Some((quota, bucket));
    }

    /// Reserves what a batch adds that makes `after` of `before`. What adds nothing is never over
    /// the quota.
    ///
    /// # Errors
    /// [`BucketError::QuotaExceeded`].
    pub(super) fn reserve(
        &self,
        before: &Figures,
        after: &Figures,
    ) -> Result<GrowthReservation<'_>, BucketError> {
        let growth_bytes = bytes_of(after).saturating_sub(bytes_of(before));
        let mut state = self.lock();
        state.check(growth_bytes)?;
        let shared = state.shared.as_ref().map(|(quota, _)| Arc::clone(quota));
        if let Some(shared) = &shared {
            shared.reserve(growth_bytes)?;
        }
        state.reserved_bytes += growth_bytes;
        Ok(GrowthReservation { usage: self, shared, growth_bytes })
    }

    /// Refuses what a batch that adds `growth_bytes` would be refused for now.
    ///
    /// # Errors
    /// [`BucketError::QuotaExceeded`].
    pub(super) fn check(&self, growth_bytes: u64) -> Result<(), BucketError> {
        let state = self.lock();
        state.check(growth_bytes)?;
        state.shared.as_ref().map_or(Ok(()), |(quota, _)| quota.check(growth_bytes))
    }
}

impl UsageState {
    fn check(&self, growth_bytes: u64) -> Result<(), BucketError> {
        let used_bytes = bytes_of(&self.figures).saturating_add(self.reserved_bytes);
        match self.quota_bytes {
            Some(quota_bytes)
                if growth_bytes > 0 && used_bytes.saturating_add(growth_bytes) > quota_bytes =>
            {
                let of = QuotaOf::Bucket;
                Err(BucketError::QuotaExceeded { of, quota_bytes, used_bytes, growth_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl GrowthReservation<'_> {
    /// The batch has been applied that makes `after` of `before`.
    pub(super) fn settle(self, before: &Figures, after: &Figures) {
        let mut state = self.usage.lock();
        add(&mut state.figures, after);
        subtract(&mut state.figures, before);
        if let Some((quota, bucket)) = &state.shared {
            quota.set(*bucket, bytes_of(&state.figures));
        }
    }
}

impl Drop for GrowthReservation<'_> {
    fn drop(&mut self) {
        self.usage.lock().reserved_bytes -= self.growth_bytes;
        if let Some(shared) = &self.shared {
            shared.release(self.growth_bytes);
        }
    }
}

fn bytes_of(figures: &Figures) -> u64 {
    figures.object_bytes.saturating_add(figures.part_bytes)
}
