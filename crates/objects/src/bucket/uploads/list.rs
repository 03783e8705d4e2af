//! Lists uploads and their parts.

use format::objects::record::metadata::Checksum;
use format::objects::record::{ETag, ObjectRecord};
use format::objects::uploads::{UploadEntry, upload_key};

use super::UploadId;
use crate::bucket::Bucket;
use crate::bucket::error::BucketError;
use crate::bucket::info::{ObjectInfo, check_key};
use crate::bucket::list::{common_prefix, position_behind_prefix};
use crate::index::{Entry, Index, Table};

/// Entries of a scan.
const PAGE_ENTRIES: usize = 1024;

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
    /// What several keys, or one, have up to the delimiter's end.
    pub prefixes: Vec<Vec<u8>>,
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

    /// Up to `limit` uploads of keys that begin with `prefix`, behind an upload of a key. Keys that
    /// have `delimiter` behind the prefix are listed as one, up to its end. The listing goes on
    /// behind such a prefix when `after` is it. An empty delimiter groups nothing.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn list_uploads(
        &self,
        prefix: &[u8],
        delimiter: &[u8],
        after: Option<(&[u8], UploadId)>,
        limit: usize,
    ) -> Result<UploadsListing, BucketError> {
        let mut walk = Walk { prefix, delimiter, limit, listing: UploadsListing::default() };
        let mut from = Some(upload_key(prefix, 0));
        if let Some((key, upload)) = after {
            check_key(key)?;
            let behind = match walk.group_of(key) {
                Some(group) if group == key => behind_group(&group),
                _ => Some([upload_key(key, upload.0).as_slice(), &[0]].concat()),
            };
            from = from.max(behind.clone()).filter(|_| behind.is_some());
        }
        while let Some(position) = from {
            let page_entries = limit.saturating_add(1).min(PAGE_ENTRIES);
            let entries = self.core.index.scan(Table::Uploads, &position, page_entries)?;
            let is_last = entries.len() < page_entries;
            from = match walk.take(entries)? {
                Taken::All(next) if !is_last => next,
                Taken::Group(next) => next,
                Taken::All(_) | Taken::End => None,
            };
        }
        Ok(walk.listing)
    }
}

/// The first entry behind all uploads of keys that begin so; none when there can be none.
fn behind_group(group: &[u8]) -> Option<Vec<u8>> {
    position_behind_prefix(group).map(|position| upload_key(&position, 0))
}

/// What became of a page of entries, and where the walk goes on.
enum Taken {
    /// All were looked at.
    All(Option<Vec<u8>>),
    /// The last that was looked at is under a group, which is passed over.
    Group(Option<Vec<u8>>),
    /// Nothing more is to be listed.
    End,
}

struct Walk<'a> {
    prefix: &'a [u8],
    delimiter: &'a [u8],
    limit: usize,
    listing: UploadsListing,
}

impl Walk<'_> {
    fn take(&mut self, entries: Vec<Entry>) -> Result<Taken, BucketError> {
        let mut last = None;
        for (entry, value) in entries {
            let UploadEntry::Upload { key, upload } = UploadEntry::decode(&entry)? else {
                return Ok(Taken::End); // Parts are behind all uploads.
            };
            if !key.starts_with(self.prefix) {
                return Ok(Taken::End);
            }
            if self.listing.uploads.len() + self.listing.prefixes.len() == self.limit {
                self.listing.is_cut = true;
                return Ok(Taken::End);
            }
            if let Some(group) = self.group_of(&key) {
                let next = behind_group(&group);
                self.listing.prefixes.push(group);
                return Ok(Taken::Group(next));
            }
            let info = ObjectRecord::decode(&value)?.into();
            self.listing.uploads.push(UploadInfo { key, upload: UploadId(upload), info });
            last = Some([entry.as_slice(), &[0]].concat());
        }
        Ok(Taken::All(last))
    }

    fn group_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        common_prefix(key, self.prefix, self.delimiter)
    }
}
