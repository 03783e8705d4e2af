//! Room door: admission of requests for block doors, whatever protocol they speak.
//!
//! A protocol (NBD; vhost-user, ublk, others) takes requests off its wire, hands them in typed,
//! each with a tag of its own, and puts answers on its wire. Everything between is decided here:
//! what may be asked at all, when it begins, who waits for what, and which client is disconnected.
//!
//! ```text
//!       protocol's reader thread                  engine's core     protocol's writer thread
//! Reader ─> Admission::serve ─> Connection::begin ─> complete ─> outcomes ─> next_batch ─> wire
//!             check.rs: refusals      │ connection.rs: at most 256 requests,     │
//!             waits: capacity, quota, │ and a share of bytes of reads            │
//!             credits, read memory    └───────────<── release, once sent ────────┘
//! ```
//!
//! * [`Admission`] belongs to the reader. It checks a [`Request`] against its volume, waits for
//!   capacity, then for a quota, then for credits of the write buffer or memory of reads, and asks
//!   the engine. What ends at once it answers through the [`Reader`].
//! * [`Connection`] is shared by reader, writer and core. It bounds what is in flight, wakes who
//!   waits, and knows when the client has gone. A protocol plugs in what it sends with
//!   ([`Transport`]): all generic, so that no request pays for a call through a pointer or for a
//!   second lock.
//! * [`SlowClientPolicy`] says how long a client may take nothing while others want its memory;
//!   [`SharedGrace`] how long all of them together may hold that, or the write buffer.
//! * [`Errno`] is the one map from the engine's errors to what block clients know.
//!
//! Who has a volume open, and since when, is the engine's register: an [`Admission`] holds the
//! [`engine::OpenVolume`] for as long as it lasts. Why this seam: `docs/decisions/045`.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod admission;
mod check;
mod connection;
mod errno;
mod hangup;
mod load;
mod request;
mod shared_grace;
mod slow_clients;
mod state;
mod transport;
mod writes;

pub use admission::Admission;
pub use check::{Refusal, check_permitted, check_range};
pub use connection::Connection;
pub use errno::Errno;
pub use hangup::Hangup;
pub use load::{Load, READ_BYTES_MAX, REQUESTS_MAX};
pub use request::{Operation, Outcome, Request};
pub use shared_grace::SharedGrace;
pub use slow_clients::SlowClientPolicy;
pub use state::Batch;
pub use transport::{Outbox, Reader, SHORT_READ_BYTES_MAX, Transport};

#[cfg(test)]
mod tests;
