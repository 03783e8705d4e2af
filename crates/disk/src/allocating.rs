//! A disk some of whose data zones are sparse: operations pass through, room is allocated ahead.

use format::units::Zone;

use crate::ahead::AllocationAhead;
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io};

/// A disk with the [`AllocationAhead`] of its sparse zones.
///
/// ```
/// use std::io;
/// use std::ops::Range;
///
/// use disk::{AllocatingDisk, AllocationAhead, Disk, Doorbell, Medium, MemoryDisk, SparseZone};
/// use format::units::Zone;
///
/// /// A medium with room for anything.
/// struct Endless;
///
/// impl Medium for Endless {
///     fn allocate(&self, _: Range<u64>) -> io::Result<()> {
///         Ok(())
///     }
///     fn free_bytes(&self) -> io::Result<u64> {
///         Ok(1 << 40)
///     }
///     fn taken_bytes(&self) -> io::Result<u64> {
///         Ok(0)
///     }
///     fn number(&self) -> u64 {
///         1
///     }
/// }
///
/// let doorbell = Doorbell::new()?;
/// let below = MemoryDisk::new(&[(Zone::Data(0), 1 << 30)], 1);
/// let (allocated_bytes, length_bytes, medium) = (64 << 20, 1 << 30, Box::new(Endless));
/// let zone = SparseZone { number: 0, allocated_bytes, length_bytes, medium };
/// let ahead = AllocationAhead::start(vec![zone], &doorbell)?;
/// let disk = AllocatingDisk::new(Box::new(below), ahead);
/// assert!(disk.allocation_ahead().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AllocatingDisk {
    below: Box<dyn Disk>,
    ahead: AllocationAhead,
}

impl AllocatingDisk {
    /// Over `below`, some of whose data zones `ahead` allocates.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, ahead: AllocationAhead) -> Self {
        Self { below, ahead }
    }
}

impl Disk for AllocatingDisk {
    fn submit(&mut self, io: Io) {
        self.below.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.below.poll(done);
    }

    fn has_ended(&mut self) -> bool {
        self.below.has_ended()
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.below.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight()
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.below.grow(growth)?;
        for number in self.ahead.numbers() {
            self.ahead.set_length(number, self.below.size_bytes(Zone::Data(number)));
        }
        Ok(())
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        self.below.release_data_zones(data_zones);
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }

    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        Some(&self.ahead)
    }
}
