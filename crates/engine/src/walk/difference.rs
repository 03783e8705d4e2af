//! Where two versions differ: what is asked and answered, step by step (`compare.rs`).

use format::units::VolumeId;

/// A step that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceRequest {
    /// A volume, or `VOLUME@SNAPSHOT`.
    pub from: String,
    /// The one that is compared with it.
    pub to: String,
    /// The chunk from which on they are compared.
    pub lba: u64,
}

/// What a step found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceStep {
    /// Numbers of the two: if they change between steps, the names mean others by now.
    pub numbers: [u32; 2],
    /// Their sizes.
    pub sizes_bytes: [u64; 2],
    /// Unit of all ranges.
    pub chunk_bytes: u32,
    /// Where they differ, in ascending order; neighbours of one kind are one range.
    pub ranges: Vec<ChangedRange>,
    /// The chunk at which the next step begins; none when all is compared.
    pub next_lba: Option<u64>,
}

/// A range in which two versions differ, in whole chunks but at the end of the larger.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ChangedRange {
    /// Its first byte.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// Whether the second version holds nothing here: it reads as zeros.
    pub unmapped: bool,
}

impl ChangedRange {
    /// Adds a range that lies behind the others, to the last one if they are neighbours of a kind.
    pub fn add_to(self, ranges: &mut Vec<Self>) {
        match ranges.last_mut() {
            Some(last)
                if last.unmapped == self.unmapped
                    && last.offset_bytes + last.length_bytes == self.offset_bytes =>
            {
                last.length_bytes += self.length_bytes;
            }
            _ => ranges.push(self),
        }
    }
}

/// A step under way.
pub(crate) struct DifferenceWalk {
    pub(crate) versions: [VolumeId; 2],
    /// Where it is.
    pub(crate) lba: u64,
    pub(crate) leaves_left: u32,
    pub(crate) step: DifferenceStep,
}
