//! Segments that begin where a file format has its parts begin.
//!
//! ```text
//! bytes ─> Format::next at each frame's begin ─> whole frame: segments of its own
//!                                             ├> loose frame: runs on from the one before
//!                                             └> no frame: content-defined to the end
//! ```
//!
//! A *whole* frame begins and ends a segment: up to [`WHOLE_BYTES_MAX`] it is one, a longer one is
//! cut by its content inside. *Loose* frames, headers and short members, are cut by their content
//! together, because a segment costs a padded chunk.
//!
//! Invariants: `loose_bytes` of what comes next are in frames that were looked at, and none of them
//! is whole; a whole frame of `whole_bytes` follows them. The format is asked at ends of frames
//! only, in order, and once for each.

use crate::formats::{Format, Next};
use crate::{CDC, CdcCutter, Cutter};

/// Longest whole frame that is one segment.
const WHOLE_BYTES_MAX: usize = 64 << 10;
/// Most bytes that a format needs to tell a frame.
const LOOK_BYTES_MAX: usize = 64 << 10;

/// Cuts a value of a known format.
pub struct FramedCutter {
    /// None: the rest is cut by its content.
    format: Option<Format>,
    inside: CdcCutter,
    loose_bytes: u64,
    whole_bytes: u64,
    /// The whole frame is one segment.
    is_one: bool,
}

impl FramedCutter {
    /// What [`Cutter::segment_bytes_max`] says.
    pub(crate) const SEGMENT_BYTES_MAX: usize = CDC.max_bytes + LOOK_BYTES_MAX;

    pub(crate) fn new(format: Format) -> Self {
        Self {
            format: Some(format),
            inside: CdcCutter::new(CDC),
            loose_bytes: 0,
            whole_bytes: 0,
            is_one: false,
        }
    }

    /// Looks at frames until a whole one begins or enough is known for a segment. False: more bytes
    /// are needed.
    fn look(&mut self, bytes: &[u8], is_end: bool) -> bool {
        while self.whole_bytes == 0 && self.loose_bytes < CDC.max_bytes as u64 {
            let Some(format) = &mut self.format else { return true };
            let Some(ahead) = bytes.get(self.loose_bytes as usize..).filter(|b| !b.is_empty())
            else {
                return is_end;
            };
            match format.next(ahead) {
                Next::Whole(length_bytes) => {
                    assert!(length_bytes > 0, "a frame has a byte");
                    self.whole_bytes = length_bytes;
                    self.is_one = length_bytes <= WHOLE_BYTES_MAX as u64;
                }
                Next::Loose(length_bytes) => {
                    assert!(length_bytes > 0, "a frame has a byte");
                    self.loose_bytes = self.loose_bytes.saturating_add(length_bytes);
                }
                Next::More if !is_end && ahead.len() < LOOK_BYTES_MAX => return false,
                Next::More | Next::Unknown => self.format = None,
            }
        }
        true
    }

    /// Bytes until the next end that a frame asks for; none: the content says.
    fn bound(&self) -> Option<u64> {
        match (self.loose_bytes, self.whole_bytes) {
            (0, 0) => None,
            (0, whole_bytes) => Some(whole_bytes),
            (loose_bytes, 1..) => Some(loose_bytes),
            (_, 0) => None,
        }
    }
}

impl Cutter for FramedCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        if !self.look(bytes, is_end) {
            return None;
        }
        let bound =
            self.bound().map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let (front, ends) = match bytes.len() >= bound {
            true => (&bytes[..bound], true),
            false => (bytes, is_end),
        };
        let is_whole = self.loose_bytes == 0 && self.whole_bytes > 0;
        let length = match is_whole && self.is_one {
            true => ends.then_some(front.len())?,
            false => self.inside.cut(front, ends)?,
        };
        match is_whole {
            true => self.whole_bytes -= length as u64,
            false => self.loose_bytes = self.loose_bytes.saturating_sub(length as u64),
        }
        Some(length)
    }

    fn segment_bytes_max(&self) -> usize {
        Self::SEGMENT_BYTES_MAX
    }
}
