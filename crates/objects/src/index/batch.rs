//! One call of `apply`, on its way into the log and the memory table.

use format::objects::log::{
    KEY_BYTES_MAX, LoggedChange, VALUE_BYTES_MAX, change_bytes, encode_change,
};

use crate::index::memory::{NewValue, TableKey, table_key};
use crate::index::{Change, IndexError, Table};

/// Changes that are made together.
pub(crate) struct Batch {
    /// As a group of the log has them.
    pub(crate) body: Vec<u8>,
    /// As the memory table has them.
    pub(crate) entries: Vec<(TableKey, NewValue)>,
    /// Whether it gives room back: see [`is_release`].
    pub(crate) is_release: bool,
}

impl Batch {
    /// # Errors
    /// [`IndexError::KeyTooLong`], [`IndexError::ValueTooLong`], [`IndexError::BatchTooLarge`].
    pub(crate) fn new(changes: Vec<Change>, body_bytes_max: usize) -> Result<Self, IndexError> {
        let bytes = check(&changes)?;
        if bytes > body_bytes_max {
            return Err(IndexError::BatchTooLarge { bytes, bytes_max: body_bytes_max });
        }
        let is_release = is_release(&changes);
        let mut body = Vec::with_capacity(bytes);
        let mut entries = Vec::with_capacity(changes.len());
        for change in changes {
            let (table, key, value) = parts(&change);
            encode_change(LoggedChange { table: table as u8, key, value }, &mut body);
            let key = table_key(table, key);
            entries.push((
                key,
                match change {
                    Change::Set { value, .. } => Some(value.into_boxed_slice()),
                    Change::Remove { .. } => None,
                },
            ));
        }
        Ok(Self { body, entries, is_release })
    }
}

fn parts(change: &Change) -> (Table, &[u8], Option<&[u8]>) {
    match change {
        Change::Set { table, key, value } => (*table, key, Some(value)),
        Change::Remove { table, key } => (*table, key, None),
    }
}

/// The length that the changes have in the log.
fn check(changes: &[Change]) -> Result<usize, IndexError> {
    let mut bytes = 0_usize;
    for change in changes {
        let (_, key, value) = parts(change);
        let value_bytes = value.map_or(0, <[u8]>::len);
        if key.len() > KEY_BYTES_MAX {
            return Err(IndexError::KeyTooLong { bytes: key.len() });
        }
        if value_bytes > VALUE_BYTES_MAX {
            return Err(IndexError::ValueTooLong { bytes: value_bytes });
        }
        bytes = bytes.saturating_add(change_bytes(key.len(), value_bytes));
    }
    Ok(bytes)
}

/// Whether the changes end with more room than they began with, so that they may take room that is
/// kept for this: they take objects or uploads away, or move extents from `ToFree` to `Free`, and
/// give nothing a record.
fn is_release(changes: &[Change]) -> bool {
    let removes = changes.iter().any(|change| match change {
        Change::Remove { table, .. } => {
            matches!(table, Table::Objects | Table::Uploads | Table::ToFree)
        }
        Change::Set { .. } => false,
    });
    let records = changes.iter().any(|change| match change {
        Change::Set { table, .. } => {
            matches!(table, Table::Objects | Table::Uploads | Table::Expiry)
        }
        Change::Remove { .. } => false,
    });
    removes && !records
}
