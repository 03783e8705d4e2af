//! The control socket of a served store: `STORE/control.sock`.
//!
//! A store is opened by one process. While that serves it, every other process reaches it here: one
//! JSON document per line, a verb one way and its answer the other, over a unix socket that only
//! the store's owner may open. The room holds both ends:
//!
//! ```text
//! Control::ask(verb) ── client.rs ── line.rs ~socket~ line.rs ── server.rs ── local.rs ── engine
//!                 └──── local.rs, where the store is open in this process ────────────────┘
//! ```
//!
//! Messages are small, and their size is bounded on both sides. Bytes of volumes do not pass in
//! them: a command that moves bytes asks for its connection to become one of NBD ([`OpenData`]),
//! and the server hands that to its NBD door ([`DataDoor`]). Bytes of objects pass in frames,
//! between the lines ([`PutObject`], [`GetObject`]).

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod caches;
mod client;
mod error;
pub mod json;
mod line;
mod local;
mod objects;
mod outcome;
mod protocol;
mod server;
mod socket;
mod spoken;
mod tenants;

#[cfg(test)]
mod tests;

pub use self::tenants::{ListTenants, TenantOperations, TenantShown};
pub use caches::{CacheLister, CacheShown, ListCaches, SharedCaches};
pub use client::Client;
pub use error::{CallError, ConnectError, ControlError, ServeError};
pub use local::{DataDoor, Grower, Local, Remover, SharedStatus};
pub use objects::{
    BucketListed, BucketShown, CloseBucket, CopyObject, CreateBucket, DeleteBucket, DeleteObjects,
    GetObject, HeadObject, ListBuckets, ListObjects, OBJECTS_LISTED_MAX, ObjectKey, ObjectPage,
    ObjectPut, ObjectShown, ObjectSink, ObjectSource, PutBegun, PutObject, ReplicateBucket,
    ReplicationChange, ReplicationShown, Segments, SetBucket, ShowBucket, frames,
};
pub use protocol::{
    DataOpened, DataRemoved, Disconnect, GetIdentity, GetStatus, Grown, GrowthWish, Identity,
    OpenData, PROTOCOL_VERSION, Refusal, RefusalKind, RemoveData, Status,
};
pub use server::{Server, answer_all};
pub use socket::SOCKET_NAME;
pub use spoken::{Control, Service, Spoken, VERBS};
