//! Everything that a command can fail with: one clear sentence with the way out, and the exit
//! code that scripts go by. The codes are documented in `tamis --help`; keep the two together.

mod absent;
mod asked;
mod buckets;
mod exit;
pub(crate) mod facts;
mod losses;
pub(crate) mod place;
mod store;
mod stream_not_applied;
mod unplannable;
pub(crate) mod way_out;

use std::io;
use std::path::PathBuf;

use admin::{CallError, ConnectError, Refusal, ServeError};
use disk::{CreateFilesError, FileError};
use engine::{CreateError, GrowError, PlanError, RepairError, RequestError};
use images::{Compression, ImageError};
use nbd::client::ClientError;
use thiserror::Error;

pub(crate) use self::absent::Present;
pub(crate) use self::buckets::BucketsError;
pub(crate) use self::exit::Exit;
pub(crate) use self::losses::Losses;
pub(crate) use self::place::PlaceError;
pub(crate) use self::stream_not_applied::StreamNotApplied;
pub(crate) use self::unplannable::Unplannable;
use crate::shell::shell_path;
use crate::size::{counted, human_bytes};

/// What is added to a signal's number to make the exit code that shells know.
pub(crate) const SIGNAL_EXIT_BASE: u8 = 128;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error(
        "there is no store at {}: make one with `tamis init {}`",
        store.display(), shell_path(store)
    )]
    NoStore { store: PathBuf },
    #[error(
        "there is a store at {} already: choose another directory, or remove it first",
        store.display()
    )]
    StoreExists { store: PathBuf },
    #[error(
        "the store at {} is in use by another process: try again when that has ended, or, if it is \
         a server that has just been started, when it serves",
        store.display()
    )]
    InUse { store: PathBuf },
    #[error(
        "the store at {} is being served by process {pid} and can only be checked when it is \
         not: stop it first with `kill {pid}`",
        store.display()
    )]
    ServedNoCheck { store: PathBuf, pid: u32 },
    #[error("the store at {} is being scrubbed by another process already", store.display())]
    ScrubRunning { store: PathBuf },
    #[error("the store at {} is being served by process {pid} already", store.display())]
    ServedAlready { store: PathBuf, pid: u32 },
    #[error(
        "the store that is served was at {} and has been moved, or another was put in its place: \
         stop its server, and start it where the store is now",
        store.display()
    )]
    StoreMoved { store: PathBuf },
    #[error("{}", absent::sentence(store, name, present))]
    NoVolume { store: PathBuf, name: String, present: Present },
    #[error(
        "volume {volume} has {} in {} of {}, numbered from 0: there is no {asked}",
        human_bytes(*size_bytes), counted(size_bytes.div_ceil(*chunk_bytes), "chunk"),
        human_bytes(*chunk_bytes)
    )]
    NoChunk { volume: String, size_bytes: u64, chunk_bytes: u64, asked: String },
    #[error(transparent)]
    Buckets(#[from] BucketsError),
    #[error(transparent)]
    Accounts(#[from] ::accounts::AccountsError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(
        "volume {name} has {} and {} is smaller: what lies beyond would be lost, add --shrink if \
         that is meant",
        human_bytes(*size_bytes), human_bytes(*asked_bytes)
    )]
    WouldShrink { name: String, size_bytes: u64, asked_bytes: u64 },
    #[error(
        "snapshots of one moment have one name, and {one} and {other} are two: give them the same, \
         or take them one after the other"
    )]
    SnapshotNamesDiffer { one: String, other: String },
    #[error(
        "volume {name} has {count} {}: delete {} first, or add --with-snapshots",
        if *count == 1 { "snapshot" } else { "snapshots" }, if *count == 1 { "it" } else { "them" }
    )]
    HasSnapshots { name: String, count: usize },
    #[error(
        "{name} is a snapshot: delete it with `tamis snapshot delete {} {name}`",
        shell_path(store)
    )]
    IsSnapshot { store: PathBuf, name: String },
    #[error(
        "volume {name} holds {} already: add --overwrite to replace it, or choose another name",
        human_bytes(*mapped_bytes)
    )]
    VolumeHoldsData { name: String, mapped_bytes: u64 },
    #[error("volume {name} {has}, and an import does not change that: leave out {option}")]
    OtherSetting { name: String, has: String, option: &'static str },
    #[error(
        "the image has {} and volume {name} only {}: enlarge it first with `tamis volume resize`",
        image_bytes.map_or_else(|| "more bytes".to_owned(), human_bytes), human_bytes(*volume_bytes)
    )]
    ImageTooLarge { name: String, image_bytes: Option<u64>, volume_bytes: u64 },
    #[error(
        "standard input is taken as a raw image or a stream, and a qcow2 image must be a file: \
         write it to one and import that"
    )]
    Qcow2FromStdin,
    #[error(
        "{name} is compressed by {compression} and holds no disk, but another image or an archive: \
         expand it, and import what comes out"
    )]
    CompressedNoDisk { name: String, compression: Compression },
    #[error(
        "{name} is damaged, or ends too soon: what {compression} compressed does not expand: \
         {source}"
    )]
    CompressedDamaged { name: String, compression: Compression, source: io::Error },
    #[error(
        "{name} ends like what an import has not completed, which the next import removes: choose \
         another name"
    )]
    ReservedName { name: String },
    #[error(
        "{name} has {} bytes, and the name of what an import makes has at most {most_bytes} bytes: \
         choose a shorter one",
        name.len()
    )]
    NameTooLong { name: String, most_bytes: usize },
    #[error("the image is empty: there is nothing to import")]
    ImageEmpty,
    #[error(
        "{count} {} could not be read{}: the figures are of the rest",
        if *count == 1 { "file" } else { "files" },
        if *in_part == 0 { "" } else { ", or not to the end" }
    )]
    NotAllRead { count: u64, in_part: u64 },
    #[error("the trace cannot be read: {0}")]
    TraceUnreadable(io::Error),
    #[error(
        "several chunk sizes read the trace several times, and standard input can be read once: \
         put it into a file"
    )]
    TraceOnce,
    #[error(
        "the trace has no request that could be read{}",
        first_bad.as_ref().map_or(String::new(), |(line, error)| format!(": line {line}, {error}"))
    )]
    TraceEmpty { first_bad: Option<(u64, traces::LineError)> },
    #[error(
        "{wrong_bytes} bytes came back other than they were written, the first at byte \
         {first_bytes} of the volume: this is a defect, of tamis or of the machine"
    )]
    WrongBytes { wrong_bytes: u64, first_bytes: u64 },
    #[error(
        "{stored} different chunks are stored and {written} were written: this is a defect of \
         tamis, please report it"
    )]
    NotExact { stored: u64, written: u64 },
    #[error("{} exists already: choose another name, or remove it first", path.display())]
    TraceExists { path: PathBuf },
    #[error("standard input cannot be read: {0}")]
    Stdin(io::Error),
    #[error(transparent)]
    Image(ImageError),
    #[error(
        "{} exists already: add --overwrite to replace it, or choose another name",
        path.display()
    )]
    OutputExists { path: PathBuf },
    #[error(
        "{} is neither a file nor a block device, and stays as it is: choose another name, or - \
         for standard output",
        path.display()
    )]
    OutputUnfit { path: PathBuf },
    #[error(
        "{} is a link that leads nowhere: remove it, or make what it leads to",
        path.display()
    )]
    OutputLeadsNowhere { path: PathBuf },
    #[error(
        "{} is in use, mounted or part of a store or of something else: choose another, or unmount \
         it first",
        path.display()
    )]
    OutputInUse { path: PathBuf },
    #[error(
        "{} is part of a Tamis store, which would be lost: choose another, or remove or clear it \
         first if that store is not needed",
        path.display()
    )]
    OutputIsZone { path: PathBuf },
    #[error(
        "the device {} has {} and the volume {}: choose a larger one",
        path.display(), human_bytes(*device_bytes), human_bytes(*volume_bytes)
    )]
    OutputTooSmall { path: PathBuf, device_bytes: u64, volume_bytes: u64 },
    #[error(
        "{} is written and whole, but its name may not outlive a loss of power, for its directory \
         cannot be synced ({source}): write it again, or elsewhere",
        path.display()
    )]
    OutputNotDurable { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    OutputFailed { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Plot(#[from] charts::PlotError),
    #[error("standard output cannot be written: {0}")]
    Stdout(io::Error),
    #[error("the result cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("stopped by a signal before it was done")]
    Interrupted { signal: u8 },
    #[error(
        "stopped by a signal before it was done, and cut off, for what was under way did not end \
         within ten seconds: nothing that was durable is lost"
    )]
    CutOff { signal: u8 },
    #[error(
        "damage was found, in {problems} {}: `tamis check --repair` mends what can be mended, and \
         the rest fails its reads",
        if *problems == 1 { "place" } else { "places" }
    )]
    DamageFound { problems: usize },
    #[error(
        "damage is left, in {problems} {}, that no repair mends: chunks that are lost fail their \
         reads until they are written again",
        if *problems == 1 { "place" } else { "places" }
    )]
    DamageLeft { problems: usize },
    #[error(
        "damage was found, in {problems} {}, and all of it is repaired: nothing is lost",
        if *problems == 1 { "place" } else { "places" }
    )]
    Repaired { problems: usize },
    #[error("damage was found and repaired, but not without losses: {0}")]
    RepairedWithLosses(Losses),
    #[error(
        "{} was cut short: it lacks {}, and its file system has {} free: make room there first",
        path.display(), human_bytes(*needed_bytes), human_bytes(*free_bytes)
    )]
    NoRoomToLengthen { path: PathBuf, needed_bytes: u64, free_bytes: u64 },
    #[error(
        "{} has no data file {}: `tamis data list {}` names them",
        store.display(), file.display(), shell_path(store)
    )]
    NoDataFile { store: PathBuf, file: PathBuf },
    #[error(
        "{name} stays in the store: damage keeps {containers} of its containers as they are; \
         `tamis scrub` says what is damaged, and `tamis check --repair` abandons what cannot heal"
    )]
    DataFileDamaged { name: String, containers: u64 },
    #[error(
        "say how large the store is to be with --capacity: it has {} now",
        human_bytes(*present_bytes)
    )]
    GrowToWhat { present_bytes: u64 },
    #[error(
        "{data_percent}% of the room for data and {tables_percent}% of that for tables is used: \
         delete volumes, trim what file systems no longer use, or make the store larger with \
         `tamis grow {} --capacity SIZE`",
        shell_path(store)
    )]
    NearlyFull { store: PathBuf, data_percent: u64, tables_percent: u64 },
    #[error(
        "{taken:.0}% of the room for data is still taken, {asked}% was asked for, and nothing else \
         is worth moving: delete volumes, trim what file systems no longer use, compress harder \
         with --recompress, or make the store larger with `tamis grow`"
    )]
    NothingToCollect { taken: f64, asked: u8 },
    #[error(
        "chunk {lba} of volume {volume} is damaged: `tamis scrub` says what else is, and it heals \
         when it is written again"
    )]
    ChunkDamaged { volume: String, lba: u64 },
    #[error(
        "{from} or {to} was deleted while they were compared, and another has its name: compare \
         them again"
    )]
    OtherVersion { from: String, to: String },
    #[error("{name} was deleted meanwhile, and another has its name: ask again")]
    VolumeReplaced { name: String },
    #[error(
        "a stream leads to a snapshot, and {name} is a volume: take one with `tamis snapshot \
         create`"
    )]
    StreamOfVolume { name: String },
    #[error(
        "a stream is a file and not a disk, and {} is a device: choose a file, or - for standard \
         output",
        path.display()
    )]
    StreamToDevice { path: PathBuf },
    #[error(
        "{} is no stream of `tamis export`: leave out --format stream, and what it is decides",
        path.display()
    )]
    NoStream { path: PathBuf },
    #[error("the stream is damaged at byte {at_bytes}: {source}; nothing of it was kept")]
    StreamDamaged { at_bytes: u64, source: format::FormatError },
    #[error("the stream ends at byte {at_bytes}, before its end; nothing of it was kept")]
    StreamCut { at_bytes: u64 },
    #[error("bytes follow the end of the stream at byte {at_bytes}; nothing of it was kept")]
    StreamTooLong { at_bytes: u64 },
    #[error("the stream cannot be read at byte {at_bytes}: {source}")]
    StreamUnreadable { at_bytes: u64, source: io::Error },
    #[error(transparent)]
    StreamNotApplied(#[from] StreamNotApplied),
    #[error(
        "{replaced} is what {volume} held before an import that was killed, and would be lost: go \
         back to it with `tamis snapshot rollback`, or delete it, first"
    )]
    PutAsideStill { volume: String, replaced: String },
    #[error(
        "{error}; and {volume} could not go back to what it held ({source}): the same import, \
         repeated, begins with that"
    )]
    NotUndone { volume: String, error: Box<CliError>, source: Box<CliError> },
    #[error("nothing was changed")]
    NotConfirmed,
    #[error("nothing was changed: \"{question}\" needs a terminal to be asked at, or --yes")]
    NobodyToAsk { question: String },
    #[error(
        "{wished} connections need more than the {descriptors_max} file descriptors that this \
         process may have: raise the limit (`ulimit -n`, LimitNOFILE= of systemd), or use \
         --max-connections with {most} at most"
    )]
    TooFewDescriptors { wished: u64, most: u64, descriptors_max: u64 },
    #[error("{action}: {source}")]
    System { action: &'static str, source: io::Error },
    #[error(transparent)]
    Unplannable(#[from] Unplannable),
    #[error("the engine's thread ended without an error: this is a bug of tamis, please report it")]
    EngineVanished,
    #[error("{}{}", .0, way_out::of_plan(.0))]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    CreateFiles(#[from] CreateFilesError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error("{0}: `tamis stats` says which")]
    Grow(#[from] GrowError),
    #[error(transparent)]
    OpenFiles(disk::OpenError),
    #[error(transparent)]
    Machine(#[from] ::store::MachineError),
    #[error("{}{}", .0, way_out::of_open(.0))]
    Open(#[from] engine::OpenError),
    #[error("{}{}", .0, way_out::of_repair(.0))]
    Repair(#[from] RepairError),
    #[error(transparent)]
    Undo(#[from] disk::UndoError),
    #[error("{}{}", .0, way_out::of_request(.0))]
    Request(#[from] RequestError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{}", way_out::served(.0))]
    Served(#[from] ClientError),
    #[error(transparent)]
    ServeControl(#[from] ServeError),
    #[error("{}", way_out::nbd(.0))]
    ServeNbd(#[from] nbd::NbdError),
    #[error(transparent)]
    ServeS3(#[from] s3::S3Error),
    #[error(transparent)]
    ServeMemcached(#[from] memcached_door::DoorError),
    #[error(transparent)]
    ServeReplicas(#[from] replicas::ListenError),
    #[error("{0}")]
    MemcachedBucket(#[from] memcached_door::HostError),
}

#[cfg(test)]
mod tests;
