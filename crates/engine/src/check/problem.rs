//! What a check can find wrong, each as one sentence, and its report.

use std::borrow::Cow;

use thiserror::Error;

use crate::holds::Holds;

fn chunks(count: u64) -> String {
    format!("{count} {}", if count == 1 { "chunk" } else { "chunks" })
}

/// A broken invariant.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Problem {
    /// A map names a chunk that is not stored.
    #[error("chunk {lba} of volume {volume} names PBN {pbn}, which is not stored")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    MapNamesNoChunk { volume: String, lba: u64, pbn: u64 },
    /// A map goes on beyond its volume's end.
    #[error("chunk {lba} of volume {volume} is mapped beyond the volume's end")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    MapBeyondEnd { volume: String, lba: u64 },
    /// A volume's count of mapped chunks is off.
    #[error("volume {volume} has {counted} mapped chunks, but its entry says {recorded}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    MappedCount { volume: String, counted: u64, recorded: u64 },
    /// A reference count is off.
    #[error("PBN {pbn} is mapped {counted} times, but its reference count is {recorded}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    References { pbn: u64, counted: u32, recorded: u32 },
    /// A total of the root is off.
    #[error("{what}: counted {counted}, recorded {recorded}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    Total { what: Cow<'static, str>, counted: u64, recorded: u64 },
    /// The Hash-PBN table names a chunk that is not stored.
    #[error("bucket {bucket} of the Hash-PBN table names PBN {pbn}, which is not stored")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    EntryWithoutChunk { bucket: u64, pbn: u64 },
    /// A fingerprint stands where no look-up finds it, or twice.
    #[error("the Hash-PBN table does not find PBN {pbn} by the fingerprint in bucket {bucket}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    EntryMisplaced { bucket: u64, pbn: u64 },
    /// A stored chunk has no fingerprint: its duplicates would not be found.
    #[error("PBN {pbn} has no entry in the Hash-PBN table")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    ChunkWithoutEntry { pbn: u64 },
    /// A chunk that is in no other table has a fingerprint all the same.
    #[error("PBN {pbn} is marked as unindexed, but has an entry in the Hash-PBN table")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    EntryOfAside { pbn: u64 },
    /// A chunk's place cannot be.
    #[error("PBN {pbn} lies at byte {offset_bytes} of container {container}, where no frame is")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    FrameMisplaced { pbn: u64, container: u32, offset_bytes: u32 },
    /// Two chunks share bytes.
    #[error("PBN {pbn} and PBN {other} overlap in container {container}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    FramesOverlap { container: u32, pbn: u64, other: u64 },
    /// A container's live bytes are off.
    #[error("container {container} has {counted} live bytes, but its entry says {recorded}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    LiveBytes { container: u32, counted: u64, recorded: u64 },
    /// A sealed container's directory is damaged; it can be made again from the frames.
    #[error("the directory of container {container} is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    Directory { container: u32 },
    /// A directory does not list a chunk that the tables say is there.
    #[error("the directory of container {container} does not list PBN {pbn}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    DirectoryLacks { container: u32, pbn: u64 },
    /// A frame fails its check.
    #[error("the frame of PBN {pbn} in container {container} is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    DamagedFrame { pbn: u64, container: u32 },
    /// The frame of a second copy fails its check; the chunk has another.
    #[error("the second copy of PBN {pbn} in container {container} is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    DamagedCopy { pbn: u64, container: u32 },
    /// A second copy that would go with its chunk.
    #[error("PBN {pbn} and its second copy are both in container {container}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    CopyBesideChunk { pbn: u64, container: u32 },
    /// A second copy of nothing.
    #[error("PBN {pbn} has a second copy, but is not stored")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    CopyWithoutChunk { pbn: u64 },
    /// What damage means to a volume: these chunks cannot be read, and nothing brings them back.
    #[error(
        "{} of volume {volume} from chunk {lba} on ({bytes} bytes) {} lost",
        chunks(*count), if *count == 1 { "is" } else { "are" }
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    LostChunks { volume: String, lba: u64, count: u64, bytes: u64 },
    /// What damage means to a volume until a repair: these chunks cannot be read now.
    #[error(
        "{} of volume {volume} from chunk {lba} on ({bytes} bytes) cannot be read \
         until a repair has mended their tables",
        chunks(*count)
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    HiddenChunks { volume: String, lba: u64, count: u64, bytes: u64 },
    /// What records meant to a volume that are not applied: these chunks may hold what they held
    /// before.
    #[error(
        "{} of volume {volume} from chunk {lba} on ({bytes} bytes) may be older: records of the \
         journal that changed them are not applied",
        chunks(*count)
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    OlderChunks { volume: String, lba: u64, count: u64, bytes: u64 },
    /// Records are not applied, and cannot be read to say what they changed.
    #[error(
        "of the journal's records {first_sequence} to {last_sequence}, which are not applied, \
         {count} cannot be read: nothing says which chunks they changed, and any chunk of any \
         volume may be older"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    UnreadRecords { first_sequence: u64, last_sequence: u64, count: u64 },
    /// What records meant that are not applied: this volume is not there.
    #[error("volume {volume} is gone: the record of the journal that made it is not applied")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    GoneVolume { volume: String },
    /// A container could not be read at all.
    #[error("container {container} cannot be read")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    UnreadableContainer { container: u32 },
    /// Frames in a container were not judged.
    #[error(
        "not all of container {container} could be verified: pages of the tables that say what is \
         in it cannot be read"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    UnjudgedContainer { container: u32 },
    /// A page of a table is damaged.
    #[error("a page of table {tree:#x} is damaged; what its leaf {index} holds is lost")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    DamagedPage { tree: u32, index: u64 },
    /// An inner page of a table is damaged.
    #[error("{table}: page {index} of level {level} is damaged, and what is below it hard to find")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    DamagedInnerPage { table: String, level: u8, index: u64 },
    /// A page that is needed only should the newer root be lost.
    #[error("{table}: page {index} of level {level} of the older root is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    OlderPage { table: String, level: u8, index: u64 },
    /// A page of the catalog is gone: nothing says which volumes stood there.
    #[error("leaf {index} of the catalog of volumes is lost, and the volumes in it with it")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    LostCatalog { index: u64 },
    /// A record of the journal that was durable is not there any more.
    #[error(
        "record {sequence} of the journal, at byte {offset_bytes}, is damaged: what was flushed \
         since, up to record {last_sequence}, cannot be applied"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    Journal { sequence: u64, offset_bytes: u64, last_sequence: u64 },
    /// The end of the journal went with the end of its file.
    #[error(
        "the journal was cut short where record {sequence} may have stood, at byte \
         {offset_bytes}: what was flushed with it and since then, of any volume, may be gone"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    ShortJournal { sequence: u64, offset_bytes: u64 },
    /// A record that is needed only should the newer root be lost.
    #[error(
        "record {sequence} of the journal, at byte {offset_bytes}, is damaged; only the older \
         root needs it"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    OlderJournal { sequence: u64, offset_bytes: u64 },
    /// The journal goes on behind the records that were applied, and nothing says whether it may.
    #[error(
        "record {sequence} of the journal, at byte {offset_bytes}, names a frame that is not \
         there; it is not applied, and neither is what follows up to record {last_sequence}. That \
         may be what a crash left unfinished, or have been flushed: the root that would tell is \
         damaged"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    CutJournal { sequence: u64, offset_bytes: u64, last_sequence: u64 },
    /// What stands in a zone is not what this store wrote there.
    #[error(
        "{zone} holds {holds}: put the right device under this name; while another is there, \
         nothing else is looked at"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    ForeignZone { zone: String, holds: Holds },
    /// A file is shorter than it was made.
    #[error("{zone} has {found_bytes} bytes, but the store was made with {expected_bytes}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    ShortZone { zone: String, expected_bytes: u64, found_bytes: u64 },
    /// A place of a device fails its reads.
    #[error("{zone} cannot be read at byte {offset_bytes}")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    Unreadable { zone: String, offset_bytes: u64 },
    /// One of the two copies of the geometry is not what the store was made with.
    #[error("the copy of the geometry in block {block} of the superblock is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    GeometryCopy { block: u64 },
    /// A root slot does not hold the root that was written to it.
    #[error("the root slot in block {block} of the superblock is damaged")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    RootSlot { block: u64 },
    /// The label of a root is not what was written there.
    #[error(
        "the second copy of geometry and root, in block {block} of the tables, is damaged; the \
         next checkpoint writes another"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    Label { block: u64 },
    /// A frame passes its checksum, but holds other bytes than its chunk had.
    #[error("PBN {pbn} in container {container} does not have the fingerprint it is stored under")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    WrongFingerprint { pbn: u64, container: u32 },
    /// Volumes that may not share chunks share one.
    #[error("PBN {pbn} is mapped by volume {volume} and by one of another domain")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    SharedAcrossDomains { volume: String, pbn: u64 },
    /// A chunk is not of the domain of the volumes that map it.
    #[error(
        "PBN {pbn} is a chunk of domain number {found}, but volumes of domain number {mapped_in} \
         map it (0 is the default domain)"
    )]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    OtherDomain { pbn: u64, found: u16, mapped_in: u16 },
    /// A free PBN is in use.
    #[error("PBN {pbn} is listed as free but names a chunk, or is listed twice")]
    #[expect(missing_docs, reason = "the sentence above says what each field is")]
    FreePbnInUse { pbn: u64 },
}

/// How far a check has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// What is being checked.
    pub stage: &'static str,
    /// Of `total`.
    pub done: u64,
    /// Steps of this stage.
    pub total: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Every broken invariant; none in a sound store.
    pub problems: Vec<Problem>,
    /// Volumes checked.
    pub volumes: u64,
    /// Mapped chunks of all volumes.
    pub mapped_chunks: u64,
    /// Stored chunks, dead ones included.
    pub stored_chunks: u64,
    /// Containers that hold something.
    pub containers: u64,
    /// Frames read and verified.
    pub frames_verified: u64,
    /// Journal records that were applied in memory.
    pub records_replayed: u64,
}
