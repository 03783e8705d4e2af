//! Stores that are filled to the last chunk, and go on from there: `lab fill`.
//!
//! The verb `fill` writes fresh chunks until one is refused for want of room, which must not come
//! before most of the room is used; `fits` writes and must not be refused. Between the two a full
//! store is asked for everything that it must still do, and room is made in one of several ways:
//! trims, long or scattered, a deleted volume, a deleted snapshot that held everything, growth.
//! Where writes go and what the crashes leave is judged by the oracle, as in any run: a write that
//! was refused was not taken, or chunk by chunk from its beginning.

use engine::{Detection, Reply, control};
use format::map_page;

use crate::dice::{Dice, mixed};
use crate::failure::Broken;
use crate::range::Range;
use crate::script::{End, Life, Request, Script, Shape, Verb};
use crate::session::waiting::Waiting;
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::opening::strange;
use crate::workload::SECTORS;

/// Of the room for data or for tables, this much must be used before a write is refused. The tables
/// of these stores are small, and a chunk may take four blocks of them.
const USED_DATA_MIN: f64 = 0.97;
const USED_TABLES_MIN: f64 = 0.9;
/// Chunks of one write of a fill.
const FILL_CHUNKS: u64 = 250;
/// Volumes of so many sectors are written a chunk at a time, each to a leaf of its own: the tables
/// fill, and not the containers.
const SPARSE_SECTORS: u64 = 1 << 24;
/// Lives of a run: each fills the store once or twice.
const LIVES: u64 = 3;

/// How a full store gets room.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Relief {
    LongTrim,
    ScatteredTrims,
    DeletedVolume,
    DeletedSnapshot,
    Growth,
}

const RELIEFS: [Relief; 5] = [
    Relief::LongTrim,
    Relief::ScatteredTrims,
    Relief::DeletedVolume,
    Relief::DeletedSnapshot,
    Relief::Growth,
];

/// The run of a seed: a store that is filled, relieved and filled again, over three lives.
#[must_use]
pub fn script_of_seed(seed: u64) -> Script {
    let mut filling = Filling::new(seed);
    let lives = (0..LIVES).map(|life| filling.life(life)).collect();
    Script { shape: filling.shape, lives }
}

struct Filling {
    dice: Dice,
    shape: Shape,
    /// The volume that is filled: a sparse one fills the tables.
    sectors: u64,
    requests: Vec<Request>,
    /// Volumes and snapshots have numbers that are never used again.
    next_volume: u32,
    grown: bool,
}

impl Filling {
    fn new(seed: u64) -> Self {
        let base = Shape {
            seed,
            zones: 1,
            containers: 7,
            tables_bytes: 6 << 20,
            journal_bytes: 3 << 20,
            cache_pages: 512,
            dirty_pages_max: 64,
            // A quarter of all entries, and what takes some back: as in a store with much memory.
            young_max: if seed % 8 < 4 { 400 } else { 12_000 },
            contents: 1 << 40,
            tight: true,
            copies_above: 0,
            domains: 0,
            varies: false,
            detection: Detection::default(),
        };
        let dense = 40_000 * SECTORS;
        let (shape, sectors) = match seed % 4 {
            // Collection keeps two of the containers, or one, and leaves some of the rest dead.
            0 => (Shape { containers: 8, ..base }, dense),
            // Many chunks are there already, or come back from the dead.
            1 => (Shape { zones: 2, containers: 4, contents: 30_000, ..base }, dense),
            2 => (
                Shape { zones: 3, containers: 3, cache_pages: 96, dirty_pages_max: 24, ..base },
                dense,
            ),
            _ => (Shape { tables_bytes: 3 << 20, ..base }, 4 * SPARSE_SECTORS),
        };
        let dice = Dice::new(mixed(seed, 7));
        Self { dice, shape, sectors, requests: Vec::new(), next_volume: 2, grown: false }
    }

    fn ask(&mut self, verb: Verb) {
        let steps = self.dice.below(12) as u32;
        self.requests.push(Request { verb, steps });
    }

    fn life(&mut self, life: u64) -> Life {
        if life == 0 {
            self.ask(Verb::Create { volume: 0, sectors: self.sectors, read_only: false });
        }
        for _ in 0..=self.dice.below(2) {
            self.round();
        }
        let end = if self.dice.once_in(4) { End::Close } else { End::of_number(self.dice.roll()) };
        let root_lost = end != End::Close && self.dice.once_in(6);
        Life { requests: std::mem::take(&mut self.requests), end, root_lost }
    }

    /// Filled, asked for what a full store must do, relieved, written again.
    fn round(&mut self) {
        let relief = RELIEFS[self.dice.below(RELIEFS.len() as u64) as usize];
        // A store grows once: that doubles it.
        let relief = if self.grown { Relief::LongTrim } else { relief };
        let other = self.next_volume;
        self.next_volume += 1;
        match relief {
            Relief::DeletedVolume => {
                self.ask(Verb::Create { volume: other, sectors: self.sectors, read_only: false });
                self.third(other);
            }
            Relief::DeletedSnapshot => {
                self.third(0);
                self.ask(Verb::Snapshot { volume: 0, snapshot: other });
                self.ask(Verb::Trim { volume: 0, first: 0, count: self.sectors, durable: false });
            }
            _ => {}
        }
        let content = self.dice.roll() % (1 << 32);
        self.ask(Verb::Fill { volume: 0, first: 0, content });
        for _ in 0..6 {
            self.ask_when_full();
        }
        self.relieve(relief, other);
        self.ask(Verb::Idle);
        self.fits(0);
        let content = self.dice.roll() % (1 << 32);
        self.ask(Verb::Fill { volume: 0, first: 0, content });
        for _ in 0..3 {
            self.ask_when_full();
        }
        // So that the next round begins with room, also after a crash.
        self.ask(Verb::Trim { volume: 0, first: 0, count: self.sectors, durable: true });
    }

    /// A sixth of the room that the store was made with, behind the middle of the volume.
    fn fits(&mut self, volume: u32) {
        let content = self.dice.roll() % (1 << 32);
        let first = self.sectors / 2;
        self.ask(Verb::Fits { volume, first, content });
    }

    /// A third: what gives it back makes room for a sixth of chunks that may not shrink.
    fn third(&mut self, volume: u32) {
        self.fits(volume);
        let content = self.dice.roll() % (1 << 32);
        let first = self.sectors / 4 * 3;
        self.ask(Verb::Fits { volume, first, content });
    }

    /// Whatever a store must do that has no room.
    fn ask_when_full(&mut self) {
        let first = self.dice.below(6_000.min(self.sectors / SECTORS)) * SECTORS;
        let volume = 0;
        let verb = match self.dice.below(10) {
            0..3 => Verb::Read { volume, first, count: 256 },
            3 => Verb::Extents { volume, first, count: 2_000 * SECTORS },
            4 => Verb::Flush,
            5 => Verb::Stats,
            6 => Verb::Scrub { fingerprints: first.is_multiple_of(16) },
            // Without room it may be refused, and then nothing of it may be seen.
            7 => Verb::Write { volume, first: first + 3, count: 9, content: 5, durable: false },
            8 => Verb::Write { volume, first, count: 40 * SECTORS, content: first, durable: true },
            _ => Verb::Idle,
        };
        self.ask(verb);
    }

    fn relieve(&mut self, relief: Relief, other: u32) {
        let half = self.sectors / 2;
        match relief {
            Relief::LongTrim => {
                self.ask(Verb::Trim { volume: 0, first: 0, count: half, durable: false });
            }
            Relief::ScatteredTrims if self.sectors >= SPARSE_SECTORS => {
                self.ask(Verb::Trim { volume: 0, first: 0, count: self.sectors, durable: true });
            }
            Relief::ScatteredTrims => {
                for part in 0..60 {
                    let (first, count) = (160 * part * SECTORS, 120 * SECTORS);
                    let verb = Verb::Trim { volume: 0, first, count, durable: false };
                    self.requests.push(Request { verb, steps: 0 });
                }
            }
            Relief::DeletedVolume | Relief::DeletedSnapshot => {
                self.ask(Verb::Delete { volume: other });
            }
            Relief::Growth => {
                self.grown = true;
                let further = self.dice.once_in(2);
                self.ask(Verb::Grow { further });
            }
        }
    }
}

impl Session<'_> {
    /// Writes fresh chunks from `first` on until one is refused.
    pub(crate) fn fill(&mut self, volume: u32, first: u64, content: u64) -> Result<(), Broken> {
        let refused = self.refused;
        let Some(sectors) = self.sectors_of(volume) else { return Ok(()) };
        for range in writes_from(volume, first, sectors) {
            self.write_of_a_fill(range, content)?;
            if self.refused > refused {
                self.filled += 1;
                return self.expect_full();
            }
        }
        Err(strange("a store that is filled", &"room for all of a volume"))
    }

    /// Writes a sixth of what the store was made for, none of which may be refused.
    pub(crate) fn fits(&mut self, volume: u32, first: u64, content: u64) -> Result<(), Broken> {
        let refused = self.refused;
        let Some(sectors) = self.sectors_of(volume) else { return Ok(()) };
        let containers = u64::from(self.shape.containers) * u64::from(self.shape.zones);
        let mut left = match sectors >= SPARSE_SECTORS {
            true => self.shape.tables_bytes / 4096 / 24,
            false => containers * 1_000 / 6,
        };
        for range in writes_from(volume, first, sectors) {
            self.write_of_a_fill(range, content)?;
            if self.refused > refused {
                let used = self.used_ratios()?;
                return Err(strange("a write to a store with room again", &(used, left)));
            }
            left = left.saturating_sub(range.count / SECTORS);
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn sectors_of(&self, volume: u32) -> Option<u64> {
        self.oracle.volume(volume).map(|entry| entry.size_bytes / SECTOR_BYTES)
    }

    fn write_of_a_fill(&mut self, range: Range, content: u64) -> Result<(), Broken> {
        self.steps = 0;
        self.write(range, mixed(content, range.first), false)?;
        self.step()?;
        self.take_answers()
    }

    /// A write was refused: most of some room must be in use.
    fn expect_full(&mut self) -> Result<(), Broken> {
        let used = self.used_ratios()?;
        if used.0 < USED_DATA_MIN && used.1 < USED_TABLES_MIN {
            return Err(strange("a write to a store with room", &used));
        }
        Ok(())
    }

    /// Used parts of the data zones and of the tables.
    fn used_ratios(&mut self) -> Result<(f64, f64), Broken> {
        let done = self.done(Waiting::Plain, None);
        let tag = done.tag;
        self.opening.client.administer(control::GetStats {}, done);
        match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Stats(stats) => Ok((stats.data_used_ratio, stats.tables_used_ratio)),
            other => Err(strange("stats", &other)),
        }
    }
}

/// Where the writes of a fill go, to the end of the volume.
fn writes_from(volume: u32, first: u64, sectors: u64) -> impl Iterator<Item = Range> {
    let (chunks, stride) = match sectors >= SPARSE_SECTORS {
        true => (1, 3 * map_page::SLOTS as u64),
        false => (FILL_CHUNKS, FILL_CHUNKS),
    };
    let count = chunks * SECTORS;
    let starts = (first..=sectors.saturating_sub(count)).step_by((stride * SECTORS) as usize);
    starts.map(move |first| Range { volume, first, count })
}

#[cfg(test)]
mod tests {
    use super::script_of_seed;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        for seed in 0..20 {
            let script = script_of_seed(seed);
            assert_eq!(script.to_string().parse(), Ok(script));
        }
    }
}
