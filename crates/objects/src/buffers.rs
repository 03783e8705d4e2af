//! Buffers that are used again: the machine zeroes fresh memory before a program has it, which
//! costs a long object more than its copies do.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers that nobody uses at the moment; a clone is the same.
#[derive(Clone)]
pub struct Buffers {
    shared: Arc<Shared>,
}

struct Shared {
    unused: Mutex<Vec<Vec<u8>>>,
    kept_max: usize,
    capacity_min: usize,
}

impl Buffers {
    /// Keeps at most `kept_max` unused ones, none of them with a capacity below `capacity_min`
    /// bytes.
    #[must_use]
    pub fn new(kept_max: usize, capacity_min: usize) -> Self {
        let unused = Mutex::default();
        Self { shared: Arc::new(Shared { unused, kept_max, capacity_min }) }
    }

    /// A buffer with whatever its last user left in it.
    #[must_use]
    pub fn take(&self) -> Buffer {
        let bytes = self.shared.unused().pop().unwrap_or_default();
        Buffer { bytes, shared: Arc::clone(&self.shared) }
    }
}

impl Shared {
    fn unused(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        // A push or a pop leaves the list whole.
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes whose memory goes back to [`Buffers`] when they are dropped.
pub struct Buffer {
    bytes: Vec<u8>,
    shared: Arc<Shared>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Shared { kept_max, capacity_min, .. } = *self.shared;
        let bytes = std::mem::take(&mut self.bytes);
        let mut unused = self.shared.unused();
        if bytes.capacity() >= capacity_min && unused.len() < kept_max {
            unused.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_within_the_bound() {
        let buffers = Buffers::new(1, 64);
        let mut buffer = buffers.take();
        buffer.extend_from_slice(&[7; 100]);
        let place = buffer.as_ptr();
        drop(buffer);
        let mut again = buffers.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 100));
        again.clear();
        let (first, mut second) = (again, buffers.take());
        assert_eq!(second.capacity(), 0, "the only one is in use");
        second.resize(100, 0);
        drop((first, second));
        assert_eq!(buffers.shared.unused().len(), 1);
        let mut short = buffers.take();
        *short = vec![0; 10];
        drop(short);
        assert!(buffers.shared.unused().is_empty(), "a short one is not kept");
    }
}
