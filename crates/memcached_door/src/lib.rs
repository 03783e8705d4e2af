//! Room memcached_door: the sockets of clients that speak memcached's protocol.
//!
//! ```text
//! accept.rs ── a thread: listeners, places for connections (seats.rs)
//!     └──> event_thread.rs ── one a processor: epoll, the connections that it owns, pauses
//!              │   └─ session.rs ── one connection: socket, protocol, what its bucket answers
//!              └──> pool.rs ── what would wait for a disk: a queue a tenant, in turns ──> back
//! host.rs: who comes in, and to which cache; buckets_host.rs: over the buckets of a store
//! place.rs: what `stats` tells of a cache's door
//! ```
//!
//! The states of a connection, and what wakes it:
//!
//! ```text
//! reading ──a batch that would wait──> in the pool ──answered──> reading
//!    │ ├──the client does not read──> writing ──sent──> reading
//!    │ └──its tenant is over its rate──> paused ──its time comes──> reading
//!    └──end, error, or slow while places are scarce──> closed
//! ```
//!
//! Invariants: a connection is owned by its thread or by one job of the pool, never by both, and is
//! not read while it is in the pool, writing or paused, so that answers have the order of requests.
//! An event thread waits for nothing but its events. An idle connection holds no buffer. Why it is
//! made like this: decision 066.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod accept;
mod address;
mod buckets_host;
mod error;
mod event_thread;
mod host;
mod listen;
mod mailbox;
mod place;
mod pool;
mod seats;
mod server;
mod session;
mod sessions;
mod shared;
mod socket;

pub use address::Address;
pub use buckets_host::{BucketsHost, CacheFigures, HostError, HostOptions};
pub use error::DoorError;
pub use host::{Guest, Host, Meter};
pub use memcached::VALUE_BYTES_MAX;
pub use place::Place;
pub use server::{MemcachedOptions, MemcachedServer};
