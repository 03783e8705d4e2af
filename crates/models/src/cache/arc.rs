//! ARC (Megiddo and Modha, FAST 2003): pages wanted once and pages wanted more often share the
//! memory; ghosts of both say which of them should have had more.

use super::policy::{Moved, Policy};
use super::queue::{Links, Queue};

#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Nowhere,
    Once,
    Often,
    GhostOnce,
    GhostOften,
}

pub(super) struct Arc {
    links: Links,
    once: Queue,
    often: Queue,
    ghosts_once: Queue,
    ghosts_often: Queue,
    places: Vec<Place>,
    /// How many of the pages should be such as were wanted once.
    once_wanted: usize,
    capacity: usize,
}

impl Arc {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        Self {
            links: Links::new(pages),
            once: Queue::new(),
            often: Queue::new(),
            ghosts_once: Queue::new(),
            ghosts_often: Queue::new(),
            places: vec![Place::Nowhere; pages],
            once_wanted: 0,
            capacity,
        }
    }

    /// Makes room for one page, and remembers which left.
    fn replace(&mut self, from_often_ghost: bool, moved: &mut Moved) {
        let once = self.once.len();
        if once + self.often.len() < self.capacity {
            return;
        }
        let too_many = once > self.once_wanted || (from_often_ghost && once == self.once_wanted);
        if once > 0 && (too_many || self.often.len() == 0) {
            let Some(page) = self.once.pop_oldest(&mut self.links) else { return };
            self.ghosts_once.push(&mut self.links, page);
            self.places[page as usize] = Place::GhostOnce;
            moved.left.push(page);
        } else if let Some(page) = self.often.pop_oldest(&mut self.links) {
            self.ghosts_often.push(&mut self.links, page);
            self.places[page as usize] = Place::GhostOften;
            moved.left.push(page);
        }
    }

    fn forget(&mut self, page: Option<u32>) {
        if let Some(page) = page {
            self.places[page as usize] = Place::Nowhere;
        }
    }

    fn add(&mut self, page: u32, moved: &mut Moved) {
        let (once, ghosts) = (self.once.len(), self.ghosts_once.len());
        let all = once + ghosts + self.often.len() + self.ghosts_often.len();
        if once + ghosts >= self.capacity {
            if ghosts > 0 {
                let ghost = self.ghosts_once.pop_oldest(&mut self.links);
                self.forget(ghost);
                self.replace(false, moved);
            } else {
                let oldest = self.once.pop_oldest(&mut self.links);
                self.forget(oldest);
                moved.left.extend(oldest);
            }
        } else if all >= self.capacity {
            if all >= 2 * self.capacity {
                let ghost = self.ghosts_often.pop_oldest(&mut self.links);
                self.forget(ghost);
            }
            self.replace(false, moved);
        }
        self.once.push(&mut self.links, page);
        self.places[page as usize] = Place::Once;
    }
}

impl Policy for Arc {
    fn holds(&self, page: u32) -> bool {
        matches!(self.places[page as usize], Place::Once | Place::Often)
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        let place = self.places[page as usize];
        match place {
            Place::Nowhere => {
                self.add(page, moved);
                return false;
            }
            Place::Often => {
                self.often.renew(&mut self.links, page);
                return true;
            }
            Place::Once => self.once.remove(&mut self.links, page),
            Place::GhostOnce => {
                let step = (self.ghosts_often.len() / self.ghosts_once.len()).max(1);
                self.once_wanted = (self.once_wanted + step).min(self.capacity);
                self.ghosts_once.remove(&mut self.links, page);
                self.replace(false, moved);
            }
            Place::GhostOften => {
                let step = (self.ghosts_once.len() / self.ghosts_often.len()).max(1);
                self.once_wanted = self.once_wanted.saturating_sub(step);
                self.ghosts_often.remove(&mut self.links, page);
                self.replace(true, moved);
            }
        }
        self.often.push(&mut self.links, page);
        self.places[page as usize] = Place::Often;
        place == Place::Once
    }

    fn remove(&mut self, page: u32) {
        match std::mem::replace(&mut self.places[page as usize], Place::Nowhere) {
            Place::Nowhere => {}
            Place::Once => self.once.remove(&mut self.links, page),
            Place::Often => self.often.remove(&mut self.links, page),
            Place::GhostOnce => self.ghosts_once.remove(&mut self.links, page),
            Place::GhostOften => self.ghosts_often.remove(&mut self.links, page),
        }
    }
}
