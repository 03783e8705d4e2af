//! Requests as futures, for any executor.
//!
//! ```text
//! made ──first poll──> memory taken, sent ──the engine's thread wakes the task──> ended
//!  │                     │
//!  └──────────────────dropped: nothing was sent, or its outcome is heard by nobody
//! ```
//!
//! * A future sends nothing before its first poll. The order of first polls is the order of the
//!   requests, as that of calls is for the blocking forms; a write that finds the write buffer full
//!   takes its place when a later poll finds room.
//! * Dropping a future is safe at any time: the engine owns the bytes of what was sent. What was
//!   sent is carried out as if its sender had gone: a write may be there afterwards or not, and one
//!   that still waits for room or a quota is not carried out.
//! * A poll never waits. It copies the bytes of a write, and checks and expands those of a read, at
//!   most a piece of 1 MiB at a time: longer requests are sent piece by piece.
//! * Wakers are called on the engine's thread, so waking must not block. Executors' wakers do not.
//!
//! A future that has ended is not polled again: it panics then, as futures may.

pub(crate) mod acknowledged;
pub(crate) mod read;
pub(crate) mod sent;
pub(crate) mod write;

pub use acknowledged::Acknowledged;
pub use read::Read;
pub use write::Write;
