//! A journal as the real writer leaves it on a memory disk, and then as nobody would.

use std::collections::VecDeque;

use disk::{Completion, Disk, Io, IoKind, MemoryDisk, SharedBuf};
use format::BLOCK_BYTES;
use format::record::{
    RECORD_BYTES_MAX, RecordHeader, RecordKind, Settled, decode_header, encode_record,
    record_bytes, verify_body,
};
use format::root::JournalPosition;
use format::units::{UUID_BYTES, Zone, uuid_prefix};
use journal::{AppendError, JournalWrite, ReplayRecord, Writer};

use crate::heal;
use crate::input::Input;

/// Of the store.
pub const UUID: [u8; UUID_BYTES] = [7; UUID_BYTES];
const BLOCKS_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 20_000;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// A record that the journal must still hold.
pub struct Written {
    /// Of the filler in front of it, if there is one.
    pub position: JournalPosition,
    /// Behind it.
    pub end_bytes: u64,
    /// As replay gives it.
    pub record: ReplayRecord,
}

/// The ring, and what was written to it.
pub struct WrittenRing {
    /// Its bytes.
    pub disk: MemoryDisk,
    /// Its length.
    pub length_bytes: u64,
    /// Where replay begins: the tail.
    pub start: JournalPosition,
    /// From there on.
    pub written: VecDeque<Written>,
    /// Whether something was put into it that could pass for a record.
    pub forged: bool,
}

impl WrittenRing {
    /// The work of a writer that an input describes.
    #[must_use]
    pub fn write(input: &mut Input<'_>) -> Self {
        let blocks = 4 + input.below(BLOCKS_MAX - 4);
        let length_bytes = (blocks * BLOCK_BYTES) as u64;
        let offset_bytes = length_bytes * 3 + input.below(blocks) as u64 * BLOCK;
        let start = JournalPosition { sequence: 9, offset_bytes, previous_crc: 0xfeed };
        let disk = MemoryDisk::new(&[(Zone::Journal, length_bytes)], 1);
        let mut ring = Self { disk, length_bytes, start, written: VecDeque::new(), forged: false };
        let mut incarnation = 1;
        let mut writer = Writer::resume(length_bytes, UUID, start, offset_bytes, incarnation);
        for _ in 0..input.byte() % 32 {
            let body = vec![input.byte(); input.below(BODY_BYTES_MAX)];
            ring.append(&mut writer, body, incarnation);
            if input.byte().is_multiple_of(8) {
                // Another life goes on.
                incarnation += 1;
                let (next, tail) = (writer.next(), ring.start.offset_bytes);
                writer = Writer::resume(length_bytes, UUID, next, tail, incarnation);
            }
        }
        ring
    }

    /// Appends; drops the oldest records until there is room.
    fn append(&mut self, writer: &mut Writer, body: Vec<u8>, incarnation: u64) {
        let position = writer.next();
        let durable_sequence = position.sequence - 1;
        let settled = Settled { durable_sequence, placed_sequence: 0 };
        let appended = loop {
            match writer.append(&body, settled) {
                Ok(appended) => break appended,
                Err(AppendError::Full { .. }) => {
                    let Some(oldest) = self.written.pop_front() else { return };
                    writer.release_to(oldest.end_bytes);
                    self.start = self.written.front().map_or(position, |next| next.position);
                }
                Err(AppendError::TooLong { .. }) => return,
            }
        };
        appended.writes.into_iter().for_each(|write| put(&mut self.disk, write));
        let sequence = appended.sequence;
        let record = ReplayRecord { sequence, incarnation, settled, body };
        let end_bytes = writer.next().offset_bytes;
        self.written.push_back(Written { position, end_bytes, record });
    }

    /// All bytes of the ring.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.disk.peek(Zone::Journal, 0, self.length_bytes as usize)
    }

    /// Does to the ring what is left of the input.
    pub fn damage(&mut self, input: &mut Input<'_>) {
        let mut next = self.start;
        for _ in 0..input.byte() % 8 {
            let block = input.below((self.length_bytes / BLOCK) as usize) as u64 * BLOCK;
            match input.byte() % 6 {
                0 => self.flip(block + input.below(BLOCK_BYTES) as u64, input.byte()),
                1 => self.flip(block + u64::from(input.byte() % 64), input.byte()),
                2 => {
                    let from = input.below((self.length_bytes / BLOCK) as usize) as u64 * BLOCK;
                    self.put(block, &self.disk.peek(Zone::Journal, from, BLOCK_BYTES));
                }
                3 => self.put(block, &[0; BLOCK_BYTES]),
                4 => self.mend(block),
                _ => next = self.forge(input, next),
            }
        }
    }

    fn flip(&self, at: u64, bits: u8) {
        self.disk.corrupt(Zone::Journal, at, |byte| *byte ^= bits);
    }

    /// As much of whole blocks as lies in the lap.
    fn put(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let mut buf = disk::AlignedBuf::padded(bytes);
        buf.truncate(bytes.len().min((self.length_bytes - offset_bytes) as usize));
        put(&mut self.disk, JournalWrite { offset_bytes, buf: SharedBuf::from(buf) });
    }

    /// Makes the checksum right of the record that may begin here.
    fn mend(&mut self, offset_bytes: u64) {
        let bytes = self.bytes();
        let Ok(header) = decode_header(&bytes[offset_bytes as usize..]) else { return };
        let end = offset_bytes as usize + header.length_bytes as usize;
        let Some(record) = bytes.get(offset_bytes as usize..end) else { return };
        let mut record = record.to_vec();
        heal(&mut record, |bytes| verify_body(&decode_header(bytes)?, bytes).map(drop));
        self.put(offset_bytes, &record);
        self.forged = true;
    }

    /// Writes a record that nobody wrote: one that follows at `next`, or nearly so. Returns what
    /// follows it.
    fn forge(&mut self, input: &mut Input<'_>, next: JournalPosition) -> JournalPosition {
        let at = match input.below(2 * self.written.len().max(1)) {
            number if number < self.written.len() => self.written[number].position,
            _ => next,
        };
        let body = vec![input.byte(); input.below(BODY_BYTES_MAX)];
        let place = at.offset_bytes % self.length_bytes;
        let shape = input.byte();
        let length_bytes = match shape % 4 {
            0 => (self.length_bytes - place) as usize,
            1 => (1 + input.below(RECORD_BYTES_MAX / BLOCK_BYTES)) * BLOCK_BYTES,
            _ => record_bytes(body.len()),
        };
        let length_bytes = length_bytes.max(record_bytes(body.len()));
        let header = RecordHeader {
            length_bytes: length_bytes as u32,
            body_bytes: body.len() as u32,
            kind: if shape & 4 == 0 { RecordKind::Group } else { RecordKind::Filler },
            incarnation: 1 + u64::from(shape >> 3 & 3),
            sequence: at.sequence + u64::from(shape >> 5 & 1),
            previous_crc: at.previous_crc ^ u32::from(shape >> 6 & 1),
            settled: Settled {
                durable_sequence: u64::from(input.word()),
                placed_sequence: u64::from(input.word()),
            },
            uuid_prefix: uuid_prefix(UUID),
        };
        let mut record = vec![0; length_bytes];
        let previous_crc = encode_record(&header, &body, &mut record);
        self.put(place, &record);
        self.forged = true;
        let offset_bytes = at.offset_bytes + length_bytes as u64;
        JournalPosition { sequence: header.sequence + 1, offset_bytes, previous_crc }
    }

    /// How many of the written records, from the tail on, are as they were in `before`.
    #[must_use]
    pub fn unharmed(&self, before: &[u8]) -> usize {
        let after = self.bytes();
        let same = |written: &&Written| {
            (written.position.offset_bytes..written.end_bytes).step_by(BLOCK_BYTES).all(|offset| {
                let place = (offset % self.length_bytes) as usize;
                before[place..place + BLOCK_BYTES] == after[place..place + BLOCK_BYTES]
            })
        };
        self.written.iter().take_while(same).count()
    }
}

/// Writes to the journal, and waits until it is there.
pub fn put(disk: &mut MemoryDisk, write: JournalWrite) {
    let JournalWrite { offset_bytes, buf } = write;
    let kind = IoKind::Write { buf, durable: false };
    complete(disk, Io { zone: Zone::Journal, offset_bytes, kind, tag: 0 });
}

/// Does one operation.
pub fn complete(disk: &mut MemoryDisk, io: Io) -> Completion {
    disk.submit(io);
    let mut done = Vec::new();
    while done.is_empty() {
        disk.wait(&mut done);
    }
    let end = done.swap_remove(0);
    assert!(end.result.is_ok(), "the memory disk refuses: {:?}", end.result);
    end
}
