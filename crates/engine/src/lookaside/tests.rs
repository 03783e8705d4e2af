use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use format::units::{FrameCheck, Lba, Pbn, VolumeId};
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::Strategy;

use super::{FRAME_BYTES, Lookaside, READ_BYTES_MAX, STAMPS_MAX};
use crate::frame_cache::HeldFrame;
use crate::outcome::{FrameBytes, Piece};

const CHUNK: u64 = 4096;
const LBAS: u64 = 12;
const VOLUME: VolumeId = VolumeId(3);

#[derive(Clone, Debug)]
enum Step {
    /// Acknowledged at the door.
    Write(u64, u64),
    /// Acknowledged once the core has taken it.
    WriteLate(u64, u64),
    Read(u64),
    /// The core takes the next request; what is late may wait while others pass.
    Take(bool),
    /// What waited is taken.
    TakeLate,
    /// The volume holds other things.
    Replace,
    /// A frame leaves the cache.
    Evict(u64),
}

enum Request {
    Write(u64, u64, u8),
    WriteLate(u64, u64, u8),
    Read(u64, u64),
}

/// The store around the lookaside: what an address holds is one byte.
struct Model {
    lookaside: Lookaside,
    queue: VecDeque<Request>,
    late: VecDeque<(u64, u64, u8)>,
    taken: BTreeMap<u64, u8>,
    frames: BTreeMap<u8, Arc<HeldFrame>>,
    values: u8,
}

impl Model {
    fn stamp(&self, first: u64, count: u64) {
        self.lookaside.stamp(VOLUME, first * CHUNK..(first + count) * CHUNK);
    }

    fn apply(&mut self, first: u64, count: u64, value: u8) {
        (first..first + count).for_each(|lba| {
            self.taken.insert(lba, value);
        });
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(first, count) => {
                self.values = self.values.wrapping_add(1);
                self.stamp(first, count);
                self.queue.push_back(Request::Write(first, count, self.values));
            }
            Step::WriteLate(first, count) => {
                self.values = self.values.wrapping_add(1);
                self.queue.push_back(Request::WriteLate(first, count, self.values));
            }
            Step::Read(lba) => {
                self.queue.push_back(Request::Read(lba, self.lookaside.as_of()));
            }
            Step::Take(may_wait) => match self.queue.pop_front() {
                Some(Request::Write(first, count, value)) => self.apply(first, count, value),
                Some(Request::WriteLate(first, count, value)) if may_wait => {
                    self.late.push_back((first, count, value));
                }
                Some(Request::WriteLate(first, count, value)) => self.take(first, count, value),
                Some(Request::Read(lba, as_of)) => self.answer(lba, as_of),
                None => {}
            },
            Step::TakeLate => {
                if let Some((first, count, value)) = self.late.pop_front() {
                    self.take(first, count, value);
                }
            }
            Step::Replace => {
                self.lookaside.stamp_all();
                self.taken.values_mut().for_each(|value| *value = value.wrapping_add(100));
            }
            Step::Evict(lba) => {
                let value = self.taken.get(&lba).copied().unwrap_or(0);
                self.frames.remove(&value);
            }
        }
    }

    fn take(&mut self, first: u64, count: u64, value: u8) {
        self.stamp(first, count);
        self.apply(first, count, value);
    }

    fn answer(&mut self, lba: u64, as_of: u64) {
        let value = self.taken.get(&lba).copied().unwrap_or(0);
        if value == 0 {
            return self.lookaside.fill_zeros((VOLUME, Lba(lba)), as_of);
        }
        let frame = self.frames.entry(value).or_insert_with(|| HeldFrame::new(&[value]));
        let chunk = (Pbn(value.into()), FrameCheck::default());
        self.lookaside.fill((VOLUME, Lba(lba)), as_of, chunk, frame);
    }

    /// What a reader must be told: the newest acknowledged write, or what the core has taken.
    fn truth(&self, lba: u64) -> u8 {
        let acknowledged = self.queue.iter().rev().find_map(|request| match *request {
            Request::Write(first, count, value) => {
                (first..first + count).contains(&lba).then_some(value)
            }
            _ => None,
        });
        acknowledged.unwrap_or_else(|| self.taken.get(&lba).copied().unwrap_or(0))
    }

    fn told(&self, lba: u64) -> Option<u8> {
        let parts = self.lookaside.read(VOLUME, lba * CHUNK + 512, 1024)?;
        let [part] = parts.as_slice() else { panic!("one chunk, {parts:?}") };
        assert_eq!((part.lba, part.skip_bytes, part.take_bytes), (lba, 512, 1024));
        if matches!(part.piece, Piece::Zeros) {
            return Some(0);
        }
        let Piece::Frame { bytes: FrameBytes::Held(frame), pbn, .. } = &part.piece else {
            panic!("a frame, {part:?}")
        };
        assert_eq!(u64::from(frame[0]), pbn.0);
        Some(frame[0])
    }
}

fn model(entries: u64) -> Model {
    Model {
        lookaside: Lookaside::new(entries * FRAME_BYTES, CHUNK as u32),
        queue: VecDeque::new(),
        late: VecDeque::new(),
        taken: BTreeMap::new(),
        frames: BTreeMap::new(),
        values: 0,
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let run = || (0..LBAS, 1_u64..4);
    prop_oneof![
        2 => run().prop_map(|(first, count)| Step::Write(first, count)),
        1 => run().prop_map(|(first, count)| Step::WriteLate(first, count)),
        5 => (0..LBAS).prop_map(Step::Read),
        8 => any::<bool>().prop_map(Step::Take),
        1 => proptest::strategy::Just(Step::TakeLate),
        1 => proptest::strategy::Just(Step::Replace),
        1 => (0..LBAS).prop_map(Step::Evict),
    ]
}

proptest! {
    #[test]
    fn nobody_is_told_what_is_not_so_any_more(
        entries in 1_u64..20,
        steps in proptest::collection::vec(steps(), 0..120),
    ) {
        let mut model = model(entries);
        for step in steps {
            model.step(step);
            for lba in 0..LBAS {
                if let Some(told) = model.told(lba) {
                    assert_eq!(told, model.truth(lba), "of {lba}");
                }
            }
        }
    }
}

fn read(model: &mut Model, lba: u64) {
    model.step(Step::Read(lba));
    model.step(Step::Take(false));
}

#[test]
fn what_was_read_is_told_until_it_changes_or_its_frame_goes() {
    let mut model = model(64);
    model.step(Step::Write(0, 8));
    model.step(Step::Take(false));
    (0..8).for_each(|lba| read(&mut model, lba));
    assert!((0..8).all(|lba| model.told(lba) == Some(1)));
    assert!(model.lookaside.read(VolumeId(4), 0, CHUNK).is_none(), "of another volume");
    assert_eq!(model.lookaside.read(VOLUME, CHUNK, 2 * CHUNK + 512).unwrap().len(), 3);
    assert!(model.lookaside.read(VOLUME, 0, 9 * CHUNK).is_none(), "one of nine is not here");
    model.step(Step::Write(3, 1));
    model.step(Step::Take(false));
    assert!(model.told(3).is_none() && model.told(2).is_some());
    model.step(Step::Evict(0));
    assert!((0..8).all(|lba| model.told(lba).is_none()), "they all had one frame");
    read(&mut model, 8);
    assert_eq!(model.told(8), Some(0), "nothing was ever written there");
}

#[test]
fn long_reads_are_left_to_the_core_and_long_changes_are_of_everything() {
    let mut model = model(64);
    (0..9).for_each(|lba| read(&mut model, lba));
    assert!(model.lookaside.read(VOLUME, 0, READ_BYTES_MAX).is_some());
    assert!(model.lookaside.read(VOLUME, 0, READ_BYTES_MAX + 512).is_none());
    let far = 1 << 30;
    model.stamp(far, 1);
    assert_eq!((0..9).filter(|&lba| model.told(lba).is_some()).count(), 8, "its place is shared");
    model.stamp(far, STAMPS_MAX + 1);
    assert!((0..9).all(|lba| model.told(lba).is_none()));
}

#[test]
fn reads_are_counted() {
    let mut model = model(64);
    read(&mut model, 5);
    model.told(5);
    model.told(6);
    let counts = [&model.lookaside.reads, &model.lookaside.chunks, &model.lookaside.bytes];
    assert_eq!(counts.map(|count| count.load(std::sync::atomic::Ordering::Relaxed)), [1, 1, 1024]);
}
