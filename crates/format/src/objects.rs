//! Buckets: what a volume of that kind holds.
//!
//! ```text
//! 0        header, twice                                        header.rs
//! 64 KiB   ring of the log                                      log.rs
//! 1 TiB    the index: its length, then pages of redb            header.rs, index_page.rs
//! 8 TiB    the same again
//! 16 TiB   values
//! ```

pub mod header;
pub mod index_page;
pub mod log;
