//! Makes an object of the parts of an upload.
//!
//! The lists of the parts become one list. Parts that the completion does not name are abandoned
//! first, in batches of their own; then one batch has the object, and the upload no more.

use std::collections::BTreeMap;

use format::objects::record::metadata::Checksum;
use format::objects::record::{ETag, ObjectRecord, PARTS_MAX, Value};
use format::objects::uploads::part_key;
use store::Durability;

use super::{BATCH_PARTS, UploadId, remove_upload};
use crate::bucket::condition::Condition;
use crate::bucket::edit::Edit;
use crate::bucket::error::BucketError;
use crate::bucket::info::{check_key, living};
use crate::bucket::put::{Put, sorted};
use crate::bucket::{Bucket, Core};
use crate::values::ValueError;
use segments::SegmentPolicy;

/// How an upload is completed.
#[derive(Clone, Debug)]
pub struct CompleteOptions {
    /// What the key must hold.
    pub condition: Condition,
    /// MD5 of the MD5s of the parts.
    pub md5: [u8; 16],
    /// At most one of each algorithm.
    pub checksums: Vec<Checksum>,
    /// Whether the call returns when no crash can take the object back.
    pub durability: Durability,
    /// Milliseconds since 1970: the object's time.
    pub now_ms: u64,
}

/// Parts by their numbers.
type Parts = BTreeMap<u16, ObjectRecord>;

impl Bucket {
    /// Makes an object of parts: number and ETag of each, in the order of their numbers. Other
    /// parts of the upload are abandoned.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`], [`BucketError::NoSuchPart`], [`BucketError::PartOrder`],
    /// [`BucketError::ConditionFailed`]: the upload is as it was. [`BucketError`]: it may have lost
    /// parts that the completion does not name.
    pub fn complete(
        &self,
        key: &[u8],
        upload: UploadId,
        parts: &[(u16, ETag)],
        options: CompleteOptions,
    ) -> Result<Put, BucketError> {
        check_key(key)?;
        let is_sorted = parts.is_sorted_by(|one, next| one.0 < next.0);
        if parts.is_empty() || parts.len() > usize::from(PARTS_MAX) || !is_sorted {
            return Err(BucketError::PartOrder);
        }
        let checksums = sorted(options.checksums)?;
        let core = &*self.core;
        core.check_writable()?;
        let mut edit = core.edit([key]);
        let planned = core.upload(key, upload)?;
        let before = core.record(key)?;
        options.condition.judge(living(before.as_ref(), options.now_ms))?;
        let (named, others) = core.chosen_parts(upload, parts)?;
        core.give_up(&mut edit, key, upload, &others)?;
        let value = core.joined(&mut edit, &named)?;
        let record = ObjectRecord {
            version: core.versions.next(&*core.index)?,
            created_unix_ms: options.now_ms,
            etag: ETag { md5: options.md5, parts: Some(parts.len() as u16) },
            checksums,
            value,
            ..planned
        };
        edit.set_object(key, before.as_ref(), &record)?;
        for (number, part) in &named {
            edit.set_part(key, part_key(upload.0, *number), Some(part), None);
        }
        remove_upload(&mut edit, key, upload);
        edit.finish(options.durability)?;
        Ok(Put::of(&record))
    }
}

impl Core {
    /// The parts that were chosen, and all others of the upload.
    fn chosen_parts(
        &self,
        upload: UploadId,
        chosen: &[(u16, ETag)],
    ) -> Result<(Parts, Parts), BucketError> {
        let all = self.parts(upload, 1, usize::from(PARTS_MAX))?;
        let mut others: Parts = all.into_iter().collect();
        let mut named = Parts::new();
        for &(number, etag) in chosen {
            match others.remove(&number).filter(|part| part.etag == etag) {
                Some(part) => drop(named.insert(number, part)),
                None => return Err(BucketError::NoSuchPart { number }),
            }
        }
        Ok((named, others))
    }

    fn give_up(
        &self,
        edit: &mut Edit<'_>,
        key: &[u8],
        upload: UploadId,
        parts: &Parts,
    ) -> Result<(), BucketError> {
        let parts: Vec<(&u16, &ObjectRecord)> = parts.iter().collect();
        for some in parts.chunks(BATCH_PARTS) {
            for (number, part) in some {
                edit.values.release(&part.value)?;
                edit.set_part(key, part_key(upload.0, **number), Some(part), None);
            }
            edit.apply()?;
        }
        Ok(())
    }

    /// One value of those of all parts, which name what they have no more.
    fn joined(&self, edit: &mut Edit<'_>, parts: &Parts) -> Result<Value, BucketError> {
        let mut composer = self.values.composer(SegmentPolicy::Fixed);
        let mut appended = parts.values().map(|part| composer.append(&part.value));
        let appended = appended.try_for_each(|done| done);
        match appended.and_then(|()| composer.finish()) {
            Ok(written) => Ok(edit.values.name(written)),
            Err(ValueError::TooDeep) => {
                let pieces: Vec<_> =
                    parts.values().map(|part| (&part.value, 0..part.size_bytes())).collect();
                let value = self.rewritten(edit, &pieces)?;
                for part in parts.values() {
                    edit.values.release(&part.value)?;
                }
                Ok(value)
            }
            Err(error) => Err(error.into()),
        }
    }
}
