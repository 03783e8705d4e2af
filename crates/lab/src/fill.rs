//! `lab fill`: stores that are filled to the last chunk, relieved and filled again, on several
//! threads.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use lab::{Failure, Look, Simulation, Summary, fullness};

#[derive(Args)]
pub(crate) struct Arguments {
    /// First seed; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many stores, one seed each. Each is filled four to twelve times.
    #[arg(long, default_value_t = 16)]
    stores: u64,
    /// Look aside at one write of so many: what would a crash at it leave? 0: at none.
    #[arg(long, default_value_t = 16)]
    one_in: u64,
    /// Threads, one store each.
    #[arg(long, default_value_t = 2)]
    jobs: u64,
}

/// Fills all stores and prints what became of them.
pub(crate) fn fill(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let total = Mutex::new((Summary::default(), Vec::<(u64, Failure)>::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= arguments.seed.saturating_add(arguments.stores) {
                return;
            }
            let run = Simulation::of_script(fullness::script_of_seed(seed), arguments.look());
            let run = run.and_then(Simulation::run);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            match run {
                Ok(summary) => total.0.add(&summary),
                Err(failure) => total.1.push((seed, failure)),
            }
            eprintln!("{} times full after seed {seed}", total.0.filled);
        }
    };
    std::thread::scope(|scope| {
        (0..arguments.jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    let (summary, failures) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Summary { filled, requests, crashes, points, collected, digest, .. } = summary;
    println!(
        "{} stores from seed {} on, {} failed: filled {filled} times, {requests} requests, \
         {crashes} crashes lived through, {collected} containers collected, {} crash points; \
         {:.0} s, digest {digest:016x}",
        arguments.stores,
        arguments.seed,
        failures.len(),
        points.total(),
        begun.elapsed().as_secs_f64()
    );
    arguments.explain(failures)
}

impl Arguments {
    fn look(&self) -> Look {
        if self.one_in == 0 { Look::Nowhere } else { Look::Sometimes(self.one_in) }
    }

    /// Says how the first failure comes about, and how to see it again.
    fn explain(&self, failures: Vec<(u64, Failure)>) -> ExitCode {
        for (seed, failure) in &failures {
            println!("seed {seed} fails: {failure}");
        }
        let Some((seed, _)) = failures.into_iter().next() else { return ExitCode::SUCCESS };
        println!(
            "again: cargo run -p lab -- fill --stores 1 --seed {seed} --one-in {}",
            self.one_in
        );
        // Not made short: without what makes room, that there is none is no failure.
        print!("{}", fullness::script_of_seed(seed));
        ExitCode::FAILURE
    }
}
