//! Comparisons under way: reads of frames to compare with, and the jobs of workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use format::units::ContainerId;
use reduce::{Image, KnownFrame};

use crate::read::frame_cache::Ticket;
use crate::read::reads::Span;

/// What is being compared.
#[derive(Default)]
pub(crate) struct Comparisons {
    next: u64,
    reads: BTreeMap<u64, KnownRead>,
    jobs: BTreeMap<u64, CompareJob>,
}

/// A stretch of a container on its way; its parts are slots of the group.
pub(crate) struct KnownRead {
    pub(crate) group: u64,
    pub(crate) span: Span,
    /// Lets its frames into the cache.
    pub(crate) ticket: Ticket,
}

/// Slots of a group that workers compare.
pub(crate) struct CompareJob {
    pub(crate) group: u64,
    pub(crate) slots: Vec<usize>,
    /// Where their candidates are stored; none when those are on their way.
    pub(crate) stored: Option<StoredFrames>,
}

/// Frames of candidates.
pub(crate) struct StoredFrames {
    pub(crate) image: Arc<dyn Image>,
    /// One for each slot, with the container that it is in.
    pub(crate) frames: Vec<(KnownFrame, ContainerId)>,
    /// Lets them into the cache, if they were read.
    pub(crate) ticket: Option<Ticket>,
}

impl StoredFrames {
    /// The bytes of a frame.
    pub(crate) fn bytes(&self, frame: &KnownFrame) -> Option<&[u8]> {
        let start = frame.place.offset_bytes as usize;
        self.image.get(start..start.checked_add(frame.place.length_bytes as usize)?)
    }
}

impl Comparisons {
    /// Notes a read; returns its number.
    pub(crate) fn begin_read(&mut self, read: KnownRead) -> u64 {
        self.next += 1;
        self.reads.insert(self.next, read);
        self.next
    }

    pub(crate) fn end_read(&mut self, number: u64) -> Option<KnownRead> {
        self.reads.remove(&number)
    }

    /// Notes a job; returns its tag.
    pub(crate) fn begin_job(&mut self, job: CompareJob) -> u64 {
        self.next += 1;
        self.jobs.insert(self.next, job);
        self.next
    }

    pub(crate) fn end_job(&mut self, tag: u64) -> Option<CompareJob> {
        self.jobs.remove(&tag)
    }
}
