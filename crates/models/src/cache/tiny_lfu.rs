//! W-TinyLFU (Einziger and others, ACM TOS 2017): a small window of newcomers; who leaves it gets
//! into the main part only if it was wanted more often than the one that would have to go. How
//! often is told by a sketch that forgets: all counters are halved now and then.

use super::policy::{Moved, Policy};
use super::queue::{Links, Queue};
use crate::dice::mixed;

const ROWS: usize = 4;
const COUNT_MAX: u8 = 15;
/// Touches for each page of the memory after which counters are halved.
const TOUCHES_PER_PAGE: usize = 10;

/// About how often each page was wanted lately.
struct Sketch {
    counters: Vec<u8>,
    row: usize,
    touches: usize,
    touches_max: usize,
}

impl Sketch {
    fn new(capacity: usize) -> Self {
        let row = (4 * capacity).next_power_of_two();
        let touches_max = TOUCHES_PER_PAGE * capacity;
        Self { counters: vec![0; ROWS * row], row, touches: 0, touches_max }
    }

    fn places(&self, page: u32) -> [usize; ROWS] {
        let hash = mixed(0, u64::from(page));
        let (low, high) = (hash as u32 as usize, (hash >> 32) as usize | 1);
        std::array::from_fn(|row| {
            row * self.row + (low.wrapping_add(row.wrapping_mul(high)) & (self.row - 1))
        })
    }

    fn add(&mut self, page: u32) {
        for place in self.places(page) {
            self.counters[place] = (self.counters[place] + 1).min(COUNT_MAX);
        }
        self.touches += 1;
        if self.touches >= self.touches_max {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            self.touches /= 2;
        }
    }

    fn count(&self, page: u32) -> u8 {
        self.places(page).map(|place| self.counters[place]).into_iter().min().unwrap_or(0)
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Nowhere,
    Window,
    Probation,
    Protected,
}

pub(super) struct TinyLfu {
    links: Links,
    window: Queue,
    probation: Queue,
    protected: Queue,
    places: Vec<Place>,
    sketch: Sketch,
    window_max: usize,
    main_max: usize,
}

impl TinyLfu {
    /// `capacity` is at least 2.
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        let window_max = (capacity / 100).max(1);
        Self {
            links: Links::new(pages),
            window: Queue::new(),
            probation: Queue::new(),
            protected: Queue::new(),
            places: vec![Place::Nowhere; pages],
            sketch: Sketch::new(capacity),
            window_max,
            main_max: capacity - window_max,
        }
    }

    /// Who is too many in the window meets who would leave the main part.
    fn admit(&mut self, moved: &mut Moved) {
        if self.window.len() <= self.window_max {
            return;
        }
        let Some(newcomer) = self.window.pop_oldest(&mut self.links) else { return };
        let mut place = Place::Probation;
        if self.probation.len() + self.protected.len() >= self.main_max {
            let from_probation = self.probation.len() > 0;
            let queue = if from_probation { &mut self.probation } else { &mut self.protected };
            let Some(oldest) = queue.oldest() else { return };
            if self.sketch.count(newcomer) > self.sketch.count(oldest) {
                queue.remove(&mut self.links, oldest);
                self.places[oldest as usize] = Place::Nowhere;
                moved.left.push(oldest);
            } else {
                place = Place::Nowhere;
                moved.left.push(newcomer);
            }
        }
        self.places[newcomer as usize] = place;
        if place == Place::Probation {
            self.probation.push(&mut self.links, newcomer);
        }
    }

    fn protect(&mut self, page: u32) {
        self.probation.remove(&mut self.links, page);
        self.protected.push(&mut self.links, page);
        self.places[page as usize] = Place::Protected;
        if self.protected.len() > self.main_max * 4 / 5
            && let Some(oldest) = self.protected.pop_oldest(&mut self.links)
        {
            self.probation.push(&mut self.links, oldest);
            self.places[oldest as usize] = Place::Probation;
        }
    }
}

impl Policy for TinyLfu {
    fn holds(&self, page: u32) -> bool {
        self.places[page as usize] != Place::Nowhere
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        self.sketch.add(page);
        match self.places[page as usize] {
            Place::Window => self.window.renew(&mut self.links, page),
            Place::Protected => self.protected.renew(&mut self.links, page),
            Place::Probation => self.protect(page),
            Place::Nowhere => {
                self.window.push(&mut self.links, page);
                self.places[page as usize] = Place::Window;
                self.admit(moved);
                return false;
            }
        }
        true
    }

    fn remove(&mut self, page: u32) {
        match std::mem::replace(&mut self.places[page as usize], Place::Nowhere) {
            Place::Nowhere => {}
            Place::Window => self.window.remove(&mut self.links, page),
            Place::Probation => self.probation.remove(&mut self.links, page),
            Place::Protected => self.protected.remove(&mut self.links, page),
        }
    }
}
