//! Why the engine does not do what it is asked.

use engine::{OpenInfo, Opener, RequestError};
use serde::{Deserialize, Serialize};

use crate::json::{mirror, record};

record! {
    OpenInfo { id, opener }
    Opener { who, since_unix_s }
}

mirror!(RequestError as RequestErrorForm);

#[derive(Serialize, Deserialize)]
#[serde(remote = "RequestError", tag = "error", rename_all = "snake_case")]
enum RequestErrorForm {
    NoSpace,
    ReservationTooSmall {
        chunks: u64,
        writes: u64,
        left_chunks: u64,
        left_writes: u64,
    },
    QuotaExceeded {
        volume: String,
    },
    BadQuota {
        chunk_bytes: u32,
    },
    BadReservation {
        name: String,
        reservation_bytes: u64,
        most_bytes: u64,
    },
    BelowReservation {
        name: String,
        reservation_bytes: u64,
    },
    NoRoomToReserve {
        needed_bytes: u64,
        free_bytes: u64,
        lacks_tables: bool,
    },
    RaggedCopy {
        chunk_bytes: u32,
    },
    OverlappingCopy {
        volume: String,
    },
    OtherDomain {
        from: String,
        to: String,
    },
    /// No verb of this socket is answered so.
    #[serde(skip)]
    NotCopied {
        volume: String,
        lba: u64,
        reason: Box<RequestError>,
    },
    ReadOnly {
        volume: String,
    },
    OutOfRange {
        offset_bytes: u64,
        length_bytes: u64,
        size_bytes: u64,
    },
    NoSuchVolume {
        name: String,
    },
    OtherVolume {
        name: String,
    },
    VolumeExists {
        name: String,
    },
    NotAVolume {
        name: String,
    },
    NotASnapshot {
        name: String,
    },
    NoVolumes,
    HasSnapshots {
        name: String,
        count: usize,
    },
    NewSnapshots {
        name: String,
    },
    TooManySnapshots {
        count: usize,
        count_max: usize,
    },
    InUse {
        name: String,
        #[serde(with = "crate::json")]
        opens: Vec<OpenInfo>,
    },
    RequestsUnderWay {
        name: String,
    },
    SnapshotUnderWay {
        name: String,
    },
    RollingBack {
        name: String,
    },
    BadName {
        name: String,
    },
    BadDomain {
        name: String,
    },
    TooManyDomains,
    NoSecret,
    BadSize {
        size_bytes: u64,
    },
    WouldShrink {
        name: String,
        size_bytes: u64,
        asked_bytes: u64,
    },
    Damaged {
        volume: String,
        lba: u64,
    },
    DamagedTable {
        tree: u32,
        index: u64,
    },
    ReadFailed {
        zone: String,
        offset_bytes: u64,
    },
    StoreReadOnly,
    DeviceFull {
        reason: String,
    },
    Fenced {
        zone: String,
        reason: String,
    },
    WriteFailed {
        zone: String,
        reason: String,
    },
    SyncFailed {
        zone: String,
        reason: String,
    },
    NotReplicated {
        reason: String,
    },
    WorkerLost,
    InvariantBroken {
        name: String,
    },
    NoMemory {
        bytes: usize,
    },
    CannotGrow {
        reason: String,
    },
    CannotRemove {
        reason: String,
    },
    OnlyDataFile,
    NoRoomElsewhere {
        used_bytes: u64,
        room_bytes: u64,
    },
    GivenUp,
    Closing,
}
