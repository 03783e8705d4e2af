//! The index of a bucket: several ordered maps of bytes that change together.
//!
//! ```text
//! apply ──> batch ──> log (ring in the volume) ──> active      batch.rs, sharing.rs, log.rs
//!                                                    │ merge   memory.rs, merge.rs
//!                                                  frozen
//!                                                    │ steps
//! get, scan <── active over frozen over           redb         tree.rs
//!                                                    │ write_out
//!                                           pages, twice       pages.rs
//! ```
//!
//! [`VolumeIndex`] is the one over a volume. Why it is made like this: decision 059.

use format::objects::log::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use store::{Durability, RequestError};

mod batch;
mod check;
mod locks;
mod log;
mod memory;
mod merge;
mod options;
mod pages;
mod replay;
mod salvage;
mod sharing;
#[cfg(test)]
mod tests;
mod tree;
mod volume_index;

pub use check::IndexCheck;
pub use merge::Merged;
pub use options::{INDEX_MEMORY_BYTES_MIN, IndexCreateOptions, IndexOptions};
pub use salvage::{Identity, KeyRange, Loss, Losses, Salvaged, TableKeys, identity, salvage};
pub use volume_index::VolumeIndex;

/// One map of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Key of an object: its record.
    Objects = 1,
    /// Byte behind an extent (big endian): its length; nobody names it, and it is to be trimmed.
    ToFree = 2,
    /// Byte behind an extent (big endian): its length; it is trimmed and may be given out.
    Free = 3,
    /// Byte behind an extent (big endian) that several objects name: its length, and how many.
    Shared = 4,
    /// Time (big endian) and key: objects that expire then.
    Expiry = 5,
    /// Identity of a multi-part upload and number of a part: its record.
    Uploads = 6,
    /// Name of a setting: its value.
    Settings = 7,
}

impl Table {
    /// All of them, by their numbers.
    pub const ALL: [Self; 7] = [
        Self::Objects,
        Self::ToFree,
        Self::Free,
        Self::Shared,
        Self::Expiry,
        Self::Uploads,
        Self::Settings,
    ];

    /// The one of this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| *table as u8 == number)
    }
}

/// One change of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `key` has `value` from now on.
    Set {
        /// The map that changes.
        table: Table,
        /// At most 1,100 bytes.
        key: Vec<u8>,
        /// At most 64 KiB.
        value: Vec<u8>,
    },
    /// `key` is not there any more; it need not have been.
    Remove {
        /// The map that changes.
        table: Table,
        /// As above.
        key: Vec<u8>,
    },
}

/// An entry of a map: its key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// What the rest of the room needs of an index. `&self` throughout: any number of threads.
pub trait Index: Send + Sync {
    /// The value of `key`.
    ///
    /// # Errors
    /// [`IndexError`].
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError>;

    /// Up to `limit` entries in the order of their keys, from the first that is at or behind
    /// `from`.
    ///
    /// # Errors
    /// [`IndexError`].
    fn scan(&self, table: Table, from: &[u8], limit: usize) -> Result<Vec<Entry>, IndexError>;

    /// Makes all of `changes` together: a crash leaves all of them or none, and none of a later
    /// call without these. With [`Durability::Durable`] it returns when no crash can take them
    /// back.
    ///
    /// # Errors
    /// [`IndexError`]; nothing has changed then. Where it is the flush of a durable call that
    /// fails, the changes are made, and a crash may take them back.
    fn apply(&self, changes: Vec<Change>, durability: Durability) -> Result<(), IndexError>;
}

/// Why the index did not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The volume refused a request; [`RequestError`] says whether it may be tried again.
    #[error(transparent)]
    Volume(#[from] RequestError),
    /// Pages of the index are damaged; a repair keeps what can be read.
    #[error("the bucket's index is damaged: {0}; run tamis check --repair")]
    Damaged(String),
    /// The volume is no bucket, or of a newer program.
    #[error("the volume is no bucket that this program can open: {0}")]
    NoBucket(String),
    /// The making of the bucket was cut off, so nobody has put anything into it.
    #[error("the making of the bucket did not end: delete it, or create it again")]
    Unfinished,
    /// Keys have 1,100 bytes at most.
    #[error("a key of {bytes} bytes is too long for an index: {KEY_BYTES_MAX} are the most")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Values have 64 KiB at most.
    #[error("a value of {bytes} bytes is too long for an index: {VALUE_BYTES_MAX} are the most")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Changes that are made together have a quarter of the log's ring at most, and 16 MiB.
    #[error("{bytes} bytes of changes cannot be made at once: {bytes_max} are the most")]
    BatchTooLarge {
        /// Length of the changes in the log.
        bytes: usize,
        /// The most.
        bytes_max: usize,
    },
    /// The index was opened to be read.
    #[error("the bucket is open read-only: open it for writing to change it")]
    ReadOnly,
}

/// Entries that [`each_entry`] reads at a time.
const ENTRIES_AT_ONCE: usize = 256;

/// Calls `look` with each entry of a table from a key on, in the order of their keys. Entries that
/// are changed meanwhile are seen as they were or as they are.
///
/// # Errors
/// Those of [`Index::scan`] and of `look`.
pub(crate) fn each_entry<E: From<IndexError>>(
    index: &dyn Index,
    table: Table,
    from: &[u8],
    mut look: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = from.to_vec();
    loop {
        let entries = index.scan(table, &from, ENTRIES_AT_ONCE)?;
        for (key, value) in &entries {
            look(key, value)?;
        }
        let Some((last, _)) = entries.last() else { return Ok(()) };
        from = [last.as_slice(), &[0]].concat();
    }
}
