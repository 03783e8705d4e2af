//! Containers that may be written: handed out round-robin over the data zones, so that all devices
//! write at once, and within a zone longest free first.

use std::collections::VecDeque;

pub(crate) struct FreeList {
    zones: Vec<VecDeque<u32>>,
    /// The zone whose turn it is.
    turn: usize,
    count: u64,
}

impl FreeList {
    pub(crate) fn new(zones: usize) -> Self {
        Self { zones: vec![VecDeque::new(); zones], turn: 0, count: 0 }
    }

    /// There are so many zones now, and no fewer than before.
    pub(crate) fn grow(&mut self, zones: usize) {
        self.zones.resize(zones, VecDeque::new());
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Those of one zone.
    pub(crate) fn count_of(&self, zone: usize) -> u64 {
        self.zones.get(zone).map_or(0, |free| free.len() as u64)
    }

    pub(crate) fn add(&mut self, zone: usize, container: u32) {
        self.zones[zone].push_back(container);
        self.count += 1;
    }

    /// Forgets those of one zone.
    pub(crate) fn clear(&mut self, zone: usize) {
        if let Some(free) = self.zones.get_mut(zone) {
            self.count -= free.len() as u64;
            free.clear();
        }
    }

    /// A container of the next zone that has one.
    pub(crate) fn take(&mut self) -> Option<u32> {
        for _ in 0..self.zones.len() {
            let zone = self.turn;
            self.turn = (zone + 1) % self.zones.len();
            if let Some(container) = self.zones[zone].pop_front() {
                self.count -= 1;
                return Some(container);
            }
        }
        None
    }
}
