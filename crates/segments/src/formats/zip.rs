//! zip: local headers, each followed by its member, and a directory at the end.
//!
//! A member that was compressed while it was written has its length behind it, where a walk from
//! the front cannot see it: it ends the walk. Source: PKWARE's APPNOTE.TXT 6.3, 4.3.7 and 4.5.3.

use super::next::Next;
use super::numbers::{u16_at, u32_at, u64_at};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const HEADER_BYTES: usize = 30;
/// The length follows the member.
const LENGTH_BEHIND: u16 = 1 << 3;
/// Length of a member whose true one is in the extra field of this number.
const LENGTH_IN_EXTRA: u32 = u32::MAX;
const ZIP64_EXTRA: u16 = 1;

/// A file under way.
pub(crate) struct Zip {
    /// Of the member whose header was read.
    body_bytes: u64,
}

impl Zip {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        (u32_at(start, 0)? == LOCAL_HEADER).then_some(Self { body_bytes: 0 })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        match std::mem::take(&mut self.body_bytes) {
            0 => self.header(ahead),
            body_bytes => Next::long_is_whole(body_bytes),
        }
    }

    fn header(&mut self, ahead: &[u8]) -> Next {
        match (u32_at(ahead, 0), u16_at(ahead, 26), u16_at(ahead, 28)) {
            (Some(signature), _, _) if signature != LOCAL_HEADER => Next::Unknown,
            (Some(_), Some(name), Some(extra)) => {
                let name_end = HEADER_BYTES + usize::from(name);
                let header_end = name_end + usize::from(extra);
                match ahead.get(..header_end) {
                    None => Next::More,
                    Some(header) => self.member(header, &header[name_end..]),
                }
            }
            _ => Next::More,
        }
    }

    fn member(&mut self, header: &[u8], extra: &[u8]) -> Next {
        let is_behind = u16_at(header, 6).is_none_or(|flags| flags & LENGTH_BEHIND != 0);
        let lengths = u32_at(header, 18).zip(u32_at(header, 22));
        let body_bytes = match lengths {
            Some((compressed, plain)) if compressed == LENGTH_IN_EXTRA => {
                compressed_in(extra, plain == LENGTH_IN_EXTRA)
            }
            Some((compressed, _)) => Some(compressed.into()),
            None => None,
        };
        match body_bytes {
            Some(body_bytes) if !is_behind => {
                self.body_bytes = body_bytes;
                Next::Loose(header.len() as u64)
            }
            _ => Next::Unknown,
        }
    }
}

/// The length of the compressed member in the extra fields; the plain one stands before it if it is
/// there, too.
fn compressed_in(mut extra: &[u8], behind_plain: bool) -> Option<u64> {
    loop {
        let (number, length) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        let field = extra.get(4..4 + length)?;
        if number == ZIP64_EXTRA {
            return u64_at(field, if behind_plain { 8 } else { 0 });
        }
        extra = extra.get(4 + length..)?;
    }
}
