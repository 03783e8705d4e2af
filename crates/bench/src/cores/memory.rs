//! What the memory of this machine moves, all processors together.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::failure::Failure;

/// More than any cache holds.
const BUFFER_BYTES: usize = 64 << 20;
const PASSES: usize = 8;

/// Bytes read and written a second, while `threads` copy from memory to memory.
pub(super) fn bytes_per_second(threads: usize) -> Result<f64, Failure> {
    let start = Barrier::new(threads + 1);
    let copied = thread::scope(|scope| {
        let copies: Vec<_> = (0..threads).map(|_| scope.spawn(|| copy(&start))).collect();
        start.wait();
        let begun = Instant::now();
        let ended: Result<Vec<()>, _> =
            copies.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended.map(|_| begun.elapsed())
    });
    let elapsed = copied.map_err(|_| Failure::EngineVanished)?;
    Ok((2 * threads * PASSES * BUFFER_BYTES) as f64 / elapsed.as_secs_f64())
}

fn copy(start: &Barrier) {
    // Pages that nobody has written are one page of zeros.
    let (source, mut target) = (vec![1_u8; BUFFER_BYTES], vec![2_u8; BUFFER_BYTES]);
    start.wait();
    for _ in 0..PASSES {
        black_box(&mut target).copy_from_slice(black_box(&source));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_moves_something() {
        assert!(super::bytes_per_second(2).unwrap() > 0.0);
    }
}
