//! A table's file and a variant of it as values of Multes++: what the variant takes beside the
//! original (Figure 7), by pages and by chunks that a Rabin fingerprint cuts.
//!
//! ```text
//! file ─> pages, each with its header ─> values of 1 KiB at most ─┬> key and fingerprint: metadata
//!      └> chunks, cut where the fingerprint of 48 bytes says ─────┘└> bytes, once each: data
//! ```
//!
//! The overhead of a variant is its metadata and what it brings of new bytes. The paper's bars are
//! lost and its data set is not here, so the pair is made (`xtask/scripts/parquet_pair.py`), and
//! the figures are data of this crate.

use std::collections::HashSet;

use segments::SegmentPolicy;
use serde::{Deserialize, Serialize};

use super::rabin::Rabin;

/// Longest value of the prototype.
pub const VALUE_BYTES_MAX: usize = 1 << 10;
/// A key of 16 bytes beside a fingerprint of SHA-256; the paper does not say how long keys are.
const METADATA_BYTES: usize = 16 + 32;

/// How a file becomes values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// By pages of Parquet.
    Pages,
    /// Where a fingerprint of the last 48 bytes says, after this number of bytes on average.
    Content(usize),
}

/// What a variant takes beside the original.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Overhead {
    /// What was done to the original.
    pub variant: String,
    /// How files became values.
    pub cut: String,
    /// Bytes of the variant's file.
    pub file_bytes: usize,
    /// Values of the variant.
    pub values: usize,
    /// Keys and fingerprints of all of its values.
    pub metadata_bytes: usize,
    /// Values that the original does not have.
    pub new_bytes: usize,
}

impl Overhead {
    /// Metadata and new bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.metadata_bytes + self.new_bytes
    }
}

/// The overhead of a variant.
#[must_use]
pub fn overhead(original: &[u8], (variant, file): (&str, &[u8]), cut: Cut) -> Overhead {
    let mut stored: HashSet<&[u8]> = values(original, cut).into_iter().collect();
    let values = values(file, cut);
    let new = values.iter().filter(|value| stored.insert(value));
    Overhead {
        variant: variant.to_owned(),
        cut: match cut {
            Cut::Pages => "pages".to_owned(),
            Cut::Content(mean_bytes) => format!("content, {mean_bytes} bytes"),
        },
        file_bytes: file.len(),
        new_bytes: new.map(|value| value.len()).sum(),
        metadata_bytes: values.len() * METADATA_BYTES,
        values: values.len(),
    }
}

/// The values of a file, in its order.
#[must_use]
pub fn values(file: &[u8], cut: Cut) -> Vec<&[u8]> {
    let pieces = match cut {
        Cut::Pages => pages(file),
        Cut::Content(mean_bytes) => Rabin::new(mean_bytes).chunks(file),
    };
    pieces.into_iter().flat_map(|piece| piece.chunks(VALUE_BYTES_MAX)).collect()
}

/// The pages of a file, and what lies between them.
fn pages(file: &[u8]) -> Vec<&[u8]> {
    let mut cutter = SegmentPolicy::Auto.cutter();
    let (mut pages, mut rest) = (Vec::new(), file);
    while !rest.is_empty()
        && let Some(length_bytes) = cutter.cut(rest, true)
    {
        let (page, behind) = rest.split_at(length_bytes);
        pages.push(page);
        rest = behind;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::{Cut, METADATA_BYTES, overhead, values};
    use crate::dice::Dice;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut dice = Dice::new(1);
        (0..bytes).map(|_| dice.below(256) as u8).collect()
    }

    #[test]
    fn values_make_the_file_again() {
        let file = noise(100_000);
        for cut in [Cut::Pages, Cut::Content(512), Cut::Content(1024)] {
            assert_eq!(values(&file, cut).concat(), file);
        }
    }

    #[test]
    fn a_copy_takes_its_metadata_and_nothing_else() {
        let file = noise(100_000);
        let found = overhead(&file, ("a copy", &file), Cut::Content(1024));
        assert_eq!((found.new_bytes, found.bytes()), (0, found.values * METADATA_BYTES));
    }

    #[test]
    fn bytes_that_move_are_found_by_content() {
        let file = noise(100_000);
        let found = overhead(&file, ("moved", &file[1..]), Cut::Content(512));
        assert!(found.new_bytes < 4096, "{found:?}");
    }
}
