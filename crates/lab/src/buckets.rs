//! `lab objects`: buckets in the simulator, many seeds on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use lab::{Broken, Failure, ObjectPlan, ObjectSummary};

#[derive(Args)]
pub(crate) struct Arguments {
    /// First seed; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one run each.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Operations of each life of a store.
    #[arg(long, default_value_t = 40)]
    steps: u64,
    /// Lives of a run; each ends with a crash or a close.
    #[arg(long, default_value_t = 3)]
    lives: u64,
    /// Writes for each crash point: what a crash there would leave is opened and compared; 0: none.
    #[arg(long, default_value_t = 4)]
    one_in: u64,
    /// Crash points to look at: further seeds run until there were as many.
    #[arg(long, default_value_t = 0)]
    points: u64,
    /// Threads, one seed each.
    #[arg(long, default_value_t = 1)]
    jobs: u64,
}

/// Runs all seeds, and prints what they came to.
pub(crate) fn objects(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let failed = AtomicBool::new(false);
    let total = Mutex::new((0_u64, ObjectSummary::default(), Vec::<(u64, Failure)>::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let points = total.lock().unwrap_or_else(PoisonError::into_inner).1.points.total();
            let is_over = match arguments.points {
                0 => seed >= arguments.seed.saturating_add(arguments.seeds),
                wanted => points >= wanted,
            };
            if is_over || failed.load(Ordering::Relaxed) {
                return;
            }
            let run = arguments.run(seed);
            failed.fetch_or(run.is_err(), Ordering::Relaxed);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            match run {
                Ok(summary) => {
                    total.0 += 1;
                    total.1.add(&summary);
                }
                Err(failure) => total.2.push((seed, failure)),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..arguments.jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    let (seeds, summary, failures) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ObjectSummary { operations, crashes, writes, points, refused, .. } = summary;
    let ObjectSummary { full, stopped, rotten, beside_rot_bytes, versions, digest, .. } = summary;
    let ObjectSummary { expired, unmet, over_quota, deleted_when_full, .. } = summary;
    println!(
        "{seeds} seeds from {} on: {operations} operations, {writes} device writes, {crashes} \
         crashes lived through, {} crash points ({} of them in openings, {} with a cut journal); \
         {refused} refused for want of room in {full} seeds and none of {deleted_when_full} \
         deletions meanwhile, {over_quota} for a quota, {unmet} for a condition, {expired} \
         objects expired, {stopped} times the disk failed, {rotten} times chunks rotted \
         ({beside_rot_bytes} bytes read beside them), {versions} snapshots and rollbacks; {:.0} \
         s, digest {digest:016x}",
        arguments.seed,
        points.total(),
        points.recoveries,
        points.cuts,
        begun.elapsed().as_secs_f64()
    );
    for (seed, failure) in &failures {
        let ObjectPlan { steps, lives, one_in, .. } = arguments.plan(*seed);
        println!("seed {seed} fails: {failure}");
        println!(
            "again: cargo run -p lab -- objects --seed {seed} --steps {steps} --lives {lives} \
             --one-in {one_in}"
        );
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Arguments {
    /// A panic ends the run of its seed, not the others, and the seed is printed.
    fn run(&self, seed: u64) -> Result<ObjectSummary, Failure> {
        let run = catch_unwind(AssertUnwindSafe(|| self.plan(seed).run()));
        run.unwrap_or_else(|_| {
            let broken = Broken::Objects { what: "the run panicked, see above".to_owned() };
            Err(Failure { broken, life: 0, request: 0, aside: None })
        })
    }

    fn plan(&self, seed: u64) -> ObjectPlan {
        let Self { steps, lives, one_in, .. } = *self;
        ObjectPlan { seed, steps, lives, one_in }
    }
}
