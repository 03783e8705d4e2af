use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread;

use format::map_page;
use format::page::Page;
use format::units::{FrameCheck, Lba, Pbn, VolumeId};
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy};

use super::{ENTRY_BYTES, Entry, Found, Lookaside, READ_BYTES_MAX, STAMPS_MAX, SlotSet};
use crate::door::outcome::{FrameBytes, Piece};
use crate::read::frame_cache::HeldFrame;

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
    /// A read for which the core shows the leaf.
    Show,
    /// The core takes the next request; what is late may wait while others pass.
    Take(bool),
    /// What waited is taken.
    TakeLate,
    /// What the write buffer holds is applied to the map.
    Apply,
    /// The volume holds other things.
    Replace,
    /// A frame leaves the cache.
    Evict(u64),
    /// Replies on their way keep the frames that are held now.
    Hold,
}

enum Request {
    Write(u64, u64, u8),
    WriteLate(u64, u64, u8),
    Read(u64, u64),
    Show(u64),
}

/// The store around the lookaside: what an address holds is one byte.
struct Model {
    lookaside: Lookaside,
    queue: VecDeque<Request>,
    late: VecDeque<(u64, u64, u8)>,
    /// The write buffer.
    buffered: BTreeMap<u64, u8>,
    /// The map; what a name means is in its frame.
    map: BTreeMap<u64, Pbn>,
    named: BTreeMap<Pbn, u8>,
    frames: BTreeMap<Pbn, Arc<HeldFrame>>,
    on_their_way: Vec<Arc<HeldFrame>>,
    values: u8,
}

impl Model {
    fn stamp(&self, first: u64, count: u64) {
        self.lookaside.stamp(VOLUME, first * CHUNK..(first + count) * CHUNK);
    }

    fn buffer(&mut self, first: u64, count: u64, value: u8) {
        self.buffered.extend((first..first + count).map(|lba| (lba, value)));
    }

    fn next_value(&mut self) -> u8 {
        self.values = self.values % u8::MAX + 1;
        self.values
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(first, count) => {
                let value = self.next_value();
                self.stamp(first, count);
                self.queue.push_back(Request::Write(first, count, value));
            }
            Step::WriteLate(first, count) => {
                let value = self.next_value();
                self.queue.push_back(Request::WriteLate(first, count, value));
            }
            Step::Read(lba) => {
                self.queue.push_back(Request::Read(lba, self.lookaside.as_of()));
            }
            Step::Show => self.queue.push_back(Request::Show(self.lookaside.as_of())),
            Step::Take(may_wait) => match self.queue.pop_front() {
                Some(Request::Write(first, count, value)) => self.buffer(first, count, value),
                Some(Request::WriteLate(first, count, value)) if may_wait => {
                    self.late.push_back((first, count, value));
                }
                Some(Request::WriteLate(first, count, value)) => self.take(first, count, value),
                Some(Request::Read(lba, as_of)) => self.answer(lba, as_of),
                Some(Request::Show(as_of)) => self.show(as_of),
                None => {}
            },
            Step::TakeLate => {
                if let Some((first, count, value)) = self.late.pop_front() {
                    self.take(first, count, value);
                }
            }
            Step::Apply => {
                let buffered = std::mem::take(&mut self.buffered);
                buffered.into_iter().for_each(|(lba, value)| self.set(lba, value));
            }
            Step::Replace => {
                self.lookaside.stamp_all();
                let value = self.next_value();
                let mapped: Vec<u64> = self.map.keys().copied().collect();
                mapped.into_iter().for_each(|lba| self.set(lba, value));
            }
            Step::Evict(lba) => {
                self.map.get(&lba).and_then(|pbn| self.frames.remove(pbn));
            }
            Step::Hold => self.on_their_way.extend(self.frames.values().cloned()),
        }
    }

    fn take(&mut self, first: u64, count: u64, value: u8) {
        self.stamp(first, count);
        self.buffer(first, count, value);
    }

    /// The map changes; a name that nothing has any more is given away again at once.
    fn set(&mut self, lba: u64, value: u8) {
        let same = self.named.iter().find(|(_, named)| **named == value).map(|(pbn, _)| *pbn);
        let vacant = || (1..).map(Pbn).find(|pbn| !self.named.contains_key(pbn));
        let pbn = same.or_else(vacant).unwrap();
        self.named.insert(pbn, value);
        let Some(old) = self.map.insert(lba, pbn) else { return };
        if !self.map.values().any(|pbn| *pbn == old) {
            self.lookaside.forget(old);
            self.frames.remove(&old);
            self.named.remove(&old);
        }
    }

    fn answer(&mut self, lba: u64, as_of: u64) {
        if self.buffered.contains_key(&lba) {
            return;
        }
        let Some(&pbn) = self.map.get(&lba) else {
            return self.lookaside.fill_zeros((VOLUME, Lba(lba)), as_of);
        };
        let value = self.named[&pbn];
        let frame = self.frames.entry(pbn).or_insert_with(|| HeldFrame::new(&[value, pbn.0 as u8]));
        self.lookaside.fill((VOLUME, Lba(lba)), as_of, (pbn, FrameCheck::default()), frame);
    }

    fn show(&mut self, as_of: u64) {
        let (mut page, mut left_out) = (Page::blank(), SlotSet::default());
        for (lba, pbn) in &self.map {
            map_page::set(&mut page, *lba as usize, *pbn);
        }
        self.buffered.keys().for_each(|lba| left_out.add(*lba as usize));
        self.lookaside.fill_leaf((VOLUME, 0), as_of, &page, left_out);
    }

    /// What a reader must be told: the newest acknowledged write, or what the core has taken.
    fn truth(&self, lba: u64) -> u8 {
        let acknowledged = self.queue.iter().rev().find_map(|request| match *request {
            Request::Write(first, count, value) => {
                (first..first + count).contains(&lba).then_some(value)
            }
            _ => None,
        });
        let mapped = || self.map.get(&lba).map_or(0, |pbn| self.named[pbn]);
        acknowledged.or_else(|| self.buffered.get(&lba).copied()).unwrap_or_else(mapped)
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
        assert_eq!(u64::from(frame[1]), pbn.0);
        Some(frame[0])
    }
}

fn model(entries: u64) -> Model {
    Model {
        lookaside: Lookaside::new(2 * entries * ENTRY_BYTES as u64, CHUNK as u32),
        queue: VecDeque::new(),
        late: VecDeque::new(),
        buffered: BTreeMap::new(),
        map: BTreeMap::new(),
        named: BTreeMap::new(),
        frames: BTreeMap::new(),
        on_their_way: Vec::new(),
        values: 0,
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let run = || (0..LBAS, 1_u64..4);
    prop_oneof![
        2 => run().prop_map(|(first, count)| Step::Write(first, count)),
        1 => run().prop_map(|(first, count)| Step::WriteLate(first, count)),
        5 => (0..LBAS).prop_map(Step::Read),
        2 => Just(Step::Show),
        9 => any::<bool>().prop_map(Step::Take),
        1 => Just(Step::TakeLate),
        3 => Just(Step::Apply),
        1 => Just(Step::Replace),
        1 => (0..LBAS).prop_map(Step::Evict),
        1 => Just(Step::Hold),
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

fn written(model: &mut Model, first: u64, count: u64) {
    model.step(Step::Write(first, count));
    model.step(Step::Take(false));
    model.step(Step::Apply);
}

fn read(model: &mut Model, lba: u64) {
    model.step(Step::Read(lba));
    model.step(Step::Take(false));
}

fn show(model: &mut Model) {
    model.step(Step::Show);
    model.step(Step::Take(false));
}

#[test]
fn what_was_read_is_told_until_it_changes_or_its_frame_goes() {
    let mut model = model(64);
    written(&mut model, 0, 8);
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

#[test]
fn an_address_that_nobody_read_is_told_by_its_leaf_and_its_chunks_name() {
    let mut model = model(64);
    written(&mut model, 0, 8);
    read(&mut model, 0);
    assert!(model.told(0).is_some() && model.told(1).is_none());
    model.step(Step::Write(5, 1));
    model.step(Step::Take(false));
    show(&mut model);
    assert!((0..5).all(|lba| model.told(lba) == Some(1)), "they all name one chunk");
    assert!(model.told(5).is_none(), "the write buffer holds it");
    assert_eq!(model.told(8), Some(0), "nothing is mapped there");
    model.step(Step::Apply);
    show(&mut model);
    assert!(model.told(5).is_none(), "its chunk is not in memory");
    read(&mut model, 5);
    written(&mut model, 9, 1);
    assert!(model.told(9).is_none() && model.told(5) == Some(2));
    model.step(Step::Evict(0));
    assert!(model.told(1).is_none());
}

#[test]
fn a_name_that_was_given_away_is_told_by_nobody() {
    let mut model = model(64);
    written(&mut model, 0, 1);
    read(&mut model, 0);
    model.step(Step::Hold);
    written(&mut model, 0, 1);
    written(&mut model, 1, 1);
    assert_eq!(model.map[&1], Pbn(1), "it has the name that was set free");
    show(&mut model);
    assert!(model.told(1).is_none(), "{:?}", model.told(1));
}

#[test]
fn a_leaf_is_copied_once_reads_in_it_were_left_to_the_core() {
    let lookaside = Lookaside::new(1 << 20, CHUNK as u32);
    let due = |leaf| lookaside.leaf_is_due((VOLUME, leaf));
    assert_eq!([1, 1, 1, 1, 1, 1, 1, 1].map(due), [0, 0, 0, 1, 0, 0, 0, 1].map(|due| due == 1));
    // Leaves that share a place do not add up.
    let far = 1 + lookaside.leaves.entries() as u64;
    assert!([1, far, 1, far, 1, far, 1, far].map(due).iter().all(|due| !due));
}

#[test]
fn equal_leaves_of_several_volumes_are_copied_once() {
    let lookaside = Lookaside::new(1 << 20, CHUNK as u32);
    let mut page = Page::blank();
    map_page::set(&mut page, 3, Pbn(7));
    let before_bytes = lookaside.resident_bytes();
    let show = |volume, page: &Page| {
        lookaside.fill_leaf((VolumeId(volume), 0), 0, page, SlotSet::default());
        lookaside.resident_bytes() - before_bytes
    };
    let one_bytes = show(1, &page);
    assert!(one_bytes > 4096 && show(2, &page) == one_bytes);
    map_page::set(&mut page, 3, Pbn(8));
    assert_eq!(show(3, &page), 2 * one_bytes);
    let frame = HeldFrame::new(&[0]);
    lookaside.fill_name((Pbn(7), FrameCheck::default()), &frame);
    let is_told = |volume| lookaside.read(VolumeId(volume), 3 * CHUNK, CHUNK).is_some();
    assert_eq!([1, 2, 3, 4].map(is_told), [true, true, false, false]);
    // Many others push them out, but take no more memory than they may.
    for name in 100..1000 {
        map_page::set(&mut page, 3, Pbn(name));
        show(name as u32, &page);
    }
    assert!(!is_told(1) && lookaside.resident_bytes() <= 1 << 20);
}

/// While a read goes from its first chunk to its second, both are changed, one after the other, and
/// the second is read by somebody else.
#[test]
fn a_read_of_several_chunks_is_of_one_moment() {
    let Model { lookaside, .. } = model(64);
    let frame = HeldFrame::new(&[0]);
    lookaside.fill((VOLUME, Lba(0)), 0, (Pbn(1), FrameCheck::default()), &frame);
    lookaside.fill_zeros((VOLUME, Lba(1)), 0);
    let mut second = lookaside.lock(lookaside.place(VOLUME, Lba(1)));
    let nobody = Arc::strong_count(&frame);
    let told = thread::scope(|scope| {
        let reader = scope.spawn(|| lookaside.read(VOLUME, 0, 2 * CHUNK));
        while Arc::strong_count(&frame) == nobody {
            thread::yield_now();
        }
        lookaside.stamp(VOLUME, 0..CHUNK);
        lookaside.stamp(VOLUME, CHUNK..2 * CHUNK);
        let as_of = lookaside.as_of();
        *second = Entry { of: Some((VOLUME, Lba(1))), as_of, found: Found::Zeros };
        drop(second);
        reader.join().unwrap()
    });
    assert!(told.is_none(), "the second change without the first");
}
