//! DedupCore (ETH Zurich, 2023): deduplication wholly in hardware, as closed forms and as a model
//! of events.
//!
//! ```text
//! hashing.rs   SHA-3 cores beside the input; the Bloom filter of a bucket
//! rows.rs      the rows of `docs/reproduction.md`
//! ```

mod hashing;
mod rows;

pub use hashing::{
    bloom_false_percent, bloom_false_percent_poisson, hash_cycles_per_page, input_cycles_per_page,
};
pub use rows::rows;
