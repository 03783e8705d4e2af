//! What is said over the control socket, as lines of JSON.
//!
//! The server speaks first: a [`Hello`] line with the number of the protocol. A client of another
//! number says so and asks nothing. Then every line asks one verb ([`RequestLine`]) and is answered
//! by one line ([`crate::outcome`]), in order. A verb says what answers it ([`crate::Spoken`]);
//! what the engine does not do comes back as its own error.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::plain;

/// Raised with every change of what is said: both ends have the same, or part.
pub const PROTOCOL_VERSION: u32 = 9;

/// The server's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL_VERSION`] of the server.
    pub(crate) protocol: u32,
    /// Release of the server, for people.
    pub(crate) tamis: String,
    /// True when the server has no connection free and closes this one. Said before the client
    /// sends anything, so that the word is read and not lost in a reset connection.
    pub(crate) busy: bool,
}

/// A line that asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestLine<R = Value> {
    /// [`crate::Spoken::NAME`].
    pub(crate) verb: String,
    /// The verb's fields.
    pub(crate) request: R,
}

/// Says who serves the store, and where its volumes are exported.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetStatus {}

/// Who serves a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// Where it serves NBD: `unix:PATH` or `tcp:HOST:PORT` each.
    pub addresses: Vec<String>,
}

/// Makes the store larger, its files first; durable when it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthWish {
    /// Room for data in all that it is to have, where that is not given by devices.
    pub capacity_bytes: Option<u64>,
    /// Where further data is kept, in full: files to be made, or block devices.
    pub data: Vec<PathBuf>,
}

/// Ends the connections that have the volume or snapshot of this name open, and is answered with
/// those when they have ended: first behind what they have in flight, after a moment at once. What
/// is open for another reason, such as an import, is named in a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnect {
    /// Its name.
    pub name: String,
}

/// What a store has grown to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// Room for data in all.
    pub capacity_bytes: u64,
    /// The same before.
    pub capacity_bytes_before: u64,
    /// Data files and devices.
    pub data_zones: usize,
    /// Room for tables.
    pub tables_bytes: u64,
}

/// Takes a data file out of the store that holds nothing any more ([`engine::EvacuateZone`]), and
/// then cuts the file; durable when it is answered. Of a zone that is gone already only the file is
/// cut.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveData {
    /// Its data zone.
    pub zone: u16,
}

/// What a removal did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRemoved {
    /// Room for data in all.
    pub capacity_bytes: u64,
    /// The same before.
    pub capacity_bytes_before: u64,
    /// Where the zone was, if not in the store's directory.
    pub place: Option<PathBuf>,
}

/// Says which store it is, and what its chunks are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetIdentity {}

/// Which store it is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number, which no other store has.
    pub uuid: [u8; 16],
    /// Length of a chunk.
    pub chunk_bytes: u32,
}

/// Turns the connection into one over which bytes of volumes go: behind the answer the server
/// speaks NBD, from its greeting on ([`crate::Client::open_data`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenData {
    /// Name of the command that works with a volume, as lists of its clients show it.
    pub who: String,
}

/// NBD's greeting follows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataOpened {}

plain!(
    Disconnect,
    GetStatus,
    Status,
    GrowthWish,
    Grown,
    RemoveData,
    DataRemoved,
    GetIdentity,
    Identity,
    OpenData,
    DataOpened
);

/// Why the server did not ask the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{sentence}")]
pub struct Refusal {
    /// What the caller can do about it.
    pub kind: RefusalKind,
    /// One sentence for a person.
    pub sentence: String,
}

/// What the caller of a refused request can do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Ask for something that can be.
    BadRequest,
    /// Name something that is there.
    NotFound,
    /// Choose a name or place where nothing is.
    Exists,
    /// Make room.
    NoSpace,
    /// Check the store: something stored is damaged.
    Damaged,
    /// Wait until nobody uses what was asked for.
    InUse,
    /// Anything else.
    Failed,
}
