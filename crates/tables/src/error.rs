//! What can go wrong: a page cannot be used, or there is no block for one.

use format::FormatError;
use format::units::PageId;
use thiserror::Error;

/// A page that an operation needs cannot be used; neither can the pages below it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PageError {
    /// The device did not give its bytes.
    #[error("{id} cannot be read from block {block} of the tables")]
    Unreadable {
        /// The page.
        id: PageId,
        /// Where it should be.
        block: u64,
    },
    /// Its bytes are not what was written, or not what any program writes.
    #[error("{id} is damaged in block {block} of the tables: {source}")]
    Damaged {
        /// The page.
        id: PageId,
        /// Where it is; 0 when it has changed since it was read.
        block: u64,
        /// What is wrong with it.
        source: FormatError,
    },
    /// It points to a block that the tables do not have.
    #[error("{id} should be in block {block}, but the tables have only {tables_blocks} blocks")]
    OutOfRange {
        /// The page pointed to.
        id: PageId,
        /// The block that does not exist.
        block: u64,
        /// What there is.
        tables_blocks: u64,
    },
}

impl PageError {
    /// The page that cannot be used.
    #[must_use]
    pub fn page(&self) -> PageId {
        match self {
            Self::Unreadable { id, .. }
            | Self::Damaged { id, .. }
            | Self::OutOfRange { id, .. } => *id,
        }
    }

    /// The block of the tables in which it should be.
    #[must_use]
    pub fn block(&self) -> u64 {
        match self {
            Self::Unreadable { block, .. }
            | Self::Damaged { block, .. }
            | Self::OutOfRange { block, .. } => *block,
        }
    }
}

/// There are more pages to write than blocks to write them to; nothing has changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("{pages} table pages are to be written, but only {free_blocks} blocks are free")]
pub struct OutOfBlocks {
    /// To be written.
    pub pages: u64,
    /// To write to.
    pub free_blocks: u64,
}
