//! Puts an object whose ETag is the MD5 of its bytes, as S3 has it.

use md5::{Digest, Md5};
use objects::bucket::{FinishOptions, Put, PutOptions, Writer};

use crate::error::BucketsError;
use crate::opened::OpenBucket;

/// Writes one object; [`OpenBucket::put_hashed`] makes one. Dropped, it leaves nothing.
#[must_use]
pub struct ObjectWriter {
    writer: Writer,
    md5: Md5,
    /// The bucket stays open as long as somebody writes into it.
    _bucket: OpenBucket,
}

impl OpenBucket {
    /// Puts an object whose ETag is the MD5 of its bytes.
    ///
    /// # Errors
    /// As of [`Bucket::put`](objects::bucket::Bucket::put).
    pub fn put_hashed(
        &self,
        key: &[u8],
        options: PutOptions,
    ) -> Result<ObjectWriter, BucketsError> {
        let writer = self.put(key, options)?;
        Ok(ObjectWriter { writer, md5: Md5::new(), _bucket: self.clone() })
    }
}

impl ObjectWriter {
    /// Appends bytes to the object.
    ///
    /// # Errors
    /// [`BucketsError::Bucket`]; then the writer is to be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BucketsError> {
        self.md5.update(bytes);
        Ok(self.writer.write(bytes)?)
    }

    /// Bytes up to now.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.writer.length_bytes()
    }

    /// Ends the object: it is visible when this returns, and replaces what the key held.
    ///
    /// # Errors
    /// As of [`Writer::finish`].
    pub fn finish(self) -> Result<Put, BucketsError> {
        let md5 = self.md5.finalize().into();
        Ok(self.writer.finish(FinishOptions::new(md5))?)
    }
}
