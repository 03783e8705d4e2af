//! What is said over the control socket, as JSON.
//!
//! The server speaks first: a [`Hello`] line with the protocol version, so that an old `tamis`
//! meeting a new server says so instead of failing on a field. Then every [`Request`] line is
//! answered by one [`Response`] line, in order. What fails is a [`Refusal`]: its kind says what
//! the caller can do (and becomes an exit code), its sentence is the engine's own words.

use std::path::PathBuf;

use engine::{
    Address, CollectPosition, CollectStep, Dedup, DedupWord, DeleteRequest, DifferenceRequest,
    DifferenceStep, Explanation, RequestError, ScrubRequest, ScrubStep, SnapshotRequest, Stats,
    VolumeInfo, VolumeKind, VolumeKindWord, WeightRequest, WeightStep,
};
use format::units::{Codec, Compression};
use serde::{Deserialize, Serialize};

/// Raised when a message changes so that the other side would misread it.
pub const PROTOCOL_VERSION: u32 = 1;

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

/// What a client may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Who serves the store, and where its volumes are exported.
    Status,
    /// All volumes and snapshots, by name; as many at a time as a line is sure to hold.
    ListVolumes {
        /// Those behind this name; without it, from the first on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// So many at most; without it all, as earlier clients ask.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u32>,
    },
    /// A new thin volume.
    CreateVolume {
        /// Its name.
        name: String,
        /// Its logical size.
        size_bytes: u64,
        /// Whether writes are refused.
        read_only: bool,
    },
    /// The same in a keyed domain. A request of its own: a server that knows no domains has to
    /// refuse it, and would pass over a field.
    CreateVolumeIn {
        /// Its name.
        name: String,
        /// Its logical size.
        size_bytes: u64,
        /// Whether writes are refused.
        read_only: bool,
        /// The domain.
        domain: String,
    },
    /// The same of a volume of another kind than block.
    CreateVolumeOfKind {
        /// Its name.
        name: String,
        /// Its logical size.
        size_bytes: u64,
        /// Whether writes are refused.
        read_only: bool,
        /// The domain, if it is in one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        domain: Option<String>,
        /// What its bytes are.
        #[serde(with = "VolumeKindWord")]
        kind: VolumeKind,
    },
    /// Another logical size, no smaller than before. A request of its own, as those below that are
    /// guarded: an earlier server would pass over the guard, and has to refuse this.
    EnlargeVolume {
        /// The volume.
        name: String,
        /// Its size from now on.
        size_bytes: u64,
    },
    /// Another logical size.
    ResizeVolume {
        /// The volume.
        name: String,
        /// Its size from now on.
        size_bytes: u64,
        /// Whether it may be smaller than before; earlier clients have looked at that themselves.
        #[serde(default = "shrinks")]
        may_shrink: bool,
    },
    /// Another name.
    RenameVolume {
        /// The volume.
        name: String,
        /// Its name from now on.
        new_name: String,
    },
    /// What a volume may map at most.
    SetQuota {
        /// The volume.
        name: String,
        /// None: any amount.
        quota_bytes: Option<u64>,
    },
    /// Whether duplicates are looked for among what is written to a volume.
    SetDedup {
        /// The volume.
        name: String,
        /// Whether they are from now on.
        #[serde(with = "DedupWord")]
        dedup: Dedup,
    },
    /// Deletes a volume or a snapshot and all it holds, whatever has the name.
    DeleteVolume(DeleteRequest),
    /// The same of what was decided on: with a number, or one that nothing may exceed.
    DeleteThis(DeleteRequest),
    /// Snapshots of one moment.
    TakeSnapshots(SnapshotRequest),
    /// A new volume that begins as a snapshot.
    CloneVolume {
        /// `VOLUME@SNAPSHOT`.
        snapshot: String,
        /// The new volume.
        name: String,
    },
    /// Lets a volume hold again what this snapshot of it holds.
    RollBackToThis {
        /// `VOLUME@SNAPSHOT`.
        snapshot: String,
        /// Its number.
        id: u32,
    },
    /// Lets a volume hold again what a snapshot of it holds, whichever has the name.
    Rollback {
        /// `VOLUME@SNAPSHOT`.
        snapshot: String,
        /// Its number; none: that of whatever has the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u32>,
    },
    /// What new frames are compressed with.
    Compression,
    /// Sets what new frames are compressed with.
    SetCompression {
        /// From now on.
        compression: CompressionSetting,
    },
    /// Figures of the store.
    Stats,
    /// More room for data and tables.
    Grow(GrowthWish),
    /// One address, walked through the tables.
    Explain {
        /// The volume.
        volume: String,
        /// In it.
        address: Address,
    },
    /// One step of a comparison of two versions.
    Difference {
        /// Of which, and from where on.
        step: DifferenceRequest,
    },
    /// One step of a volume's weighing.
    Weigh {
        /// Of which, and from where on.
        step: WeightRequest,
    },
    /// One step of a scrub.
    Scrub {
        /// From where, and how thoroughly.
        step: ScrubRequest,
    },
    /// The collection of one container.
    Collect {
        /// What the step before came back with; none begins.
        position: Option<CollectPosition>,
        /// What frames are made anew with; none moves them as they are.
        recompress: Option<CompressionSetting>,
    },
}

/// What earlier clients mean by a size.
fn shrinks() -> bool {
    true
}

impl Request {
    /// Whether a server that is well has the answer at hand. All else waits for what goes on in the
    /// store, which may take any time while its machine is busy.
    pub(crate) fn is_answered_soon(&self) -> bool {
        matches!(self, Self::Status | Self::ListVolumes { .. } | Self::Compression | Self::Stats)
    }
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub enum Response {
    /// It is done.
    Done,
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::ListVolumes`].
    Volumes {
        /// As many as were asked for.
        volumes: Vec<VolumeInfo>,
        /// Others follow behind the last of these; earlier servers always tell all.
        #[serde(default)]
        more: bool,
    },
    /// To what makes or changes one volume.
    Volume {
        /// As it is now.
        volume: VolumeInfo,
    },
    /// To [`Request::Compression`].
    Compression {
        /// As it is now.
        compression: CompressionSetting,
    },
    /// To [`Request::Stats`].
    Stats {
        /// As they are now.
        stats: Box<Stats>,
    },
    /// To [`Request::Grow`].
    Grown(Grown),
    /// To [`Request::Explain`].
    Explanation {
        /// As it was in one moment.
        explanation: Box<Explanation>,
    },
    /// To [`Request::Difference`].
    Difference {
        /// What it found.
        step: Box<DifferenceStep>,
    },
    /// To [`Request::Weigh`].
    Weight {
        /// What it found.
        step: Box<WeightStep>,
    },
    /// To [`Request::Scrub`].
    Scrub {
        /// What it did.
        step: Box<ScrubStep>,
    },
    /// To [`Request::Collect`].
    Collected {
        /// What it did.
        step: Box<CollectStep>,
    },
    /// It was not done.
    Refused(Refusal),
}

impl Response {
    /// Of `volumes`, in order of their names, those that [`Request::ListVolumes`] asks for; whether
    /// there are more is seen by one that comes behind them.
    pub(crate) fn page(
        mut volumes: Vec<VolumeInfo>,
        after: Option<String>,
        most: Option<u32>,
    ) -> Self {
        volumes.retain(|volume| after.as_ref().is_none_or(|after| volume.name > *after));
        let most = most.map_or(usize::MAX, |most| most as usize);
        let more = volumes.len() > most;
        volumes.truncate(most);
        Self::Volumes { volumes, more }
    }
}

/// How a store is to grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthWish {
    /// Room for data in all that it is to have, where that is not given by devices.
    pub capacity_bytes: Option<u64>,
    /// Where further data is kept, in full: files to be made, or block devices.
    pub data: Vec<PathBuf>,
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

/// What new frames are compressed with, as it is said in JSON.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressionSetting {
    /// 0 raw, 1 LZ4, 2 Zstandard: the numbers of the on-disk format.
    pub codec: u8,
    /// The codec's own level; 0 where it has none.
    pub level: i8,
}

impl From<Compression> for CompressionSetting {
    fn from(compression: Compression) -> Self {
        Self { codec: compression.codec as u8, level: compression.level }
    }
}

impl CompressionSetting {
    /// The setting in the engine's words; `None` for a codec that this release does not know.
    #[must_use]
    pub fn to_compression(self) -> Option<Compression> {
        let codec = [Codec::Raw, Codec::Lz4, Codec::Zstd]
            .into_iter()
            .find(|codec| *codec as u8 == self.codec)?;
        Some(Compression { codec, level: self.level })
    }
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{sentence}")]
pub struct Refusal {
    /// What the caller can do about it.
    pub kind: RefusalKind,
    /// One sentence for a person.
    pub sentence: String,
}

impl Refusal {
    /// Whether a server refused what it has no name for: so it calls a line that it cannot read.
    pub(crate) fn is_of_an_unknown_request(&self) -> bool {
        self.kind == RefusalKind::BadRequest
            && self.sentence.contains("cannot be read: unknown variant")
    }
}

/// What the caller of a refused request can do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Name a volume that exists.
    NoSuchVolume,
    /// Choose another name.
    VolumeExists,
    /// Ask for something that can be: a name or size is out of bounds.
    BadRequest,
    /// Make room.
    NoSpace,
    /// Run `tamis check`: something stored fails its checks.
    Damaged,
    /// Disconnect the volume's clients.
    InUse,
    /// Try again later: the store is being closed.
    Busy,
    /// Anything else, also what a newer server calls by a name that this release does not know.
    #[serde(other)]
    Failed,
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let kind = match &error {
            RequestError::NoSuchVolume { .. } | RequestError::OtherVolume { .. } => {
                RefusalKind::NoSuchVolume
            }
            RequestError::VolumeExists { .. } => RefusalKind::VolumeExists,
            RequestError::BadName { .. }
            | RequestError::BadDomain { .. }
            | RequestError::TooManyDomains
            | RequestError::BadSize { .. }
            | RequestError::BadQuota
            | RequestError::OutOfRange { .. }
            | RequestError::CannotGrow { .. }
            | RequestError::NotAVolume { .. }
            | RequestError::NotASnapshot { .. }
            | RequestError::HasSnapshots { .. }
            | RequestError::NewSnapshots { .. }
            | RequestError::WouldShrink { .. }
            | RequestError::TooManySnapshots { .. }
            | RequestError::ReadOnly { .. } => RefusalKind::BadRequest,
            RequestError::NoSpace | RequestError::QuotaExceeded { .. } => RefusalKind::NoSpace,
            RequestError::Damaged { .. } | RequestError::DamagedTable { .. } => {
                RefusalKind::Damaged
            }
            RequestError::InUse { .. }
            | RequestError::RollingBack { .. }
            | RequestError::RequestsUnderWay { .. }
            | RequestError::SnapshotUnderWay { .. } => RefusalKind::InUse,
            RequestError::Closing => RefusalKind::Busy,
            _ => RefusalKind::Failed,
        };
        Self { kind, sentence: error.to_string() }
    }
}
