//! The running checkpoint.

use std::collections::VecDeque;

use format::root::Root;
use tables::{PageWrite, PinSet};

/// How far a checkpoint has come.
pub(crate) enum Phase {
    Idle,
    Pages { writes: VecDeque<PageWrite> },
    PagesOut { mark: u64 },
    TablesSync,
    Durable,
    Root,
    RootSync,
    Label,
}

/// The running checkpoint, and whether the last one is done.
pub(crate) struct Checkpoints {
    pub(crate) phase: Phase,
    /// The root being made.
    pub(crate) next_root: Option<Box<Root>>,
    /// What the phase waits for has ended.
    pub(crate) ended: bool,
    /// The root of a close is durable.
    pub(crate) clean: bool,
    /// Pages that the next freeze needs.
    pub(crate) pins: PinSet,
}

impl Checkpoints {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            next_root: None,
            ended: false,
            clean: false,
            pins: PinSet::default(),
        }
    }

    /// The sync or write that the phase waits for has ended.
    pub(crate) fn io_ended(&mut self) {
        self.ended = true;
    }

    /// Whether it has been frozen and is not durable yet.
    pub(crate) fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Whether its root is on its way to its slot, or there and not the newest yet.
    pub(crate) fn is_writing_root(&self) -> bool {
        matches!(self.phase, Phase::Root | Phase::RootSync | Phase::Label)
    }
}
