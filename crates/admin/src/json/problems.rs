//! What checks and scrubs find wrong.

use std::borrow::Cow;

use engine::{CheckReport, Holds, Problem, RepairReport};
use serde::{Deserialize, Serialize};

use crate::json::{mirror, record};

record! {
    CheckReport {
        problems, volumes, mapped_chunks, stored_chunks, containers, frames_verified,
        records_replayed,
    }
    RepairReport {
        found, lost_chunks, lost_records, lost_journal, short_journal, given_up, pages_written,
        directories_written,
    }
}

mirror!(Problem as ProblemForm);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Holds", rename_all = "snake_case")]
enum HoldsForm {
    OtherStore,
    OtherZone(String),
    Older,
    Nothing,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Problem", tag = "problem", rename_all = "snake_case")]
enum ProblemForm {
    MapNamesNoChunk {
        volume: String,
        lba: u64,
        pbn: u64,
    },
    MapBeyondEnd {
        volume: String,
        lba: u64,
    },
    MappedCount {
        volume: String,
        counted: u64,
        recorded: u64,
    },
    References {
        pbn: u64,
        counted: u32,
        recorded: u32,
    },
    Total {
        what: Cow<'static, str>,
        counted: u64,
        recorded: u64,
    },
    EntryWithoutChunk {
        bucket: u64,
        pbn: u64,
    },
    EntryMisplaced {
        bucket: u64,
        pbn: u64,
    },
    ChunkWithoutEntry {
        pbn: u64,
    },
    EntryOfAside {
        pbn: u64,
    },
    FrameMisplaced {
        pbn: u64,
        container: u32,
        offset_bytes: u32,
    },
    FramesOverlap {
        container: u32,
        pbn: u64,
        other: u64,
    },
    LiveBytes {
        container: u32,
        counted: u64,
        recorded: u64,
    },
    Directory {
        container: u32,
    },
    DirectoryLacks {
        container: u32,
        pbn: u64,
    },
    DamagedFrame {
        pbn: u64,
        container: u32,
    },
    DamagedCopy {
        pbn: u64,
        container: u32,
    },
    CopyBesideChunk {
        pbn: u64,
        container: u32,
    },
    CopyWithoutChunk {
        pbn: u64,
    },
    LostChunks {
        volume: String,
        lba: u64,
        count: u64,
        bytes: u64,
    },
    OlderChunks {
        volume: String,
        lba: u64,
        count: u64,
        bytes: u64,
    },
    UnreadRecords {
        first_sequence: u64,
        last_sequence: u64,
        count: u64,
    },
    GoneVolume {
        volume: String,
    },
    HiddenChunks {
        volume: String,
        lba: u64,
        count: u64,
        bytes: u64,
    },
    UnreadableContainer {
        container: u32,
    },
    UnjudgedContainer {
        container: u32,
    },
    DamagedPage {
        tree: u32,
        index: u64,
    },
    DamagedInnerPage {
        table: String,
        level: u8,
        index: u64,
    },
    OlderPage {
        table: String,
        level: u8,
        index: u64,
    },
    LostCatalog {
        index: u64,
    },
    Journal {
        sequence: u64,
        offset_bytes: u64,
        last_sequence: u64,
    },
    ShortJournal {
        sequence: u64,
        offset_bytes: u64,
    },
    OlderJournal {
        sequence: u64,
        offset_bytes: u64,
    },
    CutJournal {
        sequence: u64,
        offset_bytes: u64,
        last_sequence: u64,
    },
    ForeignZone {
        zone: String,
        #[serde(with = "HoldsForm")]
        holds: Holds,
    },
    ShortZone {
        zone: String,
        expected_bytes: u64,
        found_bytes: u64,
    },
    Unreadable {
        zone: String,
        offset_bytes: u64,
    },
    GeometryCopy {
        block: u64,
    },
    RootSlot {
        block: u64,
    },
    Label {
        block: u64,
    },
    WrongFingerprint {
        pbn: u64,
        container: u32,
    },
    SharedAcrossDomains {
        volume: String,
        pbn: u64,
    },
    OtherDomain {
        pbn: u64,
        found: u16,
        mapped_in: u16,
    },
    FreePbnInUse {
        pbn: u64,
    },
}
