//! Which of the two buckets a number has, made and opened.

use std::sync::Arc;

use objects::bucket::BucketError;
use objects::index::IndexError;

use crate::objects::bucket::Bucket;
use crate::objects::parts::Parts;
use crate::objects::step_volume::StepVolume;
use crate::objects::whole::Whole;

/// Whether the bucket of a number is the one that doors have.
fn is_whole(number: u32) -> bool {
    number % 2 == 1
}

/// Makes the bucket of a number.
pub(crate) fn create(number: u32, volume: &Arc<StepVolume>, seed: u64) -> Result<(), BucketError> {
    let mut uuid = [7; 16];
    uuid[..8].copy_from_slice(&seed.to_le_bytes());
    if is_whole(number) { Whole::create(volume, uuid) } else { Parts::create(volume, uuid) }
}

/// Opens the bucket of a number; none when the volume holds no bucket.
pub(crate) fn open(
    number: u32,
    volume: &Arc<StepVolume>,
    read_only: bool,
) -> Result<Option<Box<dyn Bucket>>, BucketError> {
    let opened = match is_whole(number) {
        true => Whole::open(volume, read_only).map(|whole| Box::new(whole) as Box<dyn Bucket>),
        false => Parts::open(volume, read_only).map(|parts| Box::new(parts) as _),
    };
    match opened {
        Err(BucketError::Index(IndexError::NoBucket(_) | IndexError::Unfinished)) => Ok(None),
        opened => opened.map(Some),
    }
}
