//! Reading: what the client sees, who wins, and what of the item changes by it.

use crate::expiry::Expiry;
use crate::hit::Hit;
use crate::item::Item;
use crate::operation::{Get, Touch};

/// What a read does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetDecision {
    /// There is nothing.
    Miss,
    /// The item is there; [`Hit::change`] says whether it has to be written.
    Hit(Hit),
    /// There is nothing, and [`Hit::item`] is stored with an empty value.
    Create(Hit),
}

impl Get<'_> {
    /// What the read does, where `found` is the live item.
    pub fn decide(
        &self,
        found: Option<&Item>,
        now_s: u64,
        next_cas: impl FnOnce() -> u64,
    ) -> GetDecision {
        match (found, self.vivify) {
            (Some(item), _) => GetDecision::Hit(self.hit(item, now_s)),
            (None, None) => GetDecision::Miss,
            (None, Some(expires)) => {
                let cas = self.new_cas.unwrap_or_else(next_cas);
                let before = Item { cas, accessed_s: now_s, ..Item::default() };
                let item = Item { expires, fetched: self.marks_access, win_sent: true, ..before };
                GetDecision::Create(Hit { before, item, won: true, is_new: true })
            }
        }
    }

    fn hit(&self, before: &Item, now_s: u64) -> Hit {
        let mut item = *before;
        if let Some(expires) = self.touch {
            item.expires = expires;
        }
        let is_due = self.recache.is_some_and(|recache| {
            let expires = if recache.is_after_touch { item.expires } else { before.expires };
            expires != Expiry::NEVER && expires < recache.before
        });
        let won = !before.win_sent && (is_due || before.stale);
        item.win_sent |= won;
        if self.marks_access {
            item.fetched = true;
            item.accessed_s = now_s;
        }
        Hit { before: *before, item, won, is_new: false }
    }
}

impl Touch<'_> {
    /// The item as it is from now on, if it is there.
    pub fn decide(&self, found: Option<&Item>, now_s: u64) -> Option<Item> {
        found.map(|item| Item { expires: self.expires, fetched: true, accessed_s: now_s, ..*item })
    }
}
