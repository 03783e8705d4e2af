//! The tables of extents of a bucket made anew, from what its records name.

use std::collections::BTreeSet;

use format::objects::extents::{encode_range, encode_shared, extent_key};

use super::{Counts, PLACE_BYTES, PLACES_MIN, Recount};
use crate::index::{Change, IndexError, Table};
use crate::values::Values;

impl Values {
    /// Begins to count a window of a bucket whose tables of extents are empty, from `first_chunk`
    /// on; none: from the start. Each block of a list is remembered, in about 16 bytes: nothing
    /// says which of them several entries name.
    #[must_use]
    pub(crate) fn recount_anew(&self, first_chunk: Option<u64>, memory_bytes: u64) -> Recount {
        self.backing.begin_sharing();
        let places_max = (memory_bytes / PLACE_BYTES).max(PLACES_MIN) as usize;
        Recount {
            places_max,
            knows_shared: false,
            shared_blocks: BTreeSet::new(),
            ..self.recount(first_chunk, memory_bytes)
        }
    }
}

impl Recount {
    /// Ends the window, all records of the bucket were named: gives `take` the entries of `Shared`
    /// for what several name, and of `ToFree` for what nobody names below the high-water mark.
    /// Returns the first chunk of the next window; none: the space has been counted.
    ///
    /// # Errors
    /// Those of `take`.
    pub(crate) fn remake(
        mut self,
        mut take: impl FnMut(Change) -> Result<(), IndexError>,
    ) -> Result<Option<u64>, IndexError> {
        let given_out = self.backing.space.range().start..self.backing.space.high_water();
        let next = (self.window.end < u64::MAX).then_some(self.window.end);
        let end = given_out.end.min(self.window.end);
        let mut start = given_out.start.max(self.window.start);
        let (mut counts, mut places) = (Counts::default(), std::mem::take(&mut self.places));
        // What is named lies below the mark, or is no part of this window.
        let behind = places.split_off(&start);
        places.into_values().for_each(|change| counts = counts.plus(change, 1));
        for (place, change) in behind {
            if let Some(change) = entry_of(start..place.min(end), counts.named) {
                take(change)?;
            }
            (start, counts) = (place.min(end), counts.plus(change, 1));
        }
        if let Some(change) = entry_of(start..end, counts.named) {
            take(change)?;
        }
        Ok(next)
    }
}

/// The entry in the tables of extents of a range that `named` entries name.
fn entry_of(chunks: std::ops::Range<u64>, named: i64) -> Option<Change> {
    if chunks.is_empty() {
        return None; // Two places at the edge of a window are one.
    }
    let key = extent_key(chunks.end).to_vec();
    match u64::try_from(named) {
        Ok(0) => Some(Change::Set { table: Table::ToFree, key, value: encode_range(&chunks) }),
        Ok(1) => None,
        Ok(count) => {
            Some(Change::Set { table: Table::Shared, key, value: encode_shared(&chunks, count) })
        }
        Err(_) => panic!("{named} entries name {chunks:?}"),
    }
}
