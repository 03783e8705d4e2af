//! Copies between buckets: chunks that both may have are mapped, so that no bytes move; else bytes
//! are read and written. A bucket with a replica takes bytes, for the replica's store does not have
//! the chunks.

use std::ops::Range;

use format::objects::record::ETag;
use md5::{Digest, Md5};
use objects::bucket::{BucketError, Condition, FinishOptions, PartWriter, Put, PutOptions, Reader};
use objects::values::ChunkCopy;
use store::{Durability, RequestError};
use thiserror::Error;

use crate::error::BucketsError;
use crate::now_unix_ms;
use crate::opened::OpenBucket;

/// A copy is mapped from this length on: a shorter one is written as quickly.
const MAPPED_BYTES_MIN: u64 = 1 << 20;
/// Bytes that a copy moves at a time, where bytes have to be moved.
const COPIED_BYTES: usize = 1 << 20;

/// Why an object was not copied from one bucket into another.
#[derive(Debug, Error)]
pub enum CopyError {
    /// It cannot be read.
    #[error(transparent)]
    Source(BucketError),
    /// Its copy cannot be put.
    #[error(transparent)]
    Target(BucketsError),
}

impl OpenBucket {
    /// Copies an object of another bucket to a key of this one, with what its sender said of it.
    ///
    /// # Errors
    /// [`CopyError`]; nothing has been put.
    pub fn copy_object(
        &self,
        from: &Self,
        reader: &mut Reader,
        key: &[u8],
        condition: Condition,
        durability: Durability,
    ) -> Result<Put, CopyError> {
        let options = PutOptions {
            metadata: reader.info().metadata.clone(),
            expires_unix_ms: reader.info().expires_unix_ms,
            condition,
            durability,
            now_ms: now_unix_ms(),
        };
        let mapped = self.map_object(from, reader, key, options.clone());
        if let Some(put) = mapped.map_err(CopyError::Target)? {
            return Ok(put);
        }
        let mut writer = self.put_hashed(key, options).map_err(CopyError::Target)?;
        let (mut bytes, mut offset) = (vec![0; COPIED_BYTES], 0);
        loop {
            let length = reader.read_at(offset, &mut bytes).map_err(CopyError::Source)?;
            if length == 0 {
                return writer.finish().map_err(CopyError::Target);
            }
            writer.write(&bytes[..length]).map_err(CopyError::Target)?;
            offset += length as u64;
        }
    }

    /// Copies an object of another bucket to a key of this one, with its ETag and checksums, where
    /// that needs no bytes to be moved. None: the object is short, the buckets are of different
    /// dedup domains, or this one has a replica, and nothing has been done.
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
        if info.size_bytes < MAPPED_BYTES_MIN || self.hosted().is_mirrored {
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
        if range.end - range.start < MAPPED_BYTES_MIN || self.hosted().is_mirrored {
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
