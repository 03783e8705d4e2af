//! Deletes objects: one, or many in few batches.

use std::collections::BTreeSet;

use store::Durability;

use super::condition::Condition;
use super::edit::Edit;
use super::error::BucketError;
use super::info::{check_key, living};
use super::{Bucket, Core};

/// Objects that are deleted in one batch.
const BATCH_OBJECTS: usize = 64;

/// How objects are deleted.
#[derive(Clone, Copy, Debug)]
pub struct DeleteOptions {
    /// Whether the deletion returns when no crash can take it back.
    pub durability: Durability,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Bucket {
    /// Deletes the object of a key; returns its version, and none when there was no object.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`]; [`BucketError`].
    pub fn delete(
        &self,
        key: &[u8],
        condition: &Condition,
        options: DeleteOptions,
    ) -> Result<Option<u64>, BucketError> {
        let version = self.core.delete_one(key, condition, options.now_ms)?;
        self.core.make_durable(options.durability)?;
        Ok(version)
    }

    /// Deletes the objects of many keys, each as [`Bucket::delete`] would; returns an answer for
    /// each in their order. A crash may leave some of them deleted.
    ///
    /// # Errors
    /// [`BucketError::Index`] when what was deleted could not be made durable.
    pub fn delete_many(
        &self,
        keys: &[(&[u8], Condition)],
        options: DeleteOptions,
    ) -> Result<Vec<Result<Option<u64>, BucketError>>, BucketError> {
        let mut answers = Vec::with_capacity(keys.len());
        for some in keys.chunks(BATCH_OBJECTS) {
            match self.core.delete_together(some, options.now_ms) {
                Ok(together) => answers.extend(together),
                // Each has an answer of its own then.
                Err(_) => {
                    answers.extend(some.iter().map(|(key, condition)| {
                        self.core.delete_one(key, condition, options.now_ms)
                    }))
                }
            }
        }
        self.core.make_durable(options.durability)?;
        Ok(answers)
    }
}

impl Core {
    fn delete_one(
        &self,
        key: &[u8],
        condition: &Condition,
        now_ms: u64,
    ) -> Result<Option<u64>, BucketError> {
        let mut edit = self.edit([key]);
        let version = self.remove(&mut edit, key, condition, now_ms)?;
        edit.apply()?;
        Ok(version)
    }

    /// # Errors
    /// Those of the batch: nothing was deleted.
    fn delete_together(
        &self,
        keys: &[(&[u8], Condition)],
        now_ms: u64,
    ) -> Result<Vec<Result<Option<u64>, BucketError>>, BucketError> {
        self.check_writable()?;
        let mut edit = self.edit(keys.iter().map(|(key, _)| *key));
        let mut seen = BTreeSet::new();
        let mut answers = Vec::with_capacity(keys.len());
        for (key, condition) in keys {
            let answer = match seen.insert(*key) {
                true => self.remove(&mut edit, key, condition, now_ms),
                false => condition.judge(None).map(|()| None), // It is deleted already.
            };
            match answer {
                // What was only looked at leaves the batch as it is.
                Ok(_)
                | Err(BucketError::ConditionFailed { .. } | BucketError::KeyLength { .. }) => {
                    answers.push(answer);
                }
                Err(error) => return Err(error),
            }
        }
        edit.apply()?;
        Ok(answers)
    }

    /// Takes an object out of the bucket; an expired one is gone, whatever the condition.
    fn remove(
        &self,
        edit: &mut Edit<'_>,
        key: &[u8],
        condition: &Condition,
        now_ms: u64,
    ) -> Result<Option<u64>, BucketError> {
        check_key(key)?;
        self.check_writable()?;
        let found = self.record(key)?;
        let object = living(found.as_ref(), now_ms);
        condition.judge(object)?;
        let version = object.map(|record| record.version);
        if let Some(record) = &found {
            edit.remove_object(key, record)?;
        }
        Ok(version)
    }
}
