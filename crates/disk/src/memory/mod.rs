//! A disk in memory whose every misfortune comes from a seed.
//!
//! A [`MemoryDisk`] is a handle: a test keeps one while the engine drives another, and looks at the
//! medium, injects faults or cuts the power from outside. The medium is sparse, so that a zone of
//! many TiB costs only what was written to it.
//!
//! An operation goes through these states:
//!
//! ```text
//! submit -> in flight --(poll or wait, in an order the seed chooses)--> landed
//!                                                      writes: unsynced --(sync)--> durable
//! ```
//!
//! - *In flight*: not visible to reads. Operations land in any order, whatever overlaps.
//! - *Unsynced*: visible to reads, in the order of landing; a power loss may undo it.
//! - *Durable*: a sync makes durable exactly the writes of its zone that had landed when it was
//!   **submitted**, nothing more. A real device often keeps more, and nobody may count on it. A
//!   durable write is durable when it lands, and nothing else because of it.
//!
//! The fault model (`power.rs`): at a power loss each write that is not durable is, independently
//! of all others, lost, kept, or torn: of its 512-byte sectors the first so many are kept, or each
//! is kept or lost. Hence later writes may survive where earlier ones did not. Apart from that the
//! medium keeps what it holds, unless a test corrupts it ([`MemoryDisk::corrupt`]) or makes it fail
//! ([`Fault`]).

mod device;
mod faults;
mod image;
mod power;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::units::Zone;

use crate::doorbell::Doorbell;
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io};
use device::Device;

pub use device::MemoryCounters;
pub use faults::Fault;
pub use power::Loss;

/// What a memory disk prepares of a growth.
#[derive(Clone, Default)]
struct LongerZones(Vec<(Zone, u64)>);

/// A handle to a disk in memory; clones are the same disk.
#[derive(Clone)]
pub struct MemoryDisk {
    device: Arc<Mutex<Device>>,
}

impl MemoryDisk {
    /// A disk of zeros with these zones and sizes in bytes (whole blocks); `seed` chooses the order
    /// in which operations complete.
    #[must_use]
    pub fn new(zones: &[(Zone, u64)], seed: u64) -> Self {
        Self::from_device(Device::new(zones, seed))
    }

    /// Prepares a growth: zones that get these lengths in bytes, or are new.
    #[must_use]
    pub fn prepare_growth(zones: &[(Zone, u64)]) -> ZoneGrowth {
        ZoneGrowth::of(LongerZones(zones.to_vec()))
    }

    /// Completions, and submissions that can complete, ring this bell from now on.
    pub fn set_doorbell(&self, doorbell: &Doorbell) {
        self.device().doorbell = Some(doorbell.clone());
    }

    /// What was asked for so far.
    #[must_use]
    pub fn counters(&self) -> MemoryCounters {
        self.device().counters
    }

    /// The medium as a read would see it now, without an operation; zeros beyond the zone.
    #[must_use]
    pub fn peek(&self, zone: Zone, offset_bytes: u64, length_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; length_bytes];
        if let Some(medium) = self.device().medium(zone) {
            medium.current.read(offset_bytes, &mut bytes);
        }
        bytes
    }

    /// Changes one byte at rest, behind the back of the disk's owner: it stays changed after
    /// syncs and power losses too, whatever becomes of writes that are not durable.
    pub fn corrupt(&self, zone: Zone, offset_bytes: u64, change: impl FnOnce(&mut u8)) {
        let mut device = self.device();
        let Some(medium) = device.medium_mut(zone) else { return };
        let mut byte = [0];
        medium.current.read(offset_bytes, &mut byte);
        change(&mut byte[0]);
        medium.current.write(offset_bytes, &byte);
        medium.durable.write(offset_bytes, &byte);
        medium.corrupt_unsynced(offset_bytes, byte[0]);
    }

    /// Makes operations fail until [`MemoryDisk::heal`].
    pub fn inject(&self, fault: Fault) {
        self.device().faults.push(fault);
    }

    /// Takes all injected faults away.
    pub fn heal(&self) {
        self.device().faults.clear();
    }

    /// Lets `writes` more writes be submitted and cuts the power with the next one, which is then
    /// in flight. From there on nothing completes, nothing is taken, nothing counts as in flight.
    pub fn crash_after_writes(&self, writes: u64) {
        self.device().writes_left = Some(writes);
    }

    /// Whether the power is gone.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.device().crashed
    }

    /// Cuts the power, if it is not gone yet, and gives the disk as it is found afterwards; `seed`
    /// chooses what became of each write that was not durable, and the new disk's order of
    /// completion. May be called again for another outcome of the same loss. Corruption and faults
    /// stay; the new disk has no doorbell.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        let mut device = self.device();
        device.crashed = true;
        Self::from_device(device.after_power_loss(seed, Loss::Mixed))
    }

    /// What a power loss at this moment would leave, while this disk goes on as if nothing had
    /// happened: a simulator looks at every moment of one run.
    #[must_use]
    pub fn left_by_power_loss(&self, seed: u64, loss: Loss) -> Self {
        Self::from_device(self.device().after_power_loss(seed, loss))
    }

    /// What the death of the owner at this moment would leave, while this disk goes on: all that
    /// landed, still unsynced, and of the writes in flight what the seed says.
    #[must_use]
    pub fn left_by_kill(&self, seed: u64) -> Self {
        Self::from_device(self.device().after_kill(seed))
    }

    /// The disk after its owner died and the power stayed: what was in flight lands, what is
    /// unsynced stays so. The old handle is dead as after a crash.
    #[must_use]
    pub fn restart(&self, seed: u64) -> Self {
        let mut device = self.device();
        device.crashed = true;
        Self::from_device(device.after_owner_died(seed))
    }

    fn from_device(device: Device) -> Self {
        Self { device: Arc::new(Mutex::new(device)) }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemoryDisk {
    fn submit(&mut self, io: Io) {
        self.device().submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.device().land_some(0, done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.device().land_some(1, done);
    }

    fn in_flight(&self) -> usize {
        let device = self.device();
        if device.crashed { 0 } else { device.in_flight.len() }
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        let LongerZones(zones) = growth.take()?.unwrap_or_default();
        self.device().lengthen(&zones);
        Ok(())
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.device().medium(zone).map_or(0, |medium| medium.size_bytes)
    }
}
