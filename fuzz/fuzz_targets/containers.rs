//! A container as it is written, then harmed: its frames walked, its directory read, and the
//! container gone on with.
//!
//! The walk gives the frames in front of the first harm, each place in order and inside the range,
//! and never one whose checksum is wrong. A directory is that which was written, or was made to
//! look right, or is refused.
#![no_main]

use std::ops::Range;

use containers::{
    ContainerWrite, DirectoryError, OpenContainer, directory, directory_of, directory_range,
    footer, scan,
};
use format::directory::{DirectoryEntry, FOOTER_BYTES};
use format::frame::{self, ChunkName, FRAME_BYTES_MAX};
use format::units::{
    CONTAINER_BYTES, Codec, Compression, ContainerId, Fingerprint, FrameCheck, Pba, Pbn, UUID_BYTES,
};
use format::{BLOCK_BYTES, FormatError, Structure};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::canary;
use tamis_fuzz::heal;
use tamis_fuzz::input::Input;

const ID: ContainerId = ContainerId(3);
const SEQUENCE: u32 = 30;
const UUID: [u8; UUID_BYTES] = [7; UUID_BYTES];
const SECTOR_BYTES: usize = 512;

/// A container's bytes and what it holds.
struct Container {
    bytes: Vec<u8>,
    entries: Vec<DirectoryEntry>,
    /// Frames of this life end here.
    fill_bytes: u32,
    sealed: bool,
    /// Whether something in it was made to look right.
    mended: bool,
}

fn put(bytes: &mut [u8], writes: Vec<ContainerWrite>) {
    for ContainerWrite { offset_bytes, bytes: written, .. } in writes {
        bytes[offset_bytes as usize..][..written.length_bytes()].copy_from_slice(&written.packed());
    }
}

/// One life of the container: frames, flushes, perhaps a directory.
fn live(
    bytes: &mut [u8],
    input: &mut Input<'_>,
    sequence: u32,
) -> (Vec<DirectoryEntry>, u32, bool) {
    let mut open = OpenContainer::new(ID, sequence, Vec::new());
    let mut frame = vec![0; FRAME_BYTES_MAX];
    for number in 0..input.byte() % 32 {
        let (shape, content) = (input.byte(), input.byte());
        let codec = [Codec::Raw, Codec::Lz4, Codec::Zstd][usize::from(shape % 3)];
        let plain_bytes = SECTOR_BYTES * (1 + usize::from(shape >> 2 & 15));
        let steps = (0..plain_bytes).map(|at| content.wrapping_mul((at % 251) as u8));
        let plain: Vec<u8> = steps.collect();
        let pbn = Pbn(u64::from(sequence) * 1000 + u64::from(number));
        let compression = Compression { codec, level: i8::from(codec == Codec::Zstd) };
        let length_bytes =
            reduce::compress_frame(compression, ChunkName::unkeyed(pbn), &plain, &mut frame);
        let taken = open.append(&frame[..length_bytes], pbn, Fingerprint([number; 32]));
        assert!(taken.is_ok(), "a container has room for so few");
        let flush = shape >> 6 == 3;
        put(bytes, open.take_writes(flush));
    }
    let entries = open.entries().to_vec();
    if input.byte().is_multiple_of(2) {
        let sealed = open.seal(UUID);
        put(bytes, sealed.writes);
        return (entries, sealed.used_bytes, true);
    }
    put(bytes, open.take_writes(true));
    (entries, open.handed_bytes(), false)
}

impl Container {
    /// An earlier life and the present one over it.
    fn write(input: &mut Input<'_>) -> Self {
        let mut bytes = vec![0; CONTAINER_BYTES as usize];
        live(&mut bytes, input, SEQUENCE - 1);
        let (entries, fill_bytes, sealed) = live(&mut bytes, input, SEQUENCE);
        Self { bytes, entries, fill_bytes, sealed, mended: false }
    }

    /// A place among the frames or in the directory.
    fn place(&self, input: &mut Input<'_>) -> usize {
        let number = input.below(1 << 16);
        let end = self.bytes.len();
        if number % 4 == 0 {
            let tail_bytes = FOOTER_BYTES + 44 * self.entries.len();
            return end - 1 - (number >> 2) % tail_bytes;
        }
        match self.entries.get(number % self.entries.len().max(1)) {
            Some(entry) if number % 4 == 1 => entry.offset_bytes as usize + (number >> 6) % 16,
            _ => (number * 7) % (self.fill_bytes as usize + 8192),
        }
    }

    /// Does to it what is left of the input.
    fn harm(&mut self, input: &mut Input<'_>) {
        for _ in 0..input.byte() % 8 {
            let at = self.place(input);
            let end = self.bytes.len().min(at + 1 + usize::from(input.byte()));
            match input.byte() % 6 {
                0 | 1 => self.bytes[at] ^= input.byte(),
                2 => self.bytes[at..end].fill(0),
                3 => {
                    let from = self.place(input);
                    let end = self.bytes.len().min(from + end - at);
                    let at = at.min(self.bytes.len() - (end - from));
                    self.bytes.copy_within(from..end, at);
                }
                4 => {
                    let given = input.bytes(end - at);
                    self.bytes[at..at + given.len()].copy_from_slice(given);
                }
                _ => self.mend(at),
            }
        }
    }

    /// Makes the checksums right of the directory, or of the frame that may begin here.
    fn mend(&mut self, at: usize) {
        self.mended = true;
        let tail_start = self.bytes.len() - FOOTER_BYTES - 44 * self.entries.len();
        if at >= tail_start {
            return heal(&mut self.bytes[tail_start..], |tail| match directory_in(tail) {
                Err(DirectoryError::Format(error)) => Err(error),
                _ => Ok(()),
            });
        }
        let claimed = frame::claimed_bytes(&self.bytes[at..]).unwrap_or(0).min(FRAME_BYTES_MAX);
        let end = self.bytes.len().min(at + claimed);
        heal(&mut self.bytes[at..end], |bytes| frame::decode(bytes).map(drop));
    }

    /// Where the first byte differs from `before`.
    fn first_harm(&self, before: &[u8]) -> usize {
        let mut blocks = self.bytes.chunks(BLOCK_BYTES).zip(before.chunks(BLOCK_BYTES));
        let Some(block) = blocks.position(|(now, then)| now != then) else {
            return self.bytes.len();
        };
        let at = block * BLOCK_BYTES;
        let mut bytes = self.bytes[at..].iter().zip(&before[at..]);
        at + bytes.position(|(now, then)| now != then).unwrap_or(0)
    }
}

/// The directory in the end of a container.
fn directory_in(tail: &[u8]) -> Result<Vec<DirectoryEntry>, DirectoryError> {
    let footer = footer(ID, SEQUENCE, UUID, tail)?;
    let Range { start, end } = directory_range(&footer);
    let cut_bytes = CONTAINER_BYTES as usize - tail.len();
    let range = (start as usize).checked_sub(cut_bytes).map(|at| at..end as usize - cut_bytes);
    let entries = range.and_then(|range| tail.get(range));
    directory(
        &footer,
        entries.ok_or(FormatError::Length {
            structure: Structure::Directory,
            expected_bytes: u64::from(end - start),
            found_bytes: tail.len() as u64,
        })?,
    )
}

/// Walks the frames, and checks what must hold of any walk.
fn walk(container: &Container, range: Range<u32>) -> Vec<Pba> {
    let scanned = scan(ID, &container.bytes, range.clone(), frame::claimed_bytes);
    let mut plain = vec![0; FRAME_BYTES_MAX];
    let mut end = range.start;
    let mut places = Vec::new();
    for (header, pba) in scanned.frames {
        assert!(pba.container == ID && pba.offset_bytes >= end);
        end = pba.offset_bytes + pba.length_bytes;
        let bytes = &container.bytes[pba.offset_bytes as usize..end as usize];
        let decoded = frame::decode(bytes).map(|(header, _)| header);
        assert!(decoded == Ok(header), "a frame is believed that is none");
        let _ = reduce::expand_frame(bytes, &mut plain[..header.plain_bytes as usize]);
        places.push(Pba { check: FrameCheck::UNKNOWN, ..pba });
    }
    assert!(end <= scanned.end_bytes && scanned.end_bytes <= range.end.max(range.start));
    places
}

fn entry_place(entry: &DirectoryEntry) -> Pba {
    let DirectoryEntry { offset_bytes, length_bytes, .. } = *entry;
    Pba { container: ID, offset_bytes, length_bytes, check: FrameCheck::UNKNOWN }
}

/// Goes on with a container after its frames were walked.
fn go_on(mut container: Container) {
    let Container { entries, fill_bytes, .. } = &container;
    let mut open = OpenContainer::resume(ID, SEQUENCE, *fill_bytes, entries.clone());
    let mut frame = vec![0; FRAME_BYTES_MAX];
    let raw = Compression { codec: Codec::Raw, level: 0 };
    let name = ChunkName::unkeyed(Pbn(77));
    let length_bytes = reduce::compress_frame(raw, name, &[1; SECTOR_BYTES], &mut frame);
    let appended = open.append(&frame[..length_bytes], Pbn(77), Fingerprint([1; 32]));
    let mut places: Vec<Pba> = entries.iter().map(entry_place).collect();
    let appended = appended.expect("a container has room for so few");
    places.push(Pba { check: FrameCheck::UNKNOWN, ..appended });
    let sealed = open.seal(UUID);
    put(&mut container.bytes, sealed.writes);
    assert_eq!(walk(&container, 0..sealed.used_bytes), places);
    let listed = directory_of(ID, SEQUENCE, UUID, &container.bytes).expect("it was sealed");
    assert_eq!(listed.iter().map(entry_place).collect::<Vec<_>>(), places);
}

fuzz_target!(init: canary::release(), |input: &[u8]| {
    let mut input = Input::new(input);
    let mut container = Container::write(&mut input);
    let before = container.bytes.clone();
    container.harm(&mut input);

    let range = match input.byte() % 4 {
        0 => input.below(1 << 16) as u32..CONTAINER_BYTES,
        1 => 0..input.below(1 << 16) as u32,
        _ => 0..container.fill_bytes,
    };
    let places = walk(&container, range.clone());
    let first_harm = container.first_harm(&before);
    if range.start == 0 {
        let ends = |entry: &&DirectoryEntry| {
            let end = entry.offset_bytes + entry.length_bytes;
            end as usize <= first_harm && end <= range.end
        };
        let unharmed: Vec<Pba> =
            container.entries.iter().take_while(ends).map(entry_place).collect();
        assert!(places.starts_with(&unharmed), "an unharmed frame is not found");
    }
    match directory_of(ID, SEQUENCE, UUID, &container.bytes) {
        Ok(entries) => {
            assert!(container.mended || container.sealed && entries == container.entries)
        }
        Err(error) => {
            assert!(!container.sealed || first_harm < container.bytes.len(), "{error}");
        }
    }
    if !container.sealed && first_harm == container.bytes.len() {
        go_on(container);
    }
});
