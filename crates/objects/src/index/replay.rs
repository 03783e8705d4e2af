//! Reading the log: every group from the first that is not in redb up to the end.
//!
//! The end is the first place where no whole group of this bucket, position and sequence is:
//! nothing was written there, or a crash has torn what was. A chunk that cannot be read is not an
//! end: what was acknowledged may be in it, so it is an error.

use format::BLOCK_BYTES;
use format::objects::header::BucketHeader;
use format::objects::log::{
    GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, LoggedChange, LoggedChanges, Place, decode_body,
    decode_header, group_bytes,
};

use crate::index::IndexError;
use crate::index::log::{body_bytes_max, pieces};
use crate::index::pages::is_damage;
use crate::volume::BucketVolume;

const CHUNK_BYTES: u64 = BLOCK_BYTES as u64;

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// What a replay came to.
pub(crate) struct Replayed {
    /// Behind the last group.
    pub(crate) next: Place,
    /// What the chunk of that place holds in front of it.
    pub(crate) tail: Vec<u8>,
    /// Changes in all groups.
    pub(crate) changes: u64,
}

/// Reads the log from `from` on.
///
/// # Errors
/// [`IndexError::Damaged`] when a chunk cannot be read, or a whole group holds nonsense; those of
/// `take`.
pub(crate) fn replay(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
    from: Place,
    mut take: impl FnMut(LoggedChange<'_>) -> Result<(), IndexError>,
) -> Result<Replayed, IndexError> {
    let mut ring = RingReader::new(volume, header, from);
    let mut next = from;
    let mut changes = 0;
    replay_on(&mut ring, header, &mut next, &mut |change| {
        changes += 1;
        take(change)
    })?;
    let within = (next.position % CHUNK_BYTES) as usize;
    let start = next.position - within as u64;
    let tail = ring.bytes(start, within)?.unwrap_or_default().to_vec();
    Ok(Replayed { next, tail, changes })
}

/// Reads what can be read of a log from `from` on, past what is damaged. Returns what is wrong.
///
/// # Errors
/// [`IndexError`], but not [`IndexError::Damaged`]; those of `take`.
pub(crate) fn replay_readable(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
    from: Place,
    mut take: impl FnMut(LoggedChange<'_>) -> Result<(), IndexError>,
) -> Result<Vec<String>, IndexError> {
    let mut ring = RingReader::new(volume, header, from);
    let mut next = from;
    let mut lost = Vec::new();
    loop {
        match replay_on(&mut ring, header, &mut next, &mut take) {
            Ok(()) => return Ok(lost),
            Err(IndexError::Damaged(error)) => lost.push(error),
            Err(error) => return Err(error),
        }
        match group_behind(&mut ring, header, next)? {
            Some(place) => next = place,
            None => return Ok(lost),
        }
    }
}

/// The first group that the ring holds, where nobody says where the log goes on: for a salvage.
///
/// # Errors
/// [`IndexError`], but not [`IndexError::Damaged`].
pub(crate) fn oldest_group(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
) -> Result<Option<Place>, IndexError> {
    let mut ring = RingReader::new(volume, header, Place::default());
    let mut oldest: Option<Place> = None;
    let mut at = 0;
    while at + GROUP_HEADER_BYTES as u64 <= ring.end {
        match ring.bytes(at, GROUP_HEADER_BYTES).map(|head| decode_header(head.unwrap_or_default()))
        {
            Ok(Ok((found, _)))
                if found.uuid == header.uuid && found.position % header.ring_bytes == at =>
            {
                let place = Place { position: found.position, sequence: found.sequence };
                if oldest.is_none_or(|oldest| place.sequence < oldest.sequence) {
                    oldest = Some(place);
                }
            }
            Ok(_) => {}
            Err(IndexError::Damaged(_)) => at = at / CHUNK_BYTES * CHUNK_BYTES + CHUNK_BYTES - 8,
            Err(error) => return Err(error),
        }
        at += GROUP_ALIGN as u64;
    }
    Ok(oldest)
}

/// Whether the log goes on at `place`, or ends there: false where it has later groups only, so that
/// who says so is of an earlier merge.
///
/// # Errors
/// [`IndexError`], but not [`IndexError::Damaged`].
pub(crate) fn goes_on_at(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
    place: Place,
) -> Result<bool, IndexError> {
    let mut ring = RingReader::new(volume, header, place);
    match group_at(&mut ring, header, place) {
        Ok(Some(_)) => return Ok(true),
        Ok(None) | Err(IndexError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(group_behind(&mut ring, header, place)?.is_none())
}

/// The first group that begins in a chunk behind the one of `lost`.
fn group_behind(
    ring: &mut RingReader<'_>,
    header: &BucketHeader,
    lost: Place,
) -> Result<Option<Place>, IndexError> {
    let mut position = lost.position / CHUNK_BYTES * CHUNK_BYTES + CHUNK_BYTES;
    while position + GROUP_HEADER_BYTES as u64 <= ring.end {
        let head = match ring.bytes(position, GROUP_HEADER_BYTES) {
            Ok(head) => head.unwrap_or_default(),
            Err(IndexError::Damaged(_)) => {
                position = (position + GROUP_HEADER_BYTES as u64) / CHUNK_BYTES * CHUNK_BYTES;
                position += CHUNK_BYTES;
                continue;
            }
            Err(error) => return Err(error),
        };
        match decode_header(head) {
            Ok((found, _))
                if found.uuid == header.uuid
                    && found.position == position
                    && found.sequence > lost.sequence =>
            {
                return Ok(Some(Place { position, sequence: found.sequence }));
            }
            _ => position += GROUP_ALIGN as u64,
        }
    }
    Ok(None)
}

/// Reads groups from `next` on, which says where it has come to after an error as well.
fn replay_on(
    ring: &mut RingReader<'_>,
    header: &BucketHeader,
    next: &mut Place,
    take: &mut dyn FnMut(LoggedChange<'_>) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    while let Some(body_bytes) = group_at(ring, header, *next)? {
        let length = group_bytes(body_bytes);
        let Some(group) = ring.bytes(next.position, length)? else { break };
        let Ok(body) = decode_body(group) else { break };
        for change in LoggedChanges::new(body) {
            take(change.map_err(|error| IndexError::Damaged(error.to_string()))?)?;
        }
        *next = Place { position: next.position + length as u64, sequence: next.sequence + 1 };
    }
    Ok(())
}

/// Length of the body of the group that its header says is at this place.
fn group_at(
    ring: &mut RingReader<'_>,
    header: &BucketHeader,
    place: Place,
) -> Result<Option<usize>, IndexError> {
    let Place { position, sequence } = place;
    let Some(head) = ring.bytes(position, GROUP_HEADER_BYTES)? else { return Ok(None) };
    let expected = GroupHeader { uuid: header.uuid, sequence, position };
    Ok(match decode_header(head) {
        Ok((found, body_bytes)) if found == expected => {
            (body_bytes <= body_bytes_max(header.ring_bytes)).then_some(body_bytes)
        }
        _ => None,
    })
}

/// Reads the ring from one position on, a stretch at a time.
struct RingReader<'a> {
    volume: &'a dyn BucketVolume,
    ring_bytes: u64,
    /// The ring ends here, where its first chunk comes again.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> RingReader<'a> {
    fn new(volume: &'a dyn BucketVolume, header: &BucketHeader, from: Place) -> Self {
        let start = from.position / CHUNK_BYTES * CHUNK_BYTES;
        let ring_bytes = header.ring_bytes;
        Self { volume, ring_bytes, end: start + ring_bytes, start, bytes: Vec::new() }
    }

    /// These bytes, or none where the ring ends before them.
    fn bytes(&mut self, position: u64, length: usize) -> Result<Option<&[u8]>, IndexError> {
        let end = position + length as u64;
        if end > self.end {
            return Ok(None);
        }
        if position < self.start || end > self.start + self.bytes.len() as u64 {
            self.read_stretch(position, end)?;
        }
        let at = (position - self.start) as usize;
        Ok(Some(&self.bytes[at..at + length]))
    }

    /// Reads on from the chunk of `position`; where something behind `end` cannot be read, only
    /// what is asked for.
    fn read_stretch(&mut self, position: u64, end: u64) -> Result<(), IndexError> {
        self.start = position / CHUNK_BYTES * CHUNK_BYTES;
        let needed = end.next_multiple_of(CHUNK_BYTES) - self.start;
        let ahead = needed.max(READ_BYTES).min(self.end - self.start);
        if self.read(ahead)? {
            return Ok(());
        }
        if self.read(needed)? {
            return Ok(());
        }
        Err(IndexError::Damaged(format!("its log cannot be read at position {}", self.start)))
    }

    /// Reads a stretch; false where a chunk of it is damaged.
    fn read(&mut self, length: u64) -> Result<bool, IndexError> {
        self.bytes.resize(length as usize, 0);
        let mut filled = 0;
        for (at_bytes, here) in pieces(self.ring_bytes, self.start, length, u64::MAX) {
            let end = filled + here as usize;
            match self.volume.read_at(at_bytes, &mut self.bytes[filled..end]) {
                Ok(()) => filled = end,
                Err(error) if is_damage(&error) => {
                    self.bytes.clear();
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
