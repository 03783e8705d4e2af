//! The cache study: what the tables cost by cache size, replacement policy, filter, locality and
//! neighbours, by a model of the accesses to their pages. No engine, no bytes.
//!
//! ```text
//! plan.rs ─ study.rs          which runs; all of them, on several threads
//!   ├─ stream.rs              what is asked for: made workloads, traces, two of them together
//!   └─ run.rs                 one run of a stream through the tables
//!        ├─ plain.rs          the Hash-PBN table in buckets changed in place, as FIDR has it
//!        ├─ gathered.rs       the same in young entries and merged buckets (decision 018)
//!        │    filter.rs       the filter before either;  lookup.rs  what a look-up cost
//!        └─ page_cache.rs     pages in memory, dirty or not; pages read and written;  tree.rs
//!             policies.rs     by name: lru.rs clock.rs two_q.rs arc.rs s3_fifo.rs tiny_lfu.rs;
//!             sharing.rs     grants.rs: what each of the three tables is granted;
//!             dirty.rs       pages that may not leave before they are written
//! bucket_hits.rs              hits of buckets alone, as FIDR's Table 3 counts them
//! record.rs  hot.rs           what comes of it;  report.rs  as text;  plots.rs  as SVG
//! ```
//!
//! Everything follows from the workloads and a seed; threads change the time it takes only.

mod arc;
mod bucket_hits;
mod clock;
mod dirty;
mod filter;
mod gathered;
mod grants;
mod hot;
mod lookup;
mod lru;
mod page_cache;
mod plain;
mod plan;
mod plots;
mod policies;
mod policy;
mod queue;
mod record;
mod report;
mod run;
mod s3_fifo;
mod sharing;
mod stream;
mod study;
mod tiny_lfu;
mod tree;
mod two_q;

#[cfg(test)]
mod policy_tests;

pub use bucket_hits::bucket_hit_percent;
pub use filter::FilterRow;
pub use hot::HotBuckets;
pub use plan::{CACHED_PERCENT, FILTER_BITS};
pub use policies::PolicyKind;
pub use record::{Question, Record};
pub use run::{Design, Figures, Rooms, Setup, rooms, run};
pub use sharing::Sharing;
pub use stream::{Neighbour, Stream};
pub use study::Study;
