//! The list of runs that a study consists of, question by question.

use super::policies::PolicyKind;
use super::record::{Question, Record};
use super::run::{Design, Setup, cache_pages, run_in};
use super::sharing::Sharing;
use super::stream::{Neighbour, Stream};

/// Room of the cache that FIDR has, in percent of the table.
pub const CACHED_PERCENT: f64 = 2.8;
/// Bits for an entry that decision 018 has, 96 bytes for a bucket of 78.
pub const FILTER_BITS: u64 = 10;
pub(super) const FILTERS: [u64; 6] = [0, 4, 8, 10, 12, 16];
const SIZES: [f64; 7] = [0.5, 1.0, CACHED_PERCENT, 5.0, 10.0, 25.0, 100.0];
/// Of the cache, for the index, as decision 018 has it.
const INDEX_PERCENT: u64 = 50;
const INDEXES: [u64; 5] = [10, 25, INDEX_PERCENT, 75, 90];
/// The usual room, and one in which every page counts.
const SHARING_SIZES: [f64; 2] = [1.0, CACHED_PERCENT];
const DESIGNS: [Design; 2] = [Design::Plain, Design::Gathered];

/// What runs beside the stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Company {
    None,
    /// The neighbour's store is there, and it asks for nothing.
    Silent(Neighbour),
    /// The same, and the stream has half of the cache: its own share, were it divided.
    SilentHalf(Neighbour),
    Busy(Neighbour),
}

/// One run that is to be made.
#[derive(Copy, Clone, Debug)]
pub(super) struct Task {
    pub(super) question: Question,
    /// Which of the streams.
    pub(super) stream: usize,
    pub(super) company: Company,
    setup: Setup,
}

impl Task {
    /// Makes the run; `stream` is `alone` with its company. For two there is a cache of twice what
    /// the one would have, whatever the other stores.
    pub(super) fn run(&self, alone: &Stream, stream: &Stream) -> Record {
        let (beside, shares) = match self.company {
            Company::None => ("", 1.0),
            Company::Silent(_) => ("nobody", 2.0),
            Company::Busy(neighbour) => (neighbour.name(), 2.0),
            Company::SilentHalf(_) => ("nobody; half of the cache", 1.0),
        };
        let cached_percent = shares * self.setup.cached_percent;
        let setup = Setup { cached_percent, ..self.setup };
        let figures = run_in(stream, &setup, cache_pages(alone, cached_percent));
        Record::new(self.question, &stream.name, beside, &setup, &figures)
    }
}

/// All runs over so many streams; the fairness of the first.
pub(super) fn tasks(streams: usize, seed: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    for stream in 0..streams {
        for design in DESIGNS {
            tasks.extend(of_stream(stream, design, seed));
        }
        tasks.extend(sharing(stream, seed));
    }
    for neighbour in [Neighbour::Unique, Neighbour::Far] {
        let companies =
            [Company::Silent(neighbour), Company::Busy(neighbour), Company::SilentHalf(neighbour)];
        for company in companies {
            tasks.extend(fairness(company, seed));
        }
    }
    tasks
}

fn of_stream(stream: usize, design: Design, seed: u64) -> Vec<Task> {
    let task = |question, setup| Task { question, stream, company: Company::None, setup };
    let usual = usual(design, PolicyKind::Lru, seed);
    let mut tasks = Vec::new();
    for policy in PolicyKind::ALL {
        for cached_percent in SIZES {
            tasks.push(task(Question::Size, Setup { policy, cached_percent, ..usual }));
        }
        tasks.push(task(Question::Locality, Setup { policy, locality: true, ..usual }));
    }
    for filter_bits in FILTERS {
        tasks.push(task(Question::Filter, Setup { filter_bits, ..usual }));
    }
    if design == Design::Gathered {
        for index_percent in INDEXES {
            tasks.push(task(Question::Index, Setup { index_percent, ..usual }));
        }
    }
    tasks
}

fn fairness(company: Company, seed: u64) -> Vec<Task> {
    let question = Question::Fairness;
    let setups = DESIGNS.into_iter().flat_map(|design| {
        PolicyKind::ALL.into_iter().map(move |policy| usual(design, policy, seed))
    });
    setups.map(|setup| Task { question, stream: 0, company, setup }).collect()
}

/// The design and the policy that the engine has, with rooms shared in every way: the stream alone,
/// and beside what wants nothing but pages of two of the tables, or nothing but buckets.
fn sharing(stream: usize, seed: u64) -> Vec<Task> {
    let question = Question::Sharing;
    let usual = usual(Design::Gathered, PolicyKind::S3FifoClean, seed);
    let companies = [Company::None, Company::Busy(Neighbour::Reads), Company::Busy(Neighbour::Far)];
    let mut tasks = Vec::new();
    for company in companies {
        for cached_percent in SHARING_SIZES {
            tasks.extend(Sharing::ALL.map(|sharing| {
                let setup = Setup { sharing, cached_percent, ..usual };
                Task { question, stream, company, setup }
            }));
        }
    }
    tasks
}

/// FIDR's table has no filter.
fn usual(design: Design, policy: PolicyKind, seed: u64) -> Setup {
    let filter_bits = if design == Design::Gathered { FILTER_BITS } else { 0 };
    Setup {
        design,
        policy,
        sharing: Sharing::Common,
        cached_percent: CACHED_PERCENT,
        filter_bits,
        index_percent: INDEX_PERCENT,
        locality: false,
        seed,
    }
}
