//! The value space of the new bucket: who names each chunk, counted from the records that are kept.

use std::sync::Arc;

use format::objects::CHUNK_BYTES;
use format::objects::extents::{decode_to_free, extent_key};
use format::objects::record::ObjectRecord;
use format::objects::uploads::UploadEntry;

use super::batches::Batches;
use super::{Repair, RepairStage};
use crate::bucket::error::BucketError;
use crate::index::{Index, IndexError, Table};
use crate::values::{Recount, Values};

impl Repair<'_> {
    /// Makes `Shared` and `ToFree` anew, in as many walks over all records as memory asks for.
    pub(super) fn remake_space(&mut self) -> Result<(), BucketError> {
        let index: Arc<dyn Index> = Arc::clone(&self.index) as _;
        let values = Values::open(Arc::clone(&self.target), index)?;
        if self.lost_anything {
            self.trim_behind_mark(&values)?;
        }
        let (mut next, mut walk) = (None, 0);
        loop {
            walk += 1;
            self.done = 0;
            let mut recount = values.recount_anew(next, self.options.memory_bytes);
            self.name_all(&mut recount, RepairStage::Counting(walk))?;
            let mut batches = Batches::new(&self.index);
            next = recount.remake(|change| batches.push(change))?;
            batches.finish()?;
            if next.is_none() {
                return self.trim_unreadable();
            }
        }
    }

    /// Trims the chunks that are known to be unreadable and that nobody names any more, so that a
    /// check of the store does not name them again. They are in `ToFree` still.
    fn trim_unreadable(&self) -> Result<(), BucketError> {
        for lost in &self.options.unreadable {
            let mut start = lost.start;
            while start < lost.end {
                let found = self.index.scan(Table::ToFree, &extent_key(start + 1), 1)?;
                let Some((key, value)) = found.first() else { break };
                let (range, _) = decode_to_free(key, value)?;
                let part = range.start.max(start)..range.end.min(lost.end);
                if !part.is_empty() {
                    let length_bytes = (part.end - part.start) * CHUNK_BYTES;
                    let trimmed = self.target.trim(part.start * CHUNK_BYTES, length_bytes);
                    trimmed.map_err(IndexError::from)?;
                }
                start = range.end;
            }
        }
        Ok(())
    }

    fn name_all(&mut self, recount: &mut Recount, stage: RepairStage) -> Result<(), BucketError> {
        self.each(Table::Objects, &[], |repair, _, value| {
            repair.step(stage)?;
            Ok(recount.name(&ObjectRecord::decode(value)?.value)?)
        })?;
        self.each(Table::Uploads, &[], |repair, entry, value| {
            repair.step(stage)?;
            match UploadEntry::decode(entry)? {
                UploadEntry::Part { number: 1.., .. } => {
                    Ok(recount.name(&ObjectRecord::decode(value)?.value)?)
                }
                _ => Ok(()), // They name no chunk.
            }
        })
    }

    /// What lost groups have given out lies behind the mark, and may hold bytes: an address is
    /// given out without any.
    fn trim_behind_mark(&self, values: &Values) -> Result<(), BucketError> {
        let (start, end) = (values.high_water_bytes(), self.space.end * CHUNK_BYTES);
        if start < end {
            self.target.trim(start, end - start).map_err(IndexError::from)?;
        }
        Ok(())
    }
}
