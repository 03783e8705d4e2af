//! LRU, as FIDR has it: what was wanted longest ago leaves.

use super::policy::{Moved, Policy};
use super::queue::{Links, Queue};

pub(super) struct Lru {
    links: Links,
    queue: Queue,
    held: Vec<bool>,
    capacity: usize,
}

impl Lru {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        let (links, queue) = (Links::new(pages), Queue::new());
        Self { links, queue, held: vec![false; pages], capacity }
    }
}

impl Policy for Lru {
    fn holds(&self, page: u32) -> bool {
        self.held[page as usize]
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        if std::mem::replace(&mut self.held[page as usize], true) {
            self.queue.renew(&mut self.links, page);
            return true;
        }
        if self.queue.len() == self.capacity
            && let Some(oldest) = self.queue.pop_oldest(&mut self.links)
        {
            self.held[oldest as usize] = false;
            moved.left.push(oldest);
        }
        self.queue.push(&mut self.links, page);
        false
    }

    fn remove(&mut self, page: u32) {
        if std::mem::take(&mut self.held[page as usize]) {
            self.queue.remove(&mut self.links, page);
        }
    }
}
