//! Why a request can fail.

use disk::{ErrorClass, IoError, Verb};
use format::byte_count::ByteCount;
use format::units::Zone;
use thiserror::Error;

use crate::door::opens::{Named, OpenInfo};
use crate::zone_name;

/// Why a request failed, by what its sender can do about it.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum RequestError {
    /// Physical space has run out and nothing can be collected.
    #[error(
        "the store is full: delete volumes, trim what file systems no longer use, or make the \
         store larger"
    )]
    NoSpace,
    /// The volume has as much mapped as its quota allows.
    #[error(
        "volume {volume} is at its quota: trim what its file system no longer uses, or raise it"
    )]
    QuotaExceeded {
        /// Name of the volume.
        volume: String,
    },
    /// A holder writes more than it has reserved.
    #[error(
        "the reservation is too small: it holds {left_chunks} chunks and {left_writes} writes, \
         and {chunks} chunks in {writes} writes were asked for"
    )]
    ReservationTooSmall {
        /// Chunks that the writes touch.
        chunks: u64,
        /// How many writes they are.
        writes: u64,
        /// Chunks that the reservation holds.
        left_chunks: u64,
        /// Writes that it holds.
        left_writes: u64,
    },
    /// The quota lets nothing be written.
    #[error(
        "a quota counts whole chunks, and one below {chunk_bytes} bytes lets nothing be written: \
         use more, or none to lift it"
    )]
    BadQuota {
        /// Length of a chunk.
        chunk_bytes: u32,
    },
    /// A reservation is of nothing, or of more than the volume may map.
    #[error(
        "{:#} cannot be reserved for volume {name}, which may map {:#} by its size and its quota",
        ByteCount(*.reservation_bytes), ByteCount(*.most_bytes)
    )]
    BadReservation {
        /// The volume.
        name: String,
        /// What was asked for.
        reservation_bytes: u64,
        /// The most that it may map.
        most_bytes: u64,
    },
    /// A volume's size or quota would be less than what is reserved for it.
    #[error(
        "{:#} are reserved for volume {name}: lower its reservation first",
        ByteCount(*.reservation_bytes)
    )]
    BelowReservation {
        /// The volume.
        name: String,
        /// What is reserved.
        reservation_bytes: u64,
    },
    /// There is no room to reserve.
    #[error(
        "the reservation takes {:#} at worst, new chunks that nothing compresses, and {}: reserve \
         less, free some, or enlarge the store",
        ByteCount(*.needed_bytes), room_found(*.free_bytes, *.lacks_tables)
    )]
    NoRoomToReserve {
        /// Worst-case bytes of what the volume does not map yet of it.
        needed_bytes: u64,
        /// What is free and promised to nobody.
        free_bytes: u64,
        /// Whether it is the tables that have no room.
        lacks_tables: bool,
    },
    /// The volume may not be written.
    #[error("volume {volume} is read-only")]
    ReadOnly {
        /// Name of the volume.
        volume: String,
    },
    /// The range ends beyond the volume.
    #[error(
        "{length_bytes} bytes at byte {offset_bytes} reach beyond the end of the volume, which has \
         {:#}",
        ByteCount(*.size_bytes)
    )]
    OutOfRange {
        /// First byte asked for.
        offset_bytes: u64,
        /// Bytes asked for.
        length_bytes: u64,
        /// Size of the volume.
        size_bytes: u64,
    },
    /// A copy between volumes is of whole chunks.
    #[error(
        "a copy between volumes moves whole chunks: its offsets and its length must be multiples \
         of {}",
        ByteCount((*.chunk_bytes).into())
    )]
    RaggedCopy {
        /// Length of a chunk.
        chunk_bytes: u32,
    },
    /// Source and target of a copy share bytes.
    #[error("the copied range of volume {volume} and its target overlap")]
    OverlappingCopy {
        /// The volume.
        volume: String,
    },
    /// Volumes of different domains share no chunks.
    #[error(
        "{from} and {to} are in different domains, which share no chunks: read the bytes and \
         write them"
    )]
    OtherDomain {
        /// The source.
        from: String,
        /// The target.
        to: String,
    },
    /// A page of a table that a copy needs cannot be read.
    #[error("chunk {lba} of {volume} could not be copied, the chunks before it were: {reason}")]
    NotCopied {
        /// The source.
        volume: String,
        /// Address of the first chunk that was not copied, in units of the chunk size.
        lba: u64,
        /// Why.
        reason: Box<RequestError>,
    },
    /// No volume has this name.
    #[error("there is no {} {name}", kind_of(name))]
    NoSuchVolume {
        /// The name asked for.
        name: String,
    },
    /// The name has come to another volume or snapshot since the request was decided on.
    #[error("{name} was renamed or deleted meanwhile, and another has its name: ask again")]
    OtherVolume {
        /// The name asked for.
        name: String,
    },
    /// A volume of this name exists.
    #[error("a {} {name} exists already", kind_of(name))]
    VolumeExists {
        /// The name asked for.
        name: String,
    },
    /// What was asked for goes with volumes only.
    #[error("{name} is a snapshot: it does not change; make a clone of it")]
    NotAVolume {
        /// The name asked for.
        name: String,
    },
    /// What was asked for goes with snapshots only.
    #[error("{name} is not a snapshot: name one as VOLUME@SNAPSHOT")]
    NotASnapshot {
        /// The name asked for.
        name: String,
    },
    /// Snapshots are to be taken of nothing.
    #[error("name the volumes of which snapshots are to be taken")]
    NoVolumes,
    /// The volume has snapshots.
    #[error(
        "volume {name} has {count} snapshots: delete them first, or ask for them to go as well"
    )]
    HasSnapshots {
        /// The volume.
        name: String,
        /// How many.
        count: usize,
    },
    /// Snapshots would go that nobody was asked about.
    #[error("snapshots of volume {name} were taken meanwhile, and would go as well: ask again")]
    NewSnapshots {
        /// The volume.
        name: String,
    },
    /// They are of one moment only in one record of the journal, which does not hold so many.
    #[error(
        "{count} snapshots with a name this long cannot be taken at one moment: take {count_max} \
         at a time, or give them a shorter name"
    )]
    TooManySnapshots {
        /// How many were asked for.
        count: usize,
        /// How many there may be.
        count_max: usize,
    },
    /// Clients have the volume open.
    #[error("{} {name} is in use by {}: disconnect its clients first", kind_of(name), Named(opens))]
    InUse {
        /// The volume.
        name: String,
        /// Who has it open, and since when.
        opens: Vec<OpenInfo>,
    },
    /// Nobody has the volume open any more, and what was asked of it before has not all ended.
    #[error("requests to volume {name} are still being carried out: try again in a moment")]
    RequestsUnderWay {
        /// The volume.
        name: String,
    },
    /// A snapshot of the volume is on its way into the catalog.
    #[error("a snapshot of volume {name} is being taken: try again in a moment")]
    SnapshotUnderWay {
        /// The volume.
        name: String,
    },
    /// The volume becomes what a snapshot holds; what was read or written now would be of before.
    #[error("volume {name} is being rolled back: try again in a moment")]
    RollingBack {
        /// The volume.
        name: String,
    },
    /// The name cannot be a volume's.
    #[error(
        "{name:?} cannot name a volume: use 1 to 255 bytes without '/', '@' and characters that \
         are not shown, no blank at an end, not starting with '-' or '.'"
    )]
    BadName {
        /// The name asked for.
        name: String,
    },
    /// The name cannot be a domain's.
    #[error(
        "{name:?} cannot name a domain: use 1 to 64 bytes without '/', '@' and characters that \
         are not shown, no blank at an end, not starting with '-' or '.'"
    )]
    BadDomain {
        /// The name asked for.
        name: String,
    },
    /// Every number of a domain has been used.
    #[error(
        "this store has had 16383 domains and can have no more: use one that has a volume, or \
         another store"
    )]
    TooManyDomains,
    /// The program that opened the store gave it nothing to make keys from.
    #[error("this program opened the store without a secret for domains")]
    NoSecret,
    /// The size cannot be a volume's.
    #[error(
        "a volume cannot have {:#}: use a multiple of 512 bytes, up to 1 PiB",
        ByteCount(*.size_bytes)
    )]
    BadSize {
        /// The size asked for.
        size_bytes: u64,
    },
    /// What lies beyond the size would be lost, and nobody said that it may be.
    #[error(
        "volume {name} has {:#} by now and {:#} is smaller: what lies beyond would be lost",
        ByteCount(*.size_bytes), ByteCount(*.asked_bytes)
    )]
    WouldShrink {
        /// The volume.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// The size asked for.
        asked_bytes: u64,
    },
    /// A stored chunk fails its check: its bytes are lost, all others are served.
    #[error("chunk {lba} of volume {volume} is damaged on disk")]
    Damaged {
        /// Name of the volume.
        volume: String,
        /// Address of the chunk in units of the chunk size.
        lba: u64,
    },
    /// A page of a table fails its check, so what it maps cannot be served.
    #[error("a page of table {tree:#x} (leaf {index}) is damaged on disk")]
    DamagedTable {
        /// The table.
        tree: u32,
        /// The leaf in it.
        index: u64,
    },
    /// The device failed a read.
    #[error("the device could not be read at offset {offset_bytes} of {zone}")]
    ReadFailed {
        /// Name of the file in the store.
        zone: String,
        /// Where in it.
        offset_bytes: u64,
    },
    /// The device failed a write: nothing can be promised any more until it is reopened.
    #[error(
        "the device failed ({reason}); the store stopped so as to lose nothing: mend the device \
         and start again"
    )]
    WriteFailed {
        /// Name of the file in the store.
        zone: String,
        /// What failed, and the kernel's word.
        reason: String,
    },
    /// The device failed a sync. What it was to make durable may still be read, from a cache, and
    /// no later sync makes up for it.
    #[error(
        "the device failed ({reason}); the store stopped so as to lose nothing: mend the device, \
         restart the machine, for it may show what never reached the disk, and then start again"
    )]
    SyncFailed {
        /// Name of the file in the store.
        zone: String,
        /// What failed, and the kernel's word.
        reason: String,
    },
    /// The store is opened read-only.
    #[error("the store is open read-only: open it for writing to change it")]
    StoreReadOnly,
    /// The device had no room for what was to be written, and got none in time.
    #[error(
        "the device has no room ({reason}); what was not flushed is not stored: free room on it \
         and start again"
    )]
    DeviceFull {
        /// What failed, and the kernel's word.
        reason: String,
    },
    /// Another owner has taken the store over: nothing is written, and nothing read, which could be
    /// out of date.
    #[error(
        "another machine has taken over {zone} of the store ({reason}): this one has stopped \
         reading and writing"
    )]
    Fenced {
        /// Name of the zone.
        zone: String,
        /// What failed, and the device's word.
        reason: String,
    },
    /// The other copy of a bucket that has two does not have the change, which may have been made
    /// here.
    #[error("the bucket's replica does not have the change: {reason}")]
    NotReplicated {
        /// Why, in a sentence.
        reason: String,
    },
    /// A worker met a bug in this program; what it worked on cannot be written.
    #[error(
        "a worker of the server failed; the store stopped so as to lose nothing: restart it and \
         report this"
    )]
    WorkerLost,
    /// The engine met a bug in this program: what it may not do without is not so.
    #[error(
        "the server has a bug ({name} does not hold); the store stopped so as to lose nothing: \
         restart it and report this"
    )]
    InvariantBroken {
        /// Name of the invariant.
        name: String,
    },
    /// The machine has not the memory that a request asks for; others go on.
    #[error("there is no memory for {bytes} bytes")]
    NoMemory {
        /// As many as the request asks for.
        bytes: usize,
    },
    /// The store cannot be made larger like that.
    #[error("the store was not made larger: {reason}")]
    CannotGrow {
        /// What stands in the way, in a sentence.
        reason: String,
    },
    /// A data file cannot be taken out of the store, or not now.
    #[error("the data file was not removed: {reason}")]
    CannotRemove {
        /// What stands in the way, in a sentence.
        reason: String,
    },
    /// The store has no other data file.
    #[error("the data file was not removed: it is the only one; add another first")]
    OnlyDataFile,
    /// What is in use of a data file finds no room in the others.
    #[error(
        "the data file was not removed: {} of what it holds is in use, and the others have room \
         for {}; add one",
        ByteCount(*.used_bytes), ByteCount(*.room_bytes)
    )]
    NoRoomElsewhere {
        /// Frames in it that are referenced.
        used_bytes: u64,
        /// Room for frames in the other data files.
        room_bytes: u64,
    },
    /// The caller is gone, and it had to wait until then.
    #[error("the connection was closed while this waited: it was not done, or only a part of it")]
    GivenUp,
    /// The engine is closing.
    #[error("the store is being closed")]
    Closing,
}

fn room_found(free_bytes: u64, lacks_tables: bool) -> String {
    match lacks_tables {
        true => "the tables have no room for so many chunks".to_owned(),
        false => format!("{:#} are free", ByteCount(free_bytes)),
    }
}

/// What a name is one of.
fn kind_of(name: &str) -> &'static str {
    if name.contains('@') { "snapshot" } else { "volume" }
}

impl RequestError {
    /// Why nothing is written any more since a write or a sync has failed.
    pub(crate) fn of_device(zone: Zone, error: &IoError) -> Self {
        let (zone, reason) = (zone_name(zone), error.to_string());
        match (error.class(), error) {
            (ErrorClass::Fenced, _) => Self::Fenced { zone, reason },
            (ErrorClass::NoSpace, _) => Self::DeviceFull { reason },
            // Without a disk that tries again, what might have passed is for good.
            (_, IoError::Failed { verb: Verb::Sync, .. }) => Self::SyncFailed { zone, reason },
            _ => Self::WriteFailed { zone, reason },
        }
    }
}
