//! What the simulator asks of a bucket. Two answer: one in as many words as index and values need,
//! whose segments are short so that lists have blocks ([`Parts`]), and the one that doors have
//! ([`Whole`]).

use std::ops::Range;
use std::sync::Arc;

use engine::{Durability, RequestError};
use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;

use crate::failure::Broken;
use crate::objects::history::Objects;
use crate::objects::parts::Parts;
use crate::objects::recount::Counted;
use crate::objects::step_volume::StepVolume;
use crate::objects::whole::Whole;

/// Length of the log's ring: it goes round within a life.
pub(crate) const RING_BYTES: u64 = 64 << 10;
/// Bytes that a writer gets at a time.
pub(crate) const PART_BYTES: usize = 3000;

/// Gives what an object held when it was looked up, from its start.
pub(crate) type SlowReader = Box<dyn FnMut(&mut [u8]) -> Result<usize, BucketError>>;

/// How values are cut, where that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Fixed,
    /// By content, into segments so short that lists need blocks.
    Content,
}

/// An open bucket.
pub(crate) trait Bucket {
    fn volume(&self) -> &Arc<StepVolume>;

    fn put(
        &self,
        key: &[u8],
        bytes: &[u8],
        cut: Cut,
        durability: Durability,
    ) -> Result<(), BucketError>;

    /// Writes bytes that nobody will name; with `ends` all of them.
    fn give_up(&self, bytes: &[u8], cut: Cut, ends: bool) -> Result<(), BucketError>;

    fn delete(&self, keys: &[&[u8]], durability: Durability) -> Result<(), BucketError>;

    /// `to` becomes what `from` is, which there is.
    fn copy(&self, from: &[u8], to: &[u8]) -> Result<(), BucketError>;

    /// `to` becomes `head` and a range of `from`.
    fn copy_range(
        &self,
        from: &[u8],
        to: &[u8],
        head: &[u8],
        range: Range<u64>,
    ) -> Result<(), BucketError>;

    /// Length of what a key holds, and who reads it.
    fn reader(&self, key: &[u8]) -> Result<Option<(u64, SlowReader)>, BucketError>;

    fn keys(&self) -> Result<Vec<Vec<u8>>, BucketError>;

    fn merge(&self) -> Result<(), BucketError>;

    /// True when there is nothing left to trim.
    fn trim_some(&self, entries_max: u64) -> Result<bool, BucketError>;

    /// Each chunk is in one state, and counts are right.
    fn recount(&self) -> Result<Counted, Broken>;

    /// All that the bucket can check itself.
    fn check(&self) -> Result<(), Broken>;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BucketError> {
        let Some((length, mut read)) = self.reader(key)? else { return Ok(None) };
        let mut bytes = vec![0; length as usize];
        read(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Everything.
    fn objects(&self) -> Result<Objects, BucketError> {
        let mut objects = Objects::new();
        for key in self.keys()? {
            if let Some(bytes) = self.get(&key)? {
                objects.insert(key, bytes.into());
            }
        }
        Ok(objects)
    }

    fn trim_all(&self) -> Result<(), BucketError> {
        while !self.trim_some(50)? {}
        Ok(())
    }
}

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
        Err(BucketError::Index(IndexError::NoBucket(_))) => Ok(None),
        opened => opened.map(Some),
    }
}

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
