//! The control socket of a served store: `STORE/control.sock`.
//!
//! A store is opened by one process. While `tamis serve` has it, every other command reaches it
//! here: one JSON document per line, a request one way and its response the other, over a unix
//! socket that only the store's owner may open. The room holds both ends:
//!
//! ```text
//! tamis volume create ...  ->  client.rs  ->  line.rs  ~socket~  line.rs  ->  server.rs
//!                                                            -> service.rs -> engine::Client
//! ```
//!
//! Bytes of volumes never pass here (that is what NBD is for), so messages are small and their
//! size is bounded on both sides.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod client;
mod error;
mod line;
mod protocol;
mod server;
mod service;
mod socket;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use error::{CallError, ConnectError, ServeError};
pub use protocol::{
    CompressionSetting, Grown, GrowthWish, PROTOCOL_VERSION, Refusal, RefusalKind, Request,
    Response, Status,
};
pub use server::{Server, Service, answer_all};
pub use service::{EngineService, Grower, SharedStatus};
pub use socket::SOCKET_NAME;
