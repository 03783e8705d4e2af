//! New chunks of one job of the workers, with what their frames are made by.

use format::domain::DomainId;
use format::units::{Compression, Pbn};
use reduce::{ChunkBatch, Job, Payload};

/// As many PBNs as chunks; of the others as many, or none at all where they are the same for all.
pub(crate) struct NewChunks {
    pub(crate) chunks: ChunkBatch,
    pub(crate) pbns: Vec<Pbn>,
    pub(crate) domains: Vec<DomainId>,
    pub(crate) compressions: Vec<Compression>,
    pub(crate) ready: Vec<Option<Payload>>,
}

impl NewChunks {
    pub(crate) fn with_capacity(chunks: usize) -> Self {
        Self {
            chunks: ChunkBatch::with_capacity(chunks),
            pbns: Vec::with_capacity(chunks),
            domains: Vec::new(),
            compressions: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// The job that makes their frames, with the store's codec for those that have none.
    pub(crate) fn into_job(self, tag: u64, compression: Compression) -> Job {
        let Self { chunks, pbns, domains, compressions, ready } = self;
        Job::Compress { tag, compression, compressions, chunks, pbns, domains, ready }
    }
}
