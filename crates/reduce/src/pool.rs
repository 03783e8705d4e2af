//! Memory of chunk buffers, recycled.
//!
//! A door needs a buffer per request and gives it up some milliseconds later on another thread.
//! Taking each from the allocator would zero it (there is no `unsafe` here to leave it unwritten),
//! and for large requests map and unmap it. So buffers are kept by size class, powers of two, and
//! handed out again as they are: **their contents are unspecified**.
//!
//! One pool per process, because buffers wander between threads. It keeps at most
//! [`POOLED_BYTES_MAX`]; what is beyond goes back to the allocator. Memory in use is bounded
//! elsewhere, by the permits of the write buffer.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Idle memory that the pool keeps at most.
pub const POOLED_BYTES_MAX: usize = 16 << 20;

/// Smaller and larger buffers than these are not pooled.
const CLASS_BYTES_MIN: usize = 4 << 10;
const CLASS_BYTES_MAX: usize = 1 << 20;
const CLASSES: usize = (CLASS_BYTES_MAX / CLASS_BYTES_MIN).ilog2() as usize + 1;

static POOL: Mutex<Pool> =
    Mutex::new(Pool { free: [const { Vec::new() }; CLASSES], free_bytes: 0 });

struct Pool {
    /// Initialised buffers, each exactly as long as its class says.
    free: [Vec<Vec<u8>>; CLASSES],
    free_bytes: usize,
}

/// A buffer at least `length_bytes` long, contents unspecified.
pub(crate) fn take(length_bytes: usize) -> Vec<u8> {
    let Some(class) = class_of(length_bytes) else { return vec![0; length_bytes] };
    let recycled = {
        let mut pool = lock();
        let recycled = pool.free[class].pop();
        pool.free_bytes -= recycled.as_ref().map_or(0, Vec::len);
        recycled
    };
    recycled.unwrap_or_else(|| vec![0; CLASS_BYTES_MIN << class])
}

/// Keeps the buffer for [`take`] if it is of a class's length and there is room.
pub(crate) fn give_back(buffer: Vec<u8>) {
    let Some(class) = class_of(buffer.len()) else { return };
    if buffer.len() != CLASS_BYTES_MIN << class {
        return;
    }
    let mut pool = lock();
    if pool.free_bytes + buffer.len() <= POOLED_BYTES_MAX {
        pool.free_bytes += buffer.len();
        pool.free[class].push(buffer);
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
    use super::{CLASS_BYTES_MAX, POOLED_BYTES_MAX, class_of, give_back, lock, take};

    #[test]
    fn classes_are_powers_of_two_within_the_limits() {
        assert_eq!(class_of(512), None);
        assert_eq!(class_of(2049), Some(0));
        assert_eq!(class_of(4096), Some(0));
        assert_eq!(class_of(4097), Some(1));
        assert_eq!(class_of(CLASS_BYTES_MAX), Some(8));
        assert_eq!(class_of(CLASS_BYTES_MAX + 1), None);
    }

    #[test]
    fn buffers_are_long_enough_and_idle_memory_is_bounded() {
        for length_bytes in [0, 1, 512, 4096, 5000, 65_536, 1 << 20, 3 << 20] {
            assert!(take(length_bytes).len() >= length_bytes);
        }
        let many: Vec<_> = (0..40).map(|_| take(1 << 20)).collect();
        many.into_iter().for_each(give_back);
        let pool = lock();
        let kept: usize = pool.free.iter().flatten().map(Vec::len).sum();
        assert_eq!(kept, pool.free_bytes);
        assert!(kept <= POOLED_BYTES_MAX);
    }

    #[test]
    fn a_foreign_buffer_of_an_odd_length_is_not_kept() {
        give_back(vec![0; 5001]);
        assert!(lock().free.iter().flatten().all(|buffer| buffer.len().is_power_of_two()));
    }
}
