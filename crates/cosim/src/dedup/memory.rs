//! The memory beside the core: sparse lines in three regions, with latency.
//!
//! A read gets the line as it is when the read is accepted. A write changes the line when it is
//! reported, so a read that comes before that gets the old one. The reads of one client are
//! answered in their order, and so are its writes reported; one answer and one report a cycle.

use std::collections::{BTreeMap, HashMap};

use super::dice::Dice;
use super::ports::Line;

/// Regions, as the core names them.
pub(crate) const BUCKETS: u8 = 0;
/// See [`BUCKETS`].
pub(crate) const ENTRIES: u8 = 1;

/// A write that has not landed.
#[derive(Clone, Copy, Debug)]
struct Landing {
    id: u8,
    place: (u8, u32),
    words: u16,
    line: Line,
}

/// Lines by region and number; what was never written is zeros.
#[derive(Debug)]
pub(crate) struct Memory {
    lines: HashMap<(u8, u32), Line>,
    answers: BTreeMap<u64, (u8, Line)>,
    landings: BTreeMap<u64, Landing>,
    last_answer: [u64; 32],
    last_landing: [u64; 32],
    read_cycles: u64,
    write_cycles: u64,
    jitter: Option<Dice>,
    /// Reads accepted.
    pub(crate) reads: u64,
}

impl Memory {
    pub(crate) fn new(read_cycles: u64, write_cycles: u64, jitter: Option<Dice>) -> Self {
        Self {
            lines: HashMap::new(),
            answers: BTreeMap::new(),
            landings: BTreeMap::new(),
            last_answer: [0; 32],
            last_landing: [0; 32],
            read_cycles,
            write_cycles,
            jitter,
            reads: 0,
        }
    }

    pub(crate) fn line(&self, region: u8, line: u32) -> Line {
        self.lines.get(&(region, line)).copied().unwrap_or_default()
    }

    /// Puts a line there by no way that the core has.
    pub(crate) fn set_line(&mut self, region: u8, line: u32, words: Line) {
        self.lines.insert((region, line), words);
    }

    /// The answer that comes in this cycle.
    pub(crate) fn answer(&mut self, cycle: u64) -> Option<(u8, Line)> {
        self.answers.remove(&cycle)
    }

    /// Lands the write that lands in this cycle, and says whose.
    pub(crate) fn land(&mut self, cycle: u64) -> Option<u8> {
        let landing = self.landings.remove(&cycle)?;
        let line = self.lines.entry(landing.place).or_default();
        for (at, word) in landing.line.iter().enumerate() {
            if landing.words >> at & 1 == 1 {
                line[at] = *word;
            }
        }
        Some(landing.id)
    }

    pub(crate) fn read(&mut self, cycle: u64, id: u8, region: u8, line: u32) {
        self.reads += 1;
        let found = self.line(region, line);
        let due = cycle + self.delay(self.read_cycles);
        let due = free_from(&self.answers, due.max(self.last_answer[usize::from(id)] + 1));
        self.last_answer[usize::from(id)] = due;
        self.answers.insert(due, (id, found));
    }

    pub(crate) fn write(&mut self, cycle: u64, id: u8, place: (u8, u32), words: u16, line: Line) {
        let due = cycle + self.delay(self.write_cycles);
        let due = free_from(&self.landings, due.max(self.last_landing[usize::from(id)] + 1));
        self.last_landing[usize::from(id)] = due;
        self.landings.insert(due, Landing { id, place, words, line });
    }

    fn delay(&mut self, cycles: u64) -> u64 {
        match &mut self.jitter {
            Some(dice) => 1 + dice.below(4 * cycles),
            None => cycles,
        }
    }
}

/// The first cycle from `due` on in which nothing comes yet.
fn free_from<T>(taken: &BTreeMap<u64, T>, mut due: u64) -> u64 {
    while taken.contains_key(&due) {
        due += 1;
    }
    due
}
