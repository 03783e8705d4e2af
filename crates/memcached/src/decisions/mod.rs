//! What an operation does to an item: pure, so that every cache does the same.
//!
//! The cache looks the key up, and passes an item that is live ([`Item::is_live`]) or `None`. It
//! carries out what is decided in one go: nobody changes the item in between. A new version is
//! taken from `next_cas` only where one is needed. The cache fills in [`Item::generation`], and
//! may drop at once what is stored with an expiry that has passed.

mod arithmetic;
mod delete;
mod get;
mod store;
#[cfg(test)]
mod tests;

pub use arithmetic::{ArithmeticDecision, NUMBER_BYTES_MAX, Number};
pub use delete::DeleteDecision;
pub use get::GetDecision;
pub use store::{Join, StoreDecision};

use crate::item::Item;

/// An item that was found, or made for the client that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The item as it was before.
    pub before: Item,
    /// The item as it is from now on.
    pub item: Item,
    /// The client is the one that is to store a new value.
    pub won: bool,
    /// The operation made the item: there was none.
    pub is_new: bool,
}

/// How much of an item an operation has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// When it was read, and that it was: a cache may write this later, or never.
    Access,
    /// More than that.
    Item,
}

impl Hit {
    /// What has to be written.
    pub fn change(&self) -> Change {
        let Item { accessed_s, fetched, .. } = self.item;
        if self.is_new || self.item != (Item { accessed_s, fetched, ..self.before }) {
            Change::Item
        } else if self.item != self.before {
            Change::Access
        } else {
            Change::None
        }
    }
}
