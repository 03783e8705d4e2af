//! What to do about an error of a room below, in commands: those rooms know of none.

use std::io::ErrorKind;

use disk::{ErrorClass, ZoneName};
use engine::{OpenError, PlanError, Problem, RepairError, RequestError};
use format::units::Zone;
use nbd::NbdError;
use nbd::client::ClientError;

/// The end of the sentence of a refused request. Who asks knows which store STORE is.
pub(crate) fn of_request(error: &RequestError) -> String {
    match error {
        RequestError::NoSpace => no_space("STORE"),
        RequestError::QuotaExceeded { volume } => {
            format!(" with `tamis volume set STORE {volume} --quota SIZE`")
        }
        RequestError::OnlyDataFile | RequestError::NoRoomElsewhere { .. } => {
            " with `tamis grow STORE --data`".to_owned()
        }
        RequestError::InUse { .. } => ", or add --force".to_owned(),
        RequestError::NotAVolume { .. } => " with `tamis clone`".to_owned(),
        RequestError::NoSecret => ": use `tamis volume create`".to_owned(),
        RequestError::WouldShrink { .. } => ", add --shrink if that is meant".to_owned(),
        RequestError::Damaged { .. } | RequestError::DamagedTable { .. } => {
            "; run `tamis check`".to_owned()
        }
        _ => String::new(),
    }
}

/// The end of the sentence of a full store, which a shell knows as `store`.
pub(crate) fn no_space(store: &str) -> String {
    format!(
        " with `tamis grow {store} --capacity SIZE`. If the file system under it is full, free \
         room there first"
    )
}

/// The sentence of what went wrong with the bytes of a volume in a store that is served.
pub(super) fn served(error: &ClientError) -> String {
    match error {
        ClientError::Closed => {
            "the server of the store ended before this was done: try again when it serves"
                .to_owned()
        }
        // The server's sentence is that of its engine, whose way out is a command as well.
        ClientError::Refused { sentence: Some(sentence), .. }
            if *sentence == RequestError::NoSpace.to_string() =>
        {
            format!("{sentence}{}", of_request(&RequestError::NoSpace))
        }
        error => error.to_string(),
    }
}

/// The end of the sentence of a store that does not open.
pub(super) fn of_open(error: &OpenError) -> String {
    match error {
        OpenError::Page(_) | OpenError::Catalog(_) => {
            "; `tamis check --repair` mends what can be mended".to_owned()
        }
        OpenError::Journal { .. } => {
            "; `tamis check --repair` goes back to the moment before it".to_owned()
        }
        OpenError::ZoneTooShort { .. } => "; if there is none, `tamis check --repair` makes it as \
                                           long as it was and saves what is left"
            .to_owned(),
        OpenError::ForeignZone { zone, .. } => without_zone(*zone),
        error if loses_superblock(error) => {
            "; if there is none, `tamis check --repair` looks in the file tables for the copy that \
             the last checkpoint left there"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Whether a repair may find again what is missing, in a label.
fn loses_superblock(error: &OpenError) -> bool {
    matches!(error, OpenError::Geometry(_) | OpenError::Roots(_) | OpenError::SuperblockLost)
}

fn without_zone(zone: Zone) -> String {
    match zone {
        Zone::Tables | Zone::Superblock => String::new(),
        Zone::Journal | Zone::Data(_) => {
            format!(": `tamis check --repair --without-zone {}`", ZoneName(zone))
        }
    }
}

/// The end of the sentence of a repair that was not done.
pub(super) fn of_repair(error: &RepairError) -> String {
    match error {
        RepairError::TooMuchLost { .. } => ": `--without-volume NAME` does".to_owned(),
        RepairError::Write(error) if error.class() == ErrorClass::NoSpace => {
            "; --undo-file FILE keeps what is overwritten in another place".to_owned()
        }
        // It has looked.
        RepairError::Open(error) if loses_superblock(error) => String::new(),
        RepairError::Open(error) => of_open(error),
        _ => String::new(),
    }
}

/// The end of the sentence of a store that cannot be made as it is wanted.
pub(super) fn of_plan(error: &PlanError) -> &'static str {
    match error {
        PlanError::Weak { .. } => ": add --verify for the first",
        _ => "",
    }
}

/// The sentence of a door that does not open.
pub(super) fn nbd(error: &NbdError) -> String {
    match error {
        NbdError::Bind { address, source }
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            format!("{address} cannot be listened at: make the directory of the socket first")
        }
        error => format!("{error}{}", of_nbd(error)),
    }
}

fn of_nbd(error: &NbdError) -> &'static str {
    match error {
        NbdError::PathTooLong { .. } => " with `tamis serve --nbd unix:PATH`",
        NbdError::Bind { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => ": stop what listens there, or choose another port",
            ErrorKind::AddrNotAvailable => ": choose an address that this machine has",
            ErrorKind::PermissionDenied => {
                ": choose a place that this user may use (a port from 1024 on, a directory of its \
                 own)"
            }
            _ => ": choose another address with --nbd",
        },
        _ => "",
    }
}

/// What is wrong with a store, in a sentence.
pub(crate) fn problem(problem: &Problem) -> String {
    match problem {
        Problem::HiddenChunks { volume, lba, count, bytes } => format!(
            "{count} {} of volume {volume} from chunk {lba} on ({bytes} bytes) cannot be read \
             until `tamis check --repair` has mended their tables",
            if *count == 1 { "chunk" } else { "chunks" }
        ),
        other => other.to_string(),
    }
}
