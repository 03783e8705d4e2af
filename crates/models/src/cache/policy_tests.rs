//! The policies against plain models of them: vectors that are searched from end to end, written
//! from the papers' pseudocode.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::proptest;

use super::policies::PolicyKind;
use super::policy::{Moved, Policy};

const PAGES: u32 = 40;

/// A model: whether the page was held, and which page left.
trait Model {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>);
}

fn take(queue: &mut VecDeque<u32>, page: u32) -> bool {
    let place = queue.iter().position(|&other| other == page);
    place.map(|place| queue.remove(place)).is_some()
}

/// Newest first, as in all of them.
struct LruModel {
    queue: VecDeque<u32>,
    capacity: usize,
}

impl Model for LruModel {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>) {
        let hit = take(&mut self.queue, page);
        self.queue.push_front(page);
        let full = self.queue.len() > self.capacity;
        (hit, full.then(|| self.queue.pop_back().unwrap()))
    }
}

/// CLOCK is FIFO with another chance.
struct ClockModel {
    queue: VecDeque<(u32, bool)>,
    capacity: usize,
}

impl Model for ClockModel {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>) {
        if let Some(found) = self.queue.iter_mut().find(|(other, _)| *other == page) {
            found.1 = true;
            return (true, None);
        }
        let mut left = None;
        while self.queue.len() == self.capacity {
            match self.queue.pop_back().unwrap() {
                (spared, true) => self.queue.push_front((spared, false)),
                (page, false) => left = Some(page),
            }
        }
        self.queue.push_front((page, true));
        (false, left)
    }
}

#[derive(Default)]
struct TwoQModel {
    a1_in: VecDeque<u32>,
    a1_out: VecDeque<u32>,
    am: VecDeque<u32>,
    capacity: usize,
}

impl TwoQModel {
    fn reclaim(&mut self) -> Option<u32> {
        if self.a1_in.len() + self.am.len() < self.capacity {
            return None;
        }
        if self.a1_in.len() <= self.capacity / 4 && !self.am.is_empty() {
            return self.am.pop_back();
        }
        let page = self.a1_in.pop_back().unwrap();
        self.a1_out.push_front(page);
        self.a1_out.truncate(self.capacity / 2);
        Some(page)
    }
}

impl Model for TwoQModel {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>) {
        if take(&mut self.am, page) {
            self.am.push_front(page);
            return (true, None);
        }
        if self.a1_in.contains(&page) {
            return (true, None);
        }
        if take(&mut self.a1_out, page) {
            let left = self.reclaim();
            self.am.push_front(page);
            return (false, left);
        }
        let left = self.reclaim();
        self.a1_in.push_front(page);
        (false, left)
    }
}

#[derive(Default)]
struct ArcModel {
    t1: VecDeque<u32>,
    t2: VecDeque<u32>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
    p: usize,
    c: usize,
}

impl ArcModel {
    fn replace(&mut self, in_b2: bool) -> Option<u32> {
        let t1 = self.t1.len();
        let from_t1 = t1 > 0 && (t1 > self.p || (in_b2 && t1 == self.p));
        let (from, to) = match from_t1 || self.t2.is_empty() {
            true => (&mut self.t1, &mut self.b1),
            false => (&mut self.t2, &mut self.b2),
        };
        let page = from.pop_back().unwrap();
        to.push_front(page);
        Some(page)
    }
}

impl Model for ArcModel {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>) {
        let (b1, b2) = (self.b1.len(), self.b2.len());
        if take(&mut self.t1, page) || take(&mut self.t2, page) {
            self.t2.push_front(page);
            return (true, None);
        }
        if take(&mut self.b1, page) {
            self.p = (self.p + (b2 / b1).max(1)).min(self.c);
            let left = self.replace(false);
            self.t2.push_front(page);
            return (false, left);
        }
        if take(&mut self.b2, page) {
            self.p = self.p.saturating_sub((b1 / b2).max(1));
            let left = self.replace(true);
            self.t2.push_front(page);
            return (false, left);
        }
        let l1 = self.t1.len() + b1;
        let all = l1 + self.t2.len() + b2;
        let mut left = None;
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.pop_back();
                left = self.replace(false);
            } else {
                left = self.t1.pop_back();
            }
        } else if all >= self.c {
            if all == 2 * self.c {
                self.b2.pop_back();
            }
            left = self.replace(false);
        }
        self.t1.push_front(page);
        (false, left)
    }
}

#[derive(Default)]
struct S3FifoModel {
    small: VecDeque<(u32, u8)>,
    main: VecDeque<(u32, u8)>,
    ghosts: VecDeque<u32>,
    capacity: usize,
}

impl S3FifoModel {
    fn small_max(&self) -> usize {
        (self.capacity / 10).max(1)
    }

    fn evict(&mut self) -> Option<u32> {
        let mut left = None;
        while self.small.len() + self.main.len() == self.capacity {
            if self.small.len() >= self.small_max() || self.main.is_empty() {
                match self.small.pop_back().unwrap() {
                    (page, 2..) => self.main.push_front((page, 0)),
                    (page, _) => {
                        left = Some(page);
                        self.ghosts.push_front(page);
                        self.ghosts.truncate(self.capacity - self.small_max());
                    }
                }
            } else {
                match self.main.pop_back().unwrap() {
                    (page, 0) => left = Some(page),
                    (page, wanted) => self.main.push_front((page, wanted - 1)),
                }
            }
        }
        left
    }
}

impl Model for S3FifoModel {
    fn touch(&mut self, page: u32) -> (bool, Option<u32>) {
        let mut held = self.small.iter_mut().chain(&mut self.main);
        if let Some((_, wanted)) = held.find(|(other, _)| *other == page) {
            *wanted = (*wanted + 1).min(3);
            return (true, None);
        }
        let is_back = take(&mut self.ghosts, page);
        let left = self.evict();
        let queue = if is_back { &mut self.main } else { &mut self.small };
        queue.push_front((page, 0));
        (false, left)
    }
}

fn model(kind: PolicyKind, capacity: usize) -> Option<Box<dyn Model>> {
    Some(match kind {
        PolicyKind::Lru => Box::new(LruModel { queue: VecDeque::new(), capacity }),
        PolicyKind::Clock => Box::new(ClockModel { queue: VecDeque::new(), capacity }),
        PolicyKind::TwoQ => Box::new(TwoQModel { capacity, ..TwoQModel::default() }),
        PolicyKind::Arc => Box::new(ArcModel { c: capacity, ..ArcModel::default() }),
        PolicyKind::S3Fifo => Box::new(S3FifoModel { capacity, ..S3FifoModel::default() }),
        PolicyKind::ClockClean
        | PolicyKind::ClockCleanEarly
        | PolicyKind::S3FifoClean
        | PolicyKind::TinyLfu => return None,
    })
}

/// How many pages may be dirty.
fn dirty_max(kind: PolicyKind, capacity: usize) -> usize {
    match kind {
        PolicyKind::ClockClean => capacity / 4 * 3,
        PolicyKind::ClockCleanEarly | PolicyKind::S3FifoClean => capacity / 4,
        _ => capacity,
    }
}

/// One access, and what must hold of every policy after it.
fn touch(policy: &mut dyn Policy, page: u32, capacity: usize) -> (bool, Vec<u32>) {
    let held: Vec<u32> = (0..PAGES).filter(|&page| policy.holds(page)).collect();
    let mut moved = Moved::default();
    let hit = policy.touch(page, &mut moved);
    assert_eq!(hit, held.contains(&page));
    assert!(!hit || moved.left.is_empty(), "a hit evicts");
    assert!(moved.left.iter().all(|&page| !policy.holds(page)));
    let mut expected: Vec<u32> =
        held.into_iter().filter(|page| !moved.left.contains(page)).collect();
    if !hit && !moved.left.contains(&page) {
        expected.push(page);
    }
    expected.sort_unstable();
    let held: Vec<u32> = (0..PAGES).filter(|&page| policy.holds(page)).collect();
    assert_eq!(held, expected, "a page left unsaid");
    assert!(held.len() <= capacity, "{} of {capacity}", held.len());
    (hit, moved.left)
}

proptest! {
    #[test]
    fn policies_do_what_their_models_do(
        pages in vec(0..PAGES, 1..400),
        capacity in 2..24_usize,
    ) {
        for kind in PolicyKind::ALL {
            let Some(mut model) = model(kind, capacity) else { continue };
            let mut policy = kind.build(capacity, PAGES as usize);
            for (number, &page) in pages.iter().enumerate() {
                // Neighbours repeat, so that every list is used.
                let page = if page % 3 == 0 { page } else { page % 13 };
                let found = touch(&mut *policy, page, capacity);
                let (hit, left) = model.touch(page);
                assert_eq!(found, (hit, left.into_iter().collect()), "{kind:?}, access {number}");
            }
        }
    }

    /// Pages that are freed, or dirty: no models, but what holds of all of them.
    #[test]
    fn no_policy_loses_a_page_or_keeps_too_many(
        steps in vec((0..PAGES, 0..8_u32), 1..400),
        capacity in 2..24_usize,
    ) {
        for kind in PolicyKind::ALL {
            let mut policy = kind.build(capacity, PAGES as usize);
            let mut dirty = vec![false; PAGES as usize];
            for &(page, what) in &steps {
                if what == 0 {
                    policy.remove(page);
                    dirty[page as usize] = false;
                    assert!(!policy.holds(page));
                    continue;
                }
                let (_, left) = touch(&mut *policy, page, capacity);
                for left in left {
                    let was_dirty = std::mem::take(&mut dirty[left as usize]);
                    assert!(dirty_max(kind, capacity) == capacity || !was_dirty, "left unwritten");
                }
                if what > 3 && policy.holds(page) {
                    let mut moved = Moved::default();
                    dirty[page as usize] = true;
                    policy.changed(page, &mut moved);
                    moved.cleaned.iter().for_each(|&page| dirty[page as usize] = false);
                }
                let dirty = dirty.iter().filter(|&&dirty| dirty).count();
                assert!(dirty <= dirty_max(kind, capacity), "{kind:?}");
            }
        }
    }
}
