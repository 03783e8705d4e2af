//! What a seed makes of a run: a store of some shape and a mix of requests that meets every path of
//! the engine often.

mod asides;
mod contents;
mod detections;
mod growths;
mod holders;
mod removals;

use engine::{Codec, Compression};

pub(crate) use contents::bytes_of;

use crate::dice::{Dice, mixed};
use crate::oracle::CHUNK_BYTES;
use crate::script::{End, Life, Request, Script, Shape, Verb};
use crate::simulation::trouble::Trouble;

/// Sectors of a chunk.
pub(crate) const SECTORS: u64 = CHUNK_BYTES as u64 / 512;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of everything.
    pub seed: u64,
    /// Requests of each life of the store.
    pub steps: u64,
    /// Lives: each ends with a crash, or with a close.
    pub crashes: u64,
    /// Whether the power is also cut at every single write, to look what that would leave.
    pub every_write: bool,
    /// Whether clients hardly ever flush, so that much is not durable when the power goes.
    pub careless: bool,
    /// Whether clients press into a few chunks and hardly wait for anything: parts, reads and whole
    /// writes of the same chunks are taken in one step.
    pub crowded: bool,
    /// Whether data zones are emptied and taken out ([`Plan::removing`]).
    pub removes: bool,
    /// The store.
    pub shape: Shape,
}

/// Chunks that they press into, at most.
const CROWDED_CHUNKS: u64 = 32;

/// Kinds of stores, in turn by seed.
const SHAPES: u64 = 4;

impl Plan {
    /// What the seed makes of a run.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let base = Shape {
            seed,
            zones: 1,
            containers: 8,
            tables_bytes: 6 << 20,
            journal_bytes: 3 << 20,
            cache_pages: 4096,
            dirty_pages_max: 32,
            young_max: 80,
            contents: 60,
            tight: false,
            copies_above: 0,
            detection: detections::detection_of(seed),
            domains: detections::domains_of(seed),
            varies: mixed(seed, 12).is_multiple_of(2),
        };
        // All seeds that use new things would be of one shape: every other one is of any.
        let is_mixed = base.uses_new_things() && seed / 8 % 2 == 1;
        let shape = match if is_mixed { seed / 16 } else { seed } % SHAPES {
            // Few contents: most chunks are duplicates of something, in two data files. What is
            // mapped a few times is stored twice.
            0 => Shape { zones: 2, copies_above: 4, ..base },
            // Few pages in memory and volumes of many leaves: tables live on disk.
            1 => Shape {
                tables_bytes: 16 << 20,
                cache_pages: 96,
                dirty_pages_max: 16,
                young_max: 150,
                contents: 4000,
                ..base
            },
            // A store that fills, collects and uses its containers again.
            2 => Shape {
                tables_bytes: 4 << 20,
                cache_pages: 512,
                dirty_pages_max: 32,
                young_max: 300,
                contents: 1 << 40,
                tight: true,
                ..base
            },
            // The same in three data files, with duplicates, so that the dead come back and copies
            // are moved; in a quarter of them nothing is stored twice.
            _ => {
                let (zones, containers, contents) = (3, 3, 6000);
                let copies_above = if seed / SHAPES % 4 == 2 { 0 } else { 2 };
                let shape = Shape { zones, containers, contents, tables_bytes: 6 << 20, ..base };
                Shape { tight: true, copies_above, ..shape }
            }
        };
        // Now and then checkpoints come as late as can be.
        let late = seed / SHAPES % 4 == 1;
        let dirty_pages_max = if late { shape.cache_pages } else { shape.dirty_pages_max };
        let shape = Shape { dirty_pages_max, ..shape };
        let careless = seed / SHAPES % 4 == 3;
        Self {
            seed,
            steps: 60,
            crashes: 3,
            every_write: true,
            careless,
            crowded: false,
            removes: false,
            shape,
        }
    }

    /// What `lab simulate` has to be told to make this run again.
    #[must_use]
    pub fn arguments(&self) -> String {
        let Self { seed, steps, crashes, crowded, removes, .. } = self;
        let crowded = if *crowded { " --crowded" } else { "" };
        let removes = if *removes { " --removes" } else { "" };
        format!("--seed {seed} --steps {steps} --crashes {crashes}{crowded}{removes}")
    }

    /// Every request of the run.
    #[must_use]
    pub fn script(&self) -> Script {
        let mut workload = Workload {
            dice: Dice::new(mixed(self.seed, 1)),
            scrubs: Dice::new(mixed(self.seed, 3)),
            versions: Dice::new(mixed(self.seed, 4)),
            extras: Dice::new(mixed(self.seed, 7)),
            dedups: Dice::new(mixed(self.seed, 8)),
            holders: Dice::new(mixed(self.seed, 43)),
            reservations: 0,
            copies: Dice::new(mixed(self.seed, 42)),
            snapshots: Vec::new(),
            clones: Vec::new(),
            shape: &self.shape,
            careless: self.careless,
            crowded: self.crowded,
            volumes: Vec::new(),
            next_volume: 0,
            renames: 0,
        };
        let mut lives = Vec::new();
        for life in 0..self.crashes {
            lives.push(self.life(&mut workload, life));
        }
        if mixed(self.seed, 5).is_multiple_of(4) {
            growths::grow(&mut Dice::new(mixed(self.seed, 6)), &mut lives);
        }
        if self.removes {
            removals::evacuate(&mut Dice::new(mixed(self.seed, 45)), &mut lives);
        }
        if mixed(self.seed, 2).is_multiple_of(3) {
            workload.make_trouble(&mut lives);
            if lives.last().is_some_and(Life::ends_damaged) {
                // It is lived by the store as a repair leaves it.
                lives.push(self.life(&mut workload, self.crashes));
            }
        }
        Script { shape: self.shape.clone(), lives }
    }
}

/// Requests of which most are under way when a close comes.
const LAST_REQUESTS: usize = 16;

impl Plan {
    fn life(&self, workload: &mut Workload<'_>, life: u64) -> Life {
        let mut requests = Vec::with_capacity(self.steps as usize);
        for _ in 0..self.steps {
            requests.push(workload.next_request());
            requests.extend(workload.version_request());
            if self.seed.is_multiple_of(3) {
                requests.extend(workload.extra_request());
            }
            if self.seed.is_multiple_of(5) {
                requests.extend(workload.dedup_request());
            }
            requests.extend(workload.codec_request());
            if self.shape.uses_new_things() {
                requests.extend(workload.holder_request());
                requests.extend(workload.copy_requests());
            }
        }
        let end = match workload.end() {
            End::Close if mixed(self.seed, 1 << 33 | life).is_multiple_of(2) => End::CloseNow,
            end => end,
        };
        if end == End::CloseNow {
            let last = requests.iter_mut().rev().take(LAST_REQUESTS);
            last.for_each(|request| request.steps = 0);
        }
        let root_lost = mixed(self.seed, 1 << 32 | life).is_multiple_of(6);
        Life { requests, end, root_lost: root_lost && !end.is_close() }
    }
}

/// A volume as the workload believes it to be; crashes may know better.
#[derive(Clone, Debug)]
struct Believed {
    number: u32,
    sectors: u64,
    read_only: bool,
}

struct Workload<'a> {
    dice: Dice,
    /// Of scrubs alone: with them all else is as it was without.
    scrubs: Dice,
    /// Of snapshots and clones: the same.
    versions: Dice,
    /// Of quotas and of collection on request.
    extras: Dice,
    /// Of switching deduplication, and codecs of volumes.
    dedups: Dice,
    /// Of vectors, hints and reservations.
    holders: Dice,
    /// Reservations that were asked for.
    reservations: u32,
    /// Of copies between volumes.
    copies: Dice,
    /// Snapshots that may still be there, with what they are of.
    snapshots: Vec<(u32, Believed)>,
    clones: Vec<Believed>,
    shape: &'a Shape,
    careless: bool,
    crowded: bool,
    volumes: Vec<Believed>,
    next_volume: u32,
    renames: u32,
}

impl Workload<'_> {
    /// Something goes wrong with the disk: in the last life, or in an earlier one if it leaves
    /// nothing wrong behind, and then the store lives on.
    fn make_trouble(&mut self, lives: &mut [Life]) {
        let (kind, _) = Trouble::ALL[self.dice.below(Trouble::ALL.len() as u64) as usize];
        let others = (lives.len() as u64).saturating_sub(1).max(1);
        let earlier = if kind.damages() { 0 } else { self.dice.below(others) };
        let until = lives.len() - earlier as usize;
        let [.., before, last] = &mut lives[..until] else { return };
        let verb = Verb::Trouble { kind, number: self.dice.roll() >> 8 };
        let mut at = self.dice.below(1 + last.requests.len() as u64 / 2) as usize;
        if kind.rots() {
            // What rots before a crash may look like the crash itself; after a close it may not.
            (before.end, at) = (End::Close, 0);
        }
        last.requests.insert(at, Request { verb, steps: 0 });
    }

    fn end(&mut self) -> End {
        if self.dice.once_in(6) { End::Close } else { End::of_number(self.dice.roll()) }
    }

    fn next_request(&mut self) -> Request {
        let verb = if self.volumes.iter().all(|volume| volume.read_only) {
            self.create()
        } else {
            self.next_verb()
        };
        let steps = match self.dice.below(16) {
            _ if self.crowded && !self.dice.once_in(5) => 0,
            0 => 40,
            1..4 => 0,
            _ => self.dice.below(10) as u32,
        };
        Request { verb, steps }
    }

    fn next_verb(&mut self) -> Verb {
        if self.careless && self.dice.once_in(3) {
            return Verb::Tick;
        }
        if self.crowded && self.dice.once_in(2) {
            return match self.dice.below(4) {
                0..2 => self.ragged_write(),
                2 => self.read(),
                _ => self.extents(),
            };
        }
        match self.dice.below(100) {
            0..40 => self.whole_write(),
            40..52 => self.ragged_write(),
            52..62 => self.trim(),
            62..72 => self.read(),
            72..75 => self.extents(),
            75..86 if self.careless && !self.dice.once_in(8) => self.whole_write(),
            75..86 => Verb::Flush,
            86..88 => Verb::Tick,
            88 => Verb::Idle,
            89 if self.scrubs.once_in(4) => Verb::Stats,
            89 => Verb::Scrub { fingerprints: self.scrubs.once_in(2) },
            90 => Verb::Bad { volume: self.volume().number },
            91..94 => self.create(),
            94..96 => self.resize(),
            96 => self.rename(),
            97..99 => self.delete(),
            _ => self.compress(),
        }
    }

    /// Any volume.
    fn volume(&mut self) -> Believed {
        let at = self.dice.below(self.volumes.len() as u64) as usize;
        self.volumes[at].clone()
    }

    /// A volume that may be written.
    fn writable(&mut self) -> Believed {
        let writable: Vec<&Believed> =
            self.volumes.iter().filter(|volume| !volume.read_only).collect();
        let at = self.dice.below(writable.len() as u64) as usize;
        writable[at].clone()
    }

    fn is_sparse(&self) -> bool {
        self.shape.cache_pages < 256
    }

    /// What is written: anything, or what others have written too.
    fn content(&mut self) -> u64 {
        if self.careless && !self.dice.once_in(3) {
            return self.dice.below(12);
        }
        self.dice.roll() % (1 << 32)
    }

    fn is_durable(&mut self) -> bool {
        self.dice.once_in(if self.careless { 80 } else { 10 })
    }

    fn sectors(&mut self) -> u64 {
        if self.is_sparse() && self.dice.once_in(2) {
            return 1 << 27;
        }
        let chunks = match self.dice.below(3) {
            _ if self.crowded => 1 + self.dice.below(CROWDED_CHUNKS),
            0 => 1 + self.dice.below(40),
            1 => 400,
            _ if self.shape.tight => 8000,
            _ => 3000,
        };
        let ragged = if self.dice.once_in(4) { self.dice.below(SECTORS) } else { 0 };
        chunks * SECTORS + ragged
    }

    fn create(&mut self) -> Verb {
        let number = self.next_volume;
        self.next_volume += 1;
        let read_only = !self.volumes.is_empty() && self.dice.once_in(8);
        // The first is one in which there is room for a workload.
        let sectors = if number == 0 { 8000 * SECTORS } else { self.sectors() };
        self.volumes.push(Believed { number, sectors, read_only });
        Verb::Create { volume: number, sectors, read_only }
    }

    fn resize(&mut self) -> Verb {
        let at = self.dice.below(self.volumes.len() as u64) as usize;
        let sectors = self.sectors();
        self.volumes[at].sectors = sectors;
        Verb::Resize { volume: self.volumes[at].number, sectors }
    }

    fn rename(&mut self) -> Verb {
        self.renames += 1;
        Verb::Rename { volume: self.volume().number, number: self.renames }
    }

    fn delete(&mut self) -> Verb {
        let at = self.dice.below(self.volumes.len() as u64) as usize;
        Verb::Delete { volume: self.volumes.swap_remove(at).number }
    }

    fn compress(&mut self) -> Verb {
        Verb::Compress(match self.dice.below(4) {
            0 => Compression { codec: Codec::Raw, level: 0 },
            1 => Compression { codec: Codec::Zstd, level: 1 },
            _ => Compression { codec: Codec::Lz4, level: 0 },
        })
    }

    /// Where to begin: near where others do, so that much is written over.
    fn first(&mut self, sectors: u64) -> u64 {
        if sectors > 1 << 24 {
            let leaves = if self.careless { 150 } else { 600 };
            let leaf = self.dice.below(leaves);
            return (leaf * 677 * SECTORS * 3 + self.dice.below(4 * SECTORS)).min(sectors - 1);
        }
        let hot = match self.shape.tight {
            _ if self.crowded => CROWDED_CHUNKS * SECTORS,
            _ if self.careless && self.dice.once_in(3) => 16 * SECTORS,
            true => sectors,
            false => 600 * SECTORS,
        };
        self.dice.below(hot.min(sectors))
    }

    fn whole_write(&mut self) -> Verb {
        let Believed { number: volume, sectors, .. } = self.written();
        let longest = match (self.shape.tight, self.dice.below(8)) {
            (true, 0..3) => 300,
            (false, 0) => 100,
            (_, 1..4) => 40,
            _ => 4,
        };
        let first = self.first(sectors) / SECTORS * SECTORS;
        let count = (SECTORS * (1 + self.dice.below(longest))).min(sectors - first);
        let content = self.content();
        Verb::Write { volume, first, count, content, durable: self.is_durable() }
    }

    /// Sectors anywhere, whole chunks or not.
    fn ragged_write(&mut self) -> Verb {
        let Believed { number: volume, sectors, .. } = self.written();
        let first = self.first(sectors);
        let longest = if self.dice.once_in(12) { 1 } else { 24 };
        let count = self.dice.below(1 + longest).min(sectors - first);
        let content = self.content();
        Verb::Write { volume, first, count, content, durable: self.is_durable() }
    }

    fn trim(&mut self) -> Verb {
        let Believed { number: volume, sectors, .. } = self.written();
        let longest = match self.dice.below(6) {
            0 => sectors,
            1 => 8000,
            _ => 400,
        };
        let mut first = self.first(sectors);
        let mut count = self.dice.below(1 + longest).min(sectors - first);
        if self.dice.once_in(2) {
            first = first / SECTORS * SECTORS;
            count = (count.div_ceil(SECTORS) * SECTORS).min(sectors - first);
        }
        Verb::Trim { volume, first, count, durable: self.is_durable() }
    }

    fn read(&mut self) -> Verb {
        let Believed { number: volume, sectors, .. } = self.volume();
        let first = self.first(sectors);
        let count = (1 + self.dice.below(256)).min(sectors - first);
        Verb::Read { volume, first, count }
    }

    fn extents(&mut self) -> Verb {
        let Believed { number: volume, sectors, .. } = self.volume();
        let first = self.first(sectors) / SECTORS * SECTORS;
        let count = (SECTORS * (1 + self.dice.below(2000))).min(sectors - first);
        Verb::Extents { volume, first, count }
    }
}
