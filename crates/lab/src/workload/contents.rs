//! The bytes that the numbers of contents stand for.

use super::SECTORS;
use crate::dice::{Dice, mixed};
use crate::oracle::CHUNK_BYTES;
use crate::script::Shape;

/// The bytes of `count` sectors from sector `first` on, of the contents that `content` stands for.
pub(crate) fn bytes_of(content: u64, shape: &Shape, first: u64, count: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count as usize * 512);
    let mut sector = first;
    while sector < first + count {
        let (chunk, skip) = (sector / SECTORS, sector % SECTORS);
        let take = (SECTORS - skip).min(first + count - sector);
        let number = mixed(content, chunk - first / SECTORS) % shape.contents;
        let is_weak = !shape.detection.kind.is_strong();
        let whole = if is_weak { twin_of(number) } else { chunk_of(number) };
        bytes.extend_from_slice(&whole[skip as usize * 512..(skip + take) as usize * 512]);
        sector += take;
    }
    bytes
}

/// Content `number` of a store whose fingerprints are MD5: each has a twin that differs in six
/// bytes of its start and has the same fingerprint.
fn twin_of(number: u64) -> Vec<u8> {
    let mut bytes = chunk_of(number / 2);
    let starts = include_str!("../../collisions/md5.txt").split("\n\n");
    let digits = starts.filter(|part| !part.starts_with('#')).nth(number as usize % 2);
    let digits =
        digits.unwrap_or_default().bytes().filter_map(|digit| (digit as char).to_digit(16));
    for (at, digit) in digits.enumerate() {
        let byte = &mut bytes[at / 2];
        *byte = *byte << 4 | digit as u8;
    }
    bytes
}

/// Content `number`: zeros, half compressible, or not compressible at all.
fn chunk_of(number: u64) -> Vec<u8> {
    let mut dice = Dice::new(number);
    let random = match number % 8 {
        0 => 0,
        1..4 => CHUNK_BYTES / 2,
        _ => CHUNK_BYTES,
    };
    let mut bytes = vec![0; CHUNK_BYTES];
    for word in bytes[..random].chunks_exact_mut(8) {
        word.copy_from_slice(&dice.roll().to_le_bytes());
    }
    bytes
}
