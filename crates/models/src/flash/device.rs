//! The device: requests come, steps end, and each end begins what follows.
//!
//! ```text
//! none            code ─ program
//! sha1 ...        hash ─┬ known: done              sampling: hash only if the sample was seen
//!                       └ new: code ─ program
//! ead             code ─ Bloom ─┬ (1) new: program
//!                               └ BLAKE2 of the code ─ table ─┬ (2) new: program
//!                                          read ─ check ─ compare ┬ (3) new: program
//!                                                                 └ (4) equal: done
//! a read          read ─ check
//! ```
//!
//! *hash* is the one hash engine; *code* and *check* are the code engine of a channel; *read* and
//! *program* are a die. A write is answered when its page has been programmed, or, if it is a
//! duplicate, when the page that it shares has been; so nothing is promised that a die does not
//! hold. The BLAKE2 of a code that the filter does not know is made while the page is programmed.
//! Maps, tables and the filter take no time, and neither do the channels: the paper has no figure.
//!
//! Events of one instant happen in the order in which they were planned, so a run has one course.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use traces::Direction;

use super::bloom::Bloom;
use super::dies::{Dies, Operation};
use super::figures::Figures;
use super::ftl::{Ftl, Full};
use super::geometry::Geometry;
use super::latency::Latency;
use super::prefetch::{PrefetchCache, PrefetchSetup};
use super::servers::Servers;
use super::strategy::Strategy;
use super::trace::Trace;

mod ead;
mod flow;

/// How a run is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How duplicates are found.
    pub strategy: Strategy,
    /// How the device is built.
    pub geometry: Geometry,
    /// What steps take.
    pub latency: Latency,
    /// EaD's prefetch cache.
    pub prefetch: PrefetchSetup,
}

impl Setup {
    /// The paper's device with this strategy.
    #[must_use]
    pub fn usual(strategy: Strategy) -> Self {
        let (geometry, latency) = (Geometry::EAD, Latency::EAD);
        Self { strategy, geometry, latency, prefetch: PrefetchSetup::USUAL }
    }
}

/// The number of a request in its trace.
type RequestNumber = u32;

/// What a die works for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Purpose {
    Read(RequestNumber),
    Compare(RequestNumber),
    Prefetch(u32),
    Program(RequestNumber),
}

/// What ends, or comes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Event {
    Comes(RequestNumber),
    Hashed(RequestNumber),
    Coded(RequestNumber),
    CodeHashed(RequestNumber),
    Checked(Purpose),
    Compared(RequestNumber),
    DieDone(u32),
}

#[derive(Debug, PartialEq, Eq)]
struct Planned {
    at_ns: u64,
    number: u64,
    event: Event,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Device<'a> {
    trace: &'a Trace,
    setup: Setup,
    now_ns: u64,
    planned: BinaryHeap<Reverse<Planned>>,
    planned_ever: u64,
    dies: Dies<Purpose>,
    hash_engine: Servers,
    code_engines: Servers,
    comparators: Servers,
    ftl: Ftl,
    /// Where the next page goes, if nobody is less busy.
    next_plane: u32,
    /// What is stored, by content; with EaD by code.
    index: HashMap<u32, u32>,
    samples: HashSet<u32>,
    bloom: Bloom,
    cache: PrefetchCache,
    /// The slot of each write, once it has one.
    slots: HashMap<RequestNumber, u32>,
    /// Duplicates of what is still being programmed, by slot.
    waiting: HashMap<u32, Vec<RequestNumber>>,
    figures: Figures,
}

/// Runs all of a trace.
///
/// # Errors
/// [`Full`] when the device is too small for it.
pub fn run(trace: &Trace, setup: &Setup) -> Result<Figures, Full> {
    let mut figures = driven(trace, setup)?.figures;
    figures.writes_ns.sort_unstable();
    figures.reads_ns.sort_unstable();
    Ok(figures)
}

/// The device after all of a trace, when nothing is left to do.
fn driven<'a>(trace: &'a Trace, setup: &Setup) -> Result<Device<'a>, Full> {
    let mut device = Device::new(trace, *setup);
    for number in 0..trace.requests.len() as u32 {
        let at_ns = trace.requests[number as usize].time_ns;
        while device.planned.peek().is_some_and(|Reverse(next)| next.at_ns < at_ns) {
            device.step()?;
        }
        device.plan(at_ns, Event::Comes(number));
    }
    while !device.planned.is_empty() {
        device.step()?;
    }
    Ok(device)
}

impl<'a> Device<'a> {
    fn new(trace: &'a Trace, setup: Setup) -> Self {
        let Geometry { channels, .. } = setup.geometry;
        Self {
            trace,
            setup,
            now_ns: 0,
            planned: BinaryHeap::new(),
            planned_ever: 0,
            dies: Dies::new(setup.geometry.dies_all()),
            hash_engine: Servers::new(1),
            code_engines: Servers::new(channels),
            comparators: Servers::new(channels),
            ftl: Ftl::new(setup.geometry),
            next_plane: 0,
            index: HashMap::new(),
            samples: HashSet::new(),
            bloom: Bloom::new(trace.bloom_bits),
            cache: PrefetchCache::new(setup.prefetch.chunks_max),
            slots: HashMap::new(),
            waiting: HashMap::new(),
            figures: Figures::default(),
        }
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        let number = self.planned_ever;
        self.planned_ever += 1;
        self.planned.push(Reverse(Planned { at_ns, number, event }));
    }

    fn step(&mut self) -> Result<(), Full> {
        let Some(Reverse(Planned { at_ns, event, .. })) = self.planned.pop() else { return Ok(()) };
        self.now_ns = at_ns;
        match event {
            Event::Comes(number) => {
                match self.trace.requests[number as usize].direction {
                    Direction::Read => self.read(number),
                    Direction::Write => self.write(number),
                }
                Ok(())
            }
            Event::Hashed(number) => {
                self.look_up_hash(number);
                Ok(())
            }
            Event::Coded(number) if self.setup.strategy == Strategy::Ead => {
                self.look_up_code(number)
            }
            Event::Coded(number) => self.program(number),
            Event::CodeHashed(number) => self.look_up_code_hash(number),
            Event::Checked(purpose) => {
                self.checked(purpose);
                Ok(())
            }
            Event::Compared(number) => self.compared(number),
            Event::DieDone(die) => {
                self.die_done(die);
                Ok(())
            }
        }
    }

    fn ask_die(&mut self, die: u32, operation: Operation<Purpose>) {
        if let Some(at_ns) = self.dies.ask(die, operation, self.now_ns) {
            self.plan(at_ns, Event::DieDone(die));
        }
    }

    fn die_done(&mut self, die: u32) {
        let (purpose, next_ns) = self.dies.finish(die, self.now_ns);
        if let Some(at_ns) = next_ns {
            self.plan(at_ns, Event::DieDone(die));
        }
        match purpose {
            None => {}
            Some(Purpose::Program(number)) => self.programmed(number),
            Some(purpose) => {
                let channel = self.setup.geometry.channel_of(die);
                let code_ns = self.setup.latency.code_ns;
                let at_ns = self.code_engines.ask(channel, code_ns, self.now_ns);
                self.plan(at_ns, Event::Checked(purpose));
            }
        }
    }
}

#[cfg(test)]
mod tests;
