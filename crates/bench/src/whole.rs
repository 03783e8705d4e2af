//! Whole systems, as a client sees them: Tamis in its modes beside what people have instead.
//!
//! ```text
//! whole.rs       rounds; in each every system has a turn, all alone, and each round begins with
//!   │            another one
//!   ├─ contestant.rs     who takes part; system.rs: what a turn needs of it
//!   │   ├─ file_system.rs    btrfs on a loop device, ZFS by FUSE: a file in them
//!   │   └─ image.rs          an image, served by nbdkit or qemu-nbd, or not at all
//!   ├─ plan.rs       the jobs of a turn
//!   ├─ fullness.rs   Tamis's default mode once more, empty, half full and nearly full
//!   ├─ processors.rs what the machine's processors did meanwhile
//!   └─ page.rs, bars.rs      tables and plots
//! ```
//!
//! A turn begins with a new image or store, whose blocks have been written once, and ends with its
//! removal; so nobody's background work falls into another's turn. The same bytes go to all: seeds
//! depend on round and job. *Cold* means that whoever serves was started again, and the page cache
//! dropped; *hot* that the range was read right before.
//!
//! Processor time is that of the whole machine: kernel threads, servers and fio itself, since file
//! systems do much of their work on the thread that asks for it, and a comparison without that
//! would be none.

mod bars;
mod contestant;
mod file_system;
mod fullness;
mod image;
mod page;
mod plan;
mod processors;
mod system;

use std::path::Path;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::fio::Job;
use crate::machine::load_average;
use crate::nbd::drop_caches;
use crate::samples::Samples;
use contestant::Contestant;
use plan::{Before, Planned, plan};
use processors::busy_seconds;
use system::System;

/// Figures of all rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Whole {
    pub(crate) size_bytes: u64,
    pub(crate) seconds: u64,
    pub(crate) memory_mib: u64,
    pub(crate) caches_dropped: bool,
    /// Who could not take part, or not to the end, and why.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) systems: Vec<SystemFigures>,
    /// Tamis, by how full its store is.
    pub(crate) levels: Vec<fullness::Level>,
    /// Of the last minute, when a turn began.
    pub(crate) load_average: Samples,
}

/// Who took no part.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) system: &'static str,
    pub(crate) reason: String,
}

/// What one system came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SystemFigures {
    pub(crate) system: &'static str,
    /// In the order of the plan.
    pub(crate) jobs: Vec<JobFigures>,
    /// After the first job, which writes every block once, by what was written.
    pub(crate) stored_share: Samples,
}

/// One job of one system.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobFigures {
    pub(crate) job: &'static str,
    /// MiB a second where it is sequential, thousands of requests where it is not.
    pub(crate) speed: Samples,
    /// Of all processors, for 10^9 bytes.
    pub(crate) cpu_seconds_per_gb: Samples,
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Whole, Failure> {
    let (size_bytes, jobs) = (args.size_bytes(), plan(args));
    let mut figures = Whole {
        size_bytes,
        seconds: args.seconds,
        memory_mib: args.memory_mib,
        caches_dropped: drop_caches(),
        ..Whole::default()
    };
    let mut taking_part = Vec::new();
    for contestant in Contestant::ALL.into_iter().filter(|one| args.takes_part(one.name())) {
        match contestant.missing() {
            None => {
                figures.systems.push(SystemFigures::new(contestant.name(), &jobs));
                taking_part.push(Some(contestant));
            }
            Some(reason) => figures.skipped.push(Skipped { system: contestant.name(), reason }),
        }
    }
    if args.takes_part(fullness::NAME) {
        figures.levels = fullness::levels(args);
    }
    if taking_part.is_empty() && figures.levels.is_empty() {
        return Err(Failure::NoSystem(args.only.join(", ")));
    }
    for round in 0..args.rounds {
        for turn in 0..taking_part.len() {
            let at = (turn + round as usize) % taking_part.len();
            let Some(contestant) = taking_part[at] else { continue };
            eprintln!("round {} of {}: {}", round + 1, args.rounds, contestant.name());
            figures.load_average.push(load_average());
            let turn = contestant
                .start(args, folder)
                .and_then(|system| take_turn(system, &jobs, round, &mut figures.systems[at]));
            match turn {
                Ok(()) => {}
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                // Half an hour of others' figures is not lost by it.
                Err(failure) => {
                    taking_part[at] = None;
                    let reason = format!("failed in round {}: {failure}", round + 1);
                    eprintln!("{} {reason}", contestant.name());
                    figures.skipped.push(Skipped { system: contestant.name(), reason });
                }
            }
        }
        fullness::take_turns(args, folder, round, &mut figures.levels)?;
    }
    Ok(figures)
}

/// Lets a system do every job, and removes it.
fn take_turn(
    mut system: Box<dyn System>,
    jobs: &[Planned],
    round: u64,
    figures: &mut SystemFigures,
) -> Result<(), Failure> {
    for (number, planned) in jobs.iter().enumerate() {
        if !system.takes(&planned.job) {
            continue;
        }
        let seed = 1000 * (round + 1) + number as u64;
        take_job(system.as_mut(), planned, seed, &mut figures.jobs[number])?;
        if number == 0 {
            let share = system.stored_bytes()? as f64 / planned.job.size_bytes as f64;
            figures.stored_share.push(share);
        }
    }
    system.remove()
}

/// Lets a system do one job.
fn take_job(
    system: &mut dyn System,
    planned: &Planned,
    seed: u64,
    figures: &mut JobFigures,
) -> Result<(), Failure> {
    let job = Job { seed, ..planned.job };
    match planned.before {
        Before::Nothing => {}
        Before::Restart => {
            system.restart()?;
            drop_caches();
        }
        Before::Reading(reading) => reading.run(&system.target()).map(drop)?,
    }
    let before = busy_seconds();
    let speed = job.run(&system.target())?;
    let busy = busy_seconds() - before;
    figures.cpu_seconds_per_gb.push(busy / speed.gb);
    figures.speed.push(match job.pattern.is_random() {
        true => speed.thousands_per_second,
        false => speed.mib_per_second,
    });
    Ok(())
}

impl JobFigures {
    fn new(planned: &Planned) -> Self {
        let (speed, cpu_seconds_per_gb) = Default::default();
        Self { job: planned.name, speed, cpu_seconds_per_gb }
    }
}

impl SystemFigures {
    fn new(system: &'static str, jobs: &[Planned]) -> Self {
        let jobs = jobs.iter().map(JobFigures::new).collect();
        Self { system, jobs, stored_share: Samples::default() }
    }

    /// What became of the job of this name.
    fn of(&self, job: &str) -> Option<&JobFigures> {
        self.jobs.iter().find(|figures| figures.job == job)
    }
}
