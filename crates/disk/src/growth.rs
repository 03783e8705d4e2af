//! Zones that a disk gets while it is in use, in a form that no one but its implementation reads.
//!
//! Preparing a growth may open files, make objects or ask another machine; that takes its time and
//! can fail, so it is done on a thread of the caller's. The thread that drives the disk only hands
//! the result over ([`crate::Disk::grow`]).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// A growth that an implementation of [`crate::Disk`] has prepared for its own kind.
///
/// The default is one for which nothing had to be prepared: zones may have become longer, none was
/// added.
///
/// ```
/// use disk::ZoneGrowth;
///
/// /// What a disk over objects wants to know of a growth.
/// #[derive(Clone)]
/// struct Buckets(Vec<String>);
///
/// let growth = ZoneGrowth::of(Buckets(vec!["data.1".to_owned()]));
/// let prepared: Option<Buckets> = growth.take()?; // in its `Disk::grow`
/// assert_eq!(prepared.map(|Buckets(names)| names.len()), Some(1));
/// # Ok::<(), disk::ForeignGrowth>(())
/// ```
#[derive(Clone, Default)]
pub struct ZoneGrowth {
    prepared: Option<Arc<dyn Any + Send + Sync>>,
}

/// Another kind of disk prepared this growth.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("the growth was prepared for another kind of disk")]
pub struct ForeignGrowth;

impl ZoneGrowth {
    /// A growth of what the implementation prepared.
    #[must_use]
    pub fn of(prepared: impl Any + Clone + Send + Sync) -> Self {
        Self { prepared: Some(Arc::new(prepared)) }
    }

    /// What was prepared, by its type; None of a default growth.
    ///
    /// # Errors
    /// [`ForeignGrowth`] when it is of another type.
    pub fn take<T: Any + Clone + Send + Sync>(self) -> Result<Option<T>, ForeignGrowth> {
        match self.prepared.map(Arc::downcast::<T>) {
            None => Ok(None),
            Some(Ok(prepared)) => Ok(Some(Arc::unwrap_or_clone(prepared))),
            Some(Err(_)) => Err(ForeignGrowth),
        }
    }

    /// What a disk says whose zones never change.
    pub(crate) fn expect_nothing(self) -> Result<(), ForeignGrowth> {
        if self.prepared.is_none() { Ok(()) } else { Err(ForeignGrowth) }
    }
}

impl fmt::Debug for ZoneGrowth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneGrowth").field("prepared", &self.prepared.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growth_is_taken_by_its_own_kind_alone() {
        assert_eq!(ZoneGrowth::of(7_u32).take::<u32>(), Ok(Some(7)));
        assert_eq!(ZoneGrowth::of(7_u32).take::<u64>(), Err(ForeignGrowth));
        assert_eq!(ZoneGrowth::default().take::<u64>(), Ok(None));
        assert_eq!(ZoneGrowth::default().expect_nothing(), Ok(()));
        assert_eq!(ZoneGrowth::of(7_u32).expect_nothing(), Err(ForeignGrowth));
    }
}
