//! What a request asks of the object that it finds.
//!
//! It is judged under the lock of the key, against the record that the same batch replaces.

use format::objects::record::{ETag, ObjectRecord};

use super::error::{BucketError, Found};

/// What the object of a key must be like; one that has expired is none.
///
/// Dates are judged as S3 judges them, in whole seconds; who maps a request of HTTP says which of
/// its headers count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Anything.
    #[default]
    None,
    /// There is no object: `If-None-Match: *`.
    Absent,
    /// There is an object: `If-Match: *`.
    Present,
    /// There is an object that has one of these: `If-Match`.
    ETagIn(Vec<ETag>),
    /// There is no object, or one that has none of these: `If-None-Match`.
    ETagNotIn(Vec<ETag>),
    /// There is an object of this version.
    Version(u64),
    /// There is an object that was put later than this, in milliseconds since 1970.
    ModifiedSince(u64),
    /// There is no object, or one that was put then or before.
    UnmodifiedSince(u64),
    /// All of these hold.
    All(Vec<Condition>),
}

impl Condition {
    /// # Errors
    /// [`BucketError::ConditionFailed`] when it does not hold.
    pub(super) fn judge(&self, found: Option<&ObjectRecord>) -> Result<(), BucketError> {
        if self.holds(found) {
            return Ok(());
        }
        let found = found.map(|record| Found {
            version: record.version,
            etag: record.etag,
            created_unix_ms: record.created_unix_ms,
        });
        Err(BucketError::ConditionFailed { found })
    }

    fn holds(&self, found: Option<&ObjectRecord>) -> bool {
        let second = |ms: u64| ms / 1000;
        match (self, found) {
            (Self::None, _) => true,
            (Self::All(all), _) => all.iter().all(|condition| condition.holds(found)),
            (Self::Absent | Self::ETagNotIn(_) | Self::UnmodifiedSince(_), None) => true,
            (_, None) | (Self::Absent, Some(_)) => false,
            (Self::Present, Some(_)) => true,
            (Self::ETagIn(tags), Some(record)) => tags.contains(&record.etag),
            (Self::ETagNotIn(tags), Some(record)) => !tags.contains(&record.etag),
            (Self::Version(version), Some(record)) => record.version == *version,
            (Self::ModifiedSince(ms), Some(record)) => second(record.created_unix_ms) > second(*ms),
            (Self::UnmodifiedSince(ms), Some(record)) => {
                second(record.created_unix_ms) <= second(*ms)
            }
        }
    }
}
