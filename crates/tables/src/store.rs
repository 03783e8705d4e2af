//! The page store: radix trees of 4-KiB pages, cached, never overwritten in place.
//!
//! A tree is an array of leaves under inner pages of FANOUT pointers. Leaf `i` is page `i` of level
//! 0; its ancestor of level `k` is page `i / FANOUT^k`. The topmost page, index 0 of level `depth`,
//! is what the tree's root points to. A tree grows a level when a leaf's index does not
//! fit, and absent subtrees cost nothing.
//!
//! **Life of a page.** It comes in by a read or is made, is changed any number of times (*dirty*),
//! is given a block and a tag that its parent then holds (*clean*, and *writing* until the write
//! has ended), and is dropped when the cache needs room:
//!
//! ```text
//! absent --page_mut--> dirty --freeze, clean_batch--> clean, writing --write_done--> clean
//! on disk --want, page_arrived--> clean --page_mut--> dirty        clean --shrink--> on disk
//! ```
//!
//! Invariants:
//!
//! - The parent of a resident page is resident, and so is the parent of one that is being read;
//!   both are counted as its children. Only a page without children is dropped.
//! - A page is dropped only clean, written and unpinned; only [`PageStore::shrink`] drops pages, so
//!   nothing that a want found resident goes away before the caller's operation has run.
//! - A pointer names an existing subtree, resident or not: a page that has no block yet is pointed
//!   to by a placeholder, which never reaches the disk, because children are written first.
//! - The bytes of a write in flight never change: a page that changes meanwhile is copied.
//! - Several trees may share pages: `sharing.rs`.
//! - An inner page has at least one pointer, and a tree without leaves has no page at all.

mod blocks;
mod cleaning;
mod cut;
mod descent;
mod difference;
mod eviction;
mod frames;
mod freeze;
mod label;
mod leaf_walk;
mod near;
mod page_io;
mod page_memory;
mod page_store;
mod path;
mod pins;
mod reach;
mod shape;
mod sharing;
mod slot;
mod space;
mod spares;
mod table;
mod trace;
mod traffic;
mod verify;

pub use difference::Pointers;
pub use leaf_walk::NextLeaf;
pub use page_io::{PageRead, PageWrite};
pub(crate) use page_store::Wanted;
pub use page_store::{PageStore, PageStoreOptions};
pub use pins::PinSet;
pub use reach::ReachWalker;
pub use table::{HeatName, TableKind};
pub use trace::PageOnWay;
pub use traffic::{TableTraffic, Traffic};
pub use verify::NextPage;
