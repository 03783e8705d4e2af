//! Why a store was not repaired.

use disk::IoError;
use thiserror::Error;

use crate::open::open_error::OpenError;

/// Why a store was not repaired. It is as it was, unless the device failed to write.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Nothing to go on from.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device fails: what cannot be read now may be read yet.
    #[error(
        "the device fails, and a repair would abandon what can perhaps still be read ({0}): copy \
         the files to a sound device first, with `ddrescue` or the like, and repair the copy"
    )]
    Device(#[source] IoError),
    /// The device failed while the repair was written; the roots of before still stand.
    #[error("the repair could not be written: {0}")]
    Write(#[from] IoError),
    /// Volumes are lost with their names; their chunks would be thrown away.
    #[error(
        "leaf {leaf} of the catalog is lost, and which volumes stood there is not known: a repair \
         would throw their data away, so nothing was changed; bring the file tables back from a \
         copy"
    )]
    Catalog {
        /// Leaf of the catalog.
        leaf: u64,
    },
    /// More is lost than there are blocks to say it.
    #[error(
        "of {} more is lost than the {blocks} blocks of the tables can say: nothing was changed; \
         to give a volume up, with its snapshots, mends the rest",
        .volumes.join(", ")
    )]
    TooMuchLost {
        /// What there is in all.
        blocks: u64,
        /// Of which volumes something is lost, and of which snapshots of others.
        volumes: Vec<String>,
    },
    /// A volume that was to be abandoned is not there.
    #[error("no volume or snapshot is called {name}: nothing was changed")]
    NoVolume {
        /// As it was asked for.
        name: String,
    },
    /// No blocks to write to.
    #[error(
        "the tables have {blocks} blocks and too few that are free to write mended pages to: \
         nothing was changed"
    )]
    NoRoom {
        /// What there is in all.
        blocks: u64,
    },
    /// A file is too short to be written to.
    #[error("{zone} has {found_bytes} bytes, but the store was made with {expected_bytes}")]
    ShortZone {
        /// Which file.
        zone: String,
        /// As made.
        expected_bytes: u64,
        /// As found.
        found_bytes: u64,
    },
}
