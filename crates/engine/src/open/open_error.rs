//! Why a store cannot be opened, and what opening one did.

use disk::{IoError, ZoneName};
use format::units::Zone;
use tables::PageError;
use thiserror::Error;

use crate::holds::Holds;

/// Why a store cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither copy of the geometry can be read as one.
    #[error("this is not a Tamis store, or both copies of its geometry are lost: {0}")]
    Geometry(#[source] format::FormatError),
    /// A newer program has made it, or made it its own: one copy of the geometry says so.
    #[error("{0}")]
    Newer(#[source] format::FormatError),
    /// Neither root slot holds a valid root.
    #[error(
        "both root slots of the superblock are damaged: {0}; bring the file superblock back from a \
         copy"
    )]
    Roots(#[source] format::FormatError),
    /// A page that the newest root names is damaged.
    #[error("a page of the tables is damaged, and the store cannot be opened without it: {0}")]
    Page(#[from] PageError),
    /// A record that was durable is not in the journal any more.
    #[error(
        "record {sequence} of the journal is damaged, at byte {offset_bytes}, and what was flushed \
         behind it cannot be applied"
    )]
    Journal {
        /// The record.
        sequence: u64,
        /// Where it should be, counted through all laps.
        offset_bytes: u64,
    },
    /// The superblock is blank, or both root slots are, and the journal was never written to.
    #[error(
        "the superblock holds no root, and the journal no record: the making of this store was \
         stopped; remove its directory and make it again"
    )]
    Unfinished,
    /// The superblock is blank, or both root slots are, of a store that was in use.
    #[error(
        "the superblock holds no root, but the store was in use: its journal holds something; \
         bring the file superblock back from a copy"
    )]
    SuperblockLost,
    /// The catalog of volumes is damaged.
    #[error("the catalog of volumes is damaged: {0}")]
    Catalog(#[source] format::FormatError),
    /// A journal record holds what no program writes.
    #[error("a journal record has a valid checksum and invalid contents: {0}")]
    Record(#[source] format::FormatError),
    /// A file is shorter than the geometry says.
    #[error(
        "{} has {found_bytes} bytes, but the store was made with {expected_bytes}: bring the whole \
         file back",
        ZoneName(*.zone)
    )]
    ZoneTooShort {
        /// Which file.
        zone: Zone,
        /// As made.
        expected_bytes: u64,
        /// As found.
        found_bytes: u64,
    },
    /// What stands in a zone is not what this store wrote there.
    #[error(
        "{} holds {holds}: devices have changed places, or its link leads to another one than it \
         did. Nothing was changed. Put the right device under this name and try again; {}",
        ZoneName(*.zone), if_it_is_gone(*.zone)
    )]
    ForeignZone {
        /// Which zone.
        zone: Zone,
        /// What stands there instead.
        holds: Holds,
    },
    /// The journal has no room for the record that an opening makes.
    #[error("the journal is full; this store was opened and killed too many times in a row")]
    JournalFull,
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] IoError),
    /// Too little memory.
    #[error("{memory_bytes} bytes of memory are too little: give at least 64M")]
    Memory {
        /// What was given.
        memory_bytes: u64,
    },
}

/// What to do where there is no right device any more.
fn if_it_is_gone(zone: Zone) -> String {
    let held = match zone {
        Zone::Tables | Zone::Superblock => return "without it the store cannot be had".to_owned(),
        Zone::Journal => "all that was flushed since the last checkpoint",
        Zone::Data(_) => "what it held",
    };
    format!(
        "if that device is lost, a repair without {} abandons {held} and keeps the rest",
        ZoneName(zone)
    )
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// It had been closed cleanly: nothing was replayed.
    pub clean: bool,
    /// The newest root slot was unreadable, and the older one was taken.
    pub older_root: bool,
    /// Journal records applied.
    pub records_replayed: u64,
    /// Bytes of the journal that were read back.
    pub journal_bytes_replayed: u64,
    /// Frames checked because no sync was known to cover them.
    pub frames_checked: u64,
    /// The journal was cut before a record whose frames never reached the disk.
    pub cut: bool,
}
