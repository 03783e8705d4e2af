//! The groups of variable length behind a record's header.

use super::metadata::{CHECKSUMS_MAX, Checksum, ChecksumAlgorithm};
use crate::error::{FormatError, Structure};
use crate::field::{put_u16, u16_at};

const FLAG_COMPOSITE: u8 = 0x80;

/// Appends `text` and before it its length in two bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    let at = bytes.len();
    assert!(text.len() <= usize::from(u16::MAX), "metadata is shorter than its types allow");
    bytes.resize(at + 2, 0);
    put_u16(bytes, at, text.len() as u16);
    bytes.extend(text);
}

/// Appends each checksum: algorithm and whether it is composite, then its bytes.
pub(super) fn put_checksums(bytes: &mut Vec<u8>, checksums: &[Checksum]) {
    let in_order = checksums.is_sorted_by(|a, b| a.algorithm() < b.algorithm());
    assert!(in_order, "at most one checksum of each algorithm, in their order");
    for checksum in checksums {
        let composite = if checksum.is_composite() { FLAG_COMPOSITE } else { 0 };
        bytes.push(checksum.algorithm() as u8 | composite);
        bytes.extend(checksum.digest());
    }
}

/// What is left of a record.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        FormatError::at_least(Structure::ObjectRecord, length, self.bytes)?;
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16_at(self.take(2)?, 0))
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.u16()?;
        self.take(length.into())
    }

    pub(super) fn checksums(&mut self, count: u8) -> Result<Vec<Checksum>, FormatError> {
        let impossible = |field, found: u8| {
            Err(FormatError::field(Structure::ObjectRecord, field, found.into()))
        };
        if usize::from(count) > CHECKSUMS_MAX {
            return impossible("number of checksums", count);
        }
        let mut checksums: Vec<Checksum> = Vec::with_capacity(count.into());
        for _ in 0..count {
            let head = self.take(1)?[0];
            let Some(algorithm) = ChecksumAlgorithm::from_number(head & !FLAG_COMPOSITE) else {
                return impossible("algorithm of a checksum", head);
            };
            if checksums.last().is_some_and(|last| last.algorithm() >= algorithm) {
                return impossible("order of checksums", head);
            }
            let digest = self.take(algorithm.digest_bytes())?;
            let composite = head & FLAG_COMPOSITE != 0;
            match Checksum::new(algorithm, digest, composite) {
                Some(checksum) => checksums.push(checksum),
                None => return impossible("length of a checksum", head),
            }
        }
        Ok(checksums)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }
}
