//! `lab canary`: the simulator is shown bugs that are known, and must find every one.
//!
//! One [`Mutant`] lives at a time, and seeds run, from the first on, until one fails. A mutant that
//! outlives the seeds it is allowed says that the simulator is blind there. A few are shown by one
//! run made for them ([`Way`]), on which hardly any seed comes. The seeds up to the
//! last that found one run without any mutant as well, and must pass: a simulator that cries at
//! everything would find all mutants too. Seeds run beside each other, but what is told is the
//! first seed that fails, so the answer is the same with any number of jobs.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lab::{Broken, Failure, Look, Plan, Script, Simulation, Summary, fullness, go_back, schedules};
use mutants::Mutant;

/// Seeds within which a mutant is to be found.
const SEEDS_MAX: u64 = 12;
/// The seed that found a mutant when all were last run: it is tried before the first ones.
/// Only seeds from 16 on are of stores that compare bytes.
const TRIED_FIRST: [(Mutant, u64); 6] = [
    (Mutant::SkipsMending, 51),
    (Mutant::WritesRootBeforeRecords, 10),
    (Mutant::ComparesNothing, 16),
    (Mutant::IndexesAside, 16),
    (Mutant::ForgetsAside, 10),
    (Mutant::MovesUnnamed, 10),
];
/// Requests of each life of a store.
const STEPS: u64 = 60;

/// What is asked of the canary.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Seeds within which each mutant is to be found.
    #[arg(long, default_value_t = SEEDS_MAX)]
    seeds: u64,
    /// One mutant only, and what the simulator says of it.
    #[arg(long)]
    mutant: Option<String>,
    /// Seeds that run at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// The first run that failed.
struct Found {
    seed: u64,
    /// Which check said so, and what it said.
    check: &'static str,
    said: String,
}

/// Runs the simulator against every mutant and prints what became of each.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let is_asked = |mutant: &Mutant| match &arguments.mutant {
        Some(name) => *name == format!("{mutant:?}"),
        None => true,
    };
    let mutants: Vec<Mutant> = Mutant::ALL.into_iter().filter(is_asked).collect();
    if mutants.is_empty() {
        println!("no such mutant; there are {:?}", Mutant::ALL);
        return ExitCode::FAILURE;
    }
    let Arguments { seeds: allowed, jobs, .. } = *arguments;
    let (mut all_right, mut ran) = (true, BTreeSet::new());
    println!("{:28} {:>5}  {:>7}  found by", "mutant", "seed", "allowed");
    for &mutant in &mutants {
        let seeds: Vec<u64> = (1..=allowed).collect();
        let way = Way::of(mutant);
        let by_seeds = matches!(way, Way::Seeds);
        let tried_first = TRIED_FIRST.iter().find(|(of, _)| *of == mutant).map(|(_, seed)| *seed);
        let early = tried_first.and_then(|seed| first_failing(Some(mutant), &[seed], 1));
        let seeds = if early.is_some() { Vec::from_iter(tried_first) } else { seeds };
        let found = match way {
            Way::Seeds if early.is_some() => early,
            Way::Seeds => first_failing(Some(mutant), &seeds, jobs),
            way => way.run_alive(mutant),
        };
        all_right &= found.is_some();
        let name = format!("{mutant:?}");
        match found {
            Some(Found { seed, check, said }) => {
                ran.extend(seeds.into_iter().filter(|_| by_seeds).take_while(|&of| of <= seed));
                println!("{name:28} {seed:5}  {allowed:7}  {check}");
                if arguments.mutant.is_some() {
                    println!("{said}");
                }
            }
            None => println!("{name:28} {:>5}  {allowed:7}  NOT FOUND", "-"),
        }
    }
    let seeds: Vec<u64> = ran.into_iter().collect();
    match first_failing(None, &seeds, jobs) {
        None => println!("{:28} {:>5}  {:7}  nothing, as it should be", "none", "-", seeds.len()),
        Some(Found { seed, said, .. }) => {
            all_right = false;
            println!("{:28} {seed:5}  {:7}  FAILED without a mutant: {said}", "none", seeds.len());
        }
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How a mutant is shown. Without any, each way is a test of the lab and passes.
enum Way {
    /// By seeds.
    Seeds,
    /// By a schedule.
    Schedule(Script, Look),
    /// By a repair that takes a store back.
    GoingBack,
}

impl Way {
    fn of(mutant: Mutant) -> Self {
        let (script, look) = match mutant {
            Mutant::ForgetsOlderJournal => (schedules::lapped_journal(), Look::Nowhere),
            Mutant::SplitsGroup | Mutant::BelievesStaleRecord => {
                (schedules::groups_in_flight(), Look::Everywhere)
            }
            Mutant::ForgetsHeldChunk => (schedules::dead_chunks_come_back(), Look::Nowhere),
            Mutant::DropsPageBeingWritten => (schedules::buckets_read_again(), Look::Nowhere),
            Mutant::ReadsPageBeingWritten => {
                (schedules::snapshot_of_pages_on_their_way(), Look::Nowhere)
            }
            Mutant::ReusesContainerAtOnce => (schedules::freed_containers(false), Look::Nowhere),
            Mutant::ReusesContainerUntold => (schedules::freed_containers(true), Look::Nowhere),
            Mutant::BelievesStaleFrame => (schedules::stale_frame(), Look::Nowhere),
            Mutant::KeepsForgottenFrame => (schedules::names_given_again(), Look::Nowhere),
            Mutant::ForgetsStamp => (schedules::read_at_the_door(), Look::Nowhere),
            Mutant::PromisesReserve => (fullness::script_of_seed(1), Look::Nowhere),
            Mutant::ReusesPbnAtOnce => return Self::GoingBack,
            _ => return Self::Seeds,
        };
        Self::Schedule(script, look)
    }

    /// What it fails with while a mutant lives.
    fn run_alive(self, mutant: Mutant) -> Option<Found> {
        mutants::let_live(Some(mutant));
        let found = match self {
            Self::Seeds => None,
            Self::Schedule(script, look) => {
                failure_of(0, || Simulation::of_script(script, look).and_then(Simulation::run))
            }
            // What kept the situation from coming about is no find.
            Self::GoingBack => go_back().err().and_then(|broken| match broken {
                Broken::WrongBytes { .. } => {
                    Some(Found { seed: 0, check: check_of(&broken), said: broken.to_string() })
                }
                other => {
                    println!("the situation did not come about: {other}");
                    None
                }
            }),
        };
        mutants::let_live(None);
        found
    }
}

/// The first of the seeds on which the simulator fails while `mutant` lives.
fn first_failing(mutant: Option<Mutant>, seeds: &[u64], jobs: usize) -> Option<Found> {
    mutants::let_live(mutant);
    let (next, first) = (AtomicUsize::new(0), Mutex::new(None::<Found>));
    let work = || {
        loop {
            let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let is_later = |found: &Found| found.seed < seed;
            let over = first.lock().unwrap_or_else(PoisonError::into_inner);
            if over.as_ref().is_some_and(is_later) {
                return;
            }
            drop(over);
            let plan = Plan { steps: STEPS, ..Plan::of_seed(seed) };
            let run = || Simulation::new(&plan).and_then(Simulation::run);
            let Some(found) = failure_of(seed, run) else { continue };
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if !first.as_ref().is_some_and(is_later) {
                *first = Some(found);
            }
        }
    };
    // A mutant may trip an assertion of the engine: that is a find, told in the table.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        (0..jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    std::panic::set_hook(hook);
    mutants::let_live(None);
    first.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What a run fails with, if it does.
fn failure_of(seed: u64, run: impl FnOnce() -> Result<Summary, Failure>) -> Option<Found> {
    let (check, said) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(_)) => return None,
        Ok(Err(failure)) => (check_of(&failure.broken), failure.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            ("assertion", text.unwrap_or("a panic without a word").to_owned())
        }
    };
    Some(Found { seed, check, said })
}

/// The check that found a failure, in a word.
fn check_of(broken: &Broken) -> &'static str {
    match broken {
        Broken::WrongBytes { .. } => "bytes read",
        Broken::NotAPrefix { .. } => "prefix",
        Broken::DoesNotOpen { .. } => "opening",
        Broken::Inconsistent { .. } => "invariants",
        Broken::Figure { .. } => "figures",
        Broken::Request { .. } | Broken::Answer { .. } => "answers",
        Broken::StandsStill { .. } => "progress",
        _ => "another",
    }
}
