//! What becomes of a request, where no value is read.

use std::borrow::Cow;

use crate::hit::Hit;
use crate::item::Item;

/// What is answered where no value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is no such item.
    NotFound,
    /// The item has another version than the client's.
    Exists,
    /// The item is there, or is not, and the client asked for the contrary.
    NotStored,
    /// The value is stored.
    Stored {
        /// The item's version.
        cas: u64,
        /// How long its value is now, in bytes.
        value_bytes: u64,
    },
    /// The item is removed, or is stale.
    Deleted,
    /// The item ends at another time.
    Touched,
    /// The item has another number.
    Number {
        /// The item before and after.
        hit: Hit,
        /// Its number.
        number: u64,
    },
    /// The value is no number.
    NotANumber,
    /// What is known about an item.
    Inspected {
        /// The item.
        item: Item,
        /// What it takes, in bytes: key, value and what is kept with them.
        size_bytes: u64,
    },
    /// The value has no such bytes or elements.
    NoRange,
    /// The value has no elements.
    NoArray,
    /// All items are gone, or will be.
    Flushed,
}

/// Why the cache cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No place, and nothing that could go.
    #[error("SERVER_ERROR out of memory storing object")]
    NoRoom,
    /// The value is too long for this cache.
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
    /// Something else, in words of the cache's.
    #[error("SERVER_ERROR {0}")]
    Other(Cow<'static, str>),
}
