//! How many connections there may be, and how much unsent bytes they hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bounds of all connections together.
#[derive(Debug)]
pub(crate) struct Seats {
    connections_max: usize,
    unsent_bytes_max: usize,
    taken: AtomicUsize,
    unsent_bytes: AtomicUsize,
}

impl Seats {
    pub(crate) fn new(connections_max: usize, unsent_bytes_max: usize) -> Arc<Self> {
        let (taken, unsent_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { connections_max, unsent_bytes_max, taken, unsent_bytes })
    }

    /// A seat for one more connection, if there is one.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Seat> {
        let is_free = |taken: usize| (taken < self.connections_max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free).ok()?;
        Some(Seat { seats: Arc::clone(self), unsent_bytes: 0 })
    }

    /// Whether clients that do nothing with their seats are to lose them: seven of eight seats are
    /// taken, or half of the memory for unsent bytes.
    pub(crate) fn are_scarce(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        let unsent_bytes = self.unsent_bytes.load(Ordering::Relaxed);
        taken >= self.connections_max - self.connections_max / 8
            || unsent_bytes >= self.unsent_bytes_max / 2
    }
}

/// A connection's seat, free when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    unsent_bytes: usize,
}

impl Seat {
    /// The connection keeps this much for a client that does not read; `false` if all together keep
    /// more than they may.
    pub(crate) fn keep_unsent(&mut self, bytes: usize) -> bool {
        let all = &self.seats.unsent_bytes;
        all.fetch_sub(self.unsent_bytes, Ordering::Relaxed);
        self.unsent_bytes = bytes;
        let before = all.fetch_add(bytes, Ordering::Relaxed);
        bytes == 0 || before + bytes <= self.seats.unsent_bytes_max
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.keep_unsent(0);
        let before = self.seats.taken.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a seat that is given back was taken");
    }
}

#[cfg(test)]
mod tests {
    use super::Seats;

    #[test]
    fn seats_are_taken_and_given_back() {
        let seats = Seats::new(8, 1000);
        let mut taken: Vec<_> = (0..7).map(|_| seats.take().unwrap()).collect();
        assert!(seats.are_scarce());
        taken.push(seats.take().unwrap());
        assert!(seats.take().is_none());
        taken.truncate(6);
        assert!(!seats.are_scarce() && seats.take().is_some());
        assert!(taken[0].keep_unsent(600) && seats.are_scarce());
        assert!(!taken[1].keep_unsent(401));
        assert!(taken[1].keep_unsent(0) && taken[0].keep_unsent(1000));
        drop(taken);
        assert!(!seats.are_scarce());
    }
}
