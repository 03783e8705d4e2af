//! Which objects the chunks belong to that a store cannot read.

use std::ops::Range;

use format::objects::CHUNK_BYTES;
use format::objects::record::ObjectRecord;
use format::objects::segments::{ListEntry, Run};
use format::objects::uploads::UploadEntry;

use super::Bucket;
use super::error::BucketError;
use super::repair::{DamagedObject, Owner};
use crate::index::{Table, each_entry};
use crate::values::{ValueError, walk_list};

/// Objects of which bytes cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableObjects {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub told: Vec<DamagedObject>,
}

/// Bytes of one value that cannot be read.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadableBytes {
    pub(super) first: Option<Range<u64>>,
    pub(super) bytes: u64,
}

impl UnreadableBytes {
    /// Notes which bytes of a run lie in `chunks`, which are in order. The run's first byte is at
    /// `start_bytes` of the value.
    pub(super) fn note(&mut self, run: &Run, start_bytes: u64, chunks: &[Range<u64>]) {
        let first = chunks.partition_point(|range| range.end <= run.first_chunk);
        for range in chunks[first..].iter().take_while(|range| range.start < run.end_chunk()) {
            // Of the run's first chunk the value has what follows the skipped bytes.
            let offset = |chunk: u64| {
                let chunks = chunk.saturating_sub(run.first_chunk);
                (chunks * CHUNK_BYTES).saturating_sub(run.skip_bytes.into()).min(run.length_bytes)
            };
            self.add(start_bytes + offset(range.start)..start_bytes + offset(range.end));
        }
    }

    fn add(&mut self, bytes: Range<u64>) {
        self.bytes += bytes.end - bytes.start;
        self.first.get_or_insert(bytes);
    }
}

impl Bucket {
    /// Names the objects, and the parts of uploads, that have bytes in `chunks` of the volume,
    /// which are in order; the first `told_max` one by one. `progress` is called with how many
    /// entries were looked at; with an error of its own it ends the search.
    ///
    /// # Errors
    /// [`BucketError`]; a record that cannot be decoded is none, for a check names it.
    pub fn find_unreadable(
        &self,
        chunks: &[Range<u64>],
        told_max: usize,
        mut progress: impl FnMut(u64) -> Result<(), BucketError>,
    ) -> Result<UnreadableObjects, BucketError> {
        let mut found = UnreadableObjects::default();
        let mut entries = 0;
        self.each_record(|owner, record| {
            entries += 1;
            progress(entries)?;
            let unreadable = self.unreadable_of(record, chunks)?;
            if let Some(first_bytes) = unreadable.first {
                found.count += 1;
                if found.told.len() < told_max {
                    let unreadable_bytes = unreadable.bytes;
                    found.told.push(DamagedObject { owner, first_bytes, unreadable_bytes });
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn unreadable_of(
        &self,
        record: &ObjectRecord,
        chunks: &[Range<u64>],
    ) -> Result<UnreadableBytes, BucketError> {
        let mut unreadable = UnreadableBytes::default();
        let walked = walk_list(self.core.values.volume(), &record.value, |entry, start_bytes| {
            if let ListEntry::Run(run) = entry {
                unreadable.note(run, start_bytes, chunks);
            }
            Ok(())
        });
        match walked {
            Ok(()) => {}
            // Nobody knows what lies below a block that cannot be read.
            Err(ValueError::Damaged { bytes, .. } | ValueError::DamagedList { bytes, .. }) => {
                unreadable.add(bytes);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(unreadable)
    }

    fn each_record(
        &self,
        mut look: impl FnMut(Owner, &ObjectRecord) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        for table in [Table::Objects, Table::Uploads] {
            each_entry(&*self.core.index, table, &[], |key, value| {
                match (owner_of(table, key), ObjectRecord::decode(value)) {
                    (Some(owner), Ok(record)) => look(owner, &record),
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }
}

/// Whose value the record of an entry names, if it can name one.
fn owner_of(table: Table, key: &[u8]) -> Option<Owner> {
    if table == Table::Objects {
        return Some(Owner::Object { key: key.to_vec() });
    }
    match UploadEntry::decode(key) {
        Ok(UploadEntry::Part { upload, number: number @ 1.. }) => {
            Some(Owner::Part { upload, number })
        }
        _ => None,
    }
}
