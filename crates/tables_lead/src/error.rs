//! What can be wrong with pages.

use format::FormatError;
use format::units::PageId;
use thiserror::Error;

/// A page that cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PageError {
    /// Its bytes are not the page's.
    #[error("{id} in block {block} is damaged: {source}")]
    Damaged {
        /// Which page.
        id: PageId,
        /// Where.
        block: u64,
        /// What is wrong.
        source: FormatError,
    },
    /// The device could not read it.
    #[error("{id} in block {block} cannot be read")]
    Unreadable {
        /// Which page.
        id: PageId,
        /// Where.
        block: u64,
    },
    /// No block is free for it.
    #[error("no block is free for {id}: the tables are full")]
    NoBlocks {
        /// Which page.
        id: PageId,
    },
}

impl PageError {
    pub(crate) fn new(id: PageId, block: u64, cause: Option<FormatError>) -> Self {
        match cause {
            Some(source) => Self::Damaged { id, block, source },
            None => Self::Unreadable { id, block },
        }
    }

    /// The page in question.
    #[must_use]
    pub fn page(&self) -> PageId {
        match self {
            Self::Damaged { id, .. } | Self::Unreadable { id, .. } | Self::NoBlocks { id } => *id,
        }
    }
}
