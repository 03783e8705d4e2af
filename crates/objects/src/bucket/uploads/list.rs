//! Lists uploads and their parts.

use format::objects::record::metadata::Checksum;
use format::objects::record::{ETag, ObjectRecord};
use format::objects::uploads::{UploadEntry, upload_key};

use super::UploadId;
use crate::bucket::Bucket;
use crate::bucket::error::BucketError;
use crate::bucket::info::{ObjectInfo, check_key};
use crate::index::{Index, Table};

/// A part of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Its number.
    pub number: u16,
    /// Its ETag.
    pub etag: ETag,
    /// Its bytes.
    pub size_bytes: u64,
    /// When it was put, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// What its sender said that its bytes come to.
    pub checksums: Vec<Checksum>,
}

/// An upload that is neither completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Key of its object.
    pub key: Vec<u8>,
    /// Which one.
    pub upload: UploadId,
    /// What its object will say of itself; the time is when the upload was begun.
    pub info: ObjectInfo,
}

/// Uploads in the order of their keys, and of one key in the order in which they were begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadsListing {
    /// Uploads.
    pub uploads: Vec<UploadInfo>,
    /// There are more behind the last one.
    pub is_cut: bool,
}

impl Bucket {
    /// Up to `limit` parts of an upload whose numbers are higher than `after`, in their order.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`]; [`BucketError`].
    pub fn list_parts(
        &self,
        key: &[u8],
        upload: UploadId,
        after: u16,
        limit: usize,
    ) -> Result<Vec<PartInfo>, BucketError> {
        check_key(key)?;
        self.core.upload(key, upload)?;
        let parts = self.core.parts(upload, after.saturating_add(1), limit)?;
        let info = |(number, record): (u16, ObjectRecord)| PartInfo {
            number,
            etag: record.etag,
            size_bytes: record.size_bytes(),
            created_unix_ms: record.created_unix_ms,
            checksums: record.checksums,
        };
        Ok(parts.into_iter().map(info).collect())
    }

    /// What the object of an upload will say of itself.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`]; [`BucketError`].
    pub fn head_upload(&self, key: &[u8], upload: UploadId) -> Result<ObjectInfo, BucketError> {
        check_key(key)?;
        Ok(self.core.upload(key, upload)?.into())
    }

    /// Up to `limit` uploads of keys that begin with `prefix`, behind an upload of a key.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn list_uploads(
        &self,
        prefix: &[u8],
        after: Option<(&[u8], UploadId)>,
        limit: usize,
    ) -> Result<UploadsListing, BucketError> {
        let mut from = upload_key(prefix, 0);
        if let Some((key, upload)) = after {
            check_key(key)?;
            let behind = [upload_key(key, upload.0).as_slice(), &[0]].concat();
            from = from.max(behind);
        }
        let mut listing = UploadsListing::default();
        let entries = self.core.index.scan(Table::Uploads, &from, limit.saturating_add(1))?;
        for (entry, value) in entries {
            match UploadEntry::decode(&entry)? {
                UploadEntry::Upload { key, .. } if !key.starts_with(prefix) => break,
                UploadEntry::Part { .. } => break, // Parts are behind all uploads.
                UploadEntry::Upload { .. } if listing.uploads.len() == limit => {
                    listing.is_cut = true;
                }
                UploadEntry::Upload { key, upload } => {
                    let info = ObjectRecord::decode(&value)?.into();
                    listing.uploads.push(UploadInfo { key, upload: UploadId(upload), info });
                }
            }
        }
        Ok(listing)
    }
}
