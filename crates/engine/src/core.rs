//! What all parts of a running store work on: tables, devices, the write buffer, the journal, and
//! whether anything is written any more (decision 076).
//!
//! Parts take it as a parameter; nothing here calls a part.

pub(crate) mod flush_queue;
pub(crate) mod frame;
pub(crate) mod invariant;
pub(crate) mod pages;
pub(crate) mod pressure;
pub(crate) mod record;
pub(crate) mod record_log;
pub(crate) mod room;
pub(crate) mod stop;
pub(crate) mod superblock;
pub(crate) mod table_room;

use std::collections::VecDeque;
use std::sync::Arc;

use format::superblock::Geometry;
use format::units::ContainerId;
use reduce::Workers;

use crate::copies::lists::CopyLists;
use crate::core::flush_queue::FlushQueue;
use crate::core::record_log::RecordLog;
use crate::core::superblock::Superblock;
use crate::core::table_room::TableRoom;
use crate::devices::Devices;
use crate::door::error::RequestError;
use crate::door::intake::Intake;
use crate::notice::Observer;
use crate::pages::absence::Absence;
use crate::placement::Placement;
use crate::read::frame_cache::FrameCache;
use crate::scrub::damage::Damage;
use crate::space::quota_line::QuotaLine;
use crate::space::space_budget::SpaceLimit;
use crate::space::waiting::Waiting;
use crate::space::watermarks::Watermarks;
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
    pub(crate) log: RecordLog,
    pub(crate) flushes: FlushQueue,
    pub(crate) table_room: TableRoom,
    pub(crate) superblock: Superblock,
    pub(crate) damage: Damage,
    pub(crate) copy_lists: CopyLists,
    /// The container whose live bytes are counted, and whether they have changed since then.
    pub(crate) live_watch: Option<(ContainerId, bool)>,
    pub(crate) buffer: WriteBuffer,
    pub(crate) volumes: Volumes,
    pub(crate) frames: FrameCache,
    /// What waits for space, not acknowledged.
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) quota_line: QuotaLine,
    pub(crate) counters: Counters,
    pub(crate) stages: StageClock,
    pub(crate) absence: Absence,
    pub(crate) watermarks: Watermarks,
    /// The limit of space that doors know.
    pub(crate) published: SpaceLimit,
    /// Set once: why nothing is written any more.
    pub(crate) stopped: Option<RequestError>,
    /// All who waited then have been answered.
    pub(crate) stop_is_answered: bool,
    /// A close was asked for.
    pub(crate) is_closing: bool,
    pub(crate) observer: Option<Observer>,
}

/// What [`Core`] is made from.
pub(crate) struct CoreParts {
    pub(crate) geometry: Geometry,
    pub(crate) devices: Devices,
    pub(crate) intake: Arc<Intake>,
    pub(crate) workers: Workers,
    pub(crate) state: State,
    pub(crate) placement: Placement,
    pub(crate) log: RecordLog,
    pub(crate) volumes: Volumes,
    pub(crate) table_room: TableRoom,
    pub(crate) superblock: Superblock,
}

impl Core {
    pub(crate) fn new(parts: CoreParts, frame_cache_bytes: u64) -> Self {
        Self {
            buffer: WriteBuffer::new(parts.geometry.chunk_bytes),
            quota_line: QuotaLine::new(parts.intake.credits.total_bytes()),
            geometry: parts.geometry,
            devices: parts.devices,
            intake: parts.intake,
            workers: parts.workers,
            state: parts.state,
            placement: parts.placement,
            log: parts.log,
            volumes: parts.volumes,
            table_room: parts.table_room,
            superblock: parts.superblock,
            flushes: FlushQueue::default(),
            damage: Damage::default(),
            copy_lists: CopyLists::default(),
            live_watch: None,
            frames: FrameCache::new(frame_cache_bytes),
            waiting: VecDeque::new(),
            counters: Counters::default(),
            stages: StageClock::none(),
            absence: Absence::default(),
            watermarks: Watermarks::default(),
            published: SpaceLimit::default(),
            stopped: None,
            stop_is_answered: false,
            is_closing: false,
            observer: None,
        }
    }

    /// Whether time has passed since the last round, and nobody waits for one.
    pub(crate) fn flushes_are_idle(&self) -> bool {
        self.flushes.is_idle() && self.log.syncing.is_none()
    }

    /// Whether bytes are compared before a chunk counts as stored.
    pub(crate) fn verifies(&self) -> bool {
        self.geometry.detection.verify
    }
}
