//! Verbs on their way to the core, each with the answer that it waits for.

use format::superblock::Geometry;
use format::units::Compression;

use crate::collect::step::{CollectRequest, CollectStep};
use crate::control::{
    Ask, CloneVolume, Close, CloseOpens, DeleteRequest, Explain, GetCompression, GetGeometry,
    GetStats, Grow, ListOpens, ListVolumes, NewVolume, Open, RenameVolume, ResizeVolume, Rollback,
    SetCompression, SetDedup, SetQuota, SetReservation, SetVolumeCompression, SnapshotRequest,
    TakeCopied,
};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::opens::OpenInfo;
use crate::door::outcome::VolumeInfo;
use crate::evacuate::{EvacuateZone, KeepZone, ListZones, RetireZone, ZoneInfo};
use crate::explain::explanation::Explanation;
use crate::scrub::{ScrubRequest, ScrubStep};
use crate::stats::Stats;
use crate::walk::difference::{DifferenceRequest, DifferenceStep};
use crate::walk::weight::{WeightRequest, WeightStep};

/// A verb that was asked, and whom to tell.
pub(crate) struct Asked<A: Ask> {
    pub(crate) verb: A,
    pub(crate) done: Done<A::Answer>,
}

/// A verb with its answer's receiver, as [`Ask::with`] joins them; only the engine looks inside.
pub struct Asking(pub(crate) Box<Verb>);

/// The verbs, their answers, and which of them need a flush first.
macro_rules! verbs {
    ($($verb:ident -> $answer:ty $(, after a flush if $flushes:expr)?;)*) => {
        /// Any verb.
        pub(crate) enum Verb {
            $($verb(Asked<$verb>),)*
        }

        impl Verb {
            /// Tells the caller that it is not done.
            pub(crate) fn fail(self, error: RequestError) {
                match self {
                    $(Self::$verb(asked) => asked.done.fail(error),)*
                }
            }
        }

        $(impl Ask for $verb {
            type Answer = $answer;

            $(fn flushes_first(&self) -> bool {
                let flushes: fn(&Self) -> bool = $flushes;
                flushes(self)
            })?

            fn with(self, done: Done<Self::Answer>) -> Asking {
                Asking(Box::new(Verb::$verb(Asked { verb: self, done })))
            }
        })*
    };
}

verbs! {
    Open -> OpenVolume;
    ListOpens -> Vec<OpenInfo>;
    CloseOpens -> Vec<OpenInfo>;
    ListVolumes -> Vec<VolumeInfo>;
    NewVolume -> VolumeInfo;
    ResizeVolume -> VolumeInfo;
    RenameVolume -> VolumeInfo;
    SetQuota -> VolumeInfo;
    SetDedup -> VolumeInfo;
    SetVolumeCompression -> VolumeInfo;
    SetReservation -> VolumeInfo;
    DeleteRequest -> ();
    SnapshotRequest -> ();
    TakeCopied -> ();
    CloneVolume -> VolumeInfo;
    Rollback -> VolumeInfo;
    SetCompression -> ();
    GetCompression -> Compression;
    GetStats -> Stats;
    GetGeometry -> Geometry;
    Grow -> Geometry;
    Explain -> Explanation;
    // A store that stopped writing tells what it has.
    DifferenceRequest -> DifferenceStep, after a flush if |step| step.lba == 0;
    WeightRequest -> WeightStep, after a flush if |step| step.leaf == 0;
    ScrubRequest -> ScrubStep;
    CollectRequest -> CollectStep;
    ListZones -> Vec<ZoneInfo>;
    EvacuateZone -> CollectStep;
    KeepZone -> ();
    RetireZone -> Geometry;
    Close -> ();
}

impl Verb {
    /// Volumes, snapshots and clones that it makes.
    pub(crate) fn versions_made(&self) -> u64 {
        match self {
            Self::NewVolume(_) | Self::CloneVolume(_) => 1,
            Self::SnapshotRequest(Asked { verb, .. }) => verb.volumes.len() as u64,
            Self::TakeCopied(Asked { verb, .. }) => verb.snapshots.volumes.len() as u64,
            _ => 0,
        }
    }

    /// Whether it changes the store.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::NewVolume(_)
            | Self::ResizeVolume(_)
            | Self::RenameVolume(_)
            | Self::SetQuota(_)
            | Self::SetDedup(_)
            | Self::SetVolumeCompression(_)
            | Self::SetReservation(_)
            | Self::DeleteRequest(_)
            | Self::SnapshotRequest(_)
            | Self::TakeCopied(_)
            | Self::CloneVolume(_)
            | Self::Rollback(_)
            | Self::SetCompression(_)
            | Self::Grow(_)
            | Self::RetireZone(_) => true,
            Self::Open(_)
            | Self::ListOpens(_)
            | Self::CloseOpens(_)
            | Self::ListVolumes(_)
            | Self::GetCompression(_)
            | Self::GetStats(_)
            | Self::GetGeometry(_)
            | Self::Explain(_)
            | Self::DifferenceRequest(_)
            | Self::WeightRequest(_)
            | Self::ScrubRequest(_)
            | Self::CollectRequest(_)
            | Self::ListZones(_)
            | Self::EvacuateZone(_)
            | Self::KeepZone(_)
            | Self::Close(_) => false,
        }
    }
}
