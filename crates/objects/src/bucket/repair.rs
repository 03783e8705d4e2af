//! A bucket whose index is damaged, made anew from what can be read of it.
//!
//! ```text
//! the damaged bucket ─ salvage ─> records, settings ─> new index in the target
//!                                      │ records.rs: what can be kept, what of it is damaged
//!                                      │ settings.rs: numbers, marks, documents
//!                                      └ space.rs: Shared and ToFree, a window at a time ─> merged
//! ```
//!
//! The target holds the same values at the same addresses: it is a clone of the damaged bucket's
//! volume, so values are shared and not copied. The damaged bucket is only read (a page that one
//! copy has is written to the other). Who calls this lets the bucket be what the target is when
//! the target is whole, in one step; a kill before that leaves the bucket as it was. The room
//! `buckets` does so.
//!
//! What follows from records is not salvaged but made again: counts, what expires, what is shared,
//! what is to be freed. So a wrong count or a leaked extent is repaired like a lost page. Of `Free`
//! only one thing is believed: where the log has lost groups, an object that names free chunks was
//! deleted by one of these groups, and its bytes are zeros.

mod batches;
mod records;
mod report;
mod settings;
mod space;
mod uploads;

use std::ops::Range;
use std::sync::Arc;

use format::objects::CHUNK_BYTES;
use format::objects::header::VALUES_AT_BYTES;
use format::objects::log::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use format::objects::settings::{FIGURES_SETTING, Figures, STRIPES};
use store::Durability;

use super::error::BucketError;
use crate::index::{
    Change, Index, IndexOptions, Loss, Table, VolumeIndex, each_entry, identity, salvage,
};
use crate::volume::BucketVolume;
use batches::Batches;

pub use report::{BucketRepair, DamagedObject, LostPart, Owner};

/// How a bucket is repaired.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// Memory for the new index, and as much again for counting the value space.
    pub memory_bytes: u64,
    /// Chunks of the volume that are known to be unreadable, in order: objects that name them are
    /// kept and named. A repair does not read the bytes of objects.
    pub unreadable: Vec<Range<u64>>,
    /// Most parts that are named one by one, of what is lost and of what is damaged.
    pub told_max: usize,
}

impl Default for RepairOptions {
    /// 256 MiB, nothing known to be unreadable, a thousand parts.
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, unreadable: Vec::new(), told_max: 1000 }
    }
}

/// What a repair is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairStage {
    /// Entries of the damaged index are read.
    Reading,
    /// Records are held to their lists.
    Judging,
    /// Chunks of the value space are counted; of which walk over the records.
    Counting(u64),
}

/// Called with the stage and how many entries it has done; an error ends the repair.
pub type RepairProgress<'a> = &'a mut dyn FnMut(RepairStage, u64) -> Result<(), BucketError>;

/// Makes a bucket in `target` of what can be read of the one in `damaged`. `target` is a clone of
/// it: all that it holds before the value space is overwritten.
///
/// # Errors
/// [`BucketError::Index`] with [`IndexError::NoBucket`](crate::index::IndexError::NoBucket) when
/// nothing says what bucket it is, or when a newer program has written it; [`BucketError`]. The
/// damaged bucket is as it was, and the target is to be thrown away.
pub fn repair(
    damaged: Arc<dyn BucketVolume>,
    target: Arc<dyn BucketVolume>,
    options: &RepairOptions,
    progress: RepairProgress<'_>,
) -> Result<BucketRepair, BucketError> {
    let identity = identity(&*damaged)?;
    target.trim(0, VALUES_AT_BYTES).map_err(crate::index::IndexError::from)?;
    VolumeIndex::create(Arc::clone(&target), &identity.options)?;
    let index_options = IndexOptions { memory_bytes: options.memory_bytes, read_only: false };
    let index = Arc::new(VolumeIndex::open(Arc::clone(&target), &index_options)?);
    let mut repair = Repair::new(target, index, options, progress);
    repair.take_in(damaged)?;
    repair.judge_objects()?;
    repair.judge_uploads()?;
    repair.clear(Table::Free)?;
    repair.judge_settings()?;
    repair.remake_space()?;
    repair.index.merge()?;
    repair.index.apply(Vec::new(), Durability::Durable)?;
    Ok(repair.report)
}

/// A repair on its way.
struct Repair<'a> {
    target: Arc<dyn BucketVolume>,
    index: Arc<VolumeIndex>,
    options: &'a RepairOptions,
    progress: RepairProgress<'a>,
    report: BucketRepair,
    /// Counts by stripe of what is kept.
    figures: Vec<Figures>,
    /// Above every version and upload that is kept.
    versions_end: u64,
    /// The chunk behind the last that a kept record names.
    named_end: u64,
    /// Chunks of the value space.
    space: Range<u64>,
    /// Whether groups of the log are lost, so that a record may be older than what its chunks hold.
    lost_groups: bool,
    /// Whether anything is lost: then chunks may lie behind the high-water mark.
    lost_anything: bool,
    done: u64,
}

impl<'a> Repair<'a> {
    fn new(
        target: Arc<dyn BucketVolume>,
        index: Arc<VolumeIndex>,
        options: &'a RepairOptions,
        progress: RepairProgress<'a>,
    ) -> Self {
        let first = VALUES_AT_BYTES / CHUNK_BYTES;
        let space = first..(target.size_bytes() / CHUNK_BYTES).max(first);
        Self {
            target,
            index,
            options,
            progress,
            report: BucketRepair::new(options.told_max),
            figures: vec![Figures::default(); STRIPES],
            versions_end: 1,
            named_end: first,
            space,
            lost_groups: false,
            lost_anything: false,
            done: 0,
        }
    }

    /// Puts what can be read of the damaged index into the new one.
    fn take_in(&mut self, damaged: Arc<dyn BucketVolume>) -> Result<(), BucketError> {
        let mut batches = Batches::new(&self.index);
        let (progress, mut done, mut stopped) = (&mut self.progress, 0, None);
        let mut too_long = 0;
        let salvaged = salvage(damaged, |change| {
            done += 1;
            if stopped.is_none() {
                stopped = progress(RepairStage::Reading, done).err();
            }
            match is_kept(&change) {
                _ if stopped.is_some() => Ok(()),
                Some(true) => batches.push(change),
                Some(false) => Ok(()),
                None => {
                    too_long += 1;
                    Ok(())
                }
            }
        })?;
        if let Some(error) = stopped {
            return Err(error);
        }
        batches.finish()?;
        self.lost_groups = salvaged.losses.are_of_log();
        self.lost_anything = salvaged.losses.count() > 0;
        if too_long > 0 {
            let reason = format!("{too_long} entries are longer than any that a bucket writes");
            self.report.lose(LostPart::Log { reason });
        }
        salvaged.losses.told().iter().for_each(|loss| self.report.lose_part(loss));
        let told = salvaged.losses.told().len() as u64;
        self.report.lose_untold(salvaged.losses.count() - told);
        Ok(())
    }

    /// Counts an entry of a stage.
    fn step(&mut self, stage: RepairStage) -> Result<(), BucketError> {
        self.done += 1;
        (self.progress)(stage, self.done)
    }

    /// Removes all entries of a table.
    fn clear(&mut self, table: Table) -> Result<(), BucketError> {
        let mut batches = Batches::new(&self.index);
        self.each(table, &[], |_, key, _| {
            Ok(batches.push(Change::Remove { table, key: key.to_vec() })?)
        })?;
        Ok(batches.finish()?)
    }

    /// Calls `look` with each entry of a table from a key on.
    fn each(
        &mut self,
        table: Table,
        from: &[u8],
        mut look: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let index = Arc::clone(&self.index);
        each_entry(&*index, table, from, |key, value| look(self, key, value))
    }
}

/// Whether a change goes into the new index; none: no program can have written it.
fn is_kept(change: &Change) -> Option<bool> {
    let (table, key, value_bytes) = match change {
        Change::Set { table, key, value } => (*table, key, value.len()),
        Change::Remove { table, key } => (*table, key, 0),
    };
    if key.len() > KEY_BYTES_MAX || value_bytes > VALUE_BYTES_MAX {
        return None;
    }
    Some(match table {
        Table::Objects | Table::Uploads | Table::Free => true,
        Table::Settings => !key.starts_with(FIGURES_SETTING),
        Table::ToFree | Table::Shared | Table::Expiry => false,
    })
}

impl BucketRepair {
    /// What a loss of the index means to users.
    fn lose_part(&mut self, loss: &Loss) {
        let (keys, reason) = match loss {
            Loss::Page { keys, reason } => (keys, reason.clone()),
            Loss::Log { reason } => return self.lose(LostPart::Log { reason: reason.clone() }),
            Loss::Redundant { .. } => return, // Nothing of it is lost.
        };
        if let Some((behind, last)) = keys.of(Table::Objects) {
            self.lose(LostPart::Keys { behind, last, reason: reason.clone() });
        }
        if keys.of(Table::Uploads).is_some() {
            self.lose(LostPart::Uploads { reason: reason.clone() });
        }
        let is_figures = |key: &Option<Vec<u8>>| {
            key.as_ref().is_some_and(|key| key.starts_with(FIGURES_SETTING))
        };
        if let Some((behind, last)) = keys.of(Table::Settings)
            && !(is_figures(&behind) && is_figures(&last))
        {
            self.lose(LostPart::Settings { reason });
        }
    }
}
