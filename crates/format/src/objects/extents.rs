//! Extents of the value space in the index: free, to be freed, shared.
//!
//! The three tables hold disjoint ranges of chunks by their **ends**: the key is the byte behind
//! the range, big endian. So a scan from the byte behind an address meets first the range that
//! holds the address, and a range that shrinks from its front keeps its key.
//!
//! | table | value |
//! |---|---|
//! | `Free` | length |
//! | `ToFree` | length; of a tree the entry that leads to its block, and the next one to release |
//! | `Shared` | length, and how many entries name each of its chunks: two or more |

use std::ops::Range;

use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_u16, put_u64, u16_at, u64_at};
use crate::objects::segments::{BLOCK_ENTRIES_MAX, ENTRY_BYTES, ListEntry, Subtree};
use crate::objects::{CHUNK_BYTES, CHUNKS_END, VALUES_END_BYTES};

/// Length of a key.
pub const EXTENT_KEY_BYTES: usize = 8;
/// Length of the value of a free range, and of one to be freed that is no tree.
pub const EXTENT_VALUE_BYTES: usize = 8;
/// Length of the value of a tree that is to be freed.
pub const TREE_VALUE_BYTES: usize = POSITION_AT + 2;
/// Length of the value of a shared range.
pub const SHARED_VALUE_BYTES: usize = 16;

pub(crate) const TREE_AT: usize = 8;
pub(crate) const POSITION_AT: usize = TREE_AT + ENTRY_BYTES;
pub(crate) const COUNT_AT: usize = 8;

/// The setting that holds the byte behind the highest one ever given out, little endian.
pub const HIGH_WATER_SETTING: &[u8] = b"values.high_water";

/// What is to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToFree {
    /// A range that nobody names.
    Range,
    /// A block that nobody names; what it names from `position` on it names still.
    Tree {
        /// The way to the block.
        subtree: Subtree,
        /// Entries of the block before this one are released.
        position: u16,
    },
}

/// Key of a range that ends before `end_chunk`.
#[must_use]
pub fn extent_key(end_chunk: u64) -> [u8; EXTENT_KEY_BYTES] {
    (end_chunk * CHUNK_BYTES).to_be_bytes()
}

fn end_of(key: &[u8]) -> Result<u64, FormatError> {
    let structure = Structure::Extent;
    if key.len() != EXTENT_KEY_BYTES {
        return Err(length(EXTENT_KEY_BYTES, key));
    }
    let end_bytes = u64::from_be_bytes(array_at(key, 0));
    if !end_bytes.is_multiple_of(CHUNK_BYTES) || end_bytes > VALUES_END_BYTES {
        return Err(FormatError::field(structure, "end", end_bytes));
    }
    Ok(end_bytes / CHUNK_BYTES)
}

fn length(expected: usize, found: &[u8]) -> FormatError {
    let (expected_bytes, found_bytes) = (expected as u64, found.len() as u64);
    FormatError::Length { structure: Structure::Extent, expected_bytes, found_bytes }
}

/// The range of a key and the first field of its value.
fn range_of(key: &[u8], value: &[u8]) -> Result<Range<u64>, FormatError> {
    let end = end_of(key)?;
    FormatError::at_least(Structure::Extent, EXTENT_VALUE_BYTES, value)?;
    let length_bytes = u64_at(value, 0);
    let chunks = length_bytes / CHUNK_BYTES;
    if chunks == 0 || !length_bytes.is_multiple_of(CHUNK_BYTES) || chunks > end {
        return Err(FormatError::field(Structure::Extent, "length", length_bytes));
    }
    Ok(end - chunks..end)
}

fn put_range(value: &mut [u8], range: &Range<u64>) {
    assert!(range.start < range.end && range.end <= CHUNKS_END, "{range:?} is a range of chunks");
    put_u64(value, 0, (range.end - range.start) * CHUNK_BYTES);
}

/// Value of a free range, or of one to be freed that is no tree.
///
/// # Panics
/// When the range is empty or outside the value space's end.
#[must_use]
pub fn encode_range(range: &Range<u64>) -> Vec<u8> {
    let mut value = vec![0; EXTENT_VALUE_BYTES];
    put_range(&mut value, range);
    value
}

/// The range of chunks of an entry of `Free`.
///
/// # Errors
/// [`FormatError`] when it is none.
pub fn decode_free(key: &[u8], value: &[u8]) -> Result<Range<u64>, FormatError> {
    if value.len() != EXTENT_VALUE_BYTES {
        return Err(length(EXTENT_VALUE_BYTES, value));
    }
    range_of(key, value)
}

/// Value of a tree that is to be freed, whose key is the end of its block.
///
/// # Panics
/// When `position` is none of a block.
#[must_use]
pub fn encode_tree(subtree: &Subtree, position: u16) -> Vec<u8> {
    assert!(usize::from(position) < BLOCK_ENTRIES_MAX, "a position in a block");
    let mut value = vec![0; TREE_VALUE_BYTES];
    put_range(&mut value, &ListEntry::Subtree(*subtree).chunks());
    ListEntry::Subtree(*subtree).encode(&mut value[TREE_AT..POSITION_AT]);
    put_u16(&mut value, POSITION_AT, position);
    value
}

/// The range and kind of an entry of `ToFree`.
///
/// # Errors
/// [`FormatError`] when it is none.
pub fn decode_to_free(key: &[u8], value: &[u8]) -> Result<(Range<u64>, ToFree), FormatError> {
    let range = range_of(key, value)?;
    match value.len() {
        EXTENT_VALUE_BYTES => Ok((range, ToFree::Range)),
        TREE_VALUE_BYTES => {
            let position = u16_at(value, POSITION_AT);
            let entry = ListEntry::decode(&value[TREE_AT..POSITION_AT])?;
            let impossible = |field, found| FormatError::field(Structure::Extent, field, found);
            if usize::from(position) >= BLOCK_ENTRIES_MAX {
                return Err(impossible("position", position.into()));
            }
            match entry {
                ListEntry::Subtree(subtree) if entry.chunks() == range => {
                    Ok((range, ToFree::Tree { subtree, position }))
                }
                _ => Err(impossible("block", entry.chunks().start)),
            }
        }
        _ => Err(length(TREE_VALUE_BYTES, value)),
    }
}

/// Value of a shared range.
///
/// # Panics
/// When fewer than two name it.
#[must_use]
pub fn encode_shared(range: &Range<u64>, count: u64) -> Vec<u8> {
    assert!(count >= 2, "what one names is not shared");
    let mut value = vec![0; SHARED_VALUE_BYTES];
    put_range(&mut value, range);
    put_u64(&mut value, COUNT_AT, count);
    value
}

/// The range of an entry of `Shared`, and its count.
///
/// # Errors
/// [`FormatError`] when it is none.
pub fn decode_shared(key: &[u8], value: &[u8]) -> Result<(Range<u64>, u64), FormatError> {
    let range = range_of(key, value)?;
    if value.len() != SHARED_VALUE_BYTES {
        return Err(length(SHARED_VALUE_BYTES, value));
    }
    match u64_at(value, COUNT_AT) {
        count @ 2.. => Ok((range, count)),
        count => Err(FormatError::field(Structure::Extent, "count", count)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{
        ToFree, decode_free, decode_shared, decode_to_free, encode_range, encode_shared,
        encode_tree, extent_key,
    };
    use crate::objects::CHUNKS_END;
    use crate::objects::segments::Subtree;

    proptest! {
        #[test]
        fn ranges_come_back(start in 0..CHUNKS_END, length in 1..1_u64 << 30, count in 2_u64..) {
            let range = start..(start + length).min(CHUNKS_END);
            let key = extent_key(range.end);
            let plain = encode_range(&range);
            prop_assert_eq!(decode_free(&key, &plain), Ok(range.clone()));
            prop_assert_eq!(decode_to_free(&key, &plain), Ok((range.clone(), ToFree::Range)));
            let shared = encode_shared(&range, count);
            prop_assert_eq!(decode_shared(&key, &shared), Ok((range, count)));
        }

        #[test]
        fn trees_come_back(block_chunk in 0..CHUNKS_END, level in 1..=16_u8, crc: u32) {
            let subtree = Subtree { length_bytes: 7, block_chunk, level, crc };
            let key = extent_key(block_chunk + 1);
            let found = decode_to_free(&key, &encode_tree(&subtree, 168));
            let range = block_chunk..block_chunk + 1;
            prop_assert_eq!(found, Ok((range, ToFree::Tree { subtree, position: 168 })));
        }

        #[test]
        fn arbitrary_bytes_are_an_answer(
            key: Vec<u8>, eight: [u8; 8], value: Vec<u8>, tree: [u8; 34], n in any::<u64>(),
        ) {
            let aligned = (n % (CHUNKS_END + 1) * 4096).to_be_bytes();
            for key in [key.as_slice(), &eight, &aligned] {
                for value in [value.as_slice(), &eight, &tree, &tree[..16]] {
                    let _ = decode_free(key, value);
                    let _ = decode_to_free(key, value);
                    let _ = decode_shared(key, value);
                }
            }
        }
    }

    #[test]
    fn ranges_that_no_writer_writes_are_errors() {
        let key = extent_key(4);
        assert!(decode_free(&key, &0_u64.to_le_bytes()).is_err());
        assert!(decode_free(&key, &4095_u64.to_le_bytes()).is_err());
        assert!(decode_free(&key, &(5 * 4096_u64).to_le_bytes()).is_err());
        assert!(decode_free(&key, &(4 * 4096_u64).to_le_bytes()).is_ok());
        let mut once = encode_shared(&(1..4), 2);
        once[8] = 1;
        assert!(decode_shared(&key, &once).is_err());
    }
}
