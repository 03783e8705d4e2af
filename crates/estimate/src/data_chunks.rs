//! The chunks of files in memory, in the order in which they were read, those of zeros left out:
//! what the ways to find a duplicate are compared over.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::pieces::{Piece, Pieces, Reading, UnreadableFiles};

/// What is deduplicated as one here.
pub const CHUNK_BYTES: usize = 4096;

/// Chunks in memory, and where they came from.
pub struct DataChunks {
    /// Files, images and devices that were read, the last perhaps in part.
    pub files: u64,
    /// Chunks of zeros, which have no fingerprint and are not kept.
    pub zero_chunks: u64,
    /// Whether all data had room in the memory that was given; else what is behind was left out.
    pub whole: bool,
    /// What could not be read.
    pub unreadable: UnreadableFiles,
    bytes: Vec<u8>,
}

impl fmt::Debug for DataChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} chunks of {} files", self.chunks().len(), self.files)
    }
}

impl DataChunks {
    /// Reads what is under `paths`, up to `memory_bytes` of chunks that are not zeros. `watch`
    /// hears of the bytes that were read, and may break it off; then there is nothing.
    pub fn read(
        paths: &[PathBuf],
        memory_bytes: u64,
        mut watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Self> {
        let reading = Reading::default();
        let mut pieces = Pieces::new(paths, &reading);
        let mut piece = Piece::new();
        let (mut bytes, mut zero_chunks, mut read_bytes, mut whole) = (Vec::new(), 0, 0, true);
        while whole && pieces.fill(&mut piece) {
            for (chunk, real_bytes) in piece.chunks(CHUNK_BYTES) {
                read_bytes += real_bytes as u64;
                if chunk.iter().all(|byte| *byte == 0) {
                    zero_chunks += 1;
                } else if (bytes.len() + CHUNK_BYTES) as u64 <= memory_bytes {
                    bytes.extend_from_slice(chunk);
                } else {
                    whole = false;
                }
            }
            watch(read_bytes).continue_value()?;
        }
        let sources = pieces.into_sources();
        let (files, unreadable) = (sources.files, sources.unreadable);
        Some(Self { files, zero_chunks, whole, unreadable, bytes })
    }

    /// All of them.
    #[must_use]
    pub fn chunks(&self) -> &[[u8; CHUNK_BYTES]] {
        self.bytes.as_chunks().0
    }
}
