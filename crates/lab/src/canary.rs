//! `lab canary`: the simulator is shown bugs that are known, and must find every one.
//!
//! One [`Mutant`] lives at a time, and seeds run, from the first on, until one fails. A mutant that
//! outlives the seeds it is allowed says that the simulator is blind there. The seeds up to the
//! last that found one run without any mutant as well, and must pass: a simulator that cries at
//! everything would find all mutants too. Seeds run beside each other, but what is told is the
//! first seed that fails, so the answer is the same with any number of jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lab::{Broken, Plan, Simulation};
use mutants::Mutant;

/// Seeds within which a mutant is to be found.
const SEEDS_MAX: u64 = 6;
/// Mutants that the simulator has not been shown to find so soon: questions, not promises. They run
/// when they are asked for by name.
const OPEN: [Mutant; 8] = [
    Mutant::SplitsGroup,
    Mutant::ForgetsOlderJournal,
    Mutant::ForgetsHeldChunk,
    Mutant::ReusesPbnAtOnce,
    Mutant::ReusesContainerAtOnce,
    Mutant::DropsPageBeingWritten,
    Mutant::BelievesStaleRecord,
    Mutant::SkipsMending,
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
        None => !OPEN.contains(mutant),
    };
    let mutants: Vec<Mutant> = Mutant::ALL.into_iter().filter(is_asked).collect();
    if mutants.is_empty() {
        println!("no such mutant; there are {:?}", Mutant::ALL);
        return ExitCode::FAILURE;
    }
    let Arguments { seeds: allowed, jobs, .. } = *arguments;
    let (mut all_right, mut last) = (true, 0);
    println!("{:28} {:>5}  {:>7}  found by", "mutant", "seeds", "allowed");
    for &mutant in &mutants {
        let found = first_failing(Some(mutant), allowed, jobs);
        all_right &= found.is_some();
        let name = format!("{mutant:?}");
        match found {
            Some(Found { seed, check, said }) => {
                last = last.max(seed);
                println!("{name:28} {seed:5}  {allowed:7}  {check}");
                if arguments.mutant.is_some() {
                    println!("{said}");
                }
            }
            None => println!("{name:28} {:>5}  {allowed:7}  NOT FOUND", "-"),
        }
    }
    match first_failing(None, last, jobs) {
        None => println!("{:28} {:>5}  {last:7}  nothing, as it should be", "none", "-"),
        Some(Found { seed, said, .. }) => {
            all_right = false;
            println!("{:28} {seed:5}  {last:7}  FAILED without a mutant: {said}", "none");
        }
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The first of `seeds` seeds on which the simulator fails while `mutant` lives.
fn first_failing(mutant: Option<Mutant>, seeds: u64, jobs: usize) -> Option<Found> {
    mutants::let_live(mutant);
    let (next, first) = (AtomicU64::new(1), Mutex::new(None::<Found>));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_later = |found: &Found| found.seed < seed;
            let over = first.lock().unwrap_or_else(PoisonError::into_inner);
            if seed > seeds || over.as_ref().is_some_and(is_later) {
                return;
            }
            drop(over);
            let Some(found) = failure_of(seed) else { continue };
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

/// What the run of a seed fails with, if it does.
fn failure_of(seed: u64) -> Option<Found> {
    let plan = Plan { steps: STEPS, ..Plan::of_seed(seed) };
    let run = || Simulation::new(&plan).and_then(Simulation::run);
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
