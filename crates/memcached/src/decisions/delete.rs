//! Removing, emptying, and marking as old.

use crate::answer::Answer;
use crate::expiry::Expiry;
use crate::item::Item;
use crate::operation::Delete;

/// What a delete does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteDecision {
    /// Nothing; this is answered.
    Refuse(Answer),
    /// The item is removed.
    Remove,
    /// The item stays, as this.
    Keep {
        /// The item as it is from now on.
        item: Item,
        /// Its value is empty from now on; otherwise it has the one that it had.
        is_emptied: bool,
    },
}

impl Delete<'_> {
    /// What the delete does, where `found` is the live item. What is not refused is answered with
    /// [`Answer::Deleted`].
    pub fn decide(
        &self,
        found: Option<&Item>,
        now_s: u64,
        next_cas: impl FnOnce() -> u64,
    ) -> DeleteDecision {
        let Some(old) = found else { return DeleteDecision::Refuse(Answer::NotFound) };
        if self.compare.is_some_and(|cas| cas != old.cas) {
            return DeleteDecision::Refuse(Answer::Exists);
        }
        if !self.removes_value && !self.invalidate {
            return DeleteDecision::Remove;
        }
        let mut item = *old;
        if self.removes_value {
            item = Item {
                flags: self.flags,
                cas: self.new_cas.unwrap_or(old.cas),
                expires: self.expires.unwrap_or(Expiry::NEVER),
                accessed_s: now_s,
                ..Item::default()
            };
        }
        if self.invalidate {
            item.expires = self.expires.unwrap_or(item.expires);
            item.stale = true;
            item.win_sent = false;
            item.cas = self.new_cas.unwrap_or_else(next_cas);
        }
        DeleteDecision::Keep { item, is_emptied: self.removes_value }
    }
}
