//! Which sectors of which volume.

/// Sectors of a volume.
#[derive(Copy, Clone)]
pub(crate) struct Range {
    pub(crate) volume: u32,
    pub(crate) first: u64,
    pub(crate) count: u64,
}
