//! Zones in which no container is opened, because they are to be taken out.
//!
//! ```text
//! open -- close_zone --> closed -- (all of it free) retire_zone --> gone
//!   ^______ open_zone ______|
//! ```
//!
//! A free container of a closed zone is in no list: it is neither free to be opened nor withheld,
//! and counts as unused only. What is sealed in such a zone is collected as anywhere.

use std::ops::Range;

use format::superblock::Geometry;
use format::units::ContainerId;

use super::{ContainerUse, Space, ZoneUse};

impl Space {
    /// Opens no container of this data zone from now on.
    pub fn close_zone(&mut self, zone: u16) {
        let at = usize::from(zone);
        if self.closed.has(at) || !self.geometry.has_data_zone(zone) {
            return debug_assert!(false, "closed a zone that is closed or gone");
        }
        let free = self.unused_of(zone);
        let listed = self.free.count_of(at);
        self.free.clear(at);
        self.withheld -= free - listed;
        self.closed.free += free;
        self.closed.zones[at] = true;
    }

    /// Opens containers of a closed data zone again.
    pub fn open_zone(&mut self, zone: u16) {
        let at = usize::from(zone);
        if !self.closed.has(at) {
            return debug_assert!(false, "opened a zone that is not closed");
        }
        self.closed.free -= self.unused_of(zone);
        self.closed.zones[at] = false;
        for container in self.geometry.containers_of(zone) {
            if self.uses[container as usize] == ContainerUse::Free {
                self.list(container);
            }
        }
    }

    /// A closed zone, all of which is free, is gone: `geometry` says so.
    ///
    /// # Panics
    /// When something of the zone is in use, or is read.
    pub fn retire_zone(&mut self, zone: u16, geometry: &Geometry) {
        let containers = self.geometry.containers_of(zone);
        let is_empty = self.unused_of(zone) == u64::from(containers.end - containers.start);
        assert!(self.closed.has(usize::from(zone)), "a zone that is taken out is closed before");
        assert!(is_empty && !self.is_zone_read(zone), "a zone that is taken out is empty before");
        self.closed.free -= self.unused_of(zone);
        self.closed.zones[usize::from(zone)] = false;
        self.geometry = geometry.clone();
    }

    /// Whether nothing is opened in this data zone.
    #[must_use]
    pub fn is_zone_closed(&self, zone: u16) -> bool {
        self.closed.has(usize::from(zone))
    }

    /// What a data zone is used for.
    #[must_use]
    pub fn zone_use(&self, zone: u16) -> ZoneUse {
        let mut figures = ZoneUse::default();
        for container in self.uses_of(zone) {
            match container {
                ContainerUse::Free => {}
                ContainerUse::Quarantined { .. } => figures.quarantined += 1,
                ContainerUse::Open { live_bytes } => {
                    figures.in_use += 1;
                    figures.live_bytes += u64::from(*live_bytes);
                }
                ContainerUse::Sealed(sealed) => {
                    figures.in_use += 1;
                    figures.damaged += u64::from(sealed.damaged);
                    figures.live_bytes += u64::from(sealed.live_bytes);
                }
            }
        }
        figures
    }

    /// Whether a read of the data zone is in flight.
    #[must_use]
    pub fn is_zone_read(&self, zone: u16) -> bool {
        let containers = self.geometry.containers_of(zone);
        self.pins.keys().any(|container| containers.contains(container))
    }

    /// The last record that freed a container of this data zone which is in quarantine; 0: none is.
    #[must_use]
    pub fn last_quarantined_in(&self, zone: u16) -> u64 {
        let record = |used: &ContainerUse| match used {
            ContainerUse::Quarantined { record } => Some(*record),
            _ => None,
        };
        self.uses_of(zone).iter().filter_map(record).max().unwrap_or(0)
    }

    /// Whether this record is known to be durable.
    #[must_use]
    pub fn is_known_durable(&self, record: u64) -> bool {
        record <= self.known_durable
    }

    /// The first of these containers that is sealed and not damaged.
    #[must_use]
    pub fn sealed_in(&self, containers: Range<u32>) -> Option<ContainerId> {
        let is_sealed = |container: &u32| {
            let container = self.uses.get(*container as usize);
            matches!(container, Some(ContainerUse::Sealed(sealed)) if !sealed.damaged)
        };
        containers.into_iter().find(is_sealed).map(ContainerId)
    }

    /// Whether a free container is in a zone that is closed or gone, and so in no list.
    pub(super) fn is_unlisted(&self, container: u32) -> bool {
        let (zone, _) = self.place_of(container);
        self.closed.has(zone) || !self.geometry.has_data_zone(zone as u16)
    }

    /// Counts a free container that is in no list.
    pub(super) fn count_unlisted(&mut self, container: u32) {
        let (zone, _) = self.place_of(container);
        self.closed.free += u64::from(self.closed.has(zone));
    }

    fn uses_of(&self, zone: u16) -> &[ContainerUse] {
        let Range { start, end } = self.geometry.containers_of(zone);
        &self.uses[start as usize..end as usize]
    }

    fn unused_of(&self, zone: u16) -> u64 {
        self.uses_of(zone).iter().filter(|used| **used == ContainerUse::Free).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tests::geometry;

    const MIB: u64 = 1 << 20;

    #[test]
    fn nothing_is_opened_in_a_closed_zone_and_all_again_in_one_that_is_opened() {
        // Of the second zone one container has been given.
        let mut space = Space::with_allocated(&geometry(&[2, 3]), &[8 * MIB, 4 * MIB], []);
        assert_eq!((space.free_containers(), space.withheld_containers()), (3, 2));
        space.close_zone(1);
        assert_eq!((space.free_containers(), space.withheld_containers()), (2, 0));
        assert_eq!((space.unused_containers(), space.coming_containers()), (5, 2));
        // What the medium gives meanwhile is found when the zone is opened again.
        space.allocated_to(1, 8 * MIB);
        let taken = [space.allocate(), space.allocate(), space.allocate()];
        assert_eq!(taken, [Some(ContainerId(0)), Some(ContainerId(1)), None]);
        space.open_zone(1);
        assert_eq!((space.free_containers(), space.withheld_containers()), (2, 1));
    }

    #[test]
    fn what_is_freed_in_a_closed_zone_is_unused_and_not_free() {
        let mut space = Space::new(&geometry(&[1, 1]), [ContainerUse::Open { live_bytes: 0 }; 2]);
        space.close_zone(1);
        space.free(ContainerId(1), 7);
        assert_eq!(space.zone_use(1), ZoneUse { quarantined: 1, ..ZoneUse::default() });
        space.known_durable(7);
        assert_eq!((space.free_containers(), space.unused_containers()), (0, 1));
        assert_eq!(space.zone_use(1), ZoneUse::default());
        let gone =
            Geometry { features: geometry(&[1, 1]).features.without_zone(1), ..geometry(&[1, 1]) };
        space.retire_zone(1, &gone);
        assert_eq!((space.unused_containers(), space.coming_containers()), (0, 0));
        let opened = Space::new(&gone, [ContainerUse::Open { live_bytes: 0 }]);
        assert_eq!((opened.free_containers(), opened.unused_containers()), (0, 0));
    }

    #[test]
    #[should_panic(expected = "empty before")]
    fn a_zone_that_holds_something_is_not_taken_out() {
        let mut space = Space::new(&geometry(&[1, 1]), [ContainerUse::Open { live_bytes: 0 }; 2]);
        space.close_zone(1);
        space.retire_zone(1, &geometry(&[1, 1]));
    }
}
