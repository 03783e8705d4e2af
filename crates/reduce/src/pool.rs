//! Memory of chunk buffers, recycled.
//!
//! A door needs a buffer per request and gives it up some milliseconds later on another thread.
//! Taking each from the allocator would zero it (there is no `unsafe` here to leave it unwritten),
//! and for large requests map and unmap it. So buffers are kept by size class, about powers of two,
//! and handed out again as they are: **their contents are unspecified**.
//!
//! One pool per process, because buffers wander between threads. What is in use and what is idle
//! are counted together: idle memory goes back to the allocator as soon as both together would
//! exceed the bound of [`keep_at_most`], which the owner of the write buffer sets to what
//! it may fill anyway. So memory that was once allowed is recycled, and never held twice because
//! clients changed the size of their requests. Memory in use is bounded elsewhere, by permits.

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bound until [`keep_at_most`] sets another.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Much smaller and larger buffers than these are not pooled.
const CLASS_BYTES_MIN: usize = 4 << 10;
const CLASS_BYTES_MAX: usize = 2 << 20;
/// Of this class and larger ones there is room for headers.
const WITH_HEADERS_BYTES_MIN: usize = 64 << 10;
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

/// Touches idle memory for so many buffers of this length, within the bound: what a process touches
/// first the kernel has to find and to clear, and the caller that asks for a buffer would wait.
pub fn prepare(length_bytes: usize, buffers: usize) {
    // Other than zeros, which could come from memory that is known to hold some, untouched.
    let touched = || {
        let mut buffer = take(length_bytes);
        black_box(&mut buffer).fill(0xff);
        buffer
    };
    let buffers: Vec<_> = std::iter::repeat_with(touched).take(buffers).collect();
    buffers.into_iter().for_each(give_back);
}

/// A buffer at least `length_bytes` long, contents unspecified; to be returned by [`give_back`].
pub(crate) fn take(length_bytes: usize) -> Vec<u8> {
    let Some(class) = class_of(length_bytes) else { return vec![0; length_bytes] };
    let class_bytes = bytes_of(class);
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
    if length_bytes <= CLASS_BYTES_MIN / 2 {
        return None;
    }
    (0..CLASSES).find(|&class| length_bytes <= bytes_of(class))
}

/// How long buffers of a class are: a power of two, and from [`WITH_HEADERS_BYTES_MIN`] on a 64th
/// more. For the frames of a job may be longer than its chunks by a header each, and a reply than
/// what was read, and would take twice the memory.
fn bytes_of(class: usize) -> usize {
    let bytes = CLASS_BYTES_MIN << class;
    if bytes < WITH_HEADERS_BYTES_MIN { bytes } else { bytes + bytes / 64 }
}

/// Each change of the pool is whole before anything can panic, so a poisoned lock is sound.
fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{CLASS_BYTES_MAX, class_of, give_back, keep_at_most, lock, prepare, take};

    #[test]
    fn a_buffer_is_of_the_smallest_class_that_is_long_enough() {
        assert_eq!(class_of(512), None);
        assert_eq!(class_of(2049), Some(0));
        assert_eq!(class_of(4096), Some(0));
        assert_eq!(class_of(4097), Some(1));
        // What a job of 64 chunks may make is no longer than what it is made of and a 64th.
        assert_eq!(class_of(64 * (4096 + 16)), class_of(64 * 4096));
        assert_eq!(class_of(65 << 12), Some(6));
        assert_eq!(class_of((65 << 12) + 1), Some(7));
        assert_eq!(class_of((1 << 20) + 28), Some(8));
        assert_eq!(class_of(CLASS_BYTES_MAX + 28), Some(9));
        assert_eq!(class_of(2 * CLASS_BYTES_MAX), None);
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
        prepare(1 << 20, 4);
        assert!(lock().free[8].len() >= 4, "what is prepared is idle memory");
        keep_at_most(1 << 20);
        assert!(lock().free_bytes <= 1 << 20);
    }
}
