//! What a simulated client does: a mix that meets every path of the engine often.

use crate::dice::Dice;
use crate::oracle::CHUNK_BYTES;

/// Chunks of a simulated volume.
pub(crate) const VOLUME_CHUNKS: u64 = 3000;

/// One request of the simulated client.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Write { volume: usize, offset_bytes: u64, bytes: Vec<u8>, durable: bool },
    Trim { volume: usize, offset_bytes: u64, length_bytes: u64 },
    Read { volume: usize, first: u64, count: u64 },
    Flush,
    Tick,
}

/// The next request of a run.
/// Contents are drawn from `contents`: few make most writes duplicates of something, many fill
/// containers and have them collected.
pub(crate) fn next_request(dice: &mut Dice, volumes: usize, contents: u64) -> Request {
    let volume = dice.below(volumes as u64) as usize;
    match dice.below(100) {
        0..50 => whole_write(dice, volume, contents),
        50..60 => ragged_write(dice, volume, contents),
        60..70 => trim(dice, volume),
        70..90 => {
            let first = dice.below(VOLUME_CHUNKS);
            let count = (1 + dice.below(32)).min(VOLUME_CHUNKS - first);
            Request::Read { volume, first, count }
        }
        90..97 => Request::Flush,
        _ => Request::Tick,
    }
}

fn whole_write(dice: &mut Dice, volume: usize, contents: u64) -> Request {
    let longest = match dice.below(8) {
        0 => 300,
        1..4 => 40,
        _ => 4,
    };
    let first = dice.below(VOLUME_CHUNKS);
    let count = (1 + dice.below(longest)).min(VOLUME_CHUNKS - first);
    let bytes = (0..count).flat_map(|_| content(dice.below(contents))).collect();
    let durable = dice.once_in(10);
    Request::Write { volume, offset_bytes: first * CHUNK_BYTES as u64, bytes, durable }
}

/// Sectors anywhere, whole chunks or not.
fn ragged_write(dice: &mut Dice, volume: usize, contents: u64) -> Request {
    let sectors = VOLUME_CHUNKS * 8;
    let first = dice.below(sectors);
    let count = (1 + dice.below(24)).min(sectors - first);
    let source = content(dice.below(contents));
    let bytes: Vec<u8> = source.iter().copied().cycle().take(count as usize * 512).collect();
    Request::Write { volume, offset_bytes: first * 512, bytes, durable: dice.once_in(10) }
}

fn trim(dice: &mut Dice, volume: usize) -> Request {
    let sectors = VOLUME_CHUNKS * 8;
    let longest = if dice.once_in(4) { sectors } else { 400 };
    let first = dice.below(sectors);
    let count = (1 + dice.below(longest)).min(sectors - first);
    Request::Trim { volume, offset_bytes: first * 512, length_bytes: count * 512 }
}

/// Content `number`: zeros, half compressible, or not compressible at all.
fn content(number: u64) -> Vec<u8> {
    let mut dice = Dice::new(number);
    let random = match number % 8 {
        0 => 0,
        1..6 => CHUNK_BYTES / 2,
        _ => CHUNK_BYTES,
    };
    let mut bytes = vec![0; CHUNK_BYTES];
    for word in bytes[..random].chunks_exact_mut(8) {
        word.copy_from_slice(&dice.roll().to_le_bytes());
    }
    bytes
}
