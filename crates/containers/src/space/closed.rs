//! Which data zones are closed, and what the containers of one are used for; `zones.rs` tells what
//! closed is.

/// Which zones are closed, and what is free in them.
pub(super) struct Closed {
    pub(super) zones: Vec<bool>,
    pub(super) free: u64,
}

/// What the containers of a data zone are used for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneUse {
    /// Containers that take frames or are full.
    pub in_use: u64,
    /// Those of them that stay as they are, because a frame in them cannot be read.
    pub damaged: u64,
    /// Containers that are free as soon as a record is known to be durable, or a read ends.
    pub quarantined: u64,
    /// Frames in them whose chunks are referenced.
    pub live_bytes: u64,
}

impl Closed {
    pub(super) fn new(zones: usize) -> Self {
        Self { zones: vec![false; zones], free: 0 }
    }

    pub(super) fn grow(&mut self, zones: usize) {
        self.zones.resize(zones, false);
    }

    pub(super) fn has(&self, zone: usize) -> bool {
        self.zones.get(zone).copied().unwrap_or(false)
    }
}
