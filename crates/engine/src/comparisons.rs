//! Comparisons under way: reads of frames to compare with, and the jobs of workers.

use std::collections::BTreeMap;

use format::units::{ContainerId, Pbn};

use crate::reads::Span;

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
}

/// Slots of a group that workers compare.
pub(crate) struct CompareJob {
    pub(crate) group: u64,
    pub(crate) slots: Vec<usize>,
    /// Where each slot's candidate is stored; empty when the candidates are on their way.
    pub(crate) stored: Vec<(Pbn, ContainerId)>,
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
