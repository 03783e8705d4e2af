//! `.safetensors`: the length of a header, the header as JSON, tensors side by side.
//!
//! Source: the description of the format in huggingface/safetensors.

use serde_json::Value;

use super::collect::Collected;
use super::next::Next;
use super::numbers::u64_at;

/// Longest header that is read; the format allows 100 MB.
const HEADER_BYTES_MAX: u64 = 8 << 20;
const LENGTH_BYTES: usize = 8;

/// A file under way.
pub(crate) struct Safetensors {
    header: Option<Collected>,
    /// Lengths of the tensors to come, the next one last.
    tensors: Vec<u64>,
}

impl Safetensors {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        let header_bytes = u64_at(start, 0)?;
        let is_json = start.get(LENGTH_BYTES) == Some(&b'{');
        if !is_json || header_bytes > HEADER_BYTES_MAX {
            return None;
        }
        let header = Collected::new(LENGTH_BYTES + header_bytes as usize);
        Some(Self { header: Some(header), tensors: Vec::new() })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        if let Some(header) = &mut self.header {
            if let Some(piece) = header.take(ahead) {
                return piece;
            }
            self.tensors = lengths(&header.bytes()[LENGTH_BYTES..]).unwrap_or_default();
            self.header = None;
        }
        match self.tensors.pop() {
            Some(length_bytes) => Next::long_is_whole(length_bytes),
            None => Next::Unknown,
        }
    }
}

/// Lengths of the tensors of a header, the last one first; none when they are not side by side.
fn lengths(header: &[u8]) -> Option<Vec<u64>> {
    let header: Value = serde_json::from_slice(header).ok()?;
    let tensors = header.as_object()?.iter().filter(|(name, _)| *name != "__metadata__");
    let mut ranges = Vec::new();
    for (_, tensor) in tensors {
        let offsets = tensor.get("data_offsets")?;
        ranges.push((offsets.get(0)?.as_u64()?, offsets.get(1)?.as_u64()?));
    }
    ranges.sort_unstable();
    let (mut at, mut lengths) = (0, Vec::new());
    for (start, end) in ranges {
        if start != at || end < start {
            return None;
        }
        // An empty tensor is no frame.
        lengths.extend(Some(end - start).filter(|length| *length > 0));
        at = end;
    }
    lengths.reverse();
    Some(lengths)
}
