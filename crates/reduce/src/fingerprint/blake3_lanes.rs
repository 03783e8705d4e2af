//! BLAKE3 of many chunks at once.
//!
//! BLAKE3 cuts its input into pieces of 1 KiB and hashes as many of them in parallel as the
//! machine's vectors have lanes. A 4-KiB chunk has only four pieces: on a machine with 8 or 16
//! lanes one chunk leaves most of them idle. Here the lanes are filled *across* chunks: first piece
//! 0 of 16 chunks, then their pieces 1, 2 and 3, then the 32 parents, then the 16 roots. Measured
//! (`docs/measurements/003-lz4.md`): 1.9 times as fast with AVX-512, 1.6 times with AVX2.
//!
//! The vector kernels are the `blake3` crate's own, reached through its `platform` module. That
//! module is outside the crate's stability promise, so this file uses two of its items only, and
//! the tests compare every group size with `blake3::hash`. Tree structure and flags: the BLAKE3
//! paper, sections 2.1, 2.4. With a key the same is done with the key's words in place of the
//! initial ones and one flag more (section 2.3).

use blake3::IncrementCounter;
use blake3::platform::Platform;
use format::units::Fingerprint;

use super::keyed::Key;

/// The only chunk length hashed across lanes; longer chunks fill the lanes by themselves.
const LANE_CHUNK_BYTES: usize = 4096;

/// Chunks in a full group: the lanes of AVX-512, or two rounds of AVX2.
const GROUP: usize = 16;
/// Smaller groups are hashed one by one: they fill no more lanes than one chunk's four pieces.
const GROUP_MIN: usize = 8;

const PIECE_BYTES: usize = 1024;
const PIECES: usize = LANE_CHUNK_BYTES / PIECE_BYTES;
const BLOCK_BYTES: usize = 64;
const HASH_BYTES: usize = 32;

const IV: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;
const KEYED_HASH: u8 = 16;

/// What a hash begins with: its mode.
#[derive(Copy, Clone)]
struct Mode<'a> {
    key: Option<&'a Key>,
    words: [u32; 8],
    flags: u8,
}

impl<'a> Mode<'a> {
    fn of(key: Option<&'a Key>) -> Self {
        let Some(bytes) = key else { return Self { key, words: IV, flags: 0 } };
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Self { key, words, flags: KEYED_HASH }
    }
}

/// A chunk that waits for its group, and where its fingerprint goes.
struct Waiting<'a> {
    chunk: &'a [u8; LANE_CHUNK_BYTES],
    result: &'a mut Option<Fingerprint>,
}

/// Sets the result of each chunk to its hash, with a key or without.
pub(super) fn hash_all<'a>(
    key: Option<&Key>,
    chunks: impl Iterator<Item = (&'a [u8], &'a mut Option<Fingerprint>)>,
) {
    let mut lanes = Lanes::new(key);
    for (chunk, result) in chunks {
        match <&[u8; LANE_CHUNK_BYTES]>::try_from(chunk) {
            Ok(chunk) => lanes.push(chunk, result),
            Err(_) => *result = Some(hash_one(key, chunk)),
        }
    }
    lanes.finish();
}

/// Gathers chunks of 4 KiB and hashes them group by group.
struct Lanes<'a, 'k> {
    platform: Platform,
    mode: Mode<'k>,
    waiting: Vec<Waiting<'a>>,
}

impl<'a, 'k> Lanes<'a, 'k> {
    fn new(key: Option<&'k Key>) -> Self {
        Self { platform: Platform::detect(), mode: Mode::of(key), waiting: Vec::new() }
    }

    /// Takes the chunk; `result` is set now or by [`Lanes::finish`].
    fn push(&mut self, chunk: &'a [u8; LANE_CHUNK_BYTES], result: &'a mut Option<Fingerprint>) {
        if self.platform.simd_degree() < GROUP_MIN {
            *result = Some(hash_one(self.mode.key, chunk));
            return;
        }
        self.waiting.push(Waiting { chunk, result });
        if self.waiting.len() == GROUP {
            self.hash_waiting();
        }
    }

    /// Hashes what still waits.
    fn finish(mut self) {
        if self.waiting.len() >= GROUP_MIN {
            let rest = self.waiting.split_off(GROUP_MIN);
            self.hash_waiting();
            self.waiting = rest;
        }
        for Waiting { chunk, result } in self.waiting {
            *result = Some(hash_one(self.mode.key, chunk));
        }
    }

    fn hash_waiting(&mut self) {
        let Some(first) = self.waiting.first() else { return };
        let mut chunks = [first.chunk; GROUP];
        for (slot, waiting) in chunks.iter_mut().zip(&self.waiting) {
            *slot = waiting.chunk;
        }
        let hashes =
            hash_group(&self.platform, &self.mode, &chunks[..self.waiting.len().min(GROUP)]);
        for (waiting, hash) in self.waiting.drain(..).zip(hashes) {
            *waiting.result = Some(Fingerprint(hash));
        }
    }
}

/// The plain way, and the specification of the other.
pub(super) fn hash_one(key: Option<&Key>, chunk: &[u8]) -> Fingerprint {
    let hash = match key {
        None => blake3::hash(chunk),
        Some(key) => blake3::keyed_hash(key, chunk),
    };
    Fingerprint(*hash.as_bytes())
}

/// Hashes of up to [`GROUP`] chunks; entries beyond `chunks.len()` mean nothing.
fn hash_group(
    platform: &Platform,
    mode: &Mode<'_>,
    chunks: &[&[u8; LANE_CHUNK_BYTES]],
) -> [[u8; HASH_BYTES]; GROUP] {
    let count = chunks.len();
    let mut pieces = [[[0; HASH_BYTES]; GROUP]; PIECES];
    for (index, hashes) in pieces.iter_mut().enumerate() {
        let mut inputs = [&[0; PIECE_BYTES]; GROUP];
        for (input, chunk) in inputs.iter_mut().zip(chunks) {
            *input = &chunk.as_chunks().0[index];
        }
        let (counter, same) = (index as u64, IncrementCounter::No);
        let out = hashes.as_flattened_mut();
        let Mode { words, flags, .. } = mode;
        let inputs = &inputs[..count];
        platform.hash_many(inputs, words, counter, same, *flags, CHUNK_START, CHUNK_END, out);
    }
    let [first, second, third, fourth] = &pieces;
    let left = hash_parents(platform, mode, [first, second], count, PARENT);
    let right = hash_parents(platform, mode, [third, fourth], count, PARENT);
    hash_parents(platform, mode, [&left, &right], count, PARENT | ROOT)
}

/// The parents of `count` pairs, one per lane.
fn hash_parents(
    platform: &Platform,
    mode: &Mode<'_>,
    [left, right]: [&[[u8; HASH_BYTES]; GROUP]; 2],
    count: usize,
    flags: u8,
) -> [[u8; HASH_BYTES]; GROUP] {
    let mut blocks = [[0; BLOCK_BYTES]; GROUP];
    for (block, (left, right)) in blocks.iter_mut().zip(left.iter().zip(right)) {
        block[..HASH_BYTES].copy_from_slice(left);
        block[HASH_BYTES..].copy_from_slice(right);
    }
    let inputs = blocks.each_ref();
    let mut hashes = [[0; HASH_BYTES]; GROUP];
    let (same, out) = (IncrementCounter::No, hashes.as_flattened_mut());
    platform.hash_many(&inputs[..count], &mode.words, 0, same, mode.flags | flags, 0, 0, out);
    hashes
}
