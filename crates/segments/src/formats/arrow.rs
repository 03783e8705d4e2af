//! Apache Arrow IPC, as a file or as a stream: messages, each with its metadata and its body.
//!
//! ```text
//! [ARROW1\0\0] FFFFFFFF length metadata body  FFFFFFFF length metadata body …  FFFFFFFF 0 [footer]
//! ```
//!
//! The metadata of a batch says where each buffer of its columns begins in the body. Source: the
//! columnar format's "Serialization and Interprocess Communication", `Message.fbs`.

use super::collect::Collected;
use super::flatbuffer::Table;
use super::next::Next;
use super::numbers::u32_at;

const FILE_MAGIC: &[u8] = b"ARROW1\0\0";
const CONTINUATION: u32 = u32::MAX;
const PREFIX_BYTES: u64 = 8;
/// Longest metadata that is read: of some ten thousand columns.
const METADATA_BYTES_MAX: u32 = 4 << 20;
/// Numbers of messages, of the fields of a message, and of those of a batch.
const DICTIONARY_BATCH: u8 = 2;
const RECORD_BATCH: u8 = 3;
const HEADER_TYPE: usize = 1;
const HEADER: usize = 2;
const BODY_LENGTH: usize = 3;
const DICTIONARY_DATA: usize = 1;
const BUFFERS: usize = 2;
/// A buffer is its offset and its length.
const BUFFER_BYTES: usize = 16;

/// A file or stream under way.
pub(crate) struct Arrow {
    place: Place,
}

enum Place {
    Magic,
    Prefix,
    Metadata(Collected),
    /// Lengths of what follows in the body, the next one last.
    Body(Vec<u64>),
}

impl Arrow {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(FILE_MAGIC) {
            return Some(Self { place: Place::Magic });
        }
        // The first message of a stream is a schema, which has no body.
        let length = u32_at(start, 4).filter(|_| u32_at(start, 0) == Some(CONTINUATION))?;
        let is_message = (16..METADATA_BYTES_MAX).contains(&length) && length.is_multiple_of(8);
        is_message.then_some(Self { place: Place::Prefix })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        loop {
            match &mut self.place {
                Place::Magic => {
                    self.place = Place::Prefix;
                    return Next::Loose(FILE_MAGIC.len() as u64);
                }
                Place::Prefix => return self.prefix(ahead),
                Place::Metadata(metadata) => {
                    if let Some(piece) = metadata.take(ahead) {
                        return piece;
                    }
                    let Some(parts) = body_parts(metadata.bytes()) else { return Next::Unknown };
                    self.place = Place::Body(parts);
                }
                Place::Body(parts) => match parts.pop() {
                    Some(length_bytes) => return Next::long_is_whole(length_bytes),
                    None => self.place = Place::Prefix,
                },
            }
        }
    }

    fn prefix(&mut self, ahead: &[u8]) -> Next {
        match u32_at(ahead, 0).zip(u32_at(ahead, 4)) {
            None => Next::More,
            Some((CONTINUATION, length @ 1..=METADATA_BYTES_MAX)) => {
                self.place = Place::Metadata(Collected::new(length as usize));
                Next::Loose(PREFIX_BYTES)
            }
            Some(_) => Next::Unknown, // The end of the stream, or none.
        }
    }
}

/// Lengths of the parts of a message's body, the last one first.
fn body_parts(metadata: &[u8]) -> Option<Vec<u64>> {
    let message = Table::root(metadata)?;
    let body_bytes = message.u64(BODY_LENGTH).unwrap_or(0);
    let batch = match message.byte(HEADER_TYPE)? {
        RECORD_BATCH => message.table(HEADER),
        DICTIONARY_BATCH => message.table(HEADER).and_then(|header| header.table(DICTIONARY_DATA)),
        _ => None,
    };
    let buffers = batch.and_then(|batch| batch.vector(BUFFERS, BUFFER_BYTES)).unwrap_or(&[]);
    let mut starts: Vec<u64> = buffers
        .chunks_exact(BUFFER_BYTES)
        .filter_map(|buffer| buffer.first_chunk().map(|start| u64::from_le_bytes(*start)))
        .filter(|start| *start < body_bytes)
        .collect();
    starts.extend([0, body_bytes]);
    starts.sort_unstable();
    starts.dedup();
    let mut parts: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    parts.reverse();
    Some(parts)
}
