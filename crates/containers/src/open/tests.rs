//! The open container against a plain model: a list of frames, and the image of a device that takes
//! every block once.

use super::{ContainerWrite, NewFrame, OpenContainer, Sealed, next_block};
use crate::SharedBytes;
use crate::scan::{Scanned, scan};
use crate::sealed::directory_of;
use crate::segments::WriteBytes;
use crate::{usable_bytes_per_container, worst_case_bytes};
use format::directory::DirectoryEntry;
use format::frame::{self, FRAME_HEADER_BYTES, FrameHeader};
use format::units::{
    BLOCK_BYTES, CONTAINER_BYTES, Codec, ContainerId, Fingerprint, FrameCheck, Pba, Pbn,
};
use std::sync::Arc;

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

const ID: ContainerId = ContainerId(9);
const SEQUENCE: u32 = 77;
const UUID: [u8; 16] = *b"a store's number";

/// A true frame, so that scans recognise it.
fn frame(pbn: u64, payload_bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    frame.extend((0..payload_bytes).map(|i| (i as u64 ^ pbn.wrapping_mul(31)) as u8));
    let header = FrameHeader {
        codec: Codec::Lz4,
        stored_bytes: payload_bytes as u32,
        plain_bytes: 65_536,
        pbn: Pbn(pbn),
        domain: Default::default(),
    };
    frame::write_header(&mut frame, &header);
    frame
}

fn fingerprint(pbn: u64) -> Fingerprint {
    let mut bytes = [0x5A; 32];
    bytes[..8].copy_from_slice(&pbn.to_le_bytes());
    Fingerprint(bytes)
}

/// A device that refuses to be written twice in the same place.
struct Device {
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl Device {
    /// Full of what an earlier life left.
    fn new() -> Self {
        let blocks = CONTAINER_BYTES as usize / BLOCK_BYTES;
        Self { bytes: vec![0xC3; CONTAINER_BYTES as usize], written: vec![false; blocks] }
    }

    fn take(&mut self, writes: Vec<ContainerWrite>) {
        for ContainerWrite { container, offset_bytes, bytes } in writes {
            assert_eq!(container, ID);
            let buf = bytes.packed();
            let (start, end) = (offset_bytes as usize, offset_bytes as usize + buf.len());
            assert!(start.is_multiple_of(BLOCK_BYTES) && end.is_multiple_of(BLOCK_BYTES));
            assert!(start < end && end <= self.bytes.len());
            for block in &mut self.written[start / BLOCK_BYTES..end / BLOCK_BYTES] {
                assert!(!*block, "a block is written twice");
                *block = true;
            }
            self.bytes[start..end].copy_from_slice(&buf);
        }
    }

    fn read(&self, pba: Pba) -> &[u8] {
        &self.bytes[pba.offset_bytes as usize..(pba.offset_bytes + pba.length_bytes) as usize]
    }

    fn written(&self, pba: Pba) -> bool {
        let (start, end) = (pba.offset_bytes, pba.offset_bytes + pba.length_bytes);
        let blocks = start as usize / BLOCK_BYTES..(end as usize).div_ceil(BLOCK_BYTES);
        self.written[blocks].iter().all(|written| *written)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append {
        payload_bytes: usize,
    },
    Batch {
        payload_bytes: Vec<usize>,
    },
    /// A batch whose bytes stay where they are.
    Lay {
        payload_bytes: Vec<usize>,
    },
    /// What was handed out unpacked has been packed.
    Packed,
    Flush,
    Stream,
    /// The store is closed and opened again.
    Resume,
}

fn payload_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..4100usize, 1 => Just(4096), 1 => 1..40usize, 1 => 30_000..65_536usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => payload_bytes().prop_map(|payload_bytes| Step::Append { payload_bytes }),
        5 => prop::collection::vec(payload_bytes(), 0..60)
            .prop_map(|payload_bytes| Step::Batch { payload_bytes }),
        8 => prop::collection::vec(payload_bytes(), 0..60)
            .prop_map(|payload_bytes| Step::Lay { payload_bytes }),
        2 => Just(Step::Packed),
        2 => Just(Step::Flush),
        2 => Just(Step::Stream),
        1 => Just(Step::Resume),
    ]
}

/// A container, the device below it, and what was put in.
struct Run {
    open: OpenContainer,
    device: Device,
    frames: Vec<(Pba, Vec<u8>)>,
    next_pbn: u64,
    /// Segments that were handed out unpacked.
    unpacked: Vec<u32>,
    /// What was appended before this is on the device only.
    memory_start: u32,
}

impl Run {
    fn new() -> Self {
        let (open, device) = (OpenContainer::new(ID, SEQUENCE, Vec::new()), Device::new());
        let (frames, unpacked) = (Vec::new(), Vec::new());
        Self { open, device, frames, next_pbn: 1, unpacked, memory_start: 0 }
    }

    /// Appends as many as fit; false when the container is full.
    fn append(&mut self, payload_bytes: &[usize]) -> bool {
        self.append_by(payload_bytes, |open, batch, named, pbas| {
            open.append_batch(&batch, named, pbas)
        })
    }

    /// The same, in two batches with other bytes around them.
    fn lay(&mut self, payload_bytes: &[usize]) -> bool {
        self.append_by(payload_bytes, |open, batch, named, pbas| {
            let bytes: SharedBytes = Arc::new([&[0xEE; 3], batch.as_slice(), &[0xEE; 5]].concat());
            let (first, second) = named.split_at(named.len() / 2);
            let taken = open.lay_batch(&bytes, 3, first, pbas);
            if taken < first.len() {
                return taken;
            }
            let from = 3 + first.iter().map(|frame| frame.length_bytes as usize).sum::<usize>();
            taken + open.lay_batch(&bytes, from, second, pbas)
        })
    }

    fn append_by(
        &mut self,
        payload_bytes: &[usize],
        append: impl FnOnce(&mut OpenContainer, Vec<u8>, &[NewFrame], &mut Vec<Pba>) -> usize,
    ) -> bool {
        let frames: Vec<_> = (self.next_pbn..)
            .zip(payload_bytes)
            .map(|(pbn, payload_bytes)| (pbn, frame(pbn, *payload_bytes)))
            .collect();
        let batch: Vec<u8> = frames.iter().flat_map(|(_, frame)| frame.iter().copied()).collect();
        let named: Vec<_> = frames
            .iter()
            .map(|(pbn, frame)| NewFrame {
                pbn: Pbn(*pbn),
                fingerprint: fingerprint(*pbn),
                length_bytes: frame.len() as u32,
                check: frame::check_of(frame),
            })
            .collect();
        let mut pbas = Vec::new();
        let taken = append(&mut self.open, batch, &named, &mut pbas);
        assert_eq!(taken, pbas.len());
        self.next_pbn += taken as u64;
        self.frames.extend(pbas.into_iter().zip(frames.into_iter().map(|(_, frame)| frame)));
        taken == payload_bytes.len()
    }

    fn append_one(&mut self, payload_bytes: usize) -> bool {
        let pbn = self.next_pbn;
        let bytes = frame(pbn, payload_bytes);
        let (fits, fill_bytes) = (self.open.fits(bytes.len()), self.open.fill_bytes());
        match self.open.append(&bytes, Pbn(pbn), fingerprint(pbn)) {
            Ok(pba) => {
                assert!(fits);
                self.next_pbn += 1;
                self.frames.push((pba, bytes));
                true
            }
            Err(full) => {
                assert!(!fits);
                assert_eq!((full.frame_bytes, full.fill_bytes), (bytes.len(), fill_bytes));
                assert_eq!(self.open.fill_bytes(), fill_bytes);
                false
            }
        }
    }

    fn write(&mut self, writes: Vec<ContainerWrite>) {
        let unpacked = writes.iter().filter(|write| matches!(write.bytes, WriteBytes::Unpacked(_)));
        self.unpacked.extend(unpacked.map(|write| write.offset_bytes));
        self.device.take(writes);
    }

    fn flush(&mut self) {
        let writes = self.open.take_writes(true);
        self.write(writes);
        self.check_scan();
        assert!(self.open.take_writes(true).is_empty(), "flushed twice");
    }

    /// What the journal would know: the frames that were made durable, and nothing else.
    fn resume(&mut self) {
        self.flush();
        let entries = self.open.entries().to_vec();
        let fill_bytes = entries.last().map_or(0, |last| last.offset_bytes + last.length_bytes);
        self.open = OpenContainer::resume(ID, SEQUENCE, fill_bytes, entries);
        self.unpacked.clear();
        self.memory_start = next_block(fill_bytes);
        assert_eq!(self.open.fill_bytes(), self.memory_start);
    }

    /// Every step, until the container is full. What is left of it can be sealed.
    fn take(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Append { payload_bytes } => {
                    if !self.append_one(*payload_bytes) {
                        return;
                    }
                }
                Step::Batch { payload_bytes } => {
                    if !self.append(payload_bytes) {
                        return;
                    }
                }
                Step::Lay { payload_bytes } => {
                    if !self.lay(payload_bytes) {
                        return;
                    }
                }
                Step::Packed => {
                    self.unpacked.drain(..).for_each(|offset_bytes| self.open.packed(offset_bytes));
                }
                Step::Flush => self.flush(),
                Step::Stream => {
                    let writes = self.open.take_writes(false);
                    assert!(writes.iter().all(|write| {
                        (write.offset_bytes as usize + write.bytes.length_bytes())
                            .is_multiple_of(256 << 10)
                    }));
                    self.write(writes);
                }
                Step::Resume => self.resume(),
            }
            self.check_reads();
        }
    }

    /// Every frame is where it was said to be: in memory, and on the device if it was written.
    fn check_reads(&self) {
        for (pba, frame) in &self.frames {
            match self.open.read(*pba) {
                Some(bytes) => assert!(bytes == frame.as_slice()),
                None => assert!(pba.offset_bytes < self.memory_start),
            }
            if self.device.written(*pba) {
                assert!(self.device.read(*pba) == frame.as_slice());
            }
        }
    }

    fn scan(&self) -> Scanned {
        scan(ID, &self.device.bytes, 0..self.open.fill_bytes(), frame::claimed_bytes)
    }

    /// A scan of the device finds exactly the frames.
    fn check_scan(&self) {
        let fill_bytes = self.open.fill_bytes();
        let scanned = self.scan();
        assert_eq!(scanned.end_bytes, fill_bytes);
        assert_eq!(scanned.frames.len(), self.frames.len());
        for ((header, pba), (expected, frame)) in scanned.frames.iter().zip(&self.frames) {
            assert_eq!(pba, expected);
            assert_eq!(header, &frame::decode(frame).unwrap().0);
        }
    }

    fn entries(&self) -> Vec<DirectoryEntry> {
        (1..)
            .zip(&self.frames)
            .map(|(pbn, (pba, _))| DirectoryEntry {
                fingerprint: fingerprint(pbn),
                pbn: Pbn(pbn),
                offset_bytes: pba.offset_bytes,
                length_bytes: pba.length_bytes,
            })
            .collect()
    }

    fn seal(mut self) {
        let (fill_bytes, entries) = (self.open.fill_bytes(), self.entries());
        let Sealed { writes, used_bytes, mut image, .. } = self.open.seal(UUID);
        assert_eq!(used_bytes, next_block(fill_bytes));
        self.device.take(writes.clone());
        for (pba, frame) in &self.frames {
            assert!(self.device.read(*pba) == frame.as_slice());
            assert!(image.read(*pba).is_none_or(|bytes| bytes == frame.as_slice()));
            assert!(image.read(*pba).is_some() || pba.offset_bytes < self.memory_start);
        }
        assert_eq!(directory_of(ID, SEQUENCE, UUID, &self.device.bytes).unwrap(), entries);
        self.unpacked.iter().for_each(|&offset_bytes| image.packed(offset_bytes));
        for (pba, frame) in &self.frames {
            assert!(image.read(*pba).is_none_or(|bytes| bytes == frame.as_slice()));
        }
        assert_eq!(image.id(), ID);
        assert!(!image.write_done() || writes.len() == 1);
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(60))]

    #[test]
    fn any_life_of_a_container_keeps_every_frame(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut run = Run::new();
        run.take(&steps);
        run.flush();
        run.check_reads();
        run.seal();
    }

    #[test]
    fn places_outside_the_container_are_nothing(
        container in 8..11u32, offset_bytes in any::<u32>(), length_bytes in any::<u32>(),
        near in 0..20_000u32,
    ) {
        let mut run = Run::new();
        run.append(&[4000; 4]);
        for (offset_bytes, length_bytes) in
            [(offset_bytes, length_bytes), (near, length_bytes % 5000), (offset_bytes, near)]
        {
            let container_id = ContainerId(container);
            let check = FrameCheck::UNKNOWN;
            let pba = Pba { container: container_id, offset_bytes, length_bytes, check };
            let inside = container == ID.0
                && length_bytes > 0
                && u64::from(offset_bytes) + u64::from(length_bytes)
                    <= u64::from(run.open.fill_bytes());
            prop_assert_eq!(run.open.read(pba).is_some(), inside);
        }
    }

    /// The promise of `promise.rs`: what was counted as the worst case fits, to the last chunk.
    #[test]
    fn containers_take_what_was_promised(
        chunk_bytes in prop::sample::select(vec![4096u32, 8192, 16_384, 65_536]),
        containers in 1..4u64,
        requests in prop::collection::vec(1..40u64, 1..300),
        flushes in any::<bool>(),
    ) {
        let promise_bytes = containers * usable_bytes_per_container(chunk_bytes);
        let chunk = vec![7; FRAME_HEADER_BYTES + chunk_bytes as usize];
        let (mut open, mut opened) = (OpenContainer::new(ID, SEQUENCE, Vec::new()), 1);
        let mut promised_bytes = 0;
        for chunks in requests.into_iter().chain(std::iter::repeat(1)) {
            promised_bytes += worst_case_bytes(chunks, chunk_bytes, u64::from(flushes));
            if promised_bytes > promise_bytes {
                break;
            }
            for _ in 0..chunks {
                if !open.fits(chunk.len()) {
                    (open, opened) = (OpenContainer::new(ID, SEQUENCE, Vec::new()), opened + 1);
                }
                open.append(&chunk, Pbn(1), fingerprint(1)).unwrap();
            }
            if flushes {
                open.take_writes(true);
            }
        }
        prop_assert!(opened <= containers, "{opened} containers");
    }
}

/// A frame may begin in the last bytes of a block, and with zeros: that is no padding.
#[test]
fn a_frame_that_looks_like_padding_is_found() {
    let pbn = (1..)
        .find(|pbn| frame(*pbn, 100)[0] == 0)
        .expect("one checksum in 256 has a zero in its first byte");
    let mut run = Run::new();
    run.append(&[BLOCK_BYTES - FRAME_HEADER_BYTES - 1]);
    run.next_pbn = pbn;
    run.append(&[100]);
    let pba = run.frames[1].0;
    assert_eq!(pba.offset_bytes as usize, BLOCK_BYTES - 1);
    run.flush();
}

#[test]
fn a_scan_stops_at_the_first_damaged_frame() {
    let mut run = Run::new();
    run.append(&[1000, 2000, 3000]);
    run.flush();
    let damaged = run.frames[1].0;
    run.device.bytes[damaged.offset_bytes as usize + 500] ^= 1;
    let scanned = run.scan();
    assert_eq!(scanned.frames.len(), 1);
    assert_eq!(scanned.end_bytes, damaged.offset_bytes);
}

#[test]
fn a_scan_does_not_walk_into_unwritten_space() {
    let zeros = vec![0; 5 * BLOCK_BYTES];
    let claim = frame::claimed_bytes;
    let scanned = scan(ID, &zeros, 0..zeros.len() as u32, claim);
    assert!(scanned.frames.is_empty());
    assert_eq!(scanned.end_bytes, 0);
    assert_eq!(scan(ID, &zeros, 100..100, claim).end_bytes, 100);
    assert_eq!(scan(ID, &zeros, u32::MAX - 1..u32::MAX, claim).end_bytes, u32::MAX - 1);
}

#[test]
fn an_empty_container_can_be_sealed() {
    let run = Run::new();
    run.seal();
}

#[test]
fn the_image_lives_until_every_write_is_done() {
    let mut open = OpenContainer::new(ID, SEQUENCE, Vec::new());
    let bytes = frame(1, 60_000);
    for _ in 0..10 {
        open.append(&bytes, Pbn(1), fingerprint(1)).unwrap();
    }
    let streamed = open.take_writes(false).len();
    assert_eq!(streamed, 2);
    open.write_done();
    let Sealed { writes, mut image, .. } = open.seal(UUID);
    for _ in 0..writes.len() {
        assert!(!image.write_done());
    }
    assert!(image.write_done());
}

/// The fill comes from a root: whatever it says, nothing is written outside the container.
#[test]
fn a_container_resumed_full_or_beyond_takes_nothing() {
    for fill_bytes in [CONTAINER_BYTES - 100, CONTAINER_BYTES, u32::MAX] {
        let mut open = OpenContainer::resume(ID, SEQUENCE, fill_bytes, Vec::new());
        assert!(open.append(&frame(1, 1), Pbn(1), fingerprint(1)).is_err());
        assert!(open.take_writes(true).is_empty());
    }
}

/// Who made frames holds them until somebody has packed them, and no longer.
#[test]
fn what_was_laid_is_held_until_it_is_packed() {
    let bytes = frame(1, 60_000);
    let check = frame::check_of(&bytes);
    let (fingerprint, length_bytes) = (fingerprint(1), bytes.len() as u32);
    let new = NewFrame { pbn: Pbn(1), fingerprint, length_bytes, check };
    let laid: SharedBytes = Arc::new(bytes);
    let mut open = OpenContainer::new(ID, SEQUENCE, Vec::new());
    for _ in 0..5 {
        open.lay_batch(&laid, 0, &[new], &mut Vec::new());
    }
    assert_eq!(Arc::strong_count(&laid), 7, "five frames, of which one lies in two segments");
    let writes = open.take_writes(false);
    let [ContainerWrite { offset_bytes: 0, bytes: WriteBytes::Unpacked(unpacked), .. }] =
        writes.as_slice()
    else {
        panic!("not one segment as it was laid")
    };
    let packed = unpacked.packed();
    assert!(std::ptr::eq(&*packed, &*unpacked.packed()), "packed twice");
    open.packed(0);
    drop(writes);
    assert_eq!(Arc::strong_count(&laid), 2, "what is in the second segment");
    assert_eq!(open.read(Pba { container: ID, offset_bytes: 0, length_bytes, check }).unwrap(), {
        &packed[..length_bytes as usize]
    });
    assert_eq!(open.take_writes(true).len(), 1);
    assert_eq!(Arc::strong_count(&laid), 1);
}
