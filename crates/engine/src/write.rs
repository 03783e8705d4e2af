//! Writes, from the intake queue to the tables.
//!
//! ```text
//! entering.rs (in order) -> buffer.rs (acknowledged) -> group.rs (fingerprinted, looked up,
//!    partial.rs fills        slot.rs: one chunk          compressed: workers)
//!    what is in parts (written.rs)   fingerprinting.rs: or by an accelerator
//! trim.rs (TRIM) -> unmap.rs (long ranges) ------------> commit.rs -> core/record.rs (the journal)
//! ```

pub(crate) mod buffer;
pub(crate) mod commit;
pub(crate) mod entering;
pub(crate) mod fingerprinting;
pub(crate) mod group;
pub(crate) mod job_tag;
pub(crate) mod new_chunks;
pub(crate) mod newest;
pub(crate) mod offloaded;
pub(crate) mod partial;
pub(crate) mod slot;
pub(crate) mod trim;
pub(crate) mod unmap;
pub(crate) mod warm;
pub(crate) mod writes;
pub(crate) mod written;
