//! What is written in-process: bytes like fio's with `dedupe_percentage=50` and
//! `buffer_compress_percentage=50`, made before any clock starts.
//!
//! Half of the chunks repeat one of the last [`RECENT`] unique ones; every chunk is half random and
//! half zeros. The bytes lie in a ring that no cache holds (the last-level cache of a server has 32
//! MiB for a few cores). A ring read a second time would be nothing but duplicates, so each pass
//! over it stamps its number on every chunk as it is copied out: what was equal stays equal, and
//! differs from all passes before. The stamp touches a cache line that the copy has just written.

/// Bytes of one chunk.
pub(crate) const CHUNK_BYTES: usize = 4096;
/// Bytes of one write request.
pub(crate) const REQUEST_BYTES: usize = 1 << 20;
/// Chunks of one request.
pub(crate) const REQUEST_CHUNKS: usize = REQUEST_BYTES / CHUNK_BYTES;
/// Requests in the ring: 128 MiB.
pub(crate) const RING_REQUESTS: usize = 128;
/// How many unique chunks back a duplicate may reach.
const RECENT: usize = 1024;
/// Where the stamp lies in a chunk.
const STAMP: std::ops::Range<usize> = 0..8;

/// The ring.
pub(crate) struct Source {
    bytes: Vec<u8>,
    /// For each chunk: is it the first with its content in a pass.
    unique: Vec<bool>,
}

impl Source {
    /// A ring of `requests`; the same seed gives the same bytes.
    pub(crate) fn new(requests: usize, seed: u64) -> Self {
        Self::made(requests, seed, |roll| roll.is_multiple_of(2))
    }

    /// The same, but that no chunk repeats another.
    pub(crate) fn without_duplicates(requests: usize, seed: u64) -> Self {
        Self::made(requests, seed, |_| true)
    }

    fn made(requests: usize, seed: u64, is_new: impl Fn(u64) -> bool) -> Self {
        let mut chance = Chance(seed);
        let mut bytes = vec![0; requests * REQUEST_BYTES];
        let mut unique = Vec::with_capacity(requests * REQUEST_CHUNKS);
        let mut recent: Vec<usize> = Vec::new();
        for chunk in 0..requests * REQUEST_CHUNKS {
            let start = chunk * CHUNK_BYTES;
            let is_unique = recent.is_empty() || is_new(chance.roll());
            unique.push(is_unique);
            if is_unique {
                let random = &mut bytes[start..start + CHUNK_BYTES / 2];
                random.chunks_exact_mut(8).for_each(|word| {
                    word.copy_from_slice(&chance.roll().to_le_bytes());
                });
                recent.push(start);
            } else {
                let back = chance.roll() as usize % recent.len().min(RECENT);
                let original = recent[recent.len() - 1 - back];
                bytes.copy_within(original..original + CHUNK_BYTES, start);
            }
        }
        Self { bytes, unique }
    }

    /// Copies request `number` of an endless stream into `out`, which is one request long.
    pub(crate) fn copy_request(&self, number: u64, out: &mut [u8]) {
        let (pass, place) = self.place(number);
        out.copy_from_slice(&self.bytes[place * REQUEST_BYTES..][..REQUEST_BYTES]);
        for chunk in out.chunks_exact_mut(CHUNK_BYTES) {
            let stamp = &mut chunk[STAMP];
            stamp.iter_mut().zip(pass.to_le_bytes()).for_each(|(byte, part)| *byte ^= part);
        }
    }

    /// Which chunks of request `number` nobody has seen before.
    pub(crate) fn unique_of(&self, number: u64) -> &[bool] {
        let (_, place) = self.place(number);
        &self.unique[place * REQUEST_CHUNKS..][..REQUEST_CHUNKS]
    }

    /// Unique chunks in the first `requests` requests.
    pub(crate) fn unique_chunks(&self, requests: u64) -> u64 {
        let count = |number| self.unique_of(number).iter().filter(|unique| **unique).count() as u64;
        (0..requests).map(count).sum()
    }

    fn place(&self, number: u64) -> (u64, usize) {
        let requests = (self.bytes.len() / REQUEST_BYTES) as u64;
        (number / requests, (number % requests) as usize)
    }
}

/// Half noise that follows from `content`, half zeros.
pub(crate) fn fill(content: u64, chunk: &mut [u8]) {
    let mut chance = Chance::new(content.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let (noise, zeros) = chunk.split_at_mut(CHUNK_BYTES / 2);
    noise.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&chance.roll().to_le_bytes()));
    zeros.fill(0);
}

/// Numbers that follow from a seed (splitmix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// More than 0, and 1 at most.
    pub(crate) fn part(&mut self) -> f64 {
        ((self.roll() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{CHUNK_BYTES, REQUEST_BYTES, Source};

    fn written(source: &Source, requests: u64) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        for number in 0..requests {
            let mut request = vec![0; REQUEST_BYTES];
            source.copy_request(number, &mut request);
            chunks.extend(request.chunks_exact(CHUNK_BYTES).map(<[u8]>::to_vec));
        }
        chunks
    }

    #[test]
    fn what_it_calls_unique_is_what_is_unique_over_several_passes() {
        let source = Source::new(2, 1);
        let chunks = written(&source, 6);
        let distinct: HashSet<_> = chunks.iter().collect();
        assert_eq!(distinct.len() as u64, source.unique_chunks(6));
        let mut seen = HashSet::new();
        let claimed = (0..6).flat_map(|number| source.unique_of(number).iter().copied());
        let found = chunks.iter().map(|chunk| seen.insert(chunk));
        assert!(claimed.eq(found));
    }

    #[test]
    fn half_repeats_and_half_of_each_chunk_is_zeros() {
        let source = Source::new(4, 2);
        let unique = source.unique_chunks(4);
        assert!((450..574).contains(&unique), "{unique} of 1024");
        for chunk in written(&source, 4) {
            assert!(chunk[CHUNK_BYTES / 2..].iter().all(|&byte| byte == 0));
            let zeros = chunk[..CHUNK_BYTES / 2].iter().filter(|&&byte| byte == 0).count();
            assert!(zeros < 64);
        }
    }

    #[test]
    fn without_duplicates_every_chunk_is_new() {
        let source = Source::without_duplicates(2, 5);
        assert_eq!(source.unique_chunks(4), 4 * 256);
        let chunks = written(&source, 4);
        assert_eq!(chunks.iter().collect::<HashSet<_>>().len(), 4 * 256);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(written(&Source::new(1, 3), 1), written(&Source::new(1, 3), 1));
        assert_ne!(written(&Source::new(1, 3), 1), written(&Source::new(1, 4), 1));
    }
}
