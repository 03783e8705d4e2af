//! Copies between buckets that share chunks: no bytes move.

use std::ops::Range;

use format::objects::record::ETag;
use md5::{Digest, Md5};
use objects::bucket::{FinishOptions, PartWriter, Put, PutOptions, Reader};
use objects::values::ChunkCopy;
use store::RequestError;

use crate::error::BucketsError;
use crate::opened::OpenBucket;

/// A copy is mapped from this length on: a shorter one is written as quickly.
const MAPPED_BYTES_MIN: u64 = 1 << 20;

impl OpenBucket {
    /// Copies an object of another bucket to a key of this one, with its ETag and checksums, where
    /// that needs no bytes to be moved. None: the object is short, or the buckets are of different
    /// dedup domains, and nothing has been done.
    ///
    /// # Errors
    /// As of [`Bucket::put`](objects::bucket::Bucket::put).
    pub fn map_object(
        &self,
        from: &Self,
        reader: &mut Reader,
        key: &[u8],
        options: PutOptions,
    ) -> Result<Option<Put>, BucketsError> {
        let info = reader.info().clone();
        if info.size_bytes < MAPPED_BYTES_MIN {
            return Ok(None);
        }
        let mut writer = self.put(key, options)?;
        let mut map = |copy| self.map_chunks(from, copy);
        match writer.map_from(reader, 0..info.size_bytes, &mut map).map_err(BucketsError::from) {
            Ok(()) => Ok(Some(writer.finish_as(info.etag, info.checksums)?)),
            Err(error) if error.is_other_domain() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`OpenBucket::map_object`], a range of an object that becomes a part; `begin` begins the
    /// part. The MD5 of the part is not known, so its ETag is that of what it was copied from.
    ///
    /// # Errors
    /// As of `begin` and of [`Bucket::put_part`](objects::bucket::Bucket::put_part).
    pub fn map_part(
        &self,
        from: &Self,
        reader: &mut Reader,
        range: Range<u64>,
        begin: impl FnOnce() -> Result<PartWriter, BucketsError>,
    ) -> Result<Option<Put>, BucketsError> {
        if range.end - range.start < MAPPED_BYTES_MIN {
            return Ok(None);
        }
        let ETag { md5, parts } = reader.info().etag;
        let is_whole = parts.is_none() && range == (0..reader.info().size_bytes);
        let mut named = Md5::new_with_prefix(md5);
        named.update(range.start.to_be_bytes());
        named.update(range.end.to_be_bytes());
        let md5 = if is_whole { md5 } else { named.finalize().into() };
        let mut writer = begin()?;
        let mut map = |copy| self.map_chunks(from, copy);
        match writer.map_from(reader, range, &mut map).map_err(BucketsError::from) {
            Ok(()) => Ok(Some(writer.finish(FinishOptions::new(md5))?)),
            Err(error) if error.is_other_domain() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has the volume of this bucket map chunks of another's.
    fn map_chunks(&self, other: &Self, copy: ChunkCopy) -> Result<(), RequestError> {
        let (to, from) = (&self.hosted().volume, &other.hosted().volume);
        let ChunkCopy { to_bytes, from_bytes, length_bytes } = copy;
        to.copy_from_blocking(to_bytes, from, from_bytes, length_bytes, false)
    }
}
