//! Storing: the conditions, and what the item is afterwards.

use crate::answer::Answer;
use crate::item::Item;
use crate::operation::{Store, StoreMode};

/// Which value an item has after a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The new one.
    Replace,
    /// The one that was there, and the new one behind it.
    Append,
    /// The new one, and the one that was there behind it.
    Prepend,
}

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreDecision {
    /// Nothing; this is answered.
    Refuse(Answer),
    /// The item and its value are written.
    Write {
        /// The item as it is from now on.
        item: Item,
        /// Which value it has.
        join: Join,
        /// How long that is, in bytes.
        value_bytes: u64,
    },
}

impl Store<'_> {
    /// What the store does, where `found` is the live item with the length of its value in bytes.
    pub fn decide(
        &self,
        found: Option<(&Item, u64)>,
        now_s: u64,
        next_cas: impl FnOnce() -> u64,
    ) -> StoreDecision {
        let joins = matches!(self.mode, StoreMode::Append | StoreMode::Prepend);
        let mut item =
            Item { flags: self.flags, expires: self.expires, accessed_s: now_s, ..Item::default() };
        let mut join = Join::Replace;
        let mut value_bytes = self.value_bytes;
        match (found, self.mode) {
            (None, StoreMode::Set | StoreMode::Replace) if self.compare.is_some() => {
                return StoreDecision::Refuse(Answer::NotFound);
            }
            (None, StoreMode::Append | StoreMode::Prepend) if self.vivify.is_some() => {
                item.expires = self.vivify.unwrap_or_default();
            }
            (Some(_), StoreMode::Add)
            | (None, StoreMode::Replace | StoreMode::Append | StoreMode::Prepend) => {
                return StoreDecision::Refuse(Answer::NotStored);
            }
            (Some((old, _)), _) if self.finds_another_version(old) => {
                if joins || !self.invalidates(old) {
                    return StoreDecision::Refuse(Answer::Exists);
                }
                item.expires = old.expires;
                item.stale = true;
                item.win_sent = old.win_sent;
            }
            (Some((old, old_bytes)), StoreMode::Append | StoreMode::Prepend) => {
                value_bytes = value_bytes.saturating_add(old_bytes);
                if value_bytes > self.value_bytes_max {
                    return StoreDecision::Refuse(Answer::NotStored);
                }
                item.flags = old.flags;
                item.expires = old.expires;
                join = if self.mode == StoreMode::Append { Join::Append } else { Join::Prepend };
            }
            (None, StoreMode::Set | StoreMode::Add)
            | (Some(_), StoreMode::Set | StoreMode::Replace) => {}
        }
        item.cas = self.new_cas.unwrap_or_else(next_cas);
        StoreDecision::Write { item, join, value_bytes }
    }

    /// A condition on the version does not hold. 0 is no version: a plain store with it never
    /// holds, and what joins values has no condition.
    fn finds_another_version(&self, old: &Item) -> bool {
        match self.compare {
            Some(0) => !matches!(self.mode, StoreMode::Append | StoreMode::Prepend),
            Some(cas) => cas != old.cas,
            None => false,
        }
    }

    fn invalidates(&self, old: &Item) -> bool {
        self.invalidate && self.compare.is_some_and(|cas| cas != 0 && cas < old.cas)
    }
}
