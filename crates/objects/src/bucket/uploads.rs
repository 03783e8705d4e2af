//! Multi-part uploads: parts are put in any order and become an object without moving a byte.
//!
//! ```text
//! begin ─> upload ─ put_part, copy_part, any number of times ─┬─ complete ─> object
//!                                                             └─ abort, expire_uploads ─> nothing
//! ```
//!
//! All entries of an upload are guarded by the lock of its object's key. A part counts for the
//! quota as an object does.

mod complete;
mod list;
mod part;

use format::objects::record::metadata::Checksum;
use format::objects::record::{ETag, ObjectRecord, Value};
use format::objects::uploads::{UploadEntry, part_key, upload_key};
use store::Durability;

use super::edit::Edit;
use super::error::BucketError;
use super::info::{Metadata, check_key};
use super::put::new_record;
use super::{Bucket, Core};
use crate::index::{Index, Table};

pub use complete::CompleteOptions;
pub use list::{PartInfo, UploadInfo, UploadsListing};
pub use part::{CopyPartOptions, PartOptions, PartWriter};

/// Parts that are abandoned in one batch.
const BATCH_PARTS: usize = 64;

/// Which upload of a bucket; no two of its life have the same. It can be guessed: who knows it
/// proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(pub u64);

/// What is known of an object when its upload begins.
#[derive(Clone, Debug)]
pub struct UploadOptions {
    /// What its sender says of it.
    pub metadata: Metadata,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
    /// Which checksum the object is to have ([`Checksum::planned`]). The upload remembers it, and
    /// [`Bucket::head_upload`] says it; who puts parts and completes holds to it.
    pub checksum: Option<Checksum>,
    /// Whether the call returns when no crash can take the upload back.
    pub durability: Durability,
    /// Milliseconds since 1970: the upload's time.
    pub now_ms: u64,
}

impl UploadOptions {
    /// Without metadata, expiry or a checksum; acknowledged.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            metadata: Metadata::default(),
            expires_unix_ms: None,
            checksum: None,
            durability: Durability::Acknowledged,
            now_ms,
        }
    }
}

/// What a call of [`Bucket::expire_uploads`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiredUploads {
    /// Uploads that were aborted.
    pub aborted: u64,
    /// All uploads were looked at.
    pub is_done: bool,
}

impl Bucket {
    /// Begins an upload of an object.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn begin_upload(
        &self,
        key: &[u8],
        options: UploadOptions,
    ) -> Result<UploadId, BucketError> {
        check_key(key)?;
        let core = &*self.core;
        core.check_writable()?;
        let mut edit = core.edit([key]);
        let upload = core.versions.next(&*core.index)?;
        let etag = ETag { md5: [0; 16], parts: None };
        let record = new_record(upload, etag, Value::EMPTY, options.now_ms, options.metadata);
        let checksums = options.checksum.into_iter().collect();
        let expires_unix_ms = options.expires_unix_ms;
        let record = ObjectRecord { expires_unix_ms, checksums, ..record };
        edit.set(Table::Uploads, upload_key(key, upload), record.encode());
        edit.set(Table::Uploads, part_key(upload, 0).to_vec(), key.to_vec());
        edit.finish(options.durability)?;
        Ok(UploadId(upload))
    }

    /// Abandons an upload and its parts. A crash may leave some of the parts.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`]; [`BucketError`].
    pub fn abort(
        &self,
        key: &[u8],
        upload: UploadId,
        durability: Durability,
    ) -> Result<(), BucketError> {
        check_key(key)?;
        self.core.check_writable()?;
        let mut edit = self.core.edit([key]);
        self.core.upload(key, upload)?;
        self.core.abort_locked(&mut edit, key, upload)?;
        edit.finish(durability)
    }

    /// Aborts uploads that were begun before `older_than_ms`, among the first `uploads_max` in the
    /// order in which they were begun.
    ///
    /// # Errors
    /// [`BucketError`]; what was aborted stays so.
    pub fn expire_uploads(
        &self,
        older_than_ms: u64,
        uploads_max: u64,
    ) -> Result<ExpiredUploads, BucketError> {
        let core = &*self.core;
        core.check_writable()?;
        let mut expired = ExpiredUploads::default();
        let mut from = Some(0);
        for _ in 0..uploads_max {
            let first = match from {
                Some(from) => core.index.scan(Table::Uploads, &part_key(from, 0), 1)?,
                None => Vec::new(), // The last one had the highest number that there is.
            };
            let Some((entry, key)) = first.into_iter().next() else {
                expired.is_done = true;
                break;
            };
            let UploadEntry::Part { upload, .. } = UploadEntry::decode(&entry)? else {
                panic!("behind the first part there are parts only");
            };
            check_key(&key)?;
            let mut edit = core.edit([key.as_slice()]);
            match core.upload(&key, UploadId(upload)) {
                Ok(record) if record.created_unix_ms < older_than_ms => {
                    core.abort_locked(&mut edit, &key, UploadId(upload))?;
                    edit.apply()?;
                    expired.aborted += 1;
                }
                Ok(_) | Err(BucketError::NoSuchUpload { .. }) => (), // It is young, or done by now.
                Err(error) => return Err(error),
            }
            from = upload.checked_add(1);
        }
        Ok(expired)
    }
}

impl Core {
    /// The record of an upload: what its object will say of itself.
    fn upload(&self, key: &[u8], upload: UploadId) -> Result<ObjectRecord, BucketError> {
        match self.index.get(Table::Uploads, &upload_key(key, upload.0))? {
            Some(bytes) => Ok(ObjectRecord::decode(&bytes)?),
            None => Err(BucketError::NoSuchUpload { upload: upload.0 }),
        }
    }

    pub(super) fn part(
        &self,
        upload: UploadId,
        number: u16,
    ) -> Result<Option<ObjectRecord>, BucketError> {
        match self.index.get(Table::Uploads, &part_key(upload.0, number))? {
            Some(bytes) => Ok(Some(ObjectRecord::decode(&bytes)?)),
            None => Ok(None),
        }
    }

    /// Up to `limit` parts of an upload, from this number on.
    fn parts(
        &self,
        upload: UploadId,
        from: u16,
        limit: usize,
    ) -> Result<Vec<(u16, ObjectRecord)>, BucketError> {
        let mut parts = Vec::new();
        let from = part_key(upload.0, from.max(1));
        for (entry, value) in self.index.scan(Table::Uploads, &from, limit)? {
            match UploadEntry::decode(&entry)? {
                UploadEntry::Part { upload: of, number } if of == upload.0 => {
                    parts.push((number, ObjectRecord::decode(&value)?));
                }
                _ => break, // It is another upload's.
            }
        }
        Ok(parts)
    }

    /// Abandons parts in several batches; the last one, with the upload itself, is the caller's to
    /// apply.
    fn abort_locked(
        &self,
        edit: &mut Edit<'_>,
        key: &[u8],
        upload: UploadId,
    ) -> Result<(), BucketError> {
        loop {
            let parts = self.parts(upload, 1, BATCH_PARTS)?;
            for (number, part) in &parts {
                edit.values.release(&part.value)?;
                edit.set_part(key, part_key(upload.0, *number), Some(part), None);
            }
            if parts.len() < BATCH_PARTS {
                break;
            }
            edit.apply()?;
        }
        remove_upload(edit, key, upload);
        Ok(())
    }
}

/// The batch ends an upload.
fn remove_upload(edit: &mut Edit<'_>, key: &[u8], upload: UploadId) {
    edit.remove(Table::Uploads, upload_key(key, upload.0));
    edit.remove(Table::Uploads, part_key(upload.0, 0).to_vec());
}
