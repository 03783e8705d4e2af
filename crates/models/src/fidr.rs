//! FIDR (MICRO'19) in closed form: how large its tables are, the tree of its cache engine, what a
//! server costs. What a server carries is `server`'s.
//!
//! ```text
//! tables.rs   bytes of the Hash-PBN, LBA-PBN and PBN-PBA tables
//! tree.rs     nodes, memory and conflicts of the tree
//! cost.rs     dollars beside no reduction
//! rows.rs     the rows of `docs/reproduction.md`
//! ```

mod cost;
mod rows;
mod tables;
mod tree;

pub use cost::{Bill, COMPRESSION_FPGA_DOLLARS, bill, saving_percent};
pub use rows::rows;
pub use tables::{ENTRIES_PER_BUCKET, TableSizes, hash_pbn_bytes};
pub use tree::{LARGE, MEDIUM, Tree};
