//! Room nbd: the door through which block clients come (Linux `nbd`, QEMU, libnbd, fio).
//!
//! ```text
//! server.rs ─ listen.rs, socket.rs      accept, the connections there are, stop
//!   │    places.rs, notice.rs           who may connect, and what operators are told
//!   └─ connection.rs                    one connection, from its greeting to its end
//!        ├─ handshake.rs ─ exports.rs   bytes in, bytes out: which volume, under which terms
//!        ├─ session.rs ─ validate.rs    the reader: requests off the socket, to `door` or refused
//!        │    given_up.rs               whether there still is a client
//!        │    changed.rs                what differs from a snapshot
//!        │    background_rate.rs         how connections in the background give way
//!        └─ writer.rs ─ reply.rs        the writer: outcomes of the engine into replies
//!             link.rs                   over which socket what `door` admits is answered
//! client.rs                             the other end: who works with a volume of a server
//! wire.rs                               every message of the protocol, as bytes
//! ```
//!
//! The protocol is that of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>:
//! fixed newstyle negotiation, structured replies, `base:allocation`, and a metadata context of our
//! own, `tamis:changed:NAME` (`changed.rs`). `wire` and `handshake` do no
//! I/O and are fuzzed. Threads and blocking sockets, and why: `docs/decisions/004-nbd-threads.md`.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod background_rate;
mod changed;
pub mod client;
mod connection;
mod error;
mod exports;
mod given_up;
pub mod handshake;
mod incoming;
mod link;
mod listen;
mod notice;
mod places;
mod reply;
mod request;
mod server;
mod session;
mod socket;
mod validate;
pub mod wire;
mod writer;

pub use error::{ListenError, NbdError};
pub use listen::Listen;
pub use notice::{Notice, Notices};
pub use server::{Adopter, Server, ServerOptions};
