//! Room tables: the page store with its cache, and the tables that live in it.
//!
//! Nothing here does I/O. An operation first names the pages that it needs (`want*`); those that
//! are not resident come out as [`PageRead`]s, which the engine carries to a disk and brings back
//! through [`PageStore::page_arrived`]. When all are resident the operation runs, and runs to its
//! end: it cannot wait in the middle, and it cannot fail. Changed pages come out as [`PageWrite`]s,
//! at a checkpoint ([`PageStore::freeze_trees`]) or when the cache needs room
//! ([`PageStore::clean_batch`]).
//!
//! ```text
//! lba_pbn  pbn_pba  second_copies  hash_pbn  free_pbns     container_table   catalog_table
//!     entries in leaves                         in memory, mirrored into leaves at a checkpoint
//!                         store: radix trees of pages, cache, blocks, checkpoints
//! ```
//!
//! Everything is deterministic: no clock, no randomness, no order that depends on a hash map. The
//! same calls give the same blocks, the same evictions and the same bytes.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod catalog_table;
mod container_table;
mod error;
mod free_pbns;
mod ghosts;
mod hash_pbn;
mod heat;
pub mod lba_pbn;
mod nearness;
mod page_hasher;
pub mod pbn_pba;
mod place_index;
mod queues;
pub mod second_copies;
mod store;

pub use catalog_table::CatalogTable;
pub use container_table::ContainerTable;
pub use error::{OutOfBlocks, PageError};
pub use free_pbns::FreePbns;
pub use ghosts::Ghosts;
pub use hash_pbn::{BuiltTable, HashOptions, HashPbn, Seen, YoungEntry};
pub use heat::{Heat, HotPage};
pub use place_index::{PlaceIndex, SpareSlots};
pub use queues::Queues;
pub use store::{
    HeatName, NextLeaf, NextPage, PageOnWay, PageRead, PageStore, PageStoreOptions, PageWrite,
    PinSet, Pointers, ReachWalker, TableKind, TableTraffic, Traffic,
};
