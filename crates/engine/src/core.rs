//! What all parts of a running store work on: tables, devices, the write buffer, the journal, and
//! whether anything is written any more (decision 076).
//!
//! Parts take it as a parameter; nothing here calls a part.

pub(crate) mod frame;
pub(crate) mod pages;

use std::collections::VecDeque;
use std::sync::Arc;

use format::superblock::Geometry;
use journal::Writer;
use reduce::Workers;

use crate::devices::Devices;
use crate::door::error::RequestError;
use crate::door::intake::Intake;
use crate::notice::Observer;
use crate::pages::absence::Absence;
use crate::pages::held_pages::HeldPages;
use crate::placement::Placement;
use crate::read::frame_cache::FrameCache;
use crate::space::quota_line::QuotaLine;
use crate::space::space_budget::SpaceLimit;
use crate::space::waiting::Waiting;
use crate::state::State;
use crate::stats::Counters;
use crate::stats::stages::StageClock;
use crate::volumes::Volumes;
use crate::write::buffer::WriteBuffer;

/// The state that parts of an engine share.
pub(crate) struct Core {
    pub(crate) geometry: Geometry,
    pub(crate) devices: Devices,
    pub(crate) intake: Arc<Intake>,
    pub(crate) workers: Workers,
    pub(crate) state: State,
    pub(crate) placement: Placement,
    pub(crate) journal: Writer,
    /// Incarnation that journal records carry: one per opening.
    pub(crate) incarnation: u64,
    /// Sequence of the newest record appended.
    pub(crate) appended_sequence: u64,
    pub(crate) buffer: WriteBuffer,
    pub(crate) volumes: Volumes,
    pub(crate) frames: FrameCache,
    pub(crate) held_pages: HeldPages,
    /// What waits for space, not acknowledged.
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) quota_line: QuotaLine,
    pub(crate) counters: Counters,
    pub(crate) stages: StageClock,
    pub(crate) absence: Absence,
    /// The limit of space that doors know.
    pub(crate) published: SpaceLimit,
    /// Set once: why nothing is written any more.
    pub(crate) stopped: Option<RequestError>,
    pub(crate) observer: Option<Observer>,
}

impl Core {
    /// Whether bytes are compared before a chunk counts as stored.
    pub(crate) fn verifies(&self) -> bool {
        self.geometry.detection.verify
    }
}
