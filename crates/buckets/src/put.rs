//! Puts an object whose ETag is the MD5 of its bytes, as S3 has it.

use md5::{Digest, Md5};
use objects::bucket::{FinishOptions, Put, Writer};

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

impl ObjectWriter {
    pub(crate) fn new(writer: Writer, bucket: OpenBucket) -> Self {
        Self { writer, md5: Md5::new(), _bucket: bucket }
    }

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
