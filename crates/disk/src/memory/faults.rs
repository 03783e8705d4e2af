//! What a test can make fail, apart from the power.

use format::units::Zone;

use crate::error::Verb;
use crate::io::{Io, IoKind};

/// Something that fails, with an I/O error, until the disk is healed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads that touch this byte of the zone.
    Read {
        /// Where.
        zone: Zone,
        /// Any byte of the bad block.
        offset_bytes: u64,
    },
    /// The same, until the byte is written: then the device takes another sector for it.
    ReadUntilWritten {
        /// Where.
        zone: Zone,
        /// Any byte of the bad block.
        offset_bytes: u64,
    },
    /// Writes that touch this byte of the zone. What they leave is any mixture of old and new.
    Write {
        /// Where.
        zone: Zone,
        /// Any byte of the bad block.
        offset_bytes: u64,
    },
    /// Syncs of the zone, and durable writes to it. As after a failed `fsync` of Linux, the writes
    /// that the sync should have made durable can still be read but never become durable, even if a
    /// later sync succeeds. A durable write leaves any mixture of old and new.
    Sync {
        /// Where.
        zone: Zone,
    },
}

impl Fault {
    /// What it makes this operation fail at, if it does.
    pub(super) fn strikes(&self, io: &Io) -> Option<Verb> {
        let touches = |zone, offset_bytes| touches(io, zone, offset_bytes);
        let (struck, verb) = match (*self, &io.kind) {
            (
                Self::Read { zone, offset_bytes } | Self::ReadUntilWritten { zone, offset_bytes },
                IoKind::Read { .. },
            ) => (touches(zone, offset_bytes), Verb::Read),
            (Self::Write { zone, offset_bytes }, IoKind::Write { .. }) => {
                (touches(zone, offset_bytes), Verb::Write)
            }
            (Self::Sync { zone }, IoKind::Sync | IoKind::Write { durable: true, .. }) => {
                (zone == io.zone, Verb::Sync)
            }
            _ => (false, Verb::Sync),
        };
        struck.then_some(verb)
    }

    /// Whether it is no more once this operation has succeeded.
    pub(super) fn ends_with(&self, io: &Io) -> bool {
        match *self {
            Self::ReadUntilWritten { zone, offset_bytes } => {
                matches!(io.kind, IoKind::Write { .. }) && touches(io, zone, offset_bytes)
            }
            _ => false,
        }
    }
}

fn touches(io: &Io, zone: Zone, offset_bytes: u64) -> bool {
    let end = io.offset_bytes.saturating_add(io.kind.length_bytes() as u64);
    zone == io.zone && (io.offset_bytes..end).contains(&offset_bytes)
}
