//! Reads a value: any range, with a bounded look ahead for those who read on.
//!
//! Runs that lie next to one another in the volume are read at once, paddings with them. What
//! cannot be read is named by the bytes of the value that it held, to the chunk; all others are
//! served.

use std::ops::Range;
use std::sync::Arc;

use format::objects::CHUNK_BYTES;
use format::objects::record::Value;
use format::objects::segments::Run;

use super::backing::Backing;
use super::error::ValueError;
use super::list_cursor::{ListCursor, is_damage};
use super::space::Hold;

/// Most bytes of the volume read at once.
const SPAN_BYTES_MAX: u64 = 1 << 20;
/// Bytes read ahead for those who read on.
const AHEAD_BYTES: u64 = 256 << 10;

/// Reads one value, which stays as it is while the reader lives; [`super::Pinned::reader`] makes
/// one.
pub struct ValueReader {
    backing: Arc<Backing>,
    content: Content,
    /// Keeps what the value names from being trimmed.
    _pin: Hold,
    /// Where the last read ended.
    last_end: u64,
    /// Bytes of the value that were read ahead, from this offset on.
    ahead: (u64, Vec<u8>),
    /// Where several pieces are read into together; kept, because fresh memory has to be zeroed.
    span: Vec<u8>,
}

enum Content {
    Inline(Vec<u8>),
    List(ListCursor),
}

/// Bytes of the value in the volume.
struct Piece {
    /// In the value.
    bytes: Range<u64>,
    /// First byte in the volume.
    at_bytes: u64,
}

impl Piece {
    fn of(run: &Run, start: u64, bytes: Range<u64>) -> Self {
        let skip_bytes = u64::from(run.skip_bytes) + bytes.start - start;
        Self { at_bytes: run.first_chunk * CHUNK_BYTES + skip_bytes, bytes }
    }

    fn length_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    fn end_in_volume(&self) -> u64 {
        self.at_bytes + self.length_bytes()
    }
}

impl ValueReader {
    pub(super) fn new(backing: &Arc<Backing>, value: &Value, pin: Hold) -> Self {
        let content = match value {
            Value::Inline(bytes) => Content::Inline(bytes.clone()),
            Value::List(entries) => Content::List(ListCursor::new(entries)),
        };
        let backing = Arc::clone(backing);
        Self { backing, content, _pin: pin, last_end: 0, ahead: (0, Vec::new()), span: Vec::new() }
    }

    /// Bytes of the value.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        match &self.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::List(list) => list.length_bytes(),
        }
    }

    /// Fills the front of `out` with what the value has from `offset` on; returns how many bytes
    /// those are: fewer than asked for at the value's end only.
    ///
    /// # Errors
    /// [`ValueError::Damaged`] and [`ValueError::DamagedList`] with the bytes that are lost; what
    /// is not among them can be read.
    pub fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, ValueError> {
        let left = self.length_bytes().saturating_sub(offset);
        let length = left.min(out.len() as u64) as usize;
        let (out, end) = (&mut out[..length], offset + length as u64);
        let mut at = offset;
        let is_sequential = offset == self.last_end && (length as u64) < AHEAD_BYTES;
        while at < end {
            let rest = &mut out[(at - offset) as usize..];
            at += match &self.content {
                Content::Inline(bytes) => copy_front(rest, &bytes[at as usize..]),
                Content::List(_) => self.read_some(at, rest, is_sequential)?,
            };
        }
        self.last_end = end;
        Ok(length)
    }

    /// The run that holds the byte at `at`, and the offset of its first; none for a value in its
    /// record.
    pub(super) fn run_at(&mut self, at: u64) -> Result<Option<(Run, u64)>, ValueError> {
        match &mut self.content {
            Content::Inline(_) => Ok(None),
            Content::List(list) => list.find(self.backing.volume.as_ref(), at).map(Some),
        }
    }

    fn read_some(&mut self, at: u64, out: &mut [u8], ahead: bool) -> Result<u64, ValueError> {
        let (ahead_start, bytes) = &self.ahead;
        if let Some(from) = at.checked_sub(*ahead_start)
            && let Some(there) = bytes.get(from as usize..).filter(|there| !there.is_empty())
        {
            return Ok(copy_front(out, there));
        }
        if !ahead {
            return self.read_span(at, out);
        }
        let mut bytes = std::mem::take(&mut self.ahead.1);
        let wanted = AHEAD_BYTES.min(self.length_bytes() - at);
        bytes.resize(wanted as usize, 0);
        // What cannot be read ahead is nobody's error yet.
        let Ok(found) = self.read_span(at, &mut bytes) else {
            return self.read_span(at, out);
        };
        bytes.truncate(found as usize);
        let copied = copy_front(out, &bytes);
        self.ahead = (at, bytes);
        Ok(copied)
    }

    /// Fills some of the front of `out`, by one read of the volume.
    fn read_span(&mut self, at: u64, out: &mut [u8]) -> Result<u64, ValueError> {
        let pieces = self.pieces(at, at + out.len() as u64)?;
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            panic!("a value has a byte at {at}");
        };
        let end = last.bytes.end;
        let out = &mut out[..(end - at) as usize];
        let read = match pieces.as_slice() {
            [piece] => self.backing.volume.read_at(piece.at_bytes, out),
            _ => {
                let length = (last.end_in_volume() - first.at_bytes) as usize;
                self.span.resize(length.max(self.span.len()), 0);
                let span = &mut self.span[..length];
                let read = self.backing.volume.read_at(first.at_bytes, span);
                for piece in &pieces {
                    let from = (piece.at_bytes - first.at_bytes) as usize;
                    let part = &span[from..from + piece.length_bytes() as usize];
                    copy_front(&mut out[(piece.bytes.start - at) as usize..], part);
                }
                read
            }
        };
        match read {
            Ok(()) => Ok(end - at),
            Err(error) if is_damage(&error) => self.read_before_damage(&pieces, out),
            Err(error) => Err(error.into()),
        }
    }

    /// Pieces of the bytes from `at` up to `end` that lie next to one another in the volume.
    fn pieces(&mut self, at: u64, end: u64) -> Result<Vec<Piece>, ValueError> {
        let Content::List(list) = &mut self.content else {
            panic!("a value in its record is not read from the volume");
        };
        let mut pieces: Vec<Piece> = Vec::new();
        let mut next = at;
        while next < end {
            let (run, start) = match list.find(self.backing.volume.as_ref(), next) {
                Ok(found) => found,
                Err(_) if !pieces.is_empty() => break, // The read of its first byte says so.
                Err(error) => return Err(error),
            };
            let piece = Piece::of(&run, start, next..end.min(start + run.length_bytes));
            if let (Some(first), Some(last)) = (pieces.first(), pieces.last()) {
                let is_next = last.end_in_volume().next_multiple_of(CHUNK_BYTES) == piece.at_bytes;
                if !is_next || piece.end_in_volume() - first.at_bytes > SPAN_BYTES_MAX {
                    break;
                }
            }
            let longest = if pieces.is_empty() { SPAN_BYTES_MAX } else { u64::MAX };
            let taken = piece.length_bytes().min(longest);
            next += taken;
            let is_cut = taken < piece.length_bytes();
            pieces.push(Piece { bytes: piece.bytes.start..next, ..piece });
            if is_cut {
                break;
            }
        }
        Ok(pieces)
    }

    /// Reads chunk by chunk; what lies before the first lost one is an answer.
    fn read_before_damage(&self, pieces: &[Piece], out: &mut [u8]) -> Result<u64, ValueError> {
        let mut done = 0;
        for piece in pieces {
            let mut at_bytes = piece.at_bytes;
            while at_bytes < piece.end_in_volume() {
                let chunk_end = (at_bytes + 1).next_multiple_of(CHUNK_BYTES);
                let length = chunk_end.min(piece.end_in_volume()) - at_bytes;
                let part = &mut out[done as usize..][..length as usize];
                match self.backing.volume.read_at(at_bytes, part) {
                    Ok(()) => (),
                    Err(error) if is_damage(&error) && done == 0 => {
                        let start = piece.bytes.start + (at_bytes - piece.at_bytes);
                        let bytes = start..start + length;
                        return Err(ValueError::Damaged { bytes, reason: Box::new(error) });
                    }
                    Err(error) if is_damage(&error) => return Ok(done),
                    Err(error) => return Err(error.into()),
                }
                done += length;
                at_bytes += length;
            }
        }
        Ok(done)
    }
}

/// Copies as much as there is room for; returns how much.
fn copy_front(out: &mut [u8], bytes: &[u8]) -> u64 {
    let length = out.len().min(bytes.len());
    out[..length].copy_from_slice(&bytes[..length]);
    length as u64
}
