//! What clients hear where the bucket refuses.

use format::objects::record::metadata::MetadataError;
use memcached::Fault;
use objects::bucket::BucketError;

/// Why a request is not carried out, as its client hears it.
pub(crate) struct Refusal(pub(crate) Fault);

impl From<BucketError> for Refusal {
    fn from(error: BucketError) -> Self {
        Self(fault_of(&error))
    }
}

impl From<MetadataError> for Refusal {
    fn from(error: MetadataError) -> Self {
        Self(Fault::Other(error.to_string().into()))
    }
}

/// The fault of a refusal: no room, in a full store or beyond a quota, or the bucket's own words.
pub(crate) fn fault_of(error: &BucketError) -> Fault {
    match error {
        BucketError::QuotaExceeded { .. } => Fault::NoRoom,
        error if error.is_no_space() => Fault::NoRoom,
        error => Fault::Other(error.to_string().into()),
    }
}
