//! Verbs that go in steps, what they find, and one address explained.

use engine::{
    Address, ChangedRange, CollectPosition, CollectRequest, CollectStep, CollectedContainer,
    CountedChunk, DamagedChunk, DifferenceRequest, DifferenceStep, EvacuateZone, ExplainedChunk,
    ExplainedCopy, ExplainedFrame, ExplainedPage, ExplainedPlace, Explanation, KeepZone, ListZones,
    Problem, ReferenceClass, ScrubFinding, ScrubPosition, ScrubRequest, ScrubStep, Tally,
    VolumeWeight, WeightRequest, WeightStep, ZoneInfo, ZoneState,
};
use serde::{Deserialize, Serialize};

use crate::json::{mirror, record};

record! {
    Explanation { volume, lba, offset_bytes, chunk_bytes, buffered, map, chunk }
    ExplainedPage { table, level, index, block, dirty }
    ExplainedChunk { pbn, pages, place }
    ExplainedPlace {
        references, container, offset_bytes, length_bytes, zone, zone_offset_bytes, in_memory,
        second_copy if some, frame,
    }
    ExplainedCopy { container, offset_bytes, length_bytes, zone, zone_offset_bytes }
    ExplainedFrame {
        codec, stored_bytes, ratio, fingerprint, bucket, pages, named_pbn, unindexed if true,
    }
    DifferenceRequest { from, to, lba }
    DifferenceStep { numbers, sizes_bytes, chunk_bytes, ranges, next_lba }
    ChangedRange { offset_bytes, length_bytes, unmapped }
    WeightRequest { volume, leaf, pbns }
    WeightStep {
        number, chunk_bytes, size_bytes, mapped_total, children, mapped, lost, single, single_own,
        several, next_leaf,
    }
    Tally { chunks, frame_bytes }
    VolumeWeight {
        size_bytes, mapped_bytes, chunks, unique, shared, given_back as freed_by_deletion, held,
        lost_chunks,
        compression_ratio, references,
    }
    ReferenceClass { from, to if some, chunks, mapped, frame_bytes }
    CountedChunk { pbn, references, frame_bytes, mapped, own }
    ScrubRequest { position, fingerprints }
    ScrubStep {
        next, bytes_read, bytes_total, pages, containers, frames, findings, damaged,
        damaged_chunks, given_up_chunks,
    }
    CollectRequest { position, recompress }
    CollectPosition { from_sequence, until_sequence }
    CollectStep { next, collected, containers_used, containers }
    CollectedContainer { container, freed, used_bytes, moved_bytes, written_bytes }
    EvacuateZone { zone }
    KeepZone { zone }
    ZoneInfo { zone, state, capacity_bytes, used_bytes, live_bytes }
}

mirror!(
    Address as AddressForm,
    ScrubPosition as PositionForm,
    ScrubFinding as FindingForm,
    DamagedChunk as DamagedForm,
    ListZones as ListZonesForm,
    ZoneState as ZoneStateForm,
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Address", rename_all = "snake_case")]
enum AddressForm {
    Lba(u64),
    OffsetBytes(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ScrubPosition", tag = "stage", rename_all = "snake_case")]
enum PositionForm {
    Superblock,
    Tables { tree: u32, level: Option<u8>, index: u64 },
    Containers { container: u32 },
    Losses { volume: u32, leaf: u64 },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ListZones")]
struct ListZonesForm {}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ZoneState", rename_all = "snake_case")]
enum ZoneStateForm {
    InUse,
    Leaving,
    Gone,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ScrubFinding")]
struct FindingForm {
    #[serde(flatten, with = "crate::json")]
    problem: Problem,
    healed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DamagedChunk")]
struct DamagedForm {
    pbn: u64,
    container: u32,
    /// A client that kept none of it may have meant it.
    #[serde(default = "unsaid")]
    checksum_fits: bool,
}

fn unsaid() -> bool {
    true
}
