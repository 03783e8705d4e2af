//! What buckets answer when they fail, and what the simulator says of it.

use engine::RequestError;
use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;

use crate::failure::Broken;

/// What was asked of a bucket failed, though it should not.
pub(crate) fn broken(asked: &str, error: &BucketError) -> Broken {
    Broken::Objects { what: format!("{asked} failed: {error}") }
}

/// What the engine said, in the words of a bucket.
pub(crate) fn said(error: RequestError) -> BucketError {
    ValueError::Volume(error).into()
}

/// What the engine said, if it was the engine.
pub(crate) fn of_engine(error: &BucketError) -> Option<&RequestError> {
    match error {
        BucketError::Index(IndexError::Volume(error))
        | BucketError::Value(
            ValueError::Volume(error) | ValueError::Index(IndexError::Volume(error)),
        ) => Some(error),
        _ => None,
    }
}

/// Whether it says that something is damaged.
pub(crate) fn is_damage(error: &BucketError) -> bool {
    let of_index =
        |error: &IndexError| matches!(error, IndexError::Damaged(_) | IndexError::NoBucket(_));
    match error {
        BucketError::Index(error) | BucketError::Value(ValueError::Index(error))
            if of_index(error) =>
        {
            true
        }
        BucketError::Value(ValueError::Damaged { .. } | ValueError::DamagedList { .. }) => true,
        error => matches!(of_engine(error), Some(RequestError::Damaged { .. })),
    }
}
