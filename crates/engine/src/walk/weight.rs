//! What a volume weighs: what is asked and answered, step by step (`weigh.rs`), and the sum of it.
//!
//! A chunk that has one reference is told by a step as part of a sum. Of one that has several it
//! depends on the whole volume whether all of them are the volume's own, so it is told by name, and
//! [`Weighing`], on the caller's side, keeps account of it. Its memory is bounded: when there are
//! too many such chunks it drops those with the higher names, and goes through the volume once
//! more for them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use format::map_page::SLOTS;
use format::units::{TreeId, VolumeId};

/// Chunks with several references that are kept account of at once: some 150 MiB.
const COUNTED_MAX: usize = 2 << 20;
/// First counts of references of the histogram's classes: 1, 2, 3 to 4, ..., more than 1000.
const CLASSES: [u32; 12] = [1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1001];

/// A step that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightRequest {
    /// A volume, or `VOLUME@SNAPSHOT`.
    pub volume: String,
    /// The leaf of its map from which on it is gone through.
    pub leaf: u64,
    /// Chunks with several references that are to be told, by their PBNs.
    pub pbns: Range<u64>,
}

/// What a step found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightStep {
    /// Number of the volume: if it changes between steps, the name means another by now.
    pub number: u32,
    /// Length of a chunk.
    pub chunk_bytes: u32,
    /// Of the volume.
    pub size_bytes: u64,
    /// Chunks that the volume maps in all.
    pub mapped_total: u64,
    /// Versions that share with this one directly and came from it: two keep a deleted one.
    pub children: u64,
    /// LBAs that name a chunk, of those gone through.
    pub mapped: u64,
    /// Those whose chunk is lost.
    pub lost: u64,
    /// Chunks with one reference.
    pub single: Tally,
    /// Those of them that no other version maps.
    pub single_own: Tally,
    /// Chunks with several references.
    pub several: Vec<CountedChunk>,
    /// The leaf at which the next step begins; none when all is gone through.
    pub next_leaf: Option<u64>,
}

/// A sum of chunks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub chunks: u64,
    /// Their frames.
    pub frame_bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, frame_bytes: u32) {
        self.chunks += 1;
        self.frame_bytes += u64::from(frame_bytes);
    }
}

/// A chunk with several references, in some leaves of a volume's map.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CountedChunk {
    /// Its name.
    pub pbn: u64,
    /// In the whole store.
    pub references: u32,
    /// Of its frame.
    pub frame_bytes: u32,
    /// LBAs of the volume that name it.
    pub mapped: u32,
    /// References that go with the volume.
    pub own: u32,
}

/// What a volume weighs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeWeight {
    /// Logical size.
    pub size_bytes: u64,
    /// Mapped to chunks.
    pub mapped_bytes: u64,
    /// Chunks that it maps, each counted once.
    pub chunks: Tally,
    /// Those that no other volume or snapshot maps.
    pub unique: Tally,
    /// The others.
    pub shared: Tally,
    /// What comes back when it is deleted.
    pub given_back: Tally,
    /// Whether it would stay, unseen, when it is deleted, until at most one of the versions is left
    /// that were made from it.
    pub held: bool,
    /// LBAs whose chunk is lost.
    pub lost_chunks: u64,
    /// Bytes of its chunks to bytes of their frames.
    pub compression_ratio: f64,
    /// How often its chunks are referred to, in the whole store.
    pub references: Vec<ReferenceClass>,
}

/// Chunks with about as many references.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceClass {
    /// The least.
    pub from: u32,
    /// The most; none: any more.
    pub to: Option<u32>,
    /// Chunks of the volume, each counted once.
    pub chunks: u64,
    /// LBAs of the volume that name them.
    pub mapped: u64,
    /// Their frames.
    pub frame_bytes: u64,
}

/// A volume on the scales.
#[derive(Debug)]
pub struct Weighing {
    volume: String,
    next: Option<u64>,
    pbns: Range<u64>,
    counted: BTreeMap<u64, CountedChunk>,
    counted_max: usize,
    is_first_pass: bool,
    number: Option<u32>,
    last: WeightStep,
    mapped: u64,
    lost: u64,
    classes: Vec<ReferenceClass>,
    unique: Tally,
}

impl Weighing {
    /// Of the volume or snapshot with this name.
    #[must_use]
    pub fn of(volume: &str) -> Self {
        Self::with_counted_max(volume, COUNTED_MAX)
    }

    /// The same, keeping account of so many chunks at once.
    #[must_use]
    pub fn with_counted_max(volume: &str, counted_max: usize) -> Self {
        let class = |(at, &from): (usize, &u32)| {
            let to = CLASSES.get(at + 1).map(|next| next - 1);
            ReferenceClass { from, to, ..ReferenceClass::default() }
        };
        Self {
            volume: volume.to_owned(),
            next: Some(0),
            pbns: 0..u64::MAX,
            counted: BTreeMap::new(),
            counted_max: counted_max.max(2),
            is_first_pass: true,
            number: None,
            last: WeightStep::default(),
            mapped: 0,
            lost: 0,
            classes: CLASSES.iter().enumerate().map(class).collect(),
            unique: Tally::default(),
        }
    }

    /// The next step to be asked for; none when all is known.
    #[must_use]
    pub fn request(&self) -> Option<WeightRequest> {
        let (volume, pbns) = (self.volume.clone(), self.pbns.clone());
        self.next.map(|leaf| WeightRequest { volume, leaf, pbns })
    }

    /// Chunks gone through and to be gone through in this pass.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.mapped.min(self.last.mapped_total), self.last.mapped_total)
    }

    /// Takes the answer to [`Weighing::request`]; false when the volume is another one by now.
    #[must_use]
    pub fn add(&mut self, step: WeightStep) -> bool {
        if *self.number.get_or_insert(step.number) != step.number {
            return false;
        }
        if self.is_first_pass {
            self.mapped += step.mapped;
            self.lost += step.lost;
            let (single, own) = (step.single, step.single_own);
            self.note(1, single.chunks, single);
            self.unique.chunks += own.chunks;
            self.unique.frame_bytes += own.frame_bytes;
        }
        for chunk in step.several.iter().filter(|chunk| self.pbns.contains(&chunk.pbn)) {
            let known = self.counted.entry(chunk.pbn).or_insert(CountedChunk {
                mapped: 0,
                own: 0,
                ..*chunk
            });
            known.mapped = known.mapped.saturating_add(chunk.mapped);
            known.own = known.own.saturating_add(chunk.own);
        }
        self.let_go();
        self.next = step.next_leaf;
        self.last = WeightStep { several: Vec::new(), ..step };
        if self.next.is_none() {
            self.end_pass();
        }
        true
    }

    /// Leaves the upper half of the chunks to a later pass when there are too many.
    fn let_go(&mut self) {
        if self.counted.len() > self.counted_max {
            let middle = self.counted.keys().nth(self.counted.len() / 2).copied();
            self.pbns.end = middle.unwrap_or(self.pbns.end);
            self.counted.split_off(&self.pbns.end);
        }
    }

    fn end_pass(&mut self) {
        for (_, chunk) in std::mem::take(&mut self.counted) {
            let mut one = Tally::default();
            one.add(chunk.frame_bytes);
            self.note(chunk.references, u64::from(chunk.mapped), one);
            if chunk.own == chunk.references {
                self.unique.add(chunk.frame_bytes);
            }
        }
        self.is_first_pass = false;
        if self.pbns.end < u64::MAX {
            self.pbns = self.pbns.end..u64::MAX;
            self.next = Some(0);
        }
    }

    fn note(&mut self, references: u32, mapped: u64, chunks: Tally) {
        let at = CLASSES.partition_point(|&from| from <= references).max(1) - 1;
        if let Some(class) = self.classes.get_mut(at) {
            class.mapped += mapped;
            class.chunks += chunks.chunks;
            class.frame_bytes += chunks.frame_bytes;
        }
    }

    /// What it came to, once [`Weighing::request`] has no more to ask.
    #[must_use]
    pub fn weight(self) -> VolumeWeight {
        let chunk_bytes = u64::from(self.last.chunk_bytes);
        let sum = |of: &dyn Fn(&ReferenceClass) -> u64| self.classes.iter().map(of).sum::<u64>();
        let chunks = Tally {
            chunks: sum(&|class| class.chunks),
            frame_bytes: sum(&|class| class.frame_bytes),
        };
        let shared = Tally {
            chunks: chunks.chunks - self.unique.chunks,
            frame_bytes: chunks.frame_bytes - self.unique.frame_bytes,
        };
        let held = self.last.children > 1;
        let plain_bytes = chunks.chunks * chunk_bytes;
        VolumeWeight {
            size_bytes: self.last.size_bytes,
            mapped_bytes: self.mapped * chunk_bytes,
            chunks,
            unique: self.unique,
            shared,
            given_back: if held { Tally::default() } else { self.unique },
            held,
            lost_chunks: self.lost,
            compression_ratio: match chunks.frame_bytes {
                0 => 1.0,
                frame_bytes => plain_bytes as f64 / frame_bytes as f64,
            },
            references: self.classes,
        }
    }
}

/// A step under way.
pub(crate) struct WeightWalk {
    pub(crate) version: VolumeId,
    pub(crate) leaf: u64,
    pub(crate) pbns: Range<u64>,
    pub(crate) leaves_left: u32,
    pub(crate) several: BTreeMap<u64, CountedChunk>,
    pub(crate) step: WeightStep,
    /// The leaf that is being compared with those of the version's relatives.
    pub(crate) open: Option<LeafWalk>,
}

/// A leaf beside which the version's relatives are seen, one after the other.
pub(crate) struct LeafWalk {
    pub(crate) leaf: u64,
    /// By slot: whether none of those seen so far maps the same.
    pub(crate) goes: Vec<bool>,
    /// The relatives that come next.
    pub(crate) others: VecDeque<TreeId>,
    /// The first child that comes after them; none: all have come.
    pub(crate) next_child: Option<VolumeId>,
}

impl LeafWalk {
    pub(crate) fn new(leaf: u64, parent: Option<TreeId>) -> Self {
        let (goes, others) = (vec![true; SLOTS], parent.into_iter().collect());
        Self { leaf, goes, others, next_child: Some(VolumeId(0)) }
    }

    /// Nothing of it would go: whatever comes next changes nothing.
    pub(crate) fn keeps_all(&mut self) {
        self.goes.fill(false);
        self.others.clear();
        self.next_child = None;
    }
}

impl WeightWalk {
    pub(crate) fn into_step(self) -> WeightStep {
        WeightStep { several: self.several.into_values().collect(), ..self.step }
    }
}
