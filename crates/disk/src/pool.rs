//! The shelf from which buffers are taken and to which they return.
//!
//! One shelf for the process, not one per thread: a buffer is filled on one thread, written by
//! another and dropped wherever its last reader is, so that per-thread shelves would fill up in one
//! place and run dry in another. A lock held for a push or a pop is cheap beside the I/O of 4 KiB
//! or more that each buffer is for.
//!
//! Buffers are kept in sizes of powers of two from one block to [`CLASS_BYTES_MAX`], which bounds
//! what a size wastes to half of its address space (untouched pages cost no memory). Together they
//! hold at most [`SHELF_BYTES_MAX`], and beside that one that is as long as a container: many short
//! ones would else leave no room for what collection and scrub read, and 4 MiB from the allocator
//! are 4 MiB to be cleared. What is more goes back to the allocator.

use std::sync::{Mutex, PoisonError};

use format::units::BLOCK_BYTES;

use crate::allocation::Memory;

const CLASSES: usize = 11;
/// The largest buffer that is kept: a whole container.
const CLASS_BYTES_MAX: usize = BLOCK_BYTES << (CLASSES - 1);
const LONGEST: usize = CLASSES - 1;
/// What the shelf keeps at most, beside one buffer of the longest class.
const SHELF_BYTES_MAX: usize = 16 << 20;

struct Shelf {
    classes: [Vec<Memory>; CLASSES],
    /// Of all classes but the longest.
    kept_bytes: usize,
}

impl Shelf {
    fn take(&mut self, class: usize) -> Option<Memory> {
        let memory = self.classes.get_mut(class)?.pop()?;
        self.kept_bytes -= counted_bytes(class);
        Some(memory)
    }

    fn has_room(&self, class: usize) -> bool {
        match class {
            LONGEST => self.classes[LONGEST].is_empty(),
            _ => self.kept_bytes + counted_bytes(class) <= SHELF_BYTES_MAX,
        }
    }

    fn put(&mut self, class: usize, memory: Memory) {
        if let Some(kept) = self.classes.get_mut(class) {
            kept.push(memory);
            self.kept_bytes += counted_bytes(class);
        }
    }
}

/// What a buffer of a class takes of [`SHELF_BYTES_MAX`].
fn counted_bytes(class: usize) -> usize {
    if class == LONGEST { 0 } else { BLOCK_BYTES << class }
}

static SHELF: Mutex<Shelf> =
    Mutex::new(Shelf { classes: [const { Vec::new() }; CLASSES], kept_bytes: 0 });

/// What is allocated for a buffer of this length.
pub(crate) fn capacity_for(length_bytes: usize) -> usize {
    if length_bytes > CLASS_BYTES_MAX || length_bytes == 0 {
        return length_bytes.next_multiple_of(BLOCK_BYTES);
    }
    length_bytes.next_power_of_two().max(BLOCK_BYTES)
}

/// Memory for a buffer of this length, if any is on the shelf.
pub(crate) fn take(length_bytes: usize) -> Option<Memory> {
    let class = class_of(capacity_for(length_bytes))?;
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    shelf.take(class)
}

/// Keeps memory for later, or frees it when the shelf is full.
pub(crate) fn put(memory: Memory) {
    let Some(class) = class_of(memory.capacity_bytes()) else { return };
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    if shelf.has_room(class) {
        shelf.put(class, memory);
    } else {
        // Freed after the lock: unmapping is slow.
        drop(shelf);
        drop(memory);
    }
}

fn class_of(capacity_bytes: usize) -> Option<usize> {
    let kept = capacity_bytes.is_power_of_two()
        && (BLOCK_BYTES..=CLASS_BYTES_MAX).contains(&capacity_bytes);
    kept.then(|| (capacity_bytes / BLOCK_BYTES).ilog2() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_fits_its_capacity_and_wastes_less_than_half() {
        for length_bytes in (1..200_000).step_by(777).chain([CLASS_BYTES_MAX, CLASS_BYTES_MAX + 1])
        {
            let capacity_bytes = capacity_for(length_bytes);
            assert!(capacity_bytes >= length_bytes && capacity_bytes.is_multiple_of(BLOCK_BYTES));
            assert!(capacity_bytes < 2 * length_bytes.max(BLOCK_BYTES));
        }
        assert_eq!(capacity_for(0), 0);
    }

    #[test]
    fn one_of_the_longest_is_kept_however_many_others_there_are() {
        let memory = |class: usize| Memory::allocate(BLOCK_BYTES << class);
        let mut shelf = Shelf { classes: [const { Vec::new() }; CLASSES], kept_bytes: 0 };
        while shelf.has_room(6) {
            shelf.put(6, memory(6));
        }
        assert_eq!(shelf.kept_bytes, SHELF_BYTES_MAX);
        assert!(!shelf.has_room(0) && shelf.has_room(LONGEST));
        shelf.put(LONGEST, memory(LONGEST));
        assert!(!shelf.has_room(LONGEST));
        assert!(shelf.take(LONGEST).is_some() && shelf.take(LONGEST).is_none());
        assert!(shelf.take(6).is_some() && shelf.has_room(0));
    }

    #[test]
    fn only_whole_classes_are_kept() {
        assert_eq!(class_of(0), None);
        assert_eq!(class_of(BLOCK_BYTES), Some(0));
        assert_eq!(class_of(BLOCK_BYTES * 3), None);
        assert_eq!(class_of(CLASS_BYTES_MAX), Some(CLASSES - 1));
        assert_eq!(class_of(CLASS_BYTES_MAX * 2), None);
    }
}
