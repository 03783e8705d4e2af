//! Many seeds, on several threads, for a second or for a night.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use lab::{Failure, Plan, Simulation, Summary, shrink};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a failing seed is made shorter.
const SHRINK: Duration = Duration::from_secs(120);

#[derive(Args)]
pub(crate) struct Arguments {
    /// First seed; the same seed gives the same run. Without it a fresh one is drawn and printed.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds, one run each.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Requests of each life of a store.
    #[arg(long, default_value_t = 60)]
    steps: u64,
    /// Lives of a run; each ends with a crash or a close.
    #[arg(long, default_value_t = 3)]
    crashes: u64,
    /// Look at each single write aside: what would a crash at it leave?
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true",
          action = clap::ArgAction::Set)]
    every_write: bool,
    /// Press all clients into a few chunks, and let them wait for hardly anything.
    #[arg(long)]
    crowded: bool,
    /// Empty data files of each store, and take them out.
    #[arg(long)]
    removes: bool,
    /// Threads, one seed each.
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Go on with further seeds for so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Tell the sum as JSON.
    #[arg(long)]
    json: bool,
}

/// What all threads together have done.
#[derive(Default)]
struct Total {
    seeds: u64,
    summary: Summary,
    failures: Vec<(u64, Failure)>,
    told: Option<Instant>,
}

/// Runs all seeds; the first that failed is made short and printed.
pub(crate) fn simulate(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let first = arguments.seed.unwrap_or_else(fresh_seed);
    if arguments.seed.is_none() {
        println!("seed {first}");
    }
    let next = AtomicU64::new(first);
    let failed = AtomicBool::new(false);
    let total = Mutex::new(Total::default());
    let is_over = |seed: u64| match arguments.minutes {
        Some(minutes) => begun.elapsed() >= Duration::from_secs(60 * minutes),
        None => seed - first >= arguments.seeds,
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if is_over(seed) || failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let run = Simulation::new(&arguments.plan(seed)).and_then(Simulation::run);
                    failed.fetch_or(run.is_err(), Ordering::Relaxed);
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    total.add(seed, run, begun);
                }
            });
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    total.tell(arguments, first, begun);
    arguments.explain(total.failures)
}

/// A seed that nobody chose.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| (now.as_micros() as u64 ^ u64::from(std::process::id()) << 40) >> 8)
}

impl Arguments {
    fn plan(&self, seed: u64) -> Plan {
        let Self { steps, crashes, every_write, crowded, .. } = *self;
        let plan = Plan { steps, crashes, every_write, crowded, ..Plan::of_seed(seed) };
        if self.removes { plan.removing() } else { plan }
    }

    /// Says how the first failure comes about, and how to see it again.
    fn explain(&self, failures: Vec<(u64, Failure)>) -> ExitCode {
        let Some((seed, failure)) = failures.into_iter().next() else { return ExitCode::SUCCESS };
        let plan = self.plan(seed);
        println!("seed {seed} fails: {failure}");
        println!("again: cargo run -p lab -- simulate {}", plan.arguments());
        let shrunk = shrink(plan.script(), failure, SHRINK);
        println!("in short, found by {} runs: {}", shrunk.tries, shrunk.failure);
        println!("again: save these lines as FILE, cargo run -p lab -- replay FILE\n");
        print!("{}", shrunk.script);
        ExitCode::FAILURE
    }
}

impl Total {
    fn add(&mut self, seed: u64, run: Result<Summary, Failure>, begun: Instant) {
        self.seeds += 1;
        match run {
            Ok(summary) => self.summary.add(&summary),
            Err(failure) => self.failures.push((seed, failure)),
        }
        if self.told.unwrap_or(begun).elapsed() >= PROGRESS {
            self.told = Some(Instant::now());
            let points = self.summary.points.total();
            let per_second = points as f64 / begun.elapsed().as_secs_f64();
            eprintln!("{} seeds, {points} crash points, {per_second:.0} a second", self.seeds);
        }
    }

    fn tell(&self, arguments: &Arguments, first: u64, begun: Instant) {
        let Summary { requests, crashes, writes, points, records_replayed, removed, .. } =
            self.summary;
        let Summary { checkpoints, collected, copied, troubles, failed: refused, digest, .. } =
            self.summary;
        let (seeds, failed, total) = (self.seeds, self.failures.len(), points.total());
        let seconds = begun.elapsed().as_secs_f64();
        if arguments.json {
            println!(
                "{{\"first_seed\":{first},\"seeds\":{seeds},\"failed\":{failed},\
                 \"requests\":{requests},\"crashes\":{crashes},\"writes\":{writes},\
                 \"crash_points\":{total},\"in_recovery\":{},\"cuts\":{},\"older_roots\":{},\
                 \"records_replayed\":{records_replayed},\"checkpoints\":{checkpoints},\
                 \"containers_collected\":{collected},\"copied\":{copied},\"troubles\":{troubles},\
                 \"requests_failed\":{refused},\"data_zones_removed\":{removed},\
                 \"digest\":\"{digest:016x}\",\
                 \"seconds\":{seconds:.1}}}",
                points.recoveries, points.cuts, points.older_roots
            );
            return;
        }
        println!(
            "{seeds} seeds from {first} on, {failed} failed: {requests} requests, {crashes} \
             crashes lived through, {checkpoints} checkpoints, {collected} containers collected, \
             {copied} second copies, {troubles} lives on a failing disk, {refused} requests failed \
             by it"
        );
        println!(
            "{total} crash points ({} of them in recoveries, {} with a cut journal, {} with the \
             newest root lost) at {writes} writes; {seconds:.0} s, digest {digest:016x}",
            points.recoveries, points.cuts, points.older_roots
        );
    }
}
