//! Reads objects, without any lock.

use super::Bucket;
use super::condition::Condition;
use super::error::BucketError;
use super::info::{ObjectInfo, check_key, living};
use super::moments::Moment;
use crate::values::ValueReader;

/// Look-ups that the trimmer may come between before the key is locked.
const LOOKUPS_MAX: usize = 8;

/// An object as it was when it was found, whatever happens to its key meanwhile.
pub struct Reader {
    info: ObjectInfo,
    value: ValueReader,
}

impl Reader {
    pub(super) fn new(info: ObjectInfo, value: ValueReader) -> Self {
        Self { info, value }
    }

    /// The object without its bytes.
    #[must_use]
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    pub(super) fn value(&mut self) -> &mut ValueReader {
        &mut self.value
    }

    /// Fills the front of `out` with what the object has from `offset` on; returns how many bytes
    /// those are: fewer than asked for at its end only.
    ///
    /// # Errors
    /// [`BucketError::Value`] with the bytes that are lost; all others can be read.
    pub fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, BucketError> {
        Ok(self.value.read_at(offset, out)?)
    }
}

impl Bucket {
    /// The object of a key without its bytes.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] when there is an object that does not meet `condition`.
    pub fn head(
        &self,
        key: &[u8],
        condition: &Condition,
        now_ms: u64,
    ) -> Result<Option<ObjectInfo>, BucketError> {
        check_key(key)?;
        let found = self.core.record(key)?;
        let Some(record) = living(found.as_ref(), now_ms) else { return Ok(None) };
        condition.judge(Some(record))?;
        Ok(found.map(ObjectInfo::from))
    }

    /// The moment before a look at the object of a key; none while somebody changes it.
    #[must_use]
    pub fn moment(&self, key: &[u8]) -> Option<Moment> {
        self.core.moments.moment(key)
    }

    /// Whether nobody has changed the object of a key since a moment, and nobody is about to. That
    /// an object expires is no change.
    #[must_use]
    pub fn is_unchanged(&self, key: &[u8], since: Moment) -> bool {
        self.core.moments.is_unchanged(key, since)
    }

    /// Opens the object of a key to be read.
    ///
    /// # Errors
    /// As of [`Bucket::head`].
    pub fn get(
        &self,
        key: &[u8],
        condition: &Condition,
        now_ms: u64,
    ) -> Result<Option<Reader>, BucketError> {
        check_key(key)?;
        let values = &self.core.values;
        let mut looks = 0;
        loop {
            // Under its lock the object keeps its place, so one of few looks will do.
            let locked = (looks >= LOOKUPS_MAX).then(|| self.core.stripes.lock([key]));
            looks += 1;
            let lookup = values.lookup();
            let found = self.core.record(key)?;
            let Some(record) = living(found.as_ref(), now_ms) else { return Ok(None) };
            condition.judge(Some(record))?;
            let pinned = values.pin(lookup, &record.value).or_else(|| {
                let again = || values.pin(values.lookup(), &record.value);
                locked.as_ref().and_then(|_| again())
            });
            if let (Some(pinned), Some(record)) = (pinned, found) {
                let value = pinned.reader(values);
                return Ok(Some(Reader { info: record.into(), value }));
            }
        }
    }
}
