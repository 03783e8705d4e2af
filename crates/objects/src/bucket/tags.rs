//! Changes the tags of an object, which stays as it is otherwise.

use format::objects::record::ObjectRecord;
use format::objects::record::metadata::Tags;
use store::Durability;

use super::Bucket;
use super::condition::Condition;
use super::error::BucketError;
use super::info::{check_key, living};

/// How tags are changed.
#[derive(Clone, Debug)]
pub struct TagOptions {
    /// What the key must hold.
    pub condition: Condition,
    /// Whether the change returns when no crash can take it back.
    pub durability: Durability,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Bucket {
    /// Gives an object these tags instead of those it has; version and time stay. Returns the
    /// version.
    ///
    /// # Errors
    /// [`BucketError::NoSuchObject`], [`BucketError::ConditionFailed`]; [`BucketError`].
    pub fn set_tags(
        &self,
        key: &[u8],
        tags: Tags,
        options: &TagOptions,
    ) -> Result<u64, BucketError> {
        check_key(key)?;
        self.core.check_writable()?;
        let mut edit = self.core.edit([key]);
        let found = self.core.record(key)?;
        let before = living(found.as_ref(), options.now_ms).ok_or(BucketError::NoSuchObject)?;
        options.condition.judge(Some(before))?;
        let after = ObjectRecord { tags, ..before.clone() };
        edit.set_record(key, Some(before), &after);
        edit.finish(options.durability)?;
        Ok(after.version)
    }
}
