//! Documents: small texts that doors keep beside the objects of a bucket, each under a name.
//!
//! A bucket does not read them. They are settings of the index, so a snapshot has those of its
//! time.

use format::objects::settings::DOCUMENT_SETTING;
use store::Durability;

use super::Bucket;
use super::error::BucketError;
use crate::index::{Change, Index, Table};

/// Most bytes of a document.
pub const DOCUMENT_BYTES_MAX: usize = 60 << 10;
/// Most bytes of a document's name.
pub const DOCUMENT_NAME_BYTES_MAX: usize = 64;

impl Bucket {
    /// The document of this name.
    ///
    /// # Errors
    /// [`BucketError::DocumentName`], [`BucketError::Index`].
    pub fn document(&self, name: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.core.index.get(Table::Settings, &setting(name)?)?)
    }

    /// Sets the document of this name, or removes it: none. Nothing else has to be there.
    ///
    /// # Errors
    /// [`BucketError::DocumentName`], [`BucketError::DocumentTooLong`]; [`BucketError::Index`].
    pub fn set_document(
        &self,
        name: &str,
        document: Option<&[u8]>,
        durability: Durability,
    ) -> Result<(), BucketError> {
        let (table, key) = (Table::Settings, setting(name)?);
        self.core.check_writable()?;
        let bytes = document.map_or(0, <[u8]>::len);
        if bytes > DOCUMENT_BYTES_MAX {
            return Err(BucketError::DocumentTooLong { bytes, limit: DOCUMENT_BYTES_MAX });
        }
        let change = match document {
            Some(document) => Change::Set { table, key, value: document.to_vec() },
            None => Change::Remove { table, key },
        };
        Ok(self.core.index.apply(vec![change], durability)?)
    }
}

fn setting(name: &str) -> Result<Vec<u8>, BucketError> {
    match (1..=DOCUMENT_NAME_BYTES_MAX).contains(&name.len()) {
        true => Ok([DOCUMENT_SETTING, name.as_bytes()].concat()),
        false => {
            let (bytes, limit) = (name.len(), DOCUMENT_NAME_BYTES_MAX);
            Err(BucketError::DocumentName { bytes, limit })
        }
    }
}
