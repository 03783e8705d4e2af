//! Changes that go into the new index, gathered into batches that its log takes.

use std::sync::Arc;

use format::objects::log::change_bytes;
use store::Durability;

use crate::index::{Change, Index, IndexError, VolumeIndex};

/// Bytes of changes that are gathered, where the log takes as many.
const BATCH_BYTES: usize = 1 << 20;

pub(super) struct Batches {
    index: Arc<VolumeIndex>,
    changes: Vec<Change>,
    bytes: usize,
    bytes_max: usize,
}

impl Batches {
    pub(super) fn new(index: &Arc<VolumeIndex>) -> Self {
        let bytes_max = index.batch_bytes_max().min(BATCH_BYTES);
        Self { index: Arc::clone(index), changes: Vec::new(), bytes: 0, bytes_max }
    }

    /// Adds a change behind all others.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(super) fn push(&mut self, change: Change) -> Result<(), IndexError> {
        let bytes = match &change {
            Change::Set { key, value, .. } => change_bytes(key.len(), value.len()),
            Change::Remove { key, .. } => change_bytes(key.len(), 0),
        };
        if self.bytes + bytes > self.bytes_max {
            self.apply()?;
        }
        self.bytes += bytes;
        self.changes.push(change);
        Ok(())
    }

    /// Makes what has been gathered.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(super) fn apply(&mut self) -> Result<(), IndexError> {
        self.bytes = 0;
        self.index.apply(std::mem::take(&mut self.changes), Durability::Acknowledged)
    }

    /// The same, at the end.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(super) fn finish(mut self) -> Result<(), IndexError> {
        self.apply()
    }
}
