//! Room `tables`: the page store with its cache, and the tables over it.
//!
//! ```text
//!   lba_pbn   pbn_pba   hash_pbn   free_pbns   container_table   catalog_table
//!                              page_store (blocks, reach)
//! ```
//!
//! Nothing here does I/O: operations *want* pages, which names reads; freezing and cleaning name
//! writes; the engine carries both. Every operation runs only when all its pages are here, and
//! then to its end. The same calls in the same order give the same pages.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod blocks;
mod catalog_table;
mod container_table;
mod error;
mod free_pbns;
mod hash_pbn;
mod hasher;
pub mod lba_pbn;
mod page_store;
pub mod pbn_pba;
mod reach;

pub use catalog_table::CatalogTable;
pub use container_table::ContainerTable;
pub use error::PageError;
pub use free_pbns::FreePbns;
pub use hash_pbn::HashPbn;
pub use page_store::{NextLeaf, PageRead, PageStore, PageStoreOptions, PageWrite, PinSet};
pub use reach::ReachWalker;
