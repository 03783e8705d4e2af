//! What the two copies of a replicated bucket say to each other.
//!
//! ```text
//! frame    length u32 │ CRC32C u32 │ body: kind u8, fields, bytes        little-endian
//!
//! primary ──> Hello ────────────────────────────> secondary      who, which bucket, since when
//!         <── Welcome │ Refused <────────────────
//!         ──> Want (records that the primary lost) ─> <── Record ... Given
//!         ──> Begin, Record, Record, Flush ... ──>
//!         <── Received, Durable, Differs <───────
//! ```
//!
//! A record is one change of the volume; its number counts the changes since the bucket was first
//! replicated.

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_u32, u16_at, u32_at, u64_at};

/// Raised with every change of what is said.
pub const PROTOCOL_VERSION: u16 = 1;

/// Length and checksum in front of a body.
pub const FRAME_HEAD_BYTES: usize = 8;

/// The longest body: a list of writes is no longer than the engine's write buffer.
pub const BODY_BYTES_MAX: usize = 256 << 20;

/// Longest name or sentence.
const TEXT_BYTES_MAX: usize = 4096;

const STRUCTURE: Structure = Structure::ReplicationMessage;

/// A place in the history of a bucket. Two positions with one epoch and one life are places in one
/// sequence of records; all others know nothing of each other.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// How often a copy was promoted.
    pub epoch: u64,
    /// Random number of an opening of the primary.
    pub life: u64,
    /// Number of the last record.
    pub sequence: u64,
}

impl Position {
    /// Whether the other is a place in the same sequence.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.epoch, self.life) == (other.epoch, other.life)
    }

    /// The place behind record `sequence` of the same sequence.
    #[must_use]
    pub fn at(self, sequence: u64) -> Self {
        Self { sequence, ..self }
    }
}

/// One change of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Ranges are written in the order of the list.
    Write {
        /// Nobody will look for their chunks.
        unindexed: bool,
        /// Where, and what.
        writes: Vec<(u64, Vec<u8>)>,
    },
    /// A range becomes zeros.
    Trim {
        /// Where.
        at_bytes: u64,
        /// How long.
        length_bytes: u64,
    },
    /// A range should have this fingerprint; one that has another is told.
    Compare {
        /// Where.
        at_bytes: u64,
        /// How long.
        length_bytes: u32,
        /// BLAKE3-256 of it.
        fingerprint: [u8; 32],
    },
    /// All ranges are equal now.
    InStep,
}

impl Change {
    /// Bytes that it keeps in memory, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Write { writes, .. } => {
                writes.iter().map(|(_, bytes)| bytes.len() as u64 + 32).sum()
            }
            Self::Trim { .. } | Self::Compare { .. } | Self::InStep => 64,
        }
    }
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The primary begins.
    Hello {
        /// [`PROTOCOL_VERSION`] of the primary.
        version: u16,
        /// Both copies have it.
        set: u64,
        /// Its newest record.
        position: Position,
        /// Name of the bucket.
        bucket: String,
    },
    /// The secondary says what it holds.
    Welcome {
        /// Its last record.
        position: Position,
        /// Whether it holds a prefix, and no mixture.
        is_consistent: bool,
    },
    /// There is nothing to replicate to.
    Refused {
        /// Epoch of the bucket there; higher than the primary's, another copy was promoted.
        epoch: u64,
        /// Why, in a sentence.
        reason: String,
    },
    /// The primary asks for the records behind this one, which it has lost.
    Want {
        /// Number of the last that it has.
        sequence: u64,
    },
    /// All that were asked for have come, or none can.
    Given {
        /// Number of the last that was given; that which was named: the records are not kept.
        sequence: u64,
    },
    /// Records follow.
    Begin {
        /// Of the primary, and of the record in front of the first.
        position: Position,
        /// The secondary holds a mixture until [`Change::InStep`].
        compares: bool,
    },
    /// A change.
    Record {
        /// Its number.
        sequence: u64,
        /// What changes.
        change: Change,
    },
    /// All before it is to be durable.
    Flush {
        /// Number of the last record.
        sequence: u64,
    },
    /// The secondary has this record and all before it.
    Received {
        /// Its number.
        sequence: u64,
    },
    /// They are durable.
    Durable {
        /// Its number.
        sequence: u64,
    },
    /// A range that was compared is not equal.
    Differs {
        /// Where.
        at_bytes: u64,
        /// How long.
        length_bytes: u32,
    },
}

impl Message {
    /// Appends the frame of it to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + FRAME_HEAD_BYTES, 0);
        self.encode_body(out);
        let length_bytes = out.len() - start - FRAME_HEAD_BYTES;
        assert!(length_bytes <= BODY_BYTES_MAX, "a message is no longer than may be");
        let crc = crc32c(&out[start + FRAME_HEAD_BYTES..]);
        put_u32(out, start, length_bytes as u32);
        put_u32(out, start + 4, crc);
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, set, position, bucket } => {
                out.push(1);
                out.extend_from_slice(&version.to_le_bytes());
                put_numbers(out, &[*set]);
                put_position(out, position);
                put_text(out, bucket);
            }
            Self::Welcome { position, is_consistent } => {
                out.extend_from_slice(&[2, u8::from(*is_consistent)]);
                put_position(out, position);
            }
            Self::Refused { epoch, reason } => {
                out.push(3);
                put_numbers(out, &[*epoch]);
                put_text(out, reason);
            }
            Self::Want { sequence } => put_numbered(out, 4, *sequence),
            Self::Given { sequence } => put_numbered(out, 5, *sequence),
            Self::Begin { position, compares } => {
                out.extend_from_slice(&[6, u8::from(*compares)]);
                put_position(out, position);
            }
            Self::Record { sequence, change } => {
                put_numbered(out, 7, *sequence);
                encode_change(change, out);
            }
            Self::Flush { sequence } => put_numbered(out, 8, *sequence),
            Self::Received { sequence } => put_numbered(out, 9, *sequence),
            Self::Durable { sequence } => put_numbered(out, 10, *sequence),
            Self::Differs { at_bytes, length_bytes } => {
                out.push(11);
                put_numbers(out, &[*at_bytes]);
                out.extend_from_slice(&length_bytes.to_le_bytes());
            }
        }
    }

    /// The length of the body that follows a head.
    ///
    /// # Errors
    /// [`FormatError`] when no body is so long.
    pub fn body_bytes(head: [u8; FRAME_HEAD_BYTES]) -> Result<usize, FormatError> {
        let bytes = u32_at(&head, 0) as usize;
        match (1..=BODY_BYTES_MAX).contains(&bytes) {
            true => Ok(bytes),
            false => Err(FormatError::field(STRUCTURE, "length", bytes as u64)),
        }
    }

    /// What a frame says.
    ///
    /// # Errors
    /// [`FormatError`] when that cannot be read, or was changed on its way.
    pub fn decode(head: [u8; FRAME_HEAD_BYTES], body: &[u8]) -> Result<Self, FormatError> {
        FormatError::checksum(STRUCTURE, u32_at(&head, 4), crc32c(body))?;
        let mut fields = Fields(body);
        let message = fields.message()?;
        match fields.0.len() {
            0 => Ok(message),
            left => Err(FormatError::field(STRUCTURE, "bytes behind it", left as u64)),
        }
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn put_numbered(out: &mut Vec<u8>, kind: u8, sequence: u64) {
    out.push(kind);
    put_numbers(out, &[sequence]);
}

fn put_position(out: &mut Vec<u8>, position: &Position) {
    put_numbers(out, &[position.epoch, position.life, position.sequence]);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn encode_change(change: &Change, out: &mut Vec<u8>) {
    match change {
        Change::Write { unindexed, writes } => {
            out.extend_from_slice(&[1, u8::from(*unindexed)]);
            out.extend_from_slice(&(writes.len() as u32).to_le_bytes());
            for (at_bytes, bytes) in writes {
                put_numbers(out, &[*at_bytes]);
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        Change::Trim { at_bytes, length_bytes } => {
            out.push(2);
            put_numbers(out, &[*at_bytes, *length_bytes]);
        }
        Change::Compare { at_bytes, length_bytes, fingerprint } => {
            out.push(3);
            put_numbers(out, &[*at_bytes]);
            out.extend_from_slice(&length_bytes.to_le_bytes());
            out.extend_from_slice(fingerprint);
        }
        Change::InStep => out.push(4),
    }
}

/// What is left of a body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], FormatError> {
        FormatError::at_least(STRUCTURE, bytes, self.0)?;
        let (taken, left) = self.0.split_at(bytes);
        self.0 = left;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, FormatError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64, FormatError> {
        Ok(u64_at(self.take(8)?, 0))
    }

    fn length(&mut self) -> Result<u32, FormatError> {
        Ok(u32_at(self.take(4)?, 0))
    }

    fn flag(&mut self) -> Result<bool, FormatError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(FormatError::field(STRUCTURE, "flag", other.into())),
        }
    }

    fn position(&mut self) -> Result<Position, FormatError> {
        let (epoch, life, sequence) = (self.number()?, self.number()?, self.number()?);
        Ok(Position { epoch, life, sequence })
    }

    fn text(&mut self) -> Result<String, FormatError> {
        let bytes = self.length()? as usize;
        let unreadable = FormatError::field(STRUCTURE, "text", bytes as u64);
        if bytes > TEXT_BYTES_MAX {
            return Err(unreadable);
        }
        String::from_utf8(self.take(bytes)?.to_vec()).map_err(|_| unreadable)
    }

    fn message(&mut self) -> Result<Message, FormatError> {
        Ok(match self.byte()? {
            1 => {
                let version = u16_at(self.take(2)?, 0);
                let (set, position) = (self.number()?, self.position()?);
                Message::Hello { version, set, position, bucket: self.text()? }
            }
            2 => {
                let is_consistent = self.flag()?;
                Message::Welcome { position: self.position()?, is_consistent }
            }
            3 => Message::Refused { epoch: self.number()?, reason: self.text()? },
            4 => Message::Want { sequence: self.number()? },
            5 => Message::Given { sequence: self.number()? },
            6 => {
                let compares = self.flag()?;
                Message::Begin { position: self.position()?, compares }
            }
            7 => Message::Record { sequence: self.number()?, change: self.change()? },
            8 => Message::Flush { sequence: self.number()? },
            9 => Message::Received { sequence: self.number()? },
            10 => Message::Durable { sequence: self.number()? },
            11 => Message::Differs { at_bytes: self.number()?, length_bytes: self.length()? },
            other => return Err(FormatError::field(STRUCTURE, "kind", other.into())),
        })
    }

    fn change(&mut self) -> Result<Change, FormatError> {
        Ok(match self.byte()? {
            1 => {
                let unindexed = self.flag()?;
                let count = self.length()?;
                // As many as there are bytes for: a count alone takes no memory.
                let mut writes = Vec::new();
                for _ in 0..count {
                    let (at_bytes, bytes) = (self.number()?, self.length()? as usize);
                    writes.push((at_bytes, self.take(bytes)?.to_vec()));
                }
                Change::Write { unindexed, writes }
            }
            2 => Change::Trim { at_bytes: self.number()?, length_bytes: self.number()? },
            3 => {
                let (at_bytes, length_bytes) = (self.number()?, self.length()?);
                let fingerprint = array_at(self.take(32)?, 0);
                Change::Compare { at_bytes, length_bytes, fingerprint }
            }
            4 => Change::InStep,
            other => return Err(FormatError::field(STRUCTURE, "change", other.into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{Change, FRAME_HEAD_BYTES, Message, Position};

    fn changes() -> impl Strategy<Value = Change> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        let writes = proptest::collection::vec((any::<u64>(), bytes), 0..4);
        prop_oneof![
            (any::<bool>(), writes)
                .prop_map(|(unindexed, writes)| Change::Write { unindexed, writes }),
            (any::<u64>(), any::<u64>())
                .prop_map(|(at_bytes, length_bytes)| Change::Trim { at_bytes, length_bytes }),
            (any::<u64>(), any::<u32>(), any::<[u8; 32]>()).prop_map(
                |(at_bytes, length_bytes, fingerprint)| Change::Compare {
                    at_bytes,
                    length_bytes,
                    fingerprint
                }
            ),
            Just(Change::InStep),
        ]
    }

    fn messages() -> impl Strategy<Value = Message> {
        let positions = (any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(epoch, life, sequence)| Position { epoch, life, sequence });
        let numbered = (4_u8..11, any::<u64>()).prop_map(|(kind, sequence)| match kind {
            4 => Message::Want { sequence },
            5 => Message::Given { sequence },
            8 => Message::Flush { sequence },
            9 => Message::Received { sequence },
            _ => Message::Durable { sequence },
        });
        prop_oneof![
            (any::<u16>(), any::<u64>(), positions.clone(), "[a-z]{0,9}").prop_map(
                |(version, set, position, bucket)| Message::Hello {
                    version,
                    set,
                    position,
                    bucket
                }
            ),
            (positions.clone(), any::<bool>()).prop_map(|(position, is_consistent)| {
                Message::Welcome { position, is_consistent }
            }),
            (any::<u64>(), ".{0,9}").prop_map(|(epoch, reason)| Message::Refused { epoch, reason }),
            (positions, any::<bool>())
                .prop_map(|(position, compares)| Message::Begin { position, compares }),
            (any::<u64>(), changes())
                .prop_map(|(sequence, change)| Message::Record { sequence, change }),
            (any::<u64>(), any::<u32>())
                .prop_map(|(at_bytes, length_bytes)| Message::Differs { at_bytes, length_bytes }),
            numbered,
        ]
    }

    fn split(frame: &[u8]) -> ([u8; FRAME_HEAD_BYTES], &[u8]) {
        let (head, body) = frame.split_first_chunk().unwrap();
        assert_eq!(Message::body_bytes(*head).unwrap(), body.len());
        (*head, body)
    }

    proptest! {
        #[test]
        fn a_message_comes_back_and_no_changed_one_does(
            message in messages(),
            at in any::<usize>(),
        ) {
            let mut frame = Vec::new();
            message.encode(&mut frame);
            let (head, body) = split(&frame);
            assert_eq!(Message::decode(head, body).unwrap(), message);
            let mut changed = body.to_vec();
            changed[at % body.len()] ^= 1;
            assert!(Message::decode(head, &changed).is_err());
        }

        #[test]
        fn any_body_is_a_message_or_an_error(
            body in proptest::collection::vec(any::<u8>(), 1..80),
            kind in 0_u8..13,
        ) {
            let mut body = body;
            body[0] = kind;
            let mut head = [0; FRAME_HEAD_BYTES];
            head[4..].copy_from_slice(&super::crc32c(&body).to_le_bytes());
            if let Ok(message) = Message::decode(head, &body) {
                let mut frame = Vec::new();
                message.encode(&mut frame);
                assert_eq!(&frame[FRAME_HEAD_BYTES..], &body);
            }
        }
    }
}
