//! The verbs that are about volumes and settings. Those that go in steps are beside what they do
//! ([`crate::ScrubRequest`], [`crate::CollectRequest`], [`crate::DifferenceRequest`],
//! [`crate::WeightRequest`], [`crate::EvacuateZone`]).

use disk::ZoneGrowth;
use format::catalog::{Dedup, Origin, VolumeKind};
use format::units::Compression;

use crate::door::opens::{Ending, Opener};
use crate::explain::explanation::Address;
use crate::grow::GrowOptions;

/// Opens the volume or snapshot of this name, until what comes back is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its name.
    pub name: String,
    /// For whom.
    pub opener: Opener,
}

/// Lists who has the volume or snapshot of this name open, in the order in which they opened it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOpens {
    /// Its name.
    pub name: String,
}

/// Asks every door that has the volume or snapshot of this name open to close it, and lists who
/// that is. It is closed when they are no longer listed ([`ListOpens`]); an opening whose door
/// takes no such wish ([`crate::OpenVolume::on_close`]) stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseOpens {
    /// Its name.
    pub name: String,
    /// How.
    pub ending: Ending,
}

/// Lists volumes and snapshots, by name, at one moment: nobody is served while they are described,
/// and there may be many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListVolumes {
    /// Those behind this name; None: from the first on.
    pub after: Option<String>,
    /// How many at most.
    pub most: usize,
}

impl ListVolumes {
    /// All there are.
    #[must_use]
    pub fn all() -> Self {
        Self { after: None, most: usize::MAX }
    }
}

/// Makes a thin volume; durable when it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// Its logical size.
    pub size_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// The domain whose chunks it shares, and no others'; it begins with its first volume. None:
    /// the default one.
    pub domain: Option<String>,
    /// What its bytes will be. The first volume of another kind than block gives the store a
    /// feature for which older programs refuse it.
    pub kind: VolumeKind,
}

/// Grows or shrinks a volume; what is cut off is unmapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizeVolume {
    /// The volume.
    pub name: String,
    /// Its size from now on.
    pub size_bytes: u64,
    /// Whether it may be smaller than before.
    pub may_shrink: bool,
    /// Whether it may become smaller while clients have it open; refused with who they are if not.
    pub even_if_open: bool,
}

/// Gives a volume another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameVolume {
    /// The volume.
    pub name: String,
    /// Its name from now on.
    pub new_name: String,
}

/// Bounds what a volume maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetQuota {
    /// The volume.
    pub name: String,
    /// None: any amount.
    pub quota_bytes: Option<u64>,
}

/// Chooses whether duplicates are looked for among what is written to a volume from now on. What
/// it holds stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDedup {
    /// The volume.
    pub name: String,
    /// Whether they are.
    pub dedup: Dedup,
}

/// Chooses what new frames of a volume are compressed with from now on. What is stored stays as it
/// is, also where the volume writes it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVolumeCompression {
    /// The volume.
    pub name: String,
    /// None: as those of the store.
    pub compression: Option<Compression>,
}

/// Reserves room for a volume: for what it does not map yet of so many bytes, at its worst case, so
/// that writes of new chunks to it find room whatever else writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetReservation {
    /// The volume.
    pub name: String,
    /// None: no room is its own.
    pub reservation_bytes: Option<u64>,
}

/// Deletes a volume or a snapshot; its space comes back in the background, and clones of snapshots
/// stay. The caller may have been asked and taken some time since it looked at the name, so it
/// says which numbers it means: numbers are given once, and each is greater than those before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRequest {
    /// A volume, or `VOLUME@SNAPSHOT`.
    pub name: String,
    /// Whether the volume's snapshots go as well.
    pub with_snapshots: bool,
    /// Its number; none: that of whatever has the name.
    pub id: Option<u32>,
    /// The greatest number that may go; none: any.
    pub newest: Option<u32>,
    /// Whether it goes while clients have it open, whose requests then fail; refused with who they
    /// are if not.
    pub even_if_open: bool,
}

impl DeleteRequest {
    /// Whatever has this name, alone, if nobody has it open.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Takes a snapshot of each of the volumes, all at one moment; durable when it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// Of which volumes.
    pub volumes: Vec<String>,
    /// Name of each: `volume@name`.
    pub name: String,
    /// When they were asked for, in seconds since 1970: the core has no clock. They are of later,
    /// if they have to wait for room.
    pub taken_unix_s: u64,
}

/// Takes a snapshot of one volume that holds what `origin` does: the snapshot says that it is a
/// copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeCopied {
    /// Of one volume.
    pub snapshots: SnapshotRequest,
    /// What it is a copy of.
    pub origin: Origin,
}

/// Makes a volume that begins as a snapshot; durable when it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneVolume {
    /// `VOLUME@SNAPSHOT`.
    pub snapshot: String,
    /// The new volume.
    pub name: String,
}

/// Lets a volume hold what a snapshot holds, and nothing else, in one step; nobody may have it
/// open. What it held is given back, but for what its own snapshots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    /// `VOLUME@SNAPSHOT`.
    pub snapshot: String,
    /// The volume, if it is another than the one that the snapshot is of; both are of one domain.
    /// It keeps its name, number, snapshots and settings, and takes the snapshot's size. The
    /// snapshot is its parent from then on, as it is that of its clones.
    pub volume: Option<String>,
    /// Its number; refused if the snapshot of this name has another. None: that of whatever has
    /// the name.
    pub id: Option<u32>,
}

/// Sets what new frames are compressed with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SetCompression {
    /// From now on.
    pub compression: Compression,
}

/// Says what new frames are compressed with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GetCompression {}

/// Gives the figures of the store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GetStats {}

/// Says what the store is made of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GetGeometry {}

/// Makes the store larger, as [`crate::plan_growth`] says of `options`. Its zones are as long
/// already, durably. Durable when it is answered.
#[derive(Clone, Debug)]
pub struct Grow {
    /// How large.
    pub options: GrowOptions,
    /// What its disk has prepared for that ([`disk::Disk::grow`]).
    pub zones: ZoneGrowth,
}

/// Walks one address of a volume through the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explain {
    /// The volume.
    pub volume: String,
    /// In it.
    pub address: Address,
}

/// Flushes, checkpoints and marks the store clean; the engine's `run` returns afterwards.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Close {}
