//! tar: headers of 512 bytes, each followed by its member, padded to 512 bytes.
//!
//! Source: POSIX.1-2017, pax interchange format; GNU tar's numbers of base 256. Extended headers
//! and long names are members like all others.

use super::next::Next;

const BLOCK_BYTES: u64 = 512;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const TYPE: usize = 156;
/// Types of members whose size is not the length of what follows: links, devices, directories.
const WITHOUT_BODY: &[u8] = b"123456";

/// A file under way.
pub(crate) struct Tar {
    /// Of the member whose header was read.
    body_bytes: u64,
}

impl Tar {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        let header = start.first_chunk()?;
        member_bytes(header).map(|_| Self { body_bytes: 0 })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        match std::mem::take(&mut self.body_bytes) {
            0 => self.header(ahead),
            body_bytes => Next::long_is_whole(body_bytes),
        }
    }

    fn header(&mut self, ahead: &[u8]) -> Next {
        let Some(header) = ahead.first_chunk() else { return Next::More };
        match member_bytes(header) {
            Some(body_bytes) => {
                self.body_bytes = body_bytes;
                Next::Loose(BLOCK_BYTES)
            }
            None => Next::Unknown, // The end, or no header.
        }
    }
}

/// Bytes of the member behind a header, with its padding; none when this is no header.
fn member_bytes(header: &[u8; BLOCK_BYTES as usize]) -> Option<u64> {
    let said = number(&header[CHECKSUM]).filter(|_| header[0] != 0)?;
    let mut sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    sum -= header[CHECKSUM].iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum += 8 * u64::from(b' ');
    if said != sum {
        return None;
    }
    if WITHOUT_BODY.contains(&header[TYPE]) {
        return Some(0);
    }
    number(&header[SIZE])?.checked_next_multiple_of(BLOCK_BYTES)
}

/// A number in octal digits, or to the base of 256 behind a byte with its highest bit set.
fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let digits = rest.iter().try_fold(u64::from(first & 0x3f), |number, byte| {
            number.checked_mul(256)?.checked_add((*byte).into())
        });
        return digits.filter(|_| first & 0x40 == 0);
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| !matches!(byte, b' ' | 0));
    digits.copied().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add((byte - b'0').into()),
        _ => None,
    })
}
