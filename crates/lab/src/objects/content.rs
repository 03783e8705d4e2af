//! The bytes of objects: of many lengths, and alike now and then.

use crate::dice::{Dice, mixed};
use crate::objects::bucket::Cut;

/// Different contents of objects.
pub(super) const CONTENTS: u64 = 200;

/// The bytes of an object.
pub(super) fn bytes_of(content: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut at = 0_u64;
    while bytes.len() < length {
        // No byte is zero: a chunk of an object is always stored.
        let word = mixed(content, at) | 0x0101_0101_0101_0101;
        bytes.extend_from_slice(&word.to_le_bytes()[..4]);
        bytes.extend_from_slice(&[0x55; 4]);
        at += 1;
    }
    bytes.truncate(length);
    bytes
}

/// The bytes of an object, and how they are cut.
pub(super) fn content(dice: &mut Dice) -> (Vec<u8>, Cut) {
    let length = match dice.below(12) {
        0 => 0,
        1..4 => dice.below(513),
        4..9 => dice.below(9000),
        9..11 => dice.below(30_000),
        _ => dice.below(120_000),
    };
    let cut = match length < 30_000 && dice.once_in(2) {
        true => Cut::Content,
        false => Cut::Fixed,
    };
    (bytes_of(dice.below(CONTENTS), length as usize), cut)
}
