//! Containers that the medium has given, and those that it withholds still.

use format::units::CONTAINER_BYTES;

use super::{ContainerUse, Space};

const UNIT_BYTES: u64 = CONTAINER_BYTES as u64;

impl Space {
    /// The medium has given a data zone room up to this offset: what was withheld of it is free.
    /// A prefix that is no longer than the last changes nothing.
    pub fn allocated_to(&mut self, zone: u16, allocated_bytes: u64) {
        let zone = usize::from(zone);
        let Some(given) = self.given.get_mut(zone) else { return };
        let after = whole_containers(allocated_bytes);
        let before = std::mem::replace(given, after.max(*given));
        let (in_front, from) = self.geometry.data.split_at(zone);
        let first: u32 = in_front.iter().sum();
        let length = from.first().copied().unwrap_or(0);
        if self.closed.has(zone) {
            return;
        }
        for container in first + before.min(length)..first + after.min(length) {
            if self.uses[container as usize] == ContainerUse::Free {
                self.withheld -= 1;
                self.free.add(zone, container);
            }
        }
    }

    /// How many of the withheld containers the medium is expected to give; all unless this says
    /// otherwise.
    pub fn expect_of_medium(&mut self, containers: u64) {
        self.expected = containers;
    }

    /// Free containers of one data zone.
    #[must_use]
    pub fn free_containers_of(&self, zone: u16) -> u64 {
        self.free.count_of(usize::from(zone))
    }

    /// Containers that are not free only because the medium has not given them yet.
    #[must_use]
    pub fn withheld_containers(&self) -> u64 {
        self.withheld
    }

    /// Those of them that the medium is expected to give when it is asked.
    #[must_use]
    pub fn expected_containers(&self) -> u64 {
        self.withheld.min(self.expected)
    }

    /// Containers that hold nothing which is needed, or will soon hold nothing.
    #[must_use]
    pub fn unused_containers(&self) -> u64 {
        let listed = self.free_containers() + self.quarantined_containers() + self.withheld;
        listed + self.closed.free
    }

    /// Containers that can be allocated now, or as soon as the medium has given them.
    #[must_use]
    pub fn reachable_containers(&self) -> u64 {
        self.free_containers() + self.expected_containers()
    }
}

/// Containers that lie whole in a prefix of a zone.
pub(super) fn whole_containers(prefix_bytes: u64) -> u32 {
    u32::try_from(prefix_bytes / UNIT_BYTES).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use format::units::ContainerId;

    use super::*;
    use crate::space::tests::geometry;

    proptest! {
        /// What is handed out lies in the prefix that was given, and all of that is handed out.
        #[test]
        fn only_what_was_given_is_free(
            steps in proptest::collection::vec((any::<bool>(), 0_u16..2, 0_u64..12), 1..40),
        ) {
            let (geometry, sizes) = (geometry(&[7, 5]), [7, 5]);
            let mut space = Space::with_allocated(&geometry, &[0, 2 * UNIT_BYTES], []);
            let (mut given, mut taken) = ([0, 2], [0, 0]);
            for (takes, zone, containers) in steps {
                if takes {
                    let Some(id) = space.allocate() else {
                        assert_eq!(given, taken);
                        continue;
                    };
                    let of = usize::from(id.0 >= 7);
                    taken[of] += 1;
                    assert!(u64::from(id.0) - [0, 7][of] < given[of], "{id:?} of {given:?}");
                } else {
                    // Behind the last whole container is room for none.
                    space.allocated_to(zone, containers * UNIT_BYTES + UNIT_BYTES - 1);
                    let zone = usize::from(zone);
                    given[zone] = given[zone].max(containers.min(sizes[zone]));
                }
                let (all, in_use): (u64, u64) = (given.iter().sum(), taken.iter().sum());
                assert_eq!(space.free_containers(), all - in_use);
                assert_eq!(space.withheld_containers(), 12 - all);
                assert_eq!(space.unused_containers(), 12 - in_use);
            }
        }
    }

    #[test]
    fn what_the_medium_is_not_expected_to_give_does_not_come() {
        let mut space = Space::with_allocated(&geometry(&[8]), &[3 * UNIT_BYTES], []);
        assert_eq!((space.coming_containers(), space.reachable_containers()), (8, 8));
        space.expect_of_medium(1);
        assert_eq!((space.expected_containers(), space.coming_containers()), (1, 4));
        space.allocated_to(0, 8 * UNIT_BYTES);
        assert_eq!((space.expected_containers(), space.coming_containers()), (0, 8));
    }

    #[test]
    fn what_is_freed_behind_the_prefix_is_withheld() {
        let uses = [ContainerUse::Open { live_bytes: 0 }; 2];
        let mut space = Space::with_allocated(&geometry(&[2]), &[UNIT_BYTES], uses);
        for container in 0..2 {
            space.free(ContainerId(container), 1);
        }
        space.known_durable(1);
        assert_eq!((space.free_containers(), space.withheld_containers()), (1, 1));
        assert_eq!(space.allocate(), Some(ContainerId(0)));
        assert_eq!(space.allocate(), None);
        space.allocated_to(0, 2 * UNIT_BYTES);
        assert_eq!(space.allocate(), Some(ContainerId(1)));
    }
}
