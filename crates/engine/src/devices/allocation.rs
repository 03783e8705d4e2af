//! How far the medium has allocated the data zones, as was last heard of it.

use disk::{AllocationAhead, Disk, ZoneAllocation};

/// What was heard of [`AllocationAhead`]; empty where every zone has all of its room.
#[derive(Default)]
pub(crate) struct Allocation {
    /// Counts what was heard.
    seen: u64,
    zones: Vec<ZoneAllocation>,
    ticks: u32,
    /// The operator knows that the medium refuses.
    is_told: bool,
}

impl Allocation {
    /// Hears of what has changed; false when nothing has.
    pub(crate) fn hear(&mut self, disk: &dyn Disk) -> bool {
        let changed = disk.allocation_ahead().and_then(|ahead| ahead.changed(&mut self.seen));
        let is_new = changed.is_some();
        self.zones = changed.unwrap_or_else(|| std::mem::take(&mut self.zones));
        is_new
    }

    /// All zones that are allocated as they fill.
    pub(crate) fn zones(&self) -> &[ZoneAllocation] {
        &self.zones
    }

    /// Whether the medium is giving a zone room now.
    pub(crate) fn is_under_way(&self, number: u16) -> bool {
        self.zones.iter().any(|zone| zone.number == number && zone.is_under_way)
    }

    /// Asks for room up to this offset.
    pub(crate) fn ask(&mut self, ahead: &AllocationAhead, number: u16, end_bytes: u64) {
        ahead.allocate(number, end_bytes);
        if let Some(zone) = self.zones.iter_mut().find(|zone| zone.number == number) {
            zone.is_under_way = true;
        }
    }

    /// A tick has passed; how many have.
    pub(crate) fn tick(&mut self) -> u32 {
        self.ticks = self.ticks.wrapping_add(1);
        self.ticks
    }

    /// Whether the operator is to be told that the medium refuses, and why, or that it gives again;
    /// once each.
    pub(crate) fn take_news(&mut self) -> Option<Result<(), String>> {
        let refusal = self.zones.iter().find_map(|zone| zone.refusal.clone());
        let was_told = std::mem::replace(&mut self.is_told, refusal.is_some());
        match refusal {
            Some(reason) if !was_told => Some(Err(reason)),
            None if was_told => Some(Ok(())),
            _ => None,
        }
    }
}
