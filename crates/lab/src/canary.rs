//! `lab canary`: the simulator is shown bugs that are known, and must find every one.
//!
//! While a [`Mutant`] lives seeds run, from the first on, until one fails. A mutant that outlives
//! the seeds it is allowed says that the simulator is blind there. A few are shown by one run made
//! for them ([`Way`]), on which hardly any seed comes. The seeds up to the last that found one run
//! without any mutant as well, and must pass: a simulator that cries at everything would find all
//! mutants too. A mutant lives in one thread, so several are hunted beside each other, each by its
//! seeds one by one: the answer is the same with any number of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use lab::{
    Broken, DamageTable, Failure, Look, ObjectPlan, Plan, ReplicaPlan, Script, Simulation,
    fullness, go_back, lose_directories, schedules,
};
use mutants::Mutant;

/// Seeds within which a mutant is to be found.
const SEEDS_MAX: u64 = 12;
/// The seed that found a mutant when all were last run: it is tried before the first ones.
/// Only seeds from 16 on are of stores that compare bytes; what `Shape::uses_new_things` says so of
/// knows vectors, hints, reservations and copies between volumes; `Shape::has_codecs` says which
/// know codecs of volumes.
const TRIED_FIRST: [(Mutant, u64); 26] = [
    (Mutant::WritesRootBeforeRecords, 3),
    (Mutant::WritesRootUnplaced, 17),
    (Mutant::ComparesNothing, 16),
    (Mutant::IndexesAside, 16),
    (Mutant::ForgetsAside, 10),
    (Mutant::MovesUnnamed, 35),
    (Mutant::AnnouncesBeforeJournal, 9),
    (Mutant::TurnsVectorRound, 5),
    (Mutant::HoldsWhatIsNotThere, 45),
    (Mutant::DrawsNothing, 13),
    (Mutant::KeepsReservation, 13),
    (Mutant::LeavesNothingAlone, 45),
    (Mutant::ForgetsHint, 5),
    (Mutant::RecordsCodecAtOnce, 262),
    (Mutant::CopiesNoReferences, 5),
    (Mutant::CopiesBeforeBuffered, 5),
    (Mutant::CopiesAcrossDomains, 13),
    (Mutant::ForgetsFuaOfCopy, 13),
    (Mutant::FreesBeforeTrim, 12),
    (Mutant::WritesNoMirror, 19),
    (Mutant::AnswersFlushAtHome, 21),
    (Mutant::HidesMixture, 16),
    (Mutant::TakesNothingBack, 15),
    (Mutant::EndsBeforeFilled, 34),
    (Mutant::TellsLossShort, 2),
    (Mutant::RepairsAroundJournal, 2),
];
/// Writes for each crash point that runs of buckets look at.
const OBJECTS_ONE_IN: u64 = 6;
/// Hits on stores that a seed stands for.
const HITS: u64 = 60;
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
    /// Mutants that are hunted at once.
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
    // A mutant may trip an assertion of the engine: that is a find, told in the table.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    println!("{:28} {:>5}  {:>7}  found by", "mutant", "seed", "allowed");
    let tell = |at: usize, hunt: Hunt| {
        let name = format!("{:?}", mutants[at]);
        ran.extend(hunt.ran);
        all_right &= hunt.found.is_some();
        match hunt.found {
            Some(Found { seed, check, said }) => {
                println!("{name:28} {seed:5}  {allowed:7}  {check}");
                if arguments.mutant.is_some() {
                    println!("{said}");
                }
            }
            None => println!("{name:28} {:>5}  {allowed:7}  NOT FOUND", "-"),
        }
    };
    beside_each_other(jobs, mutants.len(), |at| hunt(mutants[at], allowed), tell);
    let runs: Vec<Ran> = ran.into_iter().collect();
    let mut cries = 0;
    let tell = |_, found: Option<Found>| {
        if let Some(Found { seed, said, .. }) = found {
            cries += 1;
            println!("{:28} {seed:5}  {:7}  FAILED without a mutant: {said}", "none", runs.len());
        }
    };
    beside_each_other(jobs, runs.len(), |at| runs[at].failure(), tell);
    std::panic::set_hook(hook);
    if cries == 0 {
        println!("{:28} {:>5}  {:7}  nothing, as it should be", "none", "-", runs.len());
    }
    if all_right && cries == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does `work` for all numbers below `count`, `jobs` at once, and tells of each in their order.
fn beside_each_other<T: Send>(
    jobs: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    mut tell: impl FnMut(usize, T),
) {
    let next = AtomicUsize::new(0);
    let (sender, done) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count || sender.send((at, work(at))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (at, done) in done {
            early.insert(at, done);
            while let Some(done) = early.remove(&due) {
                tell(due, done);
                due += 1;
            }
        }
    });
}

/// What became of a mutant.
struct Hunt {
    found: Option<Found>,
    /// What ran while it lived, which is to pass without it.
    ran: Vec<Ran>,
}

/// A run that seeds choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ran {
    /// Of volumes.
    Seed(u64),
    /// Of buckets.
    Objects(u64),
    /// Of a bucket on two stores.
    Replicas(u64),
    /// Of hits on stores.
    Damage(u64),
}

impl Ran {
    /// What it fails with, if it does.
    fn failure(self) -> Option<Found> {
        match self {
            Self::Seed(seed) => failure_of_seed(seed),
            Self::Objects(seed) => {
                let plan = ObjectPlan { one_in: OBJECTS_ONE_IN, ..ObjectPlan::of_seed(seed) };
                failure_of(seed, || plan.run())
            }
            Self::Replicas(seed) => failure_of(seed, || {
                let run = ReplicaPlan::of_seed(seed).run();
                run.map_err(|broken| Failure { broken, life: 0, request: 0, aside: None })
            }),
            Self::Damage(seed) => failure_of_hits(seed),
        }
    }
}

/// Hunts a mutant, which lives in this thread alone.
fn hunt(mutant: Mutant, allowed: u64) -> Hunt {
    mutants::let_live(Some(mutant));
    let hunt = Way::of(mutant).hunt(mutant, allowed);
    mutants::let_live(None);
    hunt
}

/// The seed that found it when all were last run, then the first ones.
fn by_seeds(mutant: Mutant, allowed: u64, run_of: fn(u64) -> Ran) -> Hunt {
    let tried_first = TRIED_FIRST.iter().find(|(of, _)| *of == mutant).map(|(_, seed)| *seed);
    let mut ran = Vec::new();
    let found = tried_first.into_iter().chain(1..=allowed).find_map(|seed| {
        ran.push(run_of(seed));
        run_of(seed).failure()
    });
    Hunt { found, ran }
}

/// How a mutant is shown. Without any, each way is a test of the lab and passes.
enum Way {
    /// By seeds.
    Seeds,
    /// By seeds of buckets.
    Objects,
    /// By seeds of buckets on two stores.
    Replicas,
    /// By seeds of hits on stores.
    Damage,
    /// By a schedule.
    Schedule(Script, Look),
    /// By a store that is made so that the mutant does harm.
    Store(fn() -> Result<(), Broken>),
}

impl Way {
    fn of(mutant: Mutant) -> Self {
        let (script, look) = match mutant {
            Mutant::ForgetsOlderJournal => (schedules::lapped_journal(), Look::Nowhere),
            Mutant::SplitsGroup | Mutant::BelievesStaleRecord => {
                (schedules::groups_in_flight(), Look::Everywhere)
            }
            Mutant::CutsBeforeTheHead => {
                (schedules::unmaps_from_the_middle_of_a_leaf(), Look::Everywhere)
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
            Mutant::ShowsWhatIsBuffered => (schedules::leaves_at_the_door(), Look::Nowhere),
            Mutant::PromisesReserve => (fullness::script_of_seed(1), Look::Nowhere),
            Mutant::ReusesPbnAtOnce => return Self::Store(go_back),
            Mutant::SkipsMending => return Self::Store(lose_directories),
            Mutant::RepairsWithoutLabel
            | Mutant::RepairsOneRoot
            | Mutant::TellsLossShort
            | Mutant::RepairsAroundJournal => return Self::Damage,
            Mutant::ForgetsIntent
            | Mutant::FreesBeforeTrim
            | Mutant::ReleasesLogEarly
            | Mutant::ForgetsTailOfLog
            | Mutant::WritesNoMirror
            | Mutant::WritesIndexHeaderFirst
            | Mutant::ForgetsCountOfCopy
            | Mutant::RecordsRestLate
            | Mutant::TrimsHeld => return Self::Objects,
            Mutant::AnswersBeforeReceived
            | Mutant::AnswersFlushAtHome
            | Mutant::PromotesMixture
            | Mutant::HidesMixture
            | Mutant::WelcomesTheOvertaken
            | Mutant::TakesNothingBack
            | Mutant::CatchesUpOverAGap
            | Mutant::EndsBeforeFilled => return Self::Replicas,
            _ => return Self::Seeds,
        };
        Self::Schedule(script, look)
    }

    /// Shows the mutant that lives.
    fn hunt(self, mutant: Mutant, allowed: u64) -> Hunt {
        let found = match self {
            Self::Seeds => return by_seeds(mutant, allowed, Ran::Seed),
            Self::Objects => return by_seeds(mutant, allowed, Ran::Objects),
            Self::Replicas => return by_seeds(mutant, allowed, Ran::Replicas),
            Self::Damage => return by_seeds(mutant, allowed, Ran::Damage),
            Self::Schedule(script, look) => {
                failure_of(0, || Simulation::of_script(script, look).and_then(Simulation::run))
            }
            // What kept the situation from coming about is no find.
            Self::Store(judge) => judge().err().and_then(|broken| match broken {
                Broken::Machine(reason) => {
                    println!("the situation did not come about: {reason}");
                    None
                }
                broken => {
                    Some(Found { seed: 0, check: check_of(&broken), said: broken.to_string() })
                }
            }),
        };
        Hunt { found, ran: Vec::new() }
    }
}

/// What is wrong with stores that are hit, if anything is.
fn failure_of_hits(seed: u64) -> Option<Found> {
    match DamageTable::first_failure(seed, HITS) {
        Ok(failure) => failure.map(|said| Found { seed, check: "damage", said }),
        Err(reason) => {
            println!("no store could be made: {reason}");
            None
        }
    }
}

/// What the run of a seed fails with, if it does.
fn failure_of_seed(seed: u64) -> Option<Found> {
    let plan = Plan { steps: STEPS, ..Plan::of_seed(seed) };
    failure_of(seed, || Simulation::new(&plan).and_then(Simulation::run))
}

/// What a run fails with, if it does.
fn failure_of<T>(seed: u64, run: impl FnOnce() -> Result<T, Failure>) -> Option<Found> {
    let (check, said) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(_)) => return None,
        Ok(Err(failure)) => (check_of(&failure.broken), failure.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            ("assertion", text.unwrap_or("a panic without a message").to_owned())
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
        Broken::Objects { .. } => "objects",
        _ => "another",
    }
}
