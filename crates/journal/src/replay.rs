//! Replay: the records that count, in their order.
//!
//! The caller reads what [`Replay::needs`] names and feeds it. A feed usually brings more than one
//! record, and [`Replay::buffered`] gives those that are here already:
//!
//! ```text
//! loop {
//!     let step = match replay.buffered() {
//!         Some(step) => step,
//!         None => replay.feed(read(replay.needs())),
//!     };
//!     // Record: apply it; More: read on; End: done
//! }
//! ```
//!
//! Calling `buffered` is a matter of speed alone; `needs` always starts at the next record.
//! Fillers are gone over silently. After the end every step is that end.
//!
//! What is asked for may reach beyond the journal's end, into blocks that nobody needs. When they
//! cannot be read, [`Replay::narrow`] asks for the least that the next step takes.
//!
//! A caller that writes records again has them kept ([`Replay::keep_from`]): what is read a
//! second time might be something else.

use format::record::{
    Change, Changes, RECORD_HEADER_BYTES, RecordHeader, RecordKind, Settled, decode_header,
    record_crc, verify_body,
};
use format::root::JournalPosition;
use format::units::{UUID_BYTES, UUID_PREFIX_BYTES, uuid_prefix};
use format::{BLOCK_BYTES, FormatError};
use mutants::mutant;

use crate::ring::Ring;

/// Asked for at first, unless a record is longer.
const WINDOW_BYTES: usize = 128 << 10;

/// Why replay ended: what is where the next record would be. For a report; all are the journal's
/// ordinary end after a crash.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No record.
    Empty,
    /// A record of an earlier lap, an earlier life, or another store.
    Stale,
    /// The next record, not whole.
    Torn,
}

/// A record that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayRecord {
    /// Its number.
    pub sequence: u64,
    /// Of the opening of the store that wrote it.
    pub incarnation: u64,
    /// What was durable when it was written.
    pub settled: Settled,
    /// The changes, encoded.
    pub body: Vec<u8>,
}

impl ReplayRecord {
    /// The changes in it.
    ///
    /// # Errors
    /// [`FormatError`] when the body is none of this version, though its checksum is right.
    pub fn changes(&self) -> Result<Vec<Change>, FormatError> {
        Changes::new(&self.body).collect()
    }
}

/// What a feed led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// The next record.
    Record(ReplayRecord),
    /// What [`Replay::needs`] says now is to be fed.
    More,
    /// The journal ends at [`Replay::position`].
    End(End),
}

/// The reading end of the journal.
#[derive(Debug)]
pub struct Replay {
    ring: Ring,
    uuid_prefix: [u8; UUID_PREFIX_BYTES],
    /// Incarnation of the last record.
    incarnation: u64,
    position: JournalPosition,
    /// Bytes of the ring; `window[window_at..]` starts at `position`.
    window: Vec<u8>,
    window_at: usize,
    needs_bytes: usize,
    /// What of it the next step cannot do without.
    least_bytes: usize,
    /// Asked for next, and at most.
    ahead_bytes: (usize, usize),
    end: Option<End>,
    kept_from: u64,
    kept: Vec<(u64, Vec<u8>)>,
}

impl Replay {
    /// Starts at `position`, as a root has it.
    ///
    /// # Panics
    /// When the journal is not whole blocks, as for [`Ring::new`].
    #[must_use]
    pub fn new(journal_bytes: u64, uuid: [u8; UUID_BYTES], position: JournalPosition) -> Self {
        let mut replay = Self {
            ring: Ring::new(journal_bytes),
            uuid_prefix: uuid_prefix(uuid),
            incarnation: 0,
            position,
            window: Vec::new(),
            window_at: 0,
            needs_bytes: 0,
            least_bytes: 0,
            ahead_bytes: (WINDOW_BYTES, WINDOW_BYTES),
            end: None,
            kept_from: u64::MAX,
            kept: Vec::new(),
        };
        replay.need(BLOCK_BYTES);
        replay
    }

    /// Asks for up to so many bytes at once: each time for twice as much as before, so that a short
    /// journal costs no more than it did. Fewer than it asks for at first change nothing.
    pub fn read_ahead(&mut self, most_bytes: usize) {
        self.ahead_bytes.1 = most_bytes.max(WINDOW_BYTES);
    }

    /// From this record on bytes are kept for [`Self::take_kept`], fillers' too.
    pub fn keep_from(&mut self, sequence: u64) {
        self.kept_from = sequence;
    }

    /// What was kept since the last call: offsets in zone journal and bytes, whole blocks.
    pub fn take_kept(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.kept)
    }

    /// The place after the last record that counts: where a writer goes on.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.position
    }

    /// Offset in zone journal and length of what to feed next: whole blocks.
    #[must_use]
    pub fn needs(&self) -> (u64, usize) {
        (self.ring.place(self.position.offset_bytes), self.needs_bytes)
    }

    /// Asks for less, after a read failed. False when it cannot be less: the journal is damaged.
    pub fn narrow(&mut self) -> bool {
        let is_less = self.least_bytes < self.needs_bytes;
        self.needs_bytes = self.least_bytes;
        is_less
    }

    /// Takes what [`Self::needs`] named. Fewer bytes mean that the medium ends there.
    pub fn feed(&mut self, bytes: &[u8]) -> ReplayStep {
        let is_short = bytes.len() < self.needs_bytes;
        let (next_bytes, most_bytes) = self.ahead_bytes;
        self.ahead_bytes.0 = (2 * next_bytes).min(most_bytes);
        self.window.clear();
        self.window.extend_from_slice(bytes);
        self.window_at = 0;
        match self.buffered() {
            Some(step) => step,
            None if is_short => self.end_with(End::Torn),
            None => ReplayStep::More,
        }
    }

    /// The next step, if it can be taken with what was fed before.
    pub fn buffered(&mut self) -> Option<ReplayStep> {
        loop {
            if let Some(end) = self.end {
                return Some(ReplayStep::End(end));
            }
            match self.record_here() {
                Ok(Some((RecordKind::Group, record))) => return Some(ReplayStep::Record(record)),
                Ok(Some((RecordKind::Filler, _))) => {}
                Ok(None) => return None,
                Err(end) => return Some(self.end_with(end)),
            }
        }
    }

    /// The record at the position, which moves behind it; None when it is not here as a whole.
    fn record_here(&mut self) -> Result<Option<(RecordKind, ReplayRecord)>, End> {
        let here = self.window.get(self.window_at..).unwrap_or_default();
        if here.is_empty() {
            self.need(BLOCK_BYTES);
            return Ok(None);
        }
        let header = decode_header(here).map_err(|error| match error {
            FormatError::Magic { .. } => End::Empty,
            _ => End::Torn,
        })?;
        self.check_chain(&header)?;
        let length_bytes = header.length_bytes as usize;
        if here.len() < length_bytes {
            self.need(length_bytes);
            return Ok(None);
        }
        let body = match verify_body(&header, here) {
            Ok(body) => body.to_vec(),
            Err(_) if mutant!(BelievesTornRecord) => {
                here[RECORD_HEADER_BYTES..][..header.body_bytes as usize].to_vec()
            }
            Err(_) => return Err(End::Torn),
        };
        let crc = record_crc(here).map_err(|_| End::Torn)?;
        if header.sequence >= self.kept_from {
            let place = self.ring.place(self.position.offset_bytes);
            self.kept.push((place, here[..length_bytes].to_vec()));
        }
        self.move_behind(&header, crc);
        let RecordHeader { kind, sequence, incarnation, settled, .. } = header;
        Ok(Some((kind, ReplayRecord { sequence, incarnation, settled, body })))
    }

    /// Whether this is the record that comes next, going by its header.
    fn check_chain(&self, header: &RecordHeader) -> Result<(), End> {
        let continues = header.uuid_prefix == self.uuid_prefix
            && header.sequence == self.position.sequence
            && (mutant!(BelievesStaleRecord)
                || header.previous_crc == self.position.previous_crc
                    && header.incarnation >= self.incarnation);
        if !continues {
            return Err(End::Stale);
        }
        let length_bytes = u64::from(header.length_bytes);
        let left_bytes = self.ring.bytes_to_end(self.position.offset_bytes);
        let is_in_lap = match header.kind {
            RecordKind::Group => length_bytes <= left_bytes,
            RecordKind::Filler => length_bytes == left_bytes,
        };
        if is_in_lap { Ok(()) } else { Err(End::Torn) }
    }

    fn move_behind(&mut self, header: &RecordHeader, crc: u32) {
        self.incarnation = header.incarnation;
        self.position = JournalPosition {
            sequence: self.position.sequence + 1,
            offset_bytes: self.position.offset_bytes + u64::from(header.length_bytes),
            previous_crc: crc,
        };
        self.window_at += header.length_bytes as usize;
        self.need(BLOCK_BYTES);
    }

    /// Asks for a window, of which `least_bytes` are needed; neither reaches beyond the lap.
    fn need(&mut self, least_bytes: usize) {
        let left_bytes = self.ring.bytes_to_end(self.position.offset_bytes);
        self.needs_bytes = left_bytes.min(least_bytes.max(self.ahead_bytes.0) as u64) as usize;
        self.least_bytes = left_bytes.min(least_bytes as u64) as usize;
    }

    fn end_with(&mut self, end: End) -> ReplayStep {
        self.end = Some(end);
        ReplayStep::End(end)
    }
}
