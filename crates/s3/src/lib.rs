//! Room s3: the door through which tools come that speak the protocol of Amazon S3.
//!
//! ```text
//! server.rs ─ http.rs            listeners, connections; what never reaches s3s; CORS
//!   │           └─ xml.rs         answers that every reader of XML takes
//!   ├─ paced.rs, patient.rs       clients that stop sending, or reading
//!   ├─ passage.rs                 whose a request is: rates and figures of tenants
//!   └─ s3s (routes, XML, signatures)
//!        ├─ auth.rs, refused.rs  who asks, whether it may, and what nobody may ask for
//!        └─ service.rs           one method for each operation, handed on to:
//!             ├─ put.rs, get.rs, delete.rs, copy.rs, uploads.rs,
//!             │  planned.rs, complete.rs
//!             ├─ columns.rs                    columns of tables, near their data
//!             ├─ listing.rs, buckets.rs
//!             ├─ tags.rs, settings.rs          tags; lifecycle, CORS and tags of buckets
//!             ├─ body.rs, parts.rs, received.rs   bodies, in bounded memory both ways
//!             ├─ conditions.rs, checksums.rs, etags.rs, metadata.rs   headers
//!             └─ errors.rs                     what each error of ours is called in S3
//! ```
//!
//! The states of a request, and what each leaves behind when its client goes:
//!
//! ```text
//! signed ─> may ─> body streams ─> verified ─> finish, durable ─> answered
//!   │ 403   │ 403      └ writer dropped: nothing     └ the object is there
//! ```
//!
//! Invariants: a change is answered with 200 when no crash can take it back; a body whose length,
//! MD5, checksum or signature is not what its sender said is never an object; what is asked for and
//! not done here is refused with `NotImplemented`. Why it is made like this: decision 063.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod auth;
mod body;
mod buckets;
mod checksums;
mod columns;
mod complete;
mod conditions;
mod copy;
mod cors;
mod delete;
mod door;
mod error;
mod errors;
mod etags;
#[doc(hidden)]
pub mod fuzzed;
mod get;
mod http;
mod listing;
mod metadata;
mod paced;
mod parts;
mod passage;
mod patient;
mod planned;
mod put;
mod received;
mod refused;
mod server;
mod service;
mod settings;
mod tags;
mod uploads;
mod xml;

pub use error::S3Error;
pub use server::{S3Options, S3Server, Timeouts};
