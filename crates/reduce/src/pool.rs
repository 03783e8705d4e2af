//! Memory of chunk buffers, recycled.
//!
//! A door needs a buffer per request and gives it up some milliseconds later on another thread.
//! Taking each from the allocator would zero it (there is no `unsafe` here to leave it unwritten),
//! and for large requests map and unmap it. So buffers are kept by size class, powers of two, and
//! handed out again as they are: **their contents are unspecified**.
//!
//! One pool per process, because buffers wander between threads. What is in use and what is idle
//! are counted together: idle memory goes back to the allocator as soon as both together would
//! exceed the bound of [`keep_at_most`], which the owner of the write buffer sets to what
//! it may fill anyway. So memory that was once allowed is recycled, and never held twice because
//! clients changed the size of their requests. Memory in use is bounded elsewhere, by permits.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bound until [`keep_at_most`] sets another.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Smaller and larger buffers than these are not pooled.
const CLASS_BYTES_MIN: usize = 4 << 10;
const CLASS_BYTES_MAX: usize = 1 << 20;
const CLASSES: usize = (CLASS_BYTES_MAX / CLASS_BYTES_MIN).ilog2() as usize + 1;

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: [const { Vec::new() }; CLASSES],
    free_bytes: 0,
    used_bytes: 0,
    kept_bytes_max: KEPT_BYTES_MAX,
});

struct Pool {
    /// Initialised buffers, each exactly as long as its class says.
    free: [Vec<Vec<u8>>; CLASSES],
    free_bytes: usize,
    /// Of buffers that are taken.
    used_bytes: usize,
    /// Bound of both together.
    kept_bytes_max: usize,
}

/// Sets the bound of memory in use and idle together, for the whole process.
pub fn keep_at_most(bytes: usize) {
    let surplus = {
        let mut pool = lock();
        pool.kept_bytes_max = bytes;
        pool.make_room(0)
    };
    drop(surplus);
}

/// A buffer at least `length_bytes` long, contents unspecified; to be returned by [`give_back`].
pub(crate) fn take(length_bytes: usize) -> Vec<u8> {
    let Some(class) = class_of(length_bytes) else { return vec![0; length_bytes] };
    let class_bytes = CLASS_BYTES_MIN << class;
    let (recycled, surplus) = {
        let mut pool = lock();
        let recycled = pool.pop(class);
        let surplus = if recycled.is_none() { pool.make_room(class_bytes) } else { Vec::new() };
        pool.used_bytes += class_bytes;
        (recycled, surplus)
    };
    // Freed after the lock: unmapping is slow.
    drop(surplus);
    recycled.unwrap_or_else(|| vec![0; class_bytes])
}

/// Keeps a buffer that [`take`] gave, if there is room.
pub(crate) fn give_back(buffer: Vec<u8>) {
    let Some(class) = class_of(buffer.len()) else { return };
    let mut pool = lock();
    pool.used_bytes -= buffer.len();
    if pool.free_bytes + pool.used_bytes + buffer.len() <= pool.kept_bytes_max {
        pool.free_bytes += buffer.len();
        pool.free[class].push(buffer);
    }
}

impl Pool {
    fn pop(&mut self, class: usize) -> Option<Vec<u8>> {
        let buffer = self.free[class].pop()?;
        self.free_bytes -= buffer.len();
        Some(buffer)
    }

    /// Idle buffers that have to go so that `more_bytes` can be in use.
    fn make_room(&mut self, more_bytes: usize) -> Vec<Vec<u8>> {
        let mut surplus = Vec::new();
        for class in (0..CLASSES).rev() {
            while self.free_bytes + self.used_bytes + more_bytes > self.kept_bytes_max {
                let Some(buffer) = self.pop(class) else { break };
                surplus.push(buffer);
            }
        }
        surplus
    }
}

/// The smallest class that holds `length_bytes`.
fn class_of(length_bytes: usize) -> Option<usize> {
    let class_bytes = length_bytes.next_power_of_two();
    (CLASS_BYTES_MIN..=CLASS_BYTES_MAX)
        .contains(&class_bytes)
        .then(|| (class_bytes / CLASS_BYTES_MIN).ilog2() as usize)
}

/// Each change of the pool is whole before anything can panic, so a poisoned lock is sound.
fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{CLASS_BYTES_MAX, class_of, give_back, keep_at_most, lock, take};

    #[test]
    fn classes_are_powers_of_two_within_the_limits() {
        assert_eq!(class_of(512), None);
        assert_eq!(class_of(2049), Some(0));
        assert_eq!(class_of(4096), Some(0));
        assert_eq!(class_of(4097), Some(1));
        assert_eq!(class_of(CLASS_BYTES_MAX), Some(8));
        assert_eq!(class_of(CLASS_BYTES_MAX + 1), None);
    }

    /// One test for the one pool of the process: others take and give back beside it.
    #[test]
    fn buffers_are_long_enough_and_memory_is_bounded() {
        for length_bytes in [0, 1, 512, 4096, 5000, 65_536, 1 << 20, 3 << 20] {
            let buffer = take(length_bytes);
            assert!(buffer.len() >= length_bytes);
            give_back(buffer);
        }
        keep_at_most(32 << 20);
        let many: Vec<_> = (0..40).map(|_| take(1 << 20)).collect();
        assert_eq!(lock().free_bytes, 0);
        many.into_iter().for_each(give_back);
        let small: Vec<_> = (0..1024).map(|_| take(4096)).collect();
        {
            let pool = lock();
            let kept: usize = pool.free.iter().flatten().map(Vec::len).sum();
            assert_eq!(kept, pool.free_bytes);
            assert!(kept > 24 << 20, "{kept} bytes were kept");
            assert!(kept + pool.used_bytes <= 32 << 20);
        }
        small.into_iter().for_each(give_back);
        keep_at_most(1 << 20);
        assert!(lock().free_bytes <= 1 << 20);
    }
}
