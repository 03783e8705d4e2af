//! The index of a bucket: several ordered maps of bytes that change together.

use store::{Durability, RequestError};

/// One map of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Key of an object: its record.
    Objects = 1,
    /// First byte of an extent (big endian): its length; nobody names it, and it is to be trimmed.
    ToFree = 2,
    /// First byte of an extent (big endian): its length; it is trimmed and may be given out.
    Free = 3,
    /// First byte of an extent (big endian) that several objects name: how many.
    Shared = 4,
    /// Time (big endian) and key: objects that expire then.
    Expiry = 5,
    /// Identity of a multi-part upload and number of a part: its record.
    Uploads = 6,
    /// Name of a setting: its value.
    Settings = 7,
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
    /// call without these. With [`Durability::Durable`] it returns when no crash can take them back.
    ///
    /// # Errors
    /// [`IndexError`]; nothing has changed then.
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
}
