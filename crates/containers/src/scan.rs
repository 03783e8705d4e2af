//! Walking the frames of a container that has no directory, because a crash came before it was
//! sealed.
//!
//! Frames follow each other without gaps, but for zeros from the end of a flush to the next block.
//! A frame is recognised by its checksum first, and only what is no frame may be padding: a frame
//! that begins in the last bytes of a block can itself begin with zeros there.
//!
//! The walk ends at the first place that is neither. Behind it there may be frames of an earlier
//! life of the container, which look like any others: only the caller knows how far the present
//! life reaches (from the journal), and it says so with the range.

use crate::open::next_block;
use format::frame::{self, FrameHeader};
use format::units::{ContainerId, Pba};
use std::ops::Range;

/// What a walk found.
#[derive(Debug)]
pub struct Scanned {
    /// The frames, in order.
    pub frames: Vec<(FrameHeader, Pba)>,
    /// Where the walk ended: at the end of the range, or at the first place that holds no frame.
    pub end_bytes: u32,
}

/// Walks the frames in `range` of a container, of which `bytes` are the bytes from offset 0 on.
///
/// `claimed_bytes` reads off the bytes from some place on how long a frame there claims to be. It
/// is asked about places that hold none, and not believed: a frame of that length is verified.
#[must_use]
pub fn scan(
    container: ContainerId,
    bytes: &[u8],
    range: Range<u32>,
    claimed_bytes: impl Fn(&[u8]) -> Option<usize>,
) -> Scanned {
    let end = (range.end as usize).min(bytes.len());
    let bytes = &bytes[..end];
    let (mut frames, mut at) = (Vec::new(), range.start);
    while (at as usize) < end {
        let Some(rest) = bytes.get(at as usize..) else { break };
        if let Some((header, length_bytes)) =
            claimed_bytes(rest).and_then(|claimed| first_frame(rest, claimed))
        {
            let check = frame::check_of(rest);
            frames.push((header, Pba { container, offset_bytes: at, length_bytes, check }));
            at += length_bytes;
        } else if let Some(padding_bytes) = padding(rest, at) {
            at += padding_bytes;
        } else {
            break;
        }
    }
    Scanned { frames, end_bytes: at }
}

/// Bytes of zeros up to the next block or the end; None when there is anything else, or `at` is a
/// block.
fn padding(rest: &[u8], at: u32) -> Option<u32> {
    let padding_bytes = ((next_block(at) - at) as usize).min(rest.len());
    let zeros = rest.get(..padding_bytes)?;
    (padding_bytes > 0 && zeros.iter().all(|byte| *byte == 0)).then_some(padding_bytes as u32)
}

/// The frame of `length_bytes` at the start of `rest`, verified, and its length.
fn first_frame(rest: &[u8], length_bytes: usize) -> Option<(FrameHeader, u32)> {
    let (header, _) = frame::decode(rest.get(..length_bytes)?).ok()?;
    Some((header, length_bytes as u32))
}
