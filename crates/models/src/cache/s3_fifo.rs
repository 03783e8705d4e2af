//! S3-FIFO (Yang and others, SOSP 2023): a small queue in which most pages only pass by, a main
//! one, and ghosts of those that passed. A hit sets a counter and moves nothing.
//!
//! [`S3Fifo::clean_only`] is what it could be in the page store, where no dirty page leaves: one
//! whose turn it is goes to the main queue, or round in it. [`S3Fifo::granted`] is the same with
//! something granted to some of the pages (`grants.rs`).

use super::dirty::DirtyPages;
use super::grants::Grants;
use super::policy::{Moved, Policy};
use super::queue::{Links, Queue};

const WANTED_MAX: u8 = 3;
/// Wanted so often in the small queue, beside the first time, a page goes to the main one.
const WANTED_TO_STAY: u8 = 2;

#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Nowhere,
    Small,
    Main,
    Ghosts,
}

pub(super) struct S3Fifo {
    links: Links,
    small: Queue,
    main: Queue,
    ghosts: Queue,
    places: Vec<Place>,
    wanted: Vec<u8>,
    capacity: usize,
    small_max: usize,
    /// Pages that may not leave.
    dirty: Option<DirtyPages>,
    grants: Option<Grants>,
}

impl S3Fifo {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        Self {
            links: Links::new(pages),
            small: Queue::new(),
            main: Queue::new(),
            ghosts: Queue::new(),
            places: vec![Place::Nowhere; pages],
            wanted: vec![0; pages],
            capacity,
            small_max: (capacity / 10).max(1),
            dirty: None,
            grants: None,
        }
    }

    pub(super) fn clean_only(capacity: usize, pages: usize, dirty_max: usize) -> Self {
        let dirty = Some(DirtyPages::new(capacity, pages, dirty_max));
        Self { dirty, ..Self::new(capacity, pages) }
    }

    pub(super) fn granted(capacity: usize, pages: usize, dirty_max: usize, grants: Grants) -> Self {
        Self { grants: Some(grants), ..Self::clean_only(capacity, pages, dirty_max) }
    }

    fn stays(&self, page: u32) -> bool {
        self.dirty.as_ref().is_some_and(|dirty| dirty.holds(page))
            || self.grants.as_ref().is_some_and(|grants| grants.protects(page))
    }

    fn is_first(&self, page: u32) -> bool {
        self.grants.as_ref().is_some_and(|grants| grants.is_first(page))
    }

    fn left(&mut self, page: u32) {
        if let Some(grants) = &mut self.grants {
            grants.left(page);
        }
    }

    fn evict(&mut self, moved: &mut Moved) {
        while self.small.len() + self.main.len() >= self.capacity {
            if self.small.len() >= self.small_max || self.main.len() == 0 {
                self.evict_small(moved);
            } else {
                self.evict_main(moved);
            }
        }
    }

    /// The oldest of the small queue goes, to the main one or altogether.
    fn evict_small(&mut self, moved: &mut Moved) {
        let Some(page) = self.small.pop_oldest(&mut self.links) else { return };
        let is_first = self.is_first(page);
        let was_wanted = std::mem::take(&mut self.wanted[page as usize]) >= WANTED_TO_STAY;
        if was_wanted || self.stays(page) {
            self.wanted[page as usize] = u8::from(is_first);
            self.main.push(&mut self.links, page);
            self.places[page as usize] = Place::Main;
            return;
        }
        moved.left.push(page);
        self.left(page);
        self.ghosts.push(&mut self.links, page);
        self.places[page as usize] = Place::Ghosts;
        if self.ghosts.len() > self.capacity - self.small_max
            && let Some(ghost) = self.ghosts.pop_oldest(&mut self.links)
        {
            self.places[ghost as usize] = Place::Nowhere;
        }
    }

    fn evict_main(&mut self, moved: &mut Moved) {
        while let Some(page) = self.main.pop_oldest(&mut self.links) {
            let stays = self.stays(page);
            let wanted = &mut self.wanted[page as usize];
            if *wanted == 0 && !stays {
                self.places[page as usize] = Place::Nowhere;
                moved.left.push(page);
                self.left(page);
                return;
            }
            *wanted = wanted.saturating_sub(1);
            self.main.push(&mut self.links, page);
        }
    }
}

impl Policy for S3Fifo {
    fn holds(&self, page: u32) -> bool {
        matches!(self.places[page as usize], Place::Small | Place::Main)
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        if self.holds(page) {
            let wanted = &mut self.wanted[page as usize];
            *wanted = (*wanted + 1).min(WANTED_MAX);
            return true;
        }
        let is_back = self.places[page as usize] == Place::Ghosts;
        if is_back {
            self.ghosts.remove(&mut self.links, page);
            self.places[page as usize] = Place::Nowhere;
        }
        self.evict(moved);
        self.wanted[page as usize] = u8::from(is_back && self.is_first(page));
        if let Some(grants) = &mut self.grants {
            grants.came(page);
        }
        if is_back {
            self.main.push(&mut self.links, page);
            self.places[page as usize] = Place::Main;
        } else {
            self.small.push(&mut self.links, page);
            self.places[page as usize] = Place::Small;
        }
        false
    }

    fn remove(&mut self, page: u32) {
        if self.holds(page) {
            self.left(page);
        }
        match std::mem::replace(&mut self.places[page as usize], Place::Nowhere) {
            Place::Nowhere => {}
            Place::Small => self.small.remove(&mut self.links, page),
            Place::Main => self.main.remove(&mut self.links, page),
            Place::Ghosts => self.ghosts.remove(&mut self.links, page),
        }
        if let Some(dirty) = &mut self.dirty {
            dirty.remove(page);
        }
    }

    fn changed(&mut self, page: u32, moved: &mut Moved) {
        let Some(dirty) = &mut self.dirty else { return };
        dirty.add(page);
        dirty.clean(|page| self.wanted[page as usize] > 0, moved);
    }
}
