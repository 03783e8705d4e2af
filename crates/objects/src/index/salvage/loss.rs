//! What a salvage could not read.

use std::fmt;

use crate::index::Table;

/// Losses that are told one by one.
const TOLD_MAX: usize = 1000;

/// Keys of all tables that lie in a page that cannot be read: from behind one up to another one,
/// each with the number of its table in front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The keys are behind this one; none: any.
    pub(super) behind: Option<Vec<u8>>,
    /// No key is behind this one; none: any.
    pub(super) last: Option<Vec<u8>>,
}

/// Keys of one table: behind the first one, and none behind the second one; none: any.
pub type TableKeys = (Option<Vec<u8>>, Option<Vec<u8>>);

impl KeyRange {
    /// The keys of one table in it; none: it has no key of that table.
    #[must_use]
    pub fn of(&self, table: Table) -> Option<TableKeys> {
        let number = [table as u8];
        let behind = match self.behind.as_deref().map(<[u8]>::split_first) {
            Some(Some((found, _))) if *found > number[0] => return None,
            Some(Some((found, key))) if *found == number[0] => Some(key.to_vec()),
            _ => None,
        };
        let last = match self.last.as_deref().map(<[u8]>::split_first) {
            Some(Some((found, _))) if *found < number[0] => return None,
            Some(Some((found, key))) if *found == number[0] => Some(key.to_vec()),
            Some(None) => return None,
            _ => None,
        };
        Some((behind, last))
    }

    /// Whether the key may lie in it.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.behind.as_deref().is_none_or(|behind| behind < key)
            && self.last.as_deref().is_none_or(|last| key <= last)
    }

    /// The part of it that lies between two keys, as a branch says.
    pub(super) fn narrowed(&self, behind: Option<&[u8]>, last: Option<&[u8]>) -> Self {
        Self {
            behind: behind.map(<[u8]>::to_vec).or_else(|| self.behind.clone()),
            last: last.map(<[u8]>::to_vec).or_else(|| self.last.clone()),
        }
    }
}

/// One thing that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A page of the map: all entries whose keys lie in it, and that the log does not have.
    Page {
        /// Which keys that may be.
        keys: KeyRange,
        /// Which page, and why it cannot be read.
        reason: String,
    },
    /// Part of the log: changes that were made since the last merge.
    Log {
        /// Where, and why it cannot be read.
        reason: String,
    },
    /// Nothing that anybody has put in: something else says the same.
    Redundant {
        /// What cannot be read, and what was taken instead.
        reason: String,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page { reason, .. } | Self::Log { reason } | Self::Redundant { reason } => {
                f.write_str(reason)
            }
        }
    }
}

/// What was lost, in bounded memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    told: Vec<Loss>,
    count: u64,
    pages: u64,
    of_log: bool,
}

impl Losses {
    pub(super) fn add(&mut self, loss: Loss) {
        self.count += 1;
        self.pages += u64::from(matches!(loss, Loss::Page { .. }));
        self.of_log |= matches!(loss, Loss::Log { .. });
        if self.told.len() < TOLD_MAX {
            self.told.push(loss);
        }
    }

    /// The first thousand of them.
    #[must_use]
    pub fn told(&self) -> &[Loss] {
        &self.told
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many pages of the map are among them.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether changes of the log are among them.
    #[must_use]
    pub fn are_of_log(&self) -> bool {
        self.of_log
    }
}
