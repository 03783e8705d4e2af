//! What a table is granted in the room of one cache: a floor, or that its pages are spared.
//!
//! Policies know pages by number only; here is which table a number belongs to. Pages of
//! containers' directories count as the Hash-PBN table's, since they spare its look-ups.

use super::tree::{Tree, TreeSizes};

/// Tables, as an operator counts them.
pub(super) const TABLES: usize = 3;

/// Which table a page belongs to.
#[derive(Copy, Clone)]
pub(super) struct Tables {
    pba: u32,
    maps: u32,
    directories: u32,
    pages: u32,
}

impl Tables {
    pub(super) fn new(sizes: &TreeSizes) -> Self {
        let before = |tree: Tree| sizes[..tree as usize].iter().sum::<u64>() as u32;
        Self {
            pba: before(Tree::Pba),
            maps: before(Tree::Map),
            directories: before(Tree::Directory),
            pages: sizes.iter().sum::<u64>() as u32,
        }
    }

    pub(super) fn of(&self, page: u32) -> usize {
        match page {
            page if page < self.pba || page >= self.directories => 0,
            page if page < self.maps => 1,
            _ => 2,
        }
    }

    /// Room for each table, by its pages.
    pub(super) fn parts(&self, capacity: usize) -> [usize; TABLES] {
        let pba = u64::from(self.maps - self.pba);
        let maps = u64::from(self.directories - self.maps);
        let all = u64::from(self.pages.max(1));
        [all - pba - maps, pba, maps].map(|pages| (capacity as u64 * pages / all) as usize)
    }
}

/// What tables are granted in one room.
pub(super) struct Grants {
    tables: Tables,
    held: [usize; TABLES],
    floors: [usize; TABLES],
    first: Option<usize>,
}

impl Grants {
    /// Nothing is held yet. `first` is the table whose pages are spared, if one is.
    pub(super) fn new(tables: Tables, floors: [usize; TABLES], first: Option<usize>) -> Self {
        Self { tables, held: [0; TABLES], floors, first }
    }

    pub(super) fn came(&mut self, page: u32) {
        self.held[self.tables.of(page)] += 1;
    }

    pub(super) fn left(&mut self, page: u32) {
        self.held[self.tables.of(page)] -= 1;
    }

    /// Whether its table would fall below its floor without this page.
    pub(super) fn protects(&self, page: u32) -> bool {
        let table = self.tables.of(page);
        self.held[table] <= self.floors[table]
    }

    /// Whether the page goes round once more than others.
    pub(super) fn is_first(&self, page: u32) -> bool {
        self.first == Some(self.tables.of(page))
    }
}
