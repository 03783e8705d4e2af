//! Writes of any alignment against plain bytes, meeting each other in every stage of the buffer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use disk::{Fault, Loss};
use engine::{
    Accepted, Client, Codec, Completions, Compression, Detection, Done, FingerprintKind,
    OpenVolume, Reply, RequestError, control,
};
use format::units::Zone;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::{prop_assert, proptest};

use crate::stand::{CHUNK, Dice, GIB, Hand, MIB, Opens, Wish, cases, check_clean, fresh};

/// Sectors of the model's volume: a map leaf and a half, with a partial chunk at its end.
const SECTORS: u64 = 1000 * 8 + 3;
/// Its bytes.
const BYTES: u64 = SECTORS * 512;

#[derive(Clone, Debug)]
enum Step {
    Write {
        at: u64,
        length: u64,
        content: u64,
        durable: bool,
    },
    Trim {
        at: u64,
        length: u64,
    },
    Read {
        at: u64,
        length: u64,
    },
    Resize {
        sectors: u64,
    },
    Flush,
    /// Engine steps, so that requests meet in other stages.
    Steps(u64),
    Reopen,
    Kill(u64),
}

/// A range of bytes in a few hot places, so that steps overlap. It is made of sectors, but for some
/// bytes at its ends, mostly none.
fn range(longest: u64) -> impl Strategy<Value = (u64, u64)> {
    let place = prop_oneof![3 => 0..64_u64, 2 => 5380..5460_u64, 1 => SECTORS - 30..SECTORS];
    let beside = || prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(511), 2 => 0..512_u64];
    (place, 1..=longest, beside(), beside()).prop_map(|(first, count, less, fewer)| {
        let start = first * 512 + less;
        let end = (first + count).min(SECTORS) * 512 - fewer;
        (start, end.max(start + 1) - start)
    })
}

fn step() -> impl Strategy<Value = Step> {
    let write = |longest| {
        (range(longest), 0..6_u64, prop::bool::weighted(0.1)).prop_map(
            |((at, length), content, durable)| Step::Write { at, length, content, durable },
        )
    };
    prop_oneof![
        8 => write(6),
        4 => write(40),
        1 => write(2600),
        2 => range(40).prop_map(|(at, length)| Step::Trim { at, length }),
        1 => range(SECTORS).prop_map(|(at, length)| Step::Trim { at, length }),
        4 => range(60).prop_map(|(at, length)| Step::Read { at, length }),
        1 => (1..=SECTORS).prop_map(|sectors| Step::Resize { sectors }),
        2 => Just(Step::Flush),
        6 => (0..12_u64).prop_map(Step::Steps),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::Kill),
    ]
}

/// Bytes of a write: zeros, something repeated, or new ones.
fn content(number: u64, at: u64, length: u64) -> Vec<u8> {
    match number {
        0 => vec![0; length as usize],
        1 | 2 => vec![number as u8; length as usize],
        _ => fresh(number << 32 | at, length),
    }
}

struct Run {
    wish: Wish,
    hand: Hand,
    volume: OpenVolume,
    /// What the volume must read as; bytes beyond its size are zeros.
    model: Vec<u8>,
    size: u64,
    pending: Vec<u64>,
}

impl Run {
    fn new(wish: Wish) -> Self {
        let mut hand = Hand::new(&wish);
        let volume = hand.volume("v", BYTES);
        let model = vec![0; BYTES as usize];
        Self { wish, hand, volume, model, size: BYTES, pending: Vec::new() }
    }

    fn clip(&self, at: u64, length: u64) -> Option<(u64, u64)> {
        (at < self.size).then(|| (at, length.min(self.size - at)))
    }

    fn answers(&mut self) {
        for tag in std::mem::take(&mut self.pending) {
            self.hand.wait(tag).unwrap();
        }
    }

    fn take(&mut self, step: &Step) -> bool {
        match *step {
            Step::Write { at, length, content: number, durable } => {
                let Some((at, length)) = self.clip(at, length) else { return true };
                let bytes = content(number, at, length);
                self.model[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                let tag = if durable {
                    Some(self.hand.write_durable(&self.volume, at, &bytes))
                } else {
                    self.hand.write(&self.volume, at, &bytes)
                };
                self.pending.extend(tag);
            }
            Step::Trim { at, length } => {
                let Some((at, length)) = self.clip(at, length) else { return true };
                self.model[at as usize..][..length as usize].fill(0);
                let tag = self.hand.trim(&self.volume, at, length);
                self.pending.push(tag);
            }
            Step::Read { at, length } => {
                let Some((at, length)) = self.clip(at, length) else { return true };
                let read = self.hand.read(&self.volume, at, length as u32);
                return read == self.model[at as usize..][..length as usize];
            }
            Step::Resize { sectors } => {
                let size = sectors * 512;
                self.hand.beside(move |client| client.resize_volume("v", size).unwrap());
                self.model[size as usize..].fill(0);
                self.size = size;
            }
            Step::Flush => {
                let tag = self.hand.flush();
                self.pending.push(tag);
            }
            Step::Steps(count) => self.hand.steps(count),
            Step::Reopen => self.reopen(|hand| hand.close()),
            Step::Kill(seed) => {
                self.answers();
                let tag = self.hand.flush();
                self.hand.wait(tag).unwrap();
                self.reopen(|hand| hand.disk.crash(seed));
            }
        }
        true
    }

    fn reopen(&mut self, end: impl FnOnce(Hand) -> disk::MemoryDisk) {
        self.answers();
        // The old hand is replaced by one over the same disk.
        let blank = Hand::new(&Wish::default());
        let disk = end(std::mem::replace(&mut self.hand, blank));
        check_clean(&disk);
        self.hand = Hand::open(&self.wish, disk);
        self.volume = self.hand.beside(|client| client.volume("v").unwrap());
    }

    fn reads_right(&mut self) -> bool {
        self.answers();
        let read = self.hand.read(&self.volume, 0, self.size as u32);
        read == self.model[..self.size as usize]
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn any_row_of_requests_reads_as_plain_bytes_do(
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
    ) {
        let mut run = Run::new(Wish { seed, ..Wish::default() });
        for step in &steps {
            prop_assert!(run.take(step), "{step:?} reads other bytes");
        }
        prop_assert!(run.reads_right());
        run.reopen(|hand| hand.close());
        prop_assert!(run.reads_right());
    }

    #[test]
    fn large_chunks_do_the_same(
        steps in prop::collection::vec(step(), 1..60),
        seed in any::<u64>(),
    ) {
        let mut run = Run::new(Wish { seed, chunk_bytes: 64 << 10, ..Wish::default() });
        for step in &steps {
            prop_assert!(run.take(step), "{step:?} reads other bytes");
        }
        prop_assert!(run.reads_right());
        run.reopen(|hand| hand.close());
        prop_assert!(run.reads_right());
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_store_that_compares_bytes_does_the_same(
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
    ) {
        let kind = FingerprintKind::Xxh3;
        let detection = Detection { kind, verify: true, ..Default::default() };
        let mut run = Run::new(Wish { seed, detection, ..Wish::default() });
        for step in &steps {
            prop_assert!(run.take(step), "{step:?} reads other bytes");
        }
        prop_assert!(run.reads_right());
        run.reopen(|hand| hand.close());
        prop_assert!(run.reads_right());
    }
}

/// Every sector offset and length within two chunks, over each state that a chunk can be in.
#[test]
fn parts_of_chunks_at_every_alignment() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 64 * MIB);
    let mut at = 0;
    for state in 0..4 {
        for first in 0..8_u64 {
            for count in 1..=16 - first {
                let offset = at * 2 * CHUNK;
                at += 1;
                let mut expected = vec![0; 2 * CHUNK as usize];
                if state > 0 {
                    expected = fresh(at, 2 * CHUNK);
                    hand.write(&volume, offset, &expected);
                }
                if state > 1 {
                    let tag = hand.flush();
                    hand.wait(tag).unwrap();
                }
                if state > 2 {
                    hand.trim(&volume, offset + CHUNK, CHUNK);
                    expected[CHUNK as usize..].fill(0);
                }
                let bytes = fresh(1 << 32 | at, count * 512);
                let tag = hand.write(&volume, offset + first * 512, &bytes);
                expected[first as usize * 512..][..bytes.len()].copy_from_slice(&bytes);
                assert_eq!(hand.read(&volume, offset, 2 * CHUNK as u32), expected);
                if let Some(tag) = tag {
                    hand.wait(tag).unwrap();
                }
            }
        }
    }
    check_clean(&hand.close());
}

/// A whole write that overtakes the read of what a part before it needed.
#[test]
fn a_whole_write_over_a_part_that_is_still_filled_stays() {
    for steps in 0..40 {
        let mut hand = Hand::new(&Wish { seed: steps, ..Wish::default() });
        let volume = hand.volume("v", MIB);
        hand.write(&volume, 0, &fresh(1, 64 * CHUNK));
        // Onto the disk, out of the open container's memory.
        let disk = hand.close();
        let mut hand = Hand::open(&Wish::default(), disk);
        let volume = hand.beside(|client| client.volume("v").unwrap());
        let mut expected = fresh(1, 64 * CHUNK);
        for chunk in 0..16 {
            let start = chunk * CHUNK as usize;
            hand.write(&volume, chunk as u64 * CHUNK + 512, &[9; 512]);
            expected[start + 512..start + 1024].fill(9);
        }
        hand.steps(steps % 20);
        for chunk in 0..8 {
            let start = chunk * CHUNK as usize;
            let bytes = fresh(100 + chunk as u64, CHUNK);
            hand.write(&volume, chunk as u64 * CHUNK, &bytes);
            expected[start..start + CHUNK as usize].copy_from_slice(&bytes);
        }
        hand.trim(&volume, 8 * CHUNK, 4 * CHUNK);
        expected[8 * CHUNK as usize..12 * CHUNK as usize].fill(0);
        hand.write(&volume, 9 * CHUNK, &[3; 1024]);
        expected[9 * CHUNK as usize..][..1024].fill(3);
        assert!(hand.read(&volume, 0, 64 * CHUNK as u32) == expected, "after {steps} steps");
        let disk = hand.close();
        let mut hand = Hand::open(&Wish::default(), disk);
        let volume = hand.beside(|client| client.volume("v").unwrap());
        assert!(hand.read(&volume, 0, 64 * CHUNK as u32) == expected, "{steps} steps, reopened");
    }
}

/// Part, read and whole are taken in one step: nothing is read from the disk that could wake who
/// waits.
#[test]
fn a_read_that_waits_for_a_part_hears_that_a_whole_write_has_made_it_needless() {
    for with_zeros in [false, true] {
        let mut hand = Hand::new(&Wish::default());
        let volume = hand.volume("v", MIB);
        let mut expected = fresh(1, CHUNK);
        hand.write(&volume, 512, &[9; 512]);
        let (tag, done) = hand.done();
        hand.client.read(&volume, 0, CHUNK as u32, done);
        if with_zeros {
            hand.trim(&volume, 0, CHUNK);
            expected.fill(0);
        } else {
            hand.write(&volume, 0, &expected);
        }
        assert_eq!(hand.bytes_of(tag), expected);
    }
}

/// The slot that fills a group closes it: whatever it is, it must be in it.
#[test]
fn parts_of_chunks_fill_groups() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 64 * MIB);
    let tags: Vec<u64> = (0..600)
        .filter_map(|chunk| hand.write(&volume, chunk * CHUNK + 1024, &fresh(chunk, 512)))
        .collect();
    for tag in tags {
        hand.wait(tag).unwrap();
    }
    let disk = hand.close();
    let mut hand = Hand::open(&Wish::default(), disk);
    let volume = hand.beside(|client| client.volume("v").unwrap());
    for chunk in 0..600 {
        assert_eq!(hand.read(&volume, chunk * CHUNK + 1024, 512), fresh(chunk, 512), "{chunk}");
    }
}

/// What is counted as written over at once had been written.
#[test]
fn sectors_beside_each_other_and_zeros_over_zeros_absorb_nothing() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    for sector in 0..16 * 8 {
        hand.write(&volume, sector * 512, &fresh(sector, 512));
    }
    for _ in 0..20 {
        let trimmed = hand.trim(&volume, MIB / 2, 16 * CHUNK);
        hand.wait(trimmed).unwrap();
    }
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert_eq!(stats.counters.chunks_absorbed, 0);
}

/// Overwrites of buffered chunks absorb each other: what is written is what was written last.
#[test]
fn overwrites_in_the_buffer_absorb_each_other() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    for number in 0..2000 {
        stand.write(&volume, number % 4 * CHUNK, &fresh(number, CHUNK));
    }
    stand.flush();
    let counters = stand.stats().counters;
    assert_eq!(counters.chunks_absorbed + counters.chunks_unique, 2000);
    assert!(counters.chunks_absorbed > 1000, "{counters:?}");
    for number in 1996..2000 {
        assert_eq!(stand.read(&volume, number % 4 * CHUNK, CHUNK), fresh(number, CHUNK));
    }
    check_clean(&stand.close());
}

/// Thousands of small writes and trims of one chunk in one open group cost one chunk, not a row of
/// buffers that each keep the one before.
#[test]
fn small_writes_of_one_chunk_do_not_pile_up() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    let mut expected = fresh(7, CHUNK);
    hand.write(&volume, 0, &expected);
    for number in 0..40_000_u64 {
        let sector = (number % 8) as usize * 512;
        if number % 3 == 0 {
            let tag = hand.trim(&volume, sector as u64, 512);
            expected[sector..sector + 512].fill(0);
            hand.steps(2);
            hand.outcome(tag);
        } else {
            hand.write(&volume, sector as u64, &[number as u8; 512]);
            expected[sector..sector + 512].fill(number as u8);
            hand.steps(2);
        }
    }
    assert_eq!(hand.read(&volume, 0, CHUNK as u32), expected);
    check_clean(&hand.close());
}

#[test]
fn two_data_files_are_filled_and_found() {
    let wish = Wish { capacities: vec![64 * MIB, 32 * MIB], ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", GIB);
    let bytes = fresh(1, 40 * MIB);
    stand.write(&volume, 0, &bytes);
    for (zone, least_bytes) in [(0, 8 * MIB), (1, 8 * MIB)] {
        let used = (0..32 * MIB).step_by(MIB as usize).filter(|&offset| {
            stand.disk.peek(engine::Zone::Data(zone), offset, 512).iter().any(|&byte| byte > 0)
        });
        assert!(used.count() as u64 * MIB >= least_bytes, "zone {zone} is hardly used");
    }
    let disk = stand.cut_power_flushed(3);
    check_clean(&disk);
    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    assert!(stand.read(&volume, 0, 40 * MIB) == bytes);
    assert_eq!(stand.stats().capacity_bytes, 96 * MIB);
    check_clean(&stand.close());
}

/// What is compressed one way stays readable when the next is compressed another.
#[test]
fn compression_changes_live_and_old_frames_stay_readable() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    let half: Vec<u8> = (0..256).flat_map(|at| [fresh(at, 2048), vec![1; 2048]].concat()).collect();
    let row = [(Codec::Lz4, 0), (Codec::Zstd, 3), (Codec::Raw, 0), (Codec::Zstd, 9)];
    let mut stored_bytes = Vec::new();
    for (at, (codec, level)) in row.into_iter().enumerate() {
        let compression = Compression { codec, level };
        stand.client.ask(control::SetCompression { compression }).unwrap();
        assert_eq!(stand.client.ask(control::GetCompression {}).unwrap(), compression);
        let mut bytes = half.clone();
        bytes.chunks_mut(4096).for_each(|chunk| chunk[4000] = at as u8 + 2);
        stand.write(&volume, at as u64 * MIB, &bytes);
        stand.flush();
        stored_bytes.push(stand.stats().stored_bytes);
    }
    let step = |at: usize| stored_bytes[at] - if at == 0 { 0 } else { stored_bytes[at - 1] };
    assert!(step(0) < 3 * MIB / 4 && step(1) < 3 * MIB / 4 && step(3) < 3 * MIB / 4);
    assert!(step(2) >= MIB);
    let stand = Wish::default().open(stand.close());
    let last = Compression { codec: Codec::Zstd, level: 9 };
    assert_eq!(stand.client.ask(control::GetCompression {}).unwrap(), last);
    assert_eq!(stand.stats().compression, "zstd:9");
    let volume = stand.client.volume("v").unwrap();
    for at in 0..row.len() {
        let mut bytes = half.clone();
        bytes.chunks_mut(4096).for_each(|chunk| chunk[4000] = at as u8 + 2);
        assert!(stand.read(&volume, at as u64 * MIB, MIB) == bytes);
    }
    check_clean(&stand.close());
}

/// Noise is stored as it is, without asking Zstandard; LZ4 sees noise by itself.
#[test]
fn what_looks_like_noise_is_counted_and_not_compressed() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    let codecs = [(Codec::Zstd, 3, 256), (Codec::Lz4, 0, 256), (Codec::Zstd, -3, 256)];
    for (at, (codec, level, spared)) in (0..).zip(codecs) {
        stand
            .client
            .ask(control::SetCompression { compression: Compression { codec, level } })
            .unwrap();
        let half = [fresh(1000 + at, 2048), vec![1; 2048]].concat();
        stand.write(&volume, at * 2 * MIB, &fresh(at, MIB));
        stand.write(&volume, at * 2 * MIB + MIB, &half);
        stand.flush();
        assert_eq!(stand.stats().counters.chunks_spared, spared, "{codec:?} {level}");
        assert!(stand.read(&volume, at * 2 * MIB, MIB) == fresh(at, MIB));
        assert!(stand.read(&volume, at * 2 * MIB + MIB, CHUNK) == half);
    }
    check_clean(&stand.close());
}

/// Writers that race for the same chunks: each chunk is what one of them wrote, whole.
#[test]
fn concurrent_writers_leave_whole_writes() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    std::thread::scope(|scope| {
        for hand in 1..=4_u64 {
            let (stand, volume) = (&stand, &volume);
            scope.spawn(move || {
                let mut dice = Dice(hand);
                for _ in 0..500 {
                    let chunk = dice.below(16);
                    stand.write(volume, chunk * CHUNK, &vec![hand as u8; CHUNK as usize]);
                    if dice.below(50) == 0 {
                        stand.flush();
                    }
                    let read = stand.read(volume, chunk * CHUNK, CHUNK);
                    assert!(read.iter().all(|&byte| byte == read[0] && byte > 0));
                }
            });
        }
    });
    check_clean(&stand.close());
}

/// After a failed sync nothing is acknowledged any more, not even a write without bytes.
#[test]
fn an_empty_write_is_refused_like_any_other() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    assert_eq!(hand.write(&volume, 0, &[]), None);
    hand.disk.inject(Fault::Sync { zone: Zone::Journal });
    let flush = hand.flush();
    hand.write(&volume, 0, &fresh(1, CHUNK));
    let failed = hand.flush();
    assert!(hand.wait(flush).is_err() || hand.wait(failed).is_err());
    for durable in [false, true] {
        let (tag, done) = hand.done();
        let buf = hand.client.buffer(0, 0);
        assert_eq!(hand.client.write(&volume, 0, buf, durable, done), Accepted::Later);
        assert!(matches!(hand.outcome(tag), Some(Err(_))));
    }
}

#[test]
fn who_is_told_of_a_failed_sync_is_told_to_restart_the_machine() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.disk.inject(Fault::Sync { zone: Zone::Journal });
    hand.write(&volume, 0, &fresh(1, CHUNK));
    let flush = hand.flush();
    let failed = hand.wait(flush).unwrap_err();
    assert!(matches!(failed, RequestError::SyncFailed { .. }), "{failed:?}");
    assert!(failed.to_string().contains("restart the machine"), "{failed}");
}

/// What was acknowledged while the disk failed is read as it was written, though it can never
/// become durable: also what stood in the queue when the store stopped writing.
#[test]
fn a_write_that_was_acknowledged_is_read_when_the_disk_has_failed() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.disk.inject(Fault::Sync { zone: Zone::Journal });
    assert_eq!(hand.write(&volume, 0, &fresh(0, CHUNK)), None);
    let flush = hand.flush();
    let mut acknowledged = 1;
    while hand.write(&volume, acknowledged * CHUNK, &fresh(acknowledged, CHUNK)).is_none() {
        acknowledged += 1;
        hand.engine.step();
    }
    assert!(acknowledged > 2 && hand.wait(flush).is_err());
    for chunk in 0..acknowledged {
        let read = hand.read(&volume, chunk * CHUNK, CHUNK as u32);
        assert!(read == fresh(chunk, CHUNK), "chunk {chunk} of {acknowledged}");
    }
}

/// What is acknowledged while the disk fails stays in the write buffer, which may be full of it:
/// who waits for room there is to hear that nothing is written any more. (`nbdcopy` hung in CI.)
#[test]
fn who_waits_for_room_in_the_write_buffer_hears_that_the_disk_has_failed() {
    for steps in 0..12 {
        let mut hand = Hand::new(&Wish::default());
        let volume = hand.volume("v", 64 * MIB);
        hand.disk.inject(Fault::Sync { zone: Zone::Journal });
        assert_eq!(hand.write(&volume, 0, &fresh(0, CHUNK)), None);
        let flush = hand.flush();
        // Of the failure nobody knows yet, or everybody does.
        hand.steps(steps);
        let (mut acknowledged, mut refused) = (1, None);
        while let (Some(mut buf), None) = (hand.client.try_buffer(0, CHUNK as usize), refused) {
            buf.bytes_mut().copy_from_slice(&fresh(acknowledged, CHUNK));
            let (tag, done) = hand.done();
            match hand.client.write(&volume, acknowledged * CHUNK, buf, false, done) {
                Accepted::Now => acknowledged += 1,
                Accepted::Later => refused = Some(tag),
            }
        }
        let client = hand.client.clone();
        let waiter = std::thread::spawn(move || drop(client.buffer(0, CHUNK as usize)));
        assert!(hand.wait(flush).is_err());
        waiter.join().unwrap();
        let refused = refused.or_else(|| hand.write(&volume, 0, &fresh(0, CHUNK))).unwrap();
        assert!(hand.wait(refused).is_err());
        let last = acknowledged - 1;
        assert!(hand.read(&volume, last * CHUNK, CHUNK as u32) == fresh(last, CHUNK));
    }
}

#[test]
fn extents_of_no_bytes_are_none_and_come_at_once() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    for offset_bytes in [0, 512, MIB] {
        let (tag, done) = hand.done();
        hand.client.extents(&volume, offset_bytes, 0, 8, done);
        hand.settle();
        let Some(Ok(Reply::Extents(extents))) = hand.outcome(tag) else { panic!("no answer") };
        assert!(extents.is_empty());
    }
}

/// What a write covers in part is copied into whole chunks, wherever it begins.
#[test]
fn a_write_takes_of_the_write_buffer_what_it_is_copied_into() {
    let hand = Hand::new(&Wish::default());
    let fit = |offset_bytes, length_bytes: u64| {
        let length_bytes = length_bytes as usize;
        let buffers = std::iter::from_fn(|| hand.client.try_buffer(offset_bytes, length_bytes));
        buffers.collect::<Vec<_>>().len()
    };
    let chunks = fit(0, CHUNK);
    assert_eq!(fit(7 * CHUNK, 2 * CHUNK), chunks / 2);
    assert_eq!(fit(512, CHUNK), chunks / 3, "two chunks are covered in part");
    assert_eq!(fit(512, 2 * CHUNK), chunks / 4);
    assert_eq!(fit(512, 1024), chunks * 4 / 5, "one is");
    assert_eq!(fit(u64::MAX - 511, CHUNK), chunks / 2, "whatever comes of it");
}

/// A group of long chunks that filled by their number alone would be as long as the write buffer,
/// which then waited for time to pass.
#[test]
fn a_group_of_long_chunks_does_not_wait_for_the_write_buffer_to_be_full() {
    for chunk_bytes in [4 << 10, 64 << 10] {
        let mut hand = Hand::new(&Wish { chunk_bytes, ..Wish::default() });
        let volume = hand.volume("v", 16 * MIB);
        let before = hand.beside(|client| client.stats()).unwrap().counters.groups;
        (0..4).for_each(|at| assert_eq!(hand.write(&volume, at * MIB, &fresh(at, MIB)), None));
        hand.settle();
        let stats = hand.beside(|client| client.stats()).unwrap();
        assert_eq!(stats.counters.groups - before, 2, "groups of {chunk_bytes} B a chunk");
    }
}

/// It waits for what is in the open group, which only a tick would close.
#[test]
fn who_wants_all_of_the_write_buffer_waits_for_no_tick() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    let client = hand.client.clone();
    let waits = thread::spawn(move || drop(client.buffer(0, 64 * MIB as usize)));
    let begun = Instant::now();
    while !waits.is_finished() {
        hand.engine.step();
        assert!(begun.elapsed() < Duration::from_secs(20), "it waits for ever");
        thread::yield_now();
    }
    waits.join().unwrap();
}

/// Asks for the next read as soon as one is answered, on the core's thread: that never sleeps.
struct ReadsOn {
    client: Client,
    volume: OpenVolume,
    told: AtomicBool,
    this: Weak<Self>,
}

impl Completions for ReadsOn {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        drop(outcome);
        if let Some(sink) = self.this.upgrade().filter(|_| !self.told.load(Ordering::Acquire)) {
            self.client.read(&self.volume, MIB, CHUNK as u32, Done::new(sink, tag));
        }
    }
}

#[test]
fn what_was_acknowledged_becomes_durable_although_the_core_never_sleeps() {
    let wish = Wish::default();
    let disk = wish.disk();
    let (engine, client, ..) = wish.load(&disk).unwrap();
    let core = thread::spawn(move || engine.run());
    client.create_volume("v", 2 * MIB, false).unwrap();
    let volume = client.volume("v").unwrap();
    let reads_on = Arc::new_cyclic(|this| ReadsOn {
        client: client.clone(),
        volume: client.volume("v").unwrap(),
        told: AtomicBool::new(false),
        this: Weak::clone(this),
    });
    reads_on.complete(0, Ok(Reply::Done));
    client.write_at(&volume, 0, &fresh(1, CHUNK)).unwrap();
    let begun = Instant::now();
    let is_durable = || {
        let left = wish.open(disk.left_by_power_loss(1, Loss::All));
        left.read(&left.client.volume("v").unwrap(), 0, CHUNK) == fresh(1, CHUNK)
    };
    let mut durable = false;
    while !durable && begun.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(500));
        durable = is_durable();
    }
    reads_on.told.store(true, Ordering::Release);
    client.close().unwrap();
    core.join().unwrap().unwrap();
    assert!(durable, "it was lost {:?} after it had been written", begun.elapsed());
}
