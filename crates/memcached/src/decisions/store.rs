//! Storing: the conditions, and what the item is afterwards.

use crate::answer::Answer;
use crate::item::Item;
use crate::layout::{Layout, Place};
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
    /// The one that was there, with the new one over it from this byte on: at most its end.
    Over {
        /// The first byte that is written.
        offset: u64,
    },
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
        let joins =
            matches!(self.mode, StoreMode::Append | StoreMode::Prepend) || self.place.is_some();
        let mut item = Item {
            flags: self.flags,
            expires: self.expires,
            accessed_s: now_s,
            layout: self.layout,
            ..Item::default()
        };
        let mut join = Join::Replace;
        let mut value_bytes = self.value_bytes;
        match (found, self.mode) {
            (None, StoreMode::Set | StoreMode::Replace) if !joins && self.compare.is_some() => {
                return StoreDecision::Refuse(Answer::NotFound);
            }
            (None, _) if joins && self.vivify.is_some() => {
                if let Err(answer) = self.offset(self.layout, 0) {
                    return StoreDecision::Refuse(answer);
                }
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
            (Some((old, old_bytes)), _) if joins => {
                (join, value_bytes) = match self.join(old.layout, old_bytes) {
                    Ok(joined) => joined,
                    Err(answer) => return StoreDecision::Refuse(answer),
                };
                if value_bytes > self.value_bytes_max {
                    return StoreDecision::Refuse(Answer::NotStored);
                }
                item.flags = old.flags;
                item.expires = old.expires;
                let is_over = matches!(join, Join::Over { .. });
                item.layout = match old.layout {
                    // The directory is not at the end any more.
                    Layout::Values if !is_over => Layout::Whole,
                    layout => layout,
                };
            }
            (None, StoreMode::Set | StoreMode::Add) if !joins => {}
            (None, _) => return StoreDecision::Refuse(Answer::NotStored),
            (Some(_), _) => {}
        }
        item.cas = self.new_cas.unwrap_or_else(next_cas);
        StoreDecision::Write { item, join, value_bytes }
    }

    /// How the value joins one of `old_bytes`, and how long both are then, in bytes.
    fn join(&self, layout: Layout, old_bytes: u64) -> Result<(Join, u64), Answer> {
        let both_bytes = old_bytes.saturating_add(self.value_bytes);
        match (self.offset(layout, old_bytes)?, self.mode) {
            (Some(offset), _) => {
                let end = offset.saturating_add(self.value_bytes);
                Ok((Join::Over { offset }, end.max(old_bytes)))
            }
            (None, StoreMode::Prepend) => Ok((Join::Prepend, both_bytes)),
            (None, _) => Ok((Join::Append, both_bytes)),
        }
    }

    /// The byte of a value of `old_bytes` at which this begins, where it has a place.
    fn offset(&self, layout: Layout, old_bytes: u64) -> Result<Option<u64>, Answer> {
        let offset = match (self.place, layout) {
            (None, _) => return Ok(None),
            (Some(Place::Byte(offset)), _) => offset,
            (Some(Place::Element(index)), Layout::Elements(element)) => {
                let element = u64::from(element.get());
                if !self.value_bytes.is_multiple_of(element) {
                    return Err(Answer::NoRange);
                }
                u64::from(index) * element
            }
            (Some(Place::Element(_)), Layout::Whole | Layout::Values) => {
                return Err(Answer::NoArray);
            }
        };
        if offset > old_bytes { Err(Answer::NoRange) } else { Ok(Some(offset)) }
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
