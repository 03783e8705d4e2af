//! Which records are kept: those that can be decoded, whose lists can be walked, and whose chunks
//! are theirs. Bytes that cannot be read are named and left to their object.

use std::ops::Range;

use format::FormatError;
use format::objects::OBJECT_KEY_BYTES_MAX;
use format::objects::expiry::expiry_key;
use format::objects::extents::{decode_free, extent_key};
use format::objects::record::ObjectRecord;
use format::objects::segments::ListEntry;
use format::objects::settings::stripe_of;

use super::batches::Batches;
use super::report::{DamagedObject, Owner};
use super::{Repair, RepairStage};
use crate::bucket::error::BucketError;
use crate::bucket::no_bucket;
use crate::bucket::unreadable::UnreadableBytes;
use crate::index::{Change, Index, Table};
use crate::values::{ValueError, walk_list};

/// What a walk over the list of a record found.
struct Walked {
    named_end: u64,
    unreadable: UnreadableBytes,
    /// Why the record cannot be kept.
    refusal: Option<String>,
}

impl Repair<'_> {
    /// Keeps the objects that can be kept, and makes the table of what expires.
    pub(super) fn judge_objects(&mut self) -> Result<(), BucketError> {
        self.done = 0;
        let mut batches = Batches::new(&self.index);
        self.each(Table::Objects, &[], |repair, key, value| {
            repair.step(RepairStage::Judging)?;
            let owner = Owner::Object { key: key.to_vec() };
            let judged = match (1..=OBJECT_KEY_BYTES_MAX).contains(&key.len()) {
                true => repair.judge(&owner, value)?,
                false => Err(format!("its key has {} bytes", key.len())),
            };
            match judged {
                Ok(record) => {
                    let figures = &mut repair.figures[usize::from(stripe_of(key))];
                    figures.objects += 1;
                    figures.object_bytes += record.size_bytes();
                    if let Some(expires) = record.expires_unix_ms {
                        let (table, key) = (Table::Expiry, expiry_key(expires, key));
                        batches.push(Change::Set { table, key, value: Vec::new() })?;
                    }
                }
                Err(reason) => {
                    repair.report.lose_one(owner, reason);
                    repair.lost_anything = true;
                    batches.push(Change::Remove { table: Table::Objects, key: key.to_vec() })?;
                }
            }
            Ok(())
        })?;
        Ok(batches.finish()?)
    }

    /// The record, if it can be kept, or why not.
    ///
    /// # Errors
    /// [`BucketError`] when a newer program has written it: nothing is thrown away then.
    pub(super) fn judge(
        &mut self,
        owner: &Owner,
        bytes: &[u8],
    ) -> Result<Result<ObjectRecord, String>, BucketError> {
        let record = match ObjectRecord::decode(bytes) {
            Ok(record) => record,
            Err(FormatError::NewerVersion { .. }) => {
                return Err(no_bucket("a newer program has put objects into it"));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let walked = match self.walk(&record) {
            Ok(walked) => walked,
            Err(error @ (ValueError::Damaged { .. } | ValueError::DamagedList { .. })) => {
                return Ok(Err(format!("the list of its segments cannot be read: {error}")));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(reason) = walked.refusal {
            return Ok(Err(reason));
        }
        self.named_end = self.named_end.max(walked.named_end);
        self.versions_end = self.versions_end.max(record.version.saturating_add(1));
        if let Some(first_bytes) = walked.unreadable.first {
            let (owner, unreadable_bytes) = (owner.clone(), walked.unreadable.bytes);
            self.report.damage(DamagedObject { owner, first_bytes, unreadable_bytes });
        }
        Ok(Ok(record))
    }

    fn walk(&self, record: &ObjectRecord) -> Result<Walked, ValueError> {
        let mut walked =
            Walked { named_end: 0, unreadable: UnreadableBytes::default(), refusal: None };
        walk_list(&*self.target, &record.value, |entry, start_bytes| {
            let chunks = entry.chunks();
            walked.named_end = walked.named_end.max(chunks.end);
            if chunks.start < self.space.start || self.space.end < chunks.end {
                walked.refusal = Some("it names chunks that are no values".to_owned());
            } else if self.lost_groups && self.is_free(&chunks)? {
                let reason = "its chunks are free: a lost group of the log deleted it";
                walked.refusal = Some(reason.to_owned());
            }
            if let ListEntry::Run(run) = entry {
                walked.unreadable.note(run, start_bytes, &self.options.unreadable);
            }
            Ok(())
        })?;
        Ok(walked)
    }

    /// Whether the salvaged table says that a chunk of the range is free.
    fn is_free(&self, chunks: &Range<u64>) -> Result<bool, ValueError> {
        let from = extent_key(chunks.start + 1);
        let found = self.index.scan(Table::Free, &from, 1)?;
        let free = found.first().and_then(|(key, value)| decode_free(key, value).ok());
        Ok(free.is_some_and(|free| free.start < chunks.end))
    }
}
