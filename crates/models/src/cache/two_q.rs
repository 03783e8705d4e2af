//! 2Q in its full form (Johnson and Shasha, VLDB 1994): a page is kept for good only when it is
//! wanted again soon after it has left a short queue of newcomers.

use super::policy::{Moved, Policy};
use super::queue::{Links, Queue};

#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Nowhere,
    Newcomers,
    /// Known by name only.
    Ghosts,
    Kept,
}

pub(super) struct TwoQ {
    links: Links,
    newcomers: Queue,
    ghosts: Queue,
    kept: Queue,
    places: Vec<Place>,
    capacity: usize,
}

impl TwoQ {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        Self {
            links: Links::new(pages),
            newcomers: Queue::new(),
            ghosts: Queue::new(),
            kept: Queue::new(),
            places: vec![Place::Nowhere; pages],
            capacity,
        }
    }

    /// Makes room for one page.
    fn evict(&mut self, moved: &mut Moved) {
        if self.newcomers.len() + self.kept.len() < self.capacity {
            return;
        }
        if self.newcomers.len() > self.capacity / 4 || self.kept.len() == 0 {
            let Some(page) = self.newcomers.pop_oldest(&mut self.links) else { return };
            moved.left.push(page);
            self.places[page as usize] = Place::Ghosts;
            self.ghosts.push(&mut self.links, page);
            if self.ghosts.len() > self.capacity / 2
                && let Some(ghost) = self.ghosts.pop_oldest(&mut self.links)
            {
                self.places[ghost as usize] = Place::Nowhere;
            }
        } else if let Some(page) = self.kept.pop_oldest(&mut self.links) {
            self.places[page as usize] = Place::Nowhere;
            moved.left.push(page);
        }
    }
}

impl Policy for TwoQ {
    fn holds(&self, page: u32) -> bool {
        matches!(self.places[page as usize], Place::Newcomers | Place::Kept)
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        let place = self.places[page as usize];
        match place {
            Place::Newcomers => {}
            Place::Kept => self.kept.renew(&mut self.links, page),
            Place::Ghosts => {
                self.ghosts.remove(&mut self.links, page);
                self.evict(moved);
                self.kept.push(&mut self.links, page);
                self.places[page as usize] = Place::Kept;
            }
            Place::Nowhere => {
                self.evict(moved);
                self.newcomers.push(&mut self.links, page);
                self.places[page as usize] = Place::Newcomers;
            }
        }
        matches!(place, Place::Newcomers | Place::Kept)
    }

    fn remove(&mut self, page: u32) {
        match std::mem::replace(&mut self.places[page as usize], Place::Nowhere) {
            Place::Nowhere => {}
            Place::Newcomers => self.newcomers.remove(&mut self.links, page),
            Place::Ghosts => self.ghosts.remove(&mut self.links, page),
            Place::Kept => self.kept.remove(&mut self.links, page),
        }
    }
}
