//! What the simulator asks of a bucket. Two answer: one in as many words as index and values need,
//! whose segments are short so that lists have blocks ([`crate::objects::parts`]), and the one that
//! doors have ([`crate::objects::whole`]).

use std::ops::Range;
use std::sync::Arc;

use engine::Durability;
use objects::bucket::{Bucket as Doors, BucketError};

use crate::failure::Broken;
use crate::objects::history::{Contents, Object, Objects};
use crate::objects::recount::{Counted, NeededChunks};
use crate::objects::step_volume::StepVolume;

/// Length of the log's ring: it goes round within a life.
pub(crate) const RING_BYTES: u64 = 64 << 10;
/// Bytes that a writer gets at a time.
pub(crate) const PART_BYTES: usize = 3000;

/// Gives what an object held when it was looked up, from a place in it on.
pub(crate) type SlowReader = Box<dyn FnMut(u64, &mut [u8]) -> Result<usize, BucketError>>;

/// An object that was looked up.
pub(crate) struct LookedUp {
    pub(crate) length_bytes: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) reader: SlowReader,
}

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

    /// What a key holds, and who reads it.
    fn reader(&self, key: &[u8]) -> Result<Option<LookedUp>, BucketError>;

    /// The chunks of each object.
    fn needed_chunks(&self) -> Result<NeededChunks, BucketError>;

    /// The bucket that doors have, if it is one.
    fn doors(&self) -> Option<&Doors> {
        None
    }

    fn keys(&self) -> Result<Vec<Vec<u8>>, BucketError>;

    fn merge(&self) -> Result<(), BucketError>;

    /// True when there is nothing left to trim. An odd number of entries is of what was just
    /// released only.
    fn trim_some(&self, entries_max: u64) -> Result<bool, BucketError>;

    /// Each chunk is in one state, and counts are right.
    fn recount(&self) -> Result<Counted, Broken>;

    /// All that the bucket can check itself.
    fn check(&self) -> Result<(), Broken>;

    fn get(&self, key: &[u8]) -> Result<Option<Object>, BucketError> {
        let Some(mut found) = self.reader(key)? else { return Ok(None) };
        let mut bytes = vec![0; found.length_bytes as usize];
        (found.reader)(0, &mut bytes)?;
        Ok(Some(Object { expires_ms: found.expires_ms, ..Object::of(bytes) }))
    }

    /// Everything.
    fn contents(&self) -> Result<Contents, BucketError> {
        let mut objects = Objects::new();
        for key in self.keys()? {
            if let Some(object) = self.get(&key)? {
                objects.insert(key, object);
            }
        }
        let quota_bytes = self.doors().and_then(Doors::quota_bytes);
        Ok(Contents { objects, quota_bytes })
    }

    fn trim_all(&self) -> Result<(), BucketError> {
        while !self.trim_some(50)? {}
        Ok(())
    }
}
