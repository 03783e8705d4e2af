//! What a test can make fail, apart from the power.

use format::units::Zone;

use crate::error::{Cause, ErrorClass, IoError, Verb};
use crate::io::{Completion, Io, IoKind};

/// Something that fails until the disk is healed: with a permanent error, unless it says otherwise.
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
    /// Every operation of the zone that an error of this class can come of, without any effect:
    /// with [`ErrorClass::NoSpace`] its writes, else its reads and syncs as well.
    Refusal {
        /// Where.
        zone: Zone,
        /// Of the error.
        class: ErrorClass,
    },
}

/// How a fault ends an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Strike {
    /// The device fails at this.
    Failed(Verb),
    /// The operation was not begun.
    Refused(ErrorClass),
}

impl Strike {
    pub(super) fn complete(self, io: Io) -> Completion {
        match self {
            Self::Refused(class) => io.refuse(class, "the memory disk was told to refuse it"),
            Self::Failed(verb) => {
                let (zone, offset_bytes) = (io.zone, io.offset_bytes);
                let cause = Cause::new(ErrorClass::Permanent, "Input/output error (os error 5)");
                io.complete(Err(IoError::Failed { verb, zone, offset_bytes, cause }))
            }
        }
    }
}

impl Fault {
    /// How it ends this operation, if it does.
    pub(super) fn strikes(&self, io: &Io) -> Option<Strike> {
        let touches = |zone, offset_bytes| touches(io, zone, offset_bytes);
        if let Self::Refusal { zone, class } = *self {
            let can_be = class != ErrorClass::NoSpace || matches!(io.kind, IoKind::Write { .. });
            return (zone == io.zone && can_be).then_some(Strike::Refused(class));
        }
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
        struck.then_some(Strike::Failed(verb))
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
