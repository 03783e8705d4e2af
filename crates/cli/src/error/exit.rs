//! What each failure means to a script: the exit codes that `tamis --help` documents.

use std::io;
use std::process::ExitCode;

use ::accounts::AccountsError;
use admin::{RefusalKind, ServeError};
use disk::CreateFilesError;
use engine::{RepairError, RequestError};
use images::ImageError;
use memcached_door::DoorError;
use nbd::client::ClientError;
use nbd::wire::Errno;

use super::{CliError, SIGNAL_EXIT_BASE};

/// What the exit codes mean.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    InUse = 4,
    Damage = 5,
    NoSpace = 6,
    Exists = 7,
    Repaired = 8,
    RepairedWithLosses = 9,
    NearlyFull = 10,
}

impl CliError {
    /// The code that the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Interrupted { signal } | Self::CutOff { signal } => {
                SIGNAL_EXIT_BASE.saturating_add(*signal)
            }
            _ => self.exit() as u8,
        }
    }

    /// What the error means to a script.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::NoStore { .. } | Self::NoVolume { .. } | Self::NoDataFile { .. } => {
                Exit::NotFound
            }
            Self::Place(error) => error.exit(),
            Self::Buckets(error) => error.exit(),
            Self::Accounts(error) => exit_of_accounts(error),
            Self::ServeNbd(nbd::NbdError::Bind { source, .. })
            | Self::ServeS3(s3::S3Error::Listen { source, .. })
            | Self::ServeReplicas(replicas::ListenError { source, .. })
            | Self::ServeMemcached(DoorError::Listen { source, .. }) => exit_of_io(source),
            Self::StoreExists { .. }
            | Self::VolumeHoldsData { .. }
            | Self::OtherSetting { .. }
            | Self::PutAsideStill { .. }
            | Self::OutputExists { .. }
            | Self::TraceExists { .. } => Exit::Exists,
            Self::InUse { .. }
            | Self::ServedNoCheck { .. }
            | Self::OutputInUse { .. }
            | Self::ServedAlready { .. }
            | Self::ScrubRunning { .. }
            | Self::OpenFiles(disk::OpenError::Locked { .. })
            | Self::ServeControl(ServeError::InUse { .. })
            | Self::ServeNbd(nbd::NbdError::InUse { .. })
            | Self::ServeMemcached(DoorError::InUse { .. }) => Exit::InUse,
            usage if usage.is_usage() => Exit::Usage,
            Self::NearlyFull { .. } | Self::NothingToCollect { .. } => Exit::NearlyFull,
            Self::DamageFound { .. }
            | Self::DataFileDamaged { .. }
            | Self::DamageLeft { .. }
            | Self::ChunkDamaged { .. }
            | Self::StreamDamaged { .. }
            | Self::CompressedDamaged { .. }
            | Self::StreamCut { .. }
            | Self::StreamTooLong { .. }
            | Self::WrongBytes { .. }
            | Self::NotExact { .. } => Exit::Damage,
            Self::StreamNotApplied(error) => error.exit(),
            Self::Repaired { .. } => Exit::Repaired,
            Self::RepairedWithLosses { .. } => Exit::RepairedWithLosses,
            Self::Repair(error) => exit_of_repair(error),
            Self::Undo(error) => exit_of_undo(error),
            Self::NoRoomToLengthen { .. } => Exit::NoSpace,
            Self::CreateFiles(error) => exit_of_create(error),
            Self::Stdin(source)
            | Self::Stdout(source)
            | Self::TraceUnreadable(source)
            | Self::OutputFailed { source, .. }
            | Self::StreamUnreadable { source, .. } => exit_of_io(source),
            Self::NotUndone { error, .. } => error.exit(),
            Self::Image(error) => exit_of_image(error),
            Self::Open(error) => exit_of_open(error),
            Self::Request(error) => exit_of_request(error),
            Self::Served(error) => exit_of_served(error),
            Self::Refused(refusal) => exit_of_refusal(refusal.kind),
            _ => Exit::Failed,
        }
    }

    /// Whether something was asked for that cannot be.
    fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Unplannable(_)
                | Self::WouldShrink { .. }
                | Self::NobodyToAsk { .. }
                | Self::TooFewDescriptors { .. }
                | Self::CreateFiles(CreateFilesError::OwnName { .. })
                | Self::SnapshotNamesDiffer { .. }
                | Self::NoChunk { .. }
                | Self::HasSnapshots { .. }
                | Self::IsSnapshot { .. }
                | Self::ImageTooLarge { .. }
                | Self::ImageEmpty
                | Self::ReservedName { .. }
                | Self::NameTooLong { .. }
                | Self::Qcow2FromStdin
                | Self::CompressedNoDisk { .. }
                | Self::TraceOnce
                | Self::TraceEmpty { .. }
                | Self::StreamOfVolume { .. }
                | Self::StreamToDevice { .. }
                | Self::NoStream { .. }
                | Self::OutputTooSmall { .. }
                | Self::OutputUnfit { .. }
                | Self::OutputIsZone { .. }
                | Self::OutputLeadsNowhere { .. }
                | Self::GrowToWhat { .. }
                | Self::Plan(_)
        )
    }
}

fn exit_of_accounts(error: &AccountsError) -> Exit {
    match error {
        AccountsError::NoSuchAccount { .. } => Exit::NotFound,
        AccountsError::Exists { .. } | AccountsError::DomainTaken { .. } => Exit::Exists,
        AccountsError::BadName { .. }
        | AccountsError::BadPattern { .. }
        | AccountsError::DomainOfTenant { .. }
        | AccountsError::NoTenant { .. } => Exit::Usage,
        AccountsError::Damaged { .. } => Exit::Damage,
        AccountsError::Io { source, .. } => exit_of_io(source),
        AccountsError::Readable { .. } | AccountsError::NoRandomness(_) => Exit::Failed,
    }
}

fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::NoSpace,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Exit::NotFound,
        io::ErrorKind::AddrInUse => Exit::InUse,
        _ => Exit::Failed,
    }
}

fn exit_of_create(error: &CreateFilesError) -> Exit {
    match error {
        CreateFilesError::NoParent { .. } => Exit::NotFound,
        CreateFilesError::AlreadyExists { .. } => Exit::Exists,
        CreateFilesError::NoSpace { .. } | CreateFilesError::DeviceTooSmall { .. } => Exit::NoSpace,
        _ => Exit::Failed,
    }
}

fn exit_of_image(error: &ImageError) -> Exit {
    match error {
        ImageError::Io { source, .. } => exit_of_io(source),
        ImageError::Damaged { .. } | ImageError::DamagedForeign { .. } => Exit::Damage,
        ImageError::LengthChanged { .. } | ImageError::Qemu { .. } => Exit::Failed,
        _ => Exit::Usage,
    }
}

fn exit_of_open(error: &engine::OpenError) -> Exit {
    match error {
        engine::OpenError::Io(_) => Exit::Failed,
        engine::OpenError::Memory { .. } => Exit::Usage,
        _ => Exit::Damage,
    }
}

fn exit_of_request(error: &RequestError) -> Exit {
    match error {
        RequestError::NoSuchVolume { .. } | RequestError::OtherVolume { .. } => Exit::NotFound,
        RequestError::VolumeExists { .. } => Exit::Exists,
        RequestError::BadName { .. }
        | RequestError::BadDomain { .. }
        | RequestError::TooManyDomains
        | RequestError::BadSize { .. }
        | RequestError::BadQuota { .. }
        | RequestError::BadReservation { .. }
        | RequestError::BelowReservation { .. }
        | RequestError::OutOfRange { .. }
        | RequestError::CannotGrow { .. }
        | RequestError::CannotRemove { .. }
        | RequestError::OnlyDataFile
        | RequestError::NoRoomElsewhere { .. }
        | RequestError::NotAVolume { .. }
        | RequestError::NotASnapshot { .. }
        | RequestError::NoVolumes
        | RequestError::HasSnapshots { .. }
        | RequestError::NewSnapshots { .. }
        | RequestError::WouldShrink { .. }
        | RequestError::TooManySnapshots { .. }
        | RequestError::ReadOnly { .. } => Exit::Usage,
        RequestError::NoSpace
        | RequestError::QuotaExceeded { .. }
        | RequestError::NoRoomToReserve { .. } => Exit::NoSpace,
        RequestError::Damaged { .. } | RequestError::DamagedTable { .. } => Exit::Damage,
        RequestError::InUse { .. }
        | RequestError::RollingBack { .. }
        | RequestError::RequestsUnderWay { .. }
        | RequestError::SnapshotUnderWay { .. } => Exit::InUse,
        _ => Exit::Failed,
    }
}

/// A server says only what block clients are told: whatever cannot be read is damage to them.
fn exit_of_served(error: &ClientError) -> Exit {
    match error {
        ClientError::Refused { errno, .. } if *errno == Errno::NoSpace as u32 => Exit::NoSpace,
        ClientError::Refused { errno, .. } if *errno == Errno::Io as u32 => Exit::Damage,
        ClientError::Refused { errno, .. } if *errno == Errno::NotPermitted as u32 => Exit::Usage,
        _ => Exit::Failed,
    }
}

fn exit_of_refusal(kind: RefusalKind) -> Exit {
    match kind {
        RefusalKind::NotFound => Exit::NotFound,
        RefusalKind::Exists => Exit::Exists,
        RefusalKind::BadRequest => Exit::Usage,
        RefusalKind::NoSpace => Exit::NoSpace,
        RefusalKind::Damaged => Exit::Damage,
        RefusalKind::InUse => Exit::InUse,
        RefusalKind::Failed => Exit::Failed,
    }
}

fn exit_of_undo(error: &disk::UndoError) -> Exit {
    match error {
        disk::UndoError::File(error) => exit_of_io(&error.source),
        disk::UndoError::Damaged(_) => Exit::Damage,
        disk::UndoError::Changed(_) => Exit::Exists,
        _ => Exit::Failed,
    }
}

fn exit_of_repair(error: &RepairError) -> Exit {
    match error {
        RepairError::Write(_) => Exit::Failed,
        RepairError::NoRoom { .. } | RepairError::TooMuchLost { .. } => Exit::NoSpace,
        RepairError::NoVolume { .. } => Exit::NotFound,
        _ => Exit::Damage,
    }
}
