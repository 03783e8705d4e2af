//! Room replicas: the connections of replicated buckets (decision 068).
//!
//! ```text
//! Replicas ── link.rs      a primary's: connects, and connects again   two threads a bucket
//!         └── replica.rs   a replica's: a thread a connection          listen.rs accepts them
//! reply_wait.rs  how an answer waits    wire.rs  frames on a socket      address.rs
//! notice.rs    what an operator hears
//! ```
//!
//! The room `replication` says what is said; here are its sockets, threads and clock. Nothing is
//! encrypted and nobody says who they are yet, so an address is a unix socket or one of this
//! machine.
//!
//! Invariants: a replica's volume is written by one connection, the newest; a primary has one
//! connection; a thread ends when its bucket is closed.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod address;
mod link;
mod listen;
mod notice;
mod replica;
mod replicas;
mod reply_wait;
mod wire;

pub use address::{Address, AddressError};
pub use listen::{ListenError, Listening};
pub use notice::{Notice, Observer};
pub use replicas::{Replicas, ReplicasOptions};
