//! An item as an operation finds it, and as it leaves it.

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
