//! Ghosts: hashes of entries that left memory not long ago without having been wanted.
//!
//! A table in which each hash has one place; a later ghost takes it from an earlier one. So a ghost
//! is forgotten a little too early now and then, which costs a hit, and takes eight bytes.

/// Least number of places.
const PLACES_MIN: usize = 64;

#[derive(Default)]
pub(super) struct Ghosts {
    places: Vec<Ghost>,
    /// Ghosts that have come by now.
    came: u32,
}

#[derive(Clone, Copy, Default)]
struct Ghost {
    /// Part of the hash; 0 is none.
    print: u32,
    came: u32,
}

impl Ghosts {
    /// An entry has left, and `remembered` are to be remembered.
    pub(super) fn push(&mut self, hash: u64, remembered: usize) {
        let wanted = remembered.next_power_of_two().max(PLACES_MIN);
        if wanted > self.places.len() {
            self.places = vec![Ghost::default(); wanted];
        }
        self.came = self.came.wrapping_add(1);
        let came = self.came;
        if let Some(place) = self.place(hash) {
            *place = Ghost { print: print_of(hash), came };
        }
    }

    /// Whether an entry of this hash was among the last `remembered` that left; it is no ghost from
    /// now on.
    pub(super) fn take(&mut self, hash: u64, remembered: usize) -> bool {
        let came = self.came;
        let Some(place) = self.place(hash) else { return false };
        let is_there =
            place.print == print_of(hash) && (came.wrapping_sub(place.came) as usize) < remembered;
        if is_there {
            *place = Ghost::default();
        }
        is_there
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Ghost>()
    }

    fn place(&mut self, hash: u64) -> Option<&mut Ghost> {
        let mask = self.places.len().checked_sub(1)?;
        self.places.get_mut(hash as usize & mask)
    }
}

fn print_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::Ghosts;

    #[test]
    fn a_ghost_is_taken_once_and_forgotten_in_time() {
        let mut ghosts = Ghosts::default();
        assert!(!ghosts.take(7 << 32, 10));
        ghosts.push(7 << 32, 10);
        assert!(ghosts.take(7 << 32, 10));
        assert!(!ghosts.take(7 << 32, 10));
        ghosts.push(7 << 32, 10);
        for other in 1..11_u64 {
            ghosts.push(other | other << 32, 10);
        }
        assert!(!ghosts.take(7 << 32, 10), "ten came behind it");
        assert!(ghosts.take(10 | 10 << 32, 10));
        assert!(ghosts.bytes() >= 64 * 8);
    }
}
