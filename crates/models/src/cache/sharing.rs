//! How the three tables share the room of one cache: who may push out whom, and whose pages are
//! spared.
//!
//! In one room tables may be granted something (`grants.rs`), or each has a cache of its own.

use super::grants::{Grants, TABLES, Tables};
use super::policies::PolicyKind;
use super::policy::{Moved, Policy};
use super::s3_fifo::S3Fifo;
use super::tree::TreeSizes;

/// A floor is so much of the cache: three of them and the dirty quarter leave some that may go.
const FLOOR_PART: usize = 16;

/// Which pages of which table leave for whose.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One room, and every page is like any other.
    Common,
    /// A third of the room for each table, and nothing passes between them.
    Thirds,
    /// Each table has the same part of its pages in memory, and nothing passes between them.
    BySize,
    /// One room of S3-FIFO; of each table an eighth of it stays, whatever the others want.
    Floors,
    /// One room of S3-FIFO; pages of the Hash-PBN table that were wanted again go round once more.
    HashFirst,
    /// The same for the PBN-PBA table.
    PbaFirst,
    /// The same for the LBA-PBN map.
    MapFirst,
    /// The floors, and the Hash-PBN table first: what the page store does.
    FloorsHashFirst,
}

impl Sharing {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Common,
        Self::Thirds,
        Self::BySize,
        Self::Floors,
        Self::HashFirst,
        Self::PbaFirst,
        Self::MapFirst,
        Self::FloorsHashFirst,
    ];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Thirds => "thirds",
            Self::BySize => "by size",
            Self::Floors => "floors",
            Self::HashFirst => "hash first",
            Self::PbaFirst => "pba first",
            Self::MapFirst => "map first",
            Self::FloorsHashFirst => "floors and hash first",
        }
    }

    /// The policy for `capacity` of the pages of trees of these sizes.
    pub(super) fn build(
        self,
        policy: PolicyKind,
        capacity: usize,
        sizes: &TreeSizes,
    ) -> Box<dyn Policy> {
        let pages = sizes.iter().sum::<u64>() as usize;
        let tables = Tables::new(sizes);
        let granted = |floors, first| {
            let grants = Grants::new(tables, floors, first);
            S3Fifo::granted(capacity, pages, capacity / 4, grants)
        };
        match self {
            Self::Common => policy.build(capacity, pages),
            Self::Thirds => {
                Box::new(Split::new(policy, tables, [capacity / TABLES; TABLES], pages))
            }
            Self::BySize => {
                let parts = tables.parts(capacity).map(|pages| pages.max(PART_MIN));
                Box::new(Split::new(policy, tables, parts, pages))
            }
            Self::Floors => Box::new(granted([capacity / FLOOR_PART; TABLES], None)),
            Self::FloorsHashFirst => Box::new(granted([capacity / FLOOR_PART; TABLES], Some(0))),
            Self::HashFirst => Box::new(granted([0; TABLES], Some(0))),
            Self::PbaFirst => Box::new(granted([0; TABLES], Some(1))),
            Self::MapFirst => Box::new(granted([0; TABLES], Some(2))),
        }
    }
}

/// Less would be no cache for a policy with queues.
const PART_MIN: usize = 2;

/// A cache for each table.
struct Split {
    tables: Tables,
    parts: [Box<dyn Policy>; TABLES],
}

impl Split {
    fn new(policy: PolicyKind, tables: Tables, parts: [usize; TABLES], pages: usize) -> Self {
        let parts = parts.map(|capacity| policy.build(capacity.max(PART_MIN), pages));
        Self { tables, parts }
    }

    fn part(&mut self, page: u32) -> &mut dyn Policy {
        &mut *self.parts[self.tables.of(page)]
    }
}

impl Policy for Split {
    fn holds(&self, page: u32) -> bool {
        self.parts[self.tables.of(page)].holds(page)
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        self.part(page).touch(page, moved)
    }

    fn remove(&mut self, page: u32) {
        self.part(page).remove(page);
    }

    fn changed(&mut self, page: u32, moved: &mut Moved) {
        self.part(page).changed(page, moved);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::proptest;

    use super::{FLOOR_PART, Sharing};
    use crate::cache::grants::Tables;
    use crate::cache::policies::PolicyKind;
    use crate::cache::policy::Moved;

    const SIZES: [u64; 5] = [60, 20, 60, 60, 20];
    const PAGES: u32 = 220;

    #[test]
    fn pages_are_of_the_table_they_are_numbered_in() {
        let tables = Tables::new(&SIZES);
        let found = [0, 79, 80, 139, 140, 199, 200, 219].map(|page| tables.of(page));
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(tables.parts(220), [100, 60, 60]);
    }

    proptest! {
        /// However the room is shared: what is held is what came and did not leave, and it is no
        /// more than there is room for. No table takes what another is granted.
        #[test]
        fn a_grant_is_kept(
            steps in vec((0..PAGES, 0..8_u32), 1..1500),
            capacity in 24..64_usize,
        ) {
            let tables = Tables::new(&SIZES);
            for sharing in Sharing::ALL {
                let mut policy = sharing.build(PolicyKind::S3FifoClean, capacity, &SIZES);
                let mut held = vec![false; PAGES as usize];
                let of = |held: &[bool], table| {
                    let is_its = |&page: &u32| held[page as usize] && tables.of(page) == table;
                    (0..PAGES).filter(is_its).count()
                };
                for &(page, what) in &steps {
                    let before = [0, 1, 2].map(|table| of(&held, table));
                    let mut moved = Moved::default();
                    match what {
                        0 => policy.remove(page),
                        _ => assert_eq!(policy.touch(page, &mut moved), held[page as usize]),
                    }
                    held[page as usize] = what != 0;
                    moved.left.iter().for_each(|&page| held[page as usize] = false);
                    if what > 5 && policy.holds(page) {
                        policy.changed(page, &mut moved);
                    }
                    let all: Vec<bool> = (0..PAGES).map(|page| policy.holds(page)).collect();
                    assert_eq!(all, held, "{sharing:?}");
                    assert!(held.iter().filter(|&&held| held).count() <= capacity, "{sharing:?}");
                    let floor = match sharing {
                        Sharing::Floors | Sharing::FloorsHashFirst => capacity / FLOOR_PART,
                        Sharing::Thirds => capacity / 3,
                        _ => continue,
                    };
                    for table in (0..3).filter(|&table| table != tables.of(page)) {
                        assert!(of(&held, table) >= before[table].min(floor), "{sharing:?}");
                    }
                }
            }
        }
    }
}
