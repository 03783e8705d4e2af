//! What a connection has received and not used yet: one buffer, read from the front.

/// A new buffer's length, in bytes.
const BUFFER_BYTES: usize = 16 << 10;
/// An empty buffer that is larger than this is given back, in bytes.
const KEPT_BYTES: usize = 64 << 10;
/// With less room than this behind what is there, it moves to the front, in bytes.
const ROOM_BYTES_MIN: usize = 4 << 10;

/// The buffer. All of it is initialised; between `start` and `end` is what has come.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// Room to receive into; never empty. `wanted` bytes have room in all, from the front of what
    /// is unused.
    pub(crate) fn room(&mut self, wanted: usize) -> &mut [u8] {
        let unused = self.end - self.start;
        let wanted = wanted.max(unused + 1);
        let is_short = self.bytes.len() - self.end < ROOM_BYTES_MIN;
        if self.start > 0 && (is_short || self.start + wanted > self.bytes.len()) {
            self.bytes.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = unused;
        }
        if wanted > self.bytes.len() {
            let doubled = (self.bytes.len() * 2).max(BUFFER_BYTES);
            self.bytes.resize(doubled.max(wanted), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// The room holds `bytes` more bytes.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.end += bytes;
        assert!(self.end <= self.bytes.len(), "no more is received than there is room for");
    }

    pub(crate) fn unused(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub(crate) fn unused_bytes(&self) -> usize {
        self.end - self.start
    }

    /// The front has been used.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.start += bytes;
        assert!(self.start <= self.end, "no more is used than was received");
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
        }
    }

    /// Takes a buffer to receive into, if it has none. Whatever is in it has no meaning.
    pub(crate) fn lend(&mut self, buffer: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, buffer);
        }
    }

    /// Gives an empty buffer away, for the next connection.
    pub(crate) fn take_back(&mut self, buffer: &mut Vec<u8>) {
        if self.start == self.end && !self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, buffer);
            *self = Input::default();
        }
    }

    /// Gives an empty buffer back.
    pub(crate) fn release(&mut self) {
        if self.start == self.end {
            *self = Input::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Input;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(
            steps in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<u16>()), 1..60),
        ) {
            let mut input = Input::default();
            let mut expected = Vec::new();
            let mut next = 0_u8;
            for (wanted, received, taken) in steps {
                let room = input.room(usize::from(wanted));
                prop_assert!(!room.is_empty());
                let received = usize::from(received).min(room.len());
                for place in &mut room[..received] {
                    *place = next;
                    expected.push(next);
                    next = next.wrapping_add(1);
                }
                input.received(received);
                prop_assert_eq!(input.unused(), &expected[..]);
                let taken = usize::from(taken).min(expected.len());
                input.take(taken);
                expected.drain(..taken);
            }
        }
    }
}
