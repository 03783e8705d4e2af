//! DedupCore (ETH Zurich, 2023): deduplication wholly in hardware, as closed forms and as a model
//! of events.
//!
//! ```text
//! hashing.rs   SHA-3 cores beside the input; the Bloom filter of a bucket
//! table.rs     a table of buckets with lists and filters, and requests to it
//!   └─ lookup.rs   state machines, locks, dispatch: when each request is answered
//! study.rs     the report's experiments (chapter 5)
//! rows.rs      the rows of `docs/reproduction.md`;  plots.rs  its figures
//! ```

mod hashing;
mod lookup;
mod plots;
mod rows;
mod study;
mod table;

pub use hashing::{
    bloom_false_percent, bloom_false_percent_poisson, hash_cycles_per_page, input_cycles_per_page,
};
pub use lookup::{Dispatch, Engine, answers};
pub use plots::plots;
pub use rows::{PARAMETERS, rows};
pub use study::{Arrival, deletion_gb, insertion_gb, latency_us, worst_loss_percent};
pub use table::{Request, Table, Verb};
