//! What an explanation of one address says: the way from a volume's LBA to the bytes on disk.

/// An address in a volume, in either way that people know it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The number of a chunk.
    Lba(u64),
    /// A byte of it.
    OffsetBytes(u64),
}

/// What the tables say of one LBA, and whether its frame bears it out.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The volume.
    pub volume: String,
    /// The chunk in it.
    pub lba: u64,
    /// Its first byte.
    pub offset_bytes: u64,
    /// Its length.
    pub chunk_bytes: u32,
    /// Whether the write buffer holds something newer, of which no table knows yet.
    pub buffered: bool,
    /// Pages of the volume's map on the way to the LBA that exist, topmost first.
    pub map: Vec<ExplainedPage>,
    /// The chunk that the map names; none where nothing is stored, which reads as zeros.
    pub chunk: Option<ExplainedChunk>,
}

/// A page of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPage {
    /// Of which table.
    pub table: String,
    /// 0 for leaves.
    pub level: u8,
    /// Among the pages of its level.
    pub index: u64,
    /// Block of zone tables where it stands; none when it was never written.
    pub block: Option<u64>,
    /// Whether it has changed since, in memory.
    pub dirty: bool,
}

/// A stored chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedChunk {
    /// Its name.
    pub pbn: u64,
    /// Pages of the PBN-PBA table on the way to it, topmost first.
    pub pages: Vec<ExplainedPage>,
    /// Where it is; none when the table does not say, or says what cannot be: the chunk is lost.
    pub place: Option<ExplainedPlace>,
}

/// Where a chunk's frame is, and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedPlace {
    /// LBAs that name the chunk.
    pub references: u32,
    /// The container.
    pub container: u32,
    /// Of the frame in the container.
    pub offset_bytes: u32,
    /// Of the frame, its header included.
    pub length_bytes: u32,
    /// The zone that the container lies in: its file in the store, where data has several.
    pub zone: String,
    /// Of the frame in that file.
    pub zone_offset_bytes: u64,
    /// Whether the frame was taken from memory, since not all of its container is on disk yet.
    pub in_memory: bool,
    /// Where a second copy of the frame is, if there is one.
    pub second_copy: Option<ExplainedCopy>,
    /// The frame; none when it is not whole, or is of another chunk, or could not be read.
    pub frame: Option<ExplainedFrame>,
}

/// Where a second copy of a frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedCopy {
    /// The container.
    pub container: u32,
    /// Of the frame in the container.
    pub offset_bytes: u32,
    /// Of the frame, its header included.
    pub length_bytes: u32,
    /// The zone that the container lies in: its file in the store, where data has several.
    pub zone: String,
    /// Of the frame in that file.
    pub zone_offset_bytes: u64,
}

/// A sound frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedFrame {
    /// `none`, `lz4` or `zstd`.
    pub codec: String,
    /// Of the payload.
    pub stored_bytes: u32,
    /// Chunk to payload.
    pub ratio: f64,
    /// Of the chunk's plain bytes, in hexadecimal digits.
    pub fingerprint: String,
    /// The bucket of the Hash-PBN table in which this fingerprint belongs; none as long as there
    /// are no buckets there.
    pub bucket: Option<u64>,
    /// Pages of the Hash-PBN table on the way to the page that holds it, topmost first; none when
    /// no page does.
    pub pages: Vec<ExplainedPage>,
    /// What the table has the fingerprint name: this chunk, if all is well.
    pub named_pbn: Option<u64>,
    /// Whether the chunk is unindexed: its fingerprint leads to other bytes, or did when it was
    /// stored, and no look-up finds it. Only where bytes are compared.
    pub unindexed: bool,
}

impl Explanation {
    /// Whether every table says the same and the frame is sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let Some(chunk) = &self.chunk else { return true };
        let frame = chunk.place.as_ref().and_then(|place| place.frame.as_ref());
        frame.is_some_and(|frame| frame.named_pbn == Some(chunk.pbn) || frame.unindexed)
    }
}
