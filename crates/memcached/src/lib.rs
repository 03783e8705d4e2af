//! Room memcached: memcached's protocol, for whatever keeps the items. No socket, thread or clock.
//!
//! memcached's text protocol is what most languages' clients of caches speak: the classic commands
//! and the meta commands, whole, with conditions, leases and stale values. This room turns bytes
//! into operations on items, says what each operation does to an item, and turns what became of it
//! into bytes. A door adds sockets and time; a cache adds items.
//!
//! ```text
//!  socket ──> Connection ──────> Cache::run(batch) ──> Answers ──> Connection ──> socket
//!              parser/: lines,    │ finds the item       answers/: lines, VALUE,
//!              flags, values      │ decisions/: what      meta codes; values are
//!                                 │ happens to it          copied once, or streamed
//! ```
//!
//! * [`Connection`] is the state machine. What is received goes in, what is to be sent comes out;
//!   requests that wait together go to the cache as one batch.
//! * [`Operation`] is what a client asks, whether by a classic or a meta command; its `decide` says
//!   what happens to an [`Item`], so that every [`Cache`] does the same.
//! * [`Answers`] takes the outcome of each request in order, and knows how its client wants it.
//! * [`Authenticator`] knows clients by the token that they send first.
//! * [`model::ModelCache`] is the plain cache of tests and of `examples/model_server.rs`.
//!
//! A client may read and write a part of a value, bytes or elements of an array ([`Layout`]), which
//! memcached does not know: `docs/decisions/069`.
//!
//! A value above [`Limits::whole_value_bytes_max`] is never whole in here: it comes into a
//! [`ValueWriter`] and goes from a [`ValueReader`] in parts. What differs from memcached, and why,
//! is in `docs/decisions/064`.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod answer;
mod answers;
mod authentication;
mod base64;
mod binary;
mod cache;
mod connection;
mod decisions;
mod elements;
mod expiry;
mod hit;
mod input;
mod item;
mod layout;
mod limits;
pub mod model;
mod numbers;
mod operation;
mod output;
mod parser;
mod request;
mod stats;
mod values;
mod words;

pub use answer::{Answer, Fault};
pub use answers::Answers;
pub use authentication::Authenticator;
pub use cache::Cache;
pub use connection::{Authentication, Buffers, Connection, Next};
pub use decisions::{
    ArithmeticDecision, DeleteDecision, GetDecision, Join, NUMBER_BYTES_MAX, Number, StoreDecision,
};
pub use expiry::Expiry;
pub use hit::{Change, Hit};
pub use item::{ITEM_BYTES, Item, ItemError};
pub use layout::{Layout, PATH_DEPTH_MAX, Part, Path, Place};
pub use limits::{KEY_BYTES_MAX, Limits, VALUE_BYTES_MAX};
pub use operation::{Arithmetic, Delete, Get, Operation, Recache, Store, StoreMode, Touch};
pub use request::Request;
pub use stats::{Counts, Figures};
pub use values::{ValueReader, ValueSource, ValueWriter};
