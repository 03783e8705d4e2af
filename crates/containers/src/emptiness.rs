//! Sealed containers by how little lives in them.
//!
//! The collector wants the emptiest of perhaps millions, while every chunk that dies or comes back
//! to life changes the figure of one. So containers are sorted coarsely, into classes of 64 KiB of
//! live bytes: a change rarely moves a container to another class, a move is two swaps, and only
//! the lowest class that is not empty is searched for the very emptiest.

use format::units::CONTAINER_BYTES;

const CLASS_BYTES: u32 = 64 << 10;
const CLASSES: usize = (CONTAINER_BYTES / CLASS_BYTES) as usize + 1;

/// Which containers are in which class. Live bytes are the owner's; it gives them with every call.
pub(crate) struct Emptiness {
    classes: [Vec<u32>; CLASSES],
    /// Where in its class each container is; meaningless for one that is in none.
    places: Vec<u32>,
}

impl Emptiness {
    pub(crate) fn new(containers: usize) -> Self {
        Self { classes: [const { Vec::new() }; CLASSES], places: vec![0; containers] }
    }

    /// There are so many containers now, and no fewer than before.
    pub(crate) fn grow(&mut self, containers: usize) {
        self.places.resize(containers, 0);
    }

    pub(crate) fn insert(&mut self, container: u32, live_bytes: u32) {
        let class = &mut self.classes[class_of(live_bytes)];
        self.places[container as usize] = class.len() as u32;
        class.push(container);
    }

    /// `live_bytes` is what it was inserted or moved with last.
    pub(crate) fn remove(&mut self, container: u32, live_bytes: u32) {
        let class = &mut self.classes[class_of(live_bytes)];
        let place = self.places[container as usize];
        class.swap_remove(place as usize);
        if let Some(moved) = class.get(place as usize) {
            self.places[*moved as usize] = place;
        }
    }

    /// The live bytes of a container have changed.
    pub(crate) fn change(&mut self, container: u32, before_bytes: u32, after_bytes: u32) {
        if class_of(before_bytes) != class_of(after_bytes) {
            self.remove(container, before_bytes);
            self.insert(container, after_bytes);
        }
    }

    /// The containers among which the emptiest is.
    pub(crate) fn emptiest_class(&self) -> &[u32] {
        self.classes.iter().find(|class| !class.is_empty()).map_or(&[], Vec::as_slice)
    }
}

fn class_of(live_bytes: u32) -> usize {
    ((live_bytes / CLASS_BYTES) as usize).min(CLASSES - 1)
}
