//! What an engine says of itself while it works, for the operator.

use std::fmt;

use crate::door::error::RequestError;

/// Room that can run out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// Of the data zones.
    Data,
    /// Of zone tables.
    Tables,
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Tables => "tables",
        })
    }
}

/// Something that happened inside the engine and that no request's answer tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The tables are frozen, their pages are being written.
    CheckpointBegan {
        /// Of the root being made.
        generation: u64,
    },
    /// Blocks are short: the newest root is written once more, so that some become free.
    RootRepeated {
        /// Of the root being made.
        generation: u64,
    },
    /// The root is durable.
    CheckpointEnded {
        /// Of that root.
        generation: u64,
    },
    /// A container is being read, so that its room comes back.
    CollectionBegan {
        /// Its number.
        container: u32,
    },
    /// The container is free, or stays because something in it is damaged or its chunks, of which
    /// some lived again, found no room.
    CollectionEnded {
        /// Its number.
        container: u32,
        /// Whether its room came back.
        freed: bool,
    },
    /// A watermark is reached.
    RoomRunsOut {
        /// What runs out.
        room: Room,
        /// The watermark.
        percent: u8,
    },
    /// It is left again.
    RoomCameBack {
        /// What came back.
        room: Room,
        /// The watermark.
        percent: u8,
    },
    /// A write has failed for want of room; those that follow may, and are not told.
    WritesRefused,
    /// There is room again.
    WritesFitAgain,
    /// The device failed to give a page that work cannot go on without: it is tried again for some
    /// seconds before the writing stops.
    TablesUnreadable {
        /// Where the page is.
        offset_bytes: u64,
    },
    /// The disk is slower than it should be.
    DiskDegraded {
        /// Why, and what to do about it.
        reason: String,
    },
    /// The device has no room for what is written: writes wait until it has.
    DeviceFull {
        /// What failed first, and the kernel's word.
        reason: String,
    },
    /// All that waited for room on the device has been written.
    DeviceHasRoom,
    /// The medium does not give the data zones more room: writes fail when what it has given is
    /// used. It is asked again and again.
    AllocationRefused {
        /// The kernel's word.
        reason: String,
    },
    /// The medium gives room again.
    AllocationGoesOn,
    /// Nothing is written any more until the store is opened again; reads go on.
    WritingStopped {
        /// What every write is answered with.
        error: RequestError,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckpointBegan { generation } => write!(f, "checkpoint {generation} begins"),
            Self::RootRepeated { generation } => {
                write!(f, "checkpoint {generation} repeats the one before: blocks are short")
            }
            Self::CheckpointEnded { generation } => write!(f, "checkpoint {generation} is durable"),
            Self::CollectionBegan { container } => write!(f, "collecting container {container}"),
            Self::CollectionEnded { container, freed: true } => {
                write!(f, "container {container} is free")
            }
            Self::CollectionEnded { container, freed: false } => {
                write!(
                    f,
                    "container {container} stays: something in it is damaged or found no room"
                )
            }
            Self::RoomRunsOut { room, percent } => write!(
                f,
                "the room for {room} is {percent}% used: when it ends writes fail; delete volumes, \
                 trim, or make the store larger"
            ),
            Self::RoomCameBack { room, percent } => {
                write!(f, "the room for {room} is less than {percent}% used again")
            }
            Self::WritesRefused => write!(f, "writes fail: {}", RequestError::NoSpace),
            Self::WritesFitAgain => f.write_str("there is room for writes again"),
            Self::TablesUnreadable { offset_bytes } => write!(
                f,
                "the device failed to read the tables at offset {offset_bytes}: what needs that \
                 waits some seconds for it"
            ),
            Self::DiskDegraded { reason } => f.write_str(reason),
            Self::DeviceFull { reason } => {
                write!(f, "the device has no room, so writes wait until it has some: {reason}")
            }
            Self::DeviceHasRoom => f.write_str("the device has room again, and writes go on"),
            Self::AllocationRefused { reason } => write!(
                f,
                "the file system of the data gives it no more room ({reason}): writes fail when \
                 what is allocated is used, until there is room on the file system"
            ),
            Self::AllocationGoesOn => {
                f.write_str("the file system of the data gives it room again")
            }
            Self::WritingStopped { error: error @ RequestError::Fenced { .. } } => error.fmt(f),
            Self::WritingStopped { error } => {
                write!(f, "writing has stopped, reads go on: {error}")
            }
        }
    }
}

/// Who is told; called on the core's thread, which waits for it.
pub type Observer = Box<dyn Fn(&Notice) + Send>;
