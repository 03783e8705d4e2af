//! Whole systems, as a client sees them: Tamis in its modes beside what people have instead.
//!
//! ```text
//! whole.rs       rounds; in each every system has a turn, all alone, and each round begins with
//!   │            another one
//!   ├─ roster.rs     who has a turn next, and who is out
//!   ├─ contestant.rs     who takes part; system.rs: what a turn needs of it
//!   │   ├─ file_system.rs    btrfs on a loop device, ZFS by FUSE: a file in them; mounted.rs
//!   │   └─ image.rs          an image, served by nbdkit or qemu-nbd, or not at all
//!   ├─ plan.rs       fio: the jobs of a turn
//!   ├─ real_data.rs  data: sets of files (sets.rs), copied in and out (copying.rs)
//!   ├─ pgbench.rs    pgbench: a database (postgres.rs), on ext4 where it needs one (ext4.rs)
//!   ├─ fullness.rs   Tamis's default mode once more, empty, half full and nearly full
//!   ├─ figures.rs    what all of that came to
//!   ├─ wanted.rs     which of that is held to what
//!   └─ page.rs, real_page.rs, bars.rs    tables and plots
//! ```
//!
//! A turn begins with a new image or store, whose blocks have been written once, and ends with its
//! removal; so nobody's background work falls into another's turn. The same bytes go to all: seeds
//! depend on round and job. *Cold* means that the server was started again, and the page cache
//! dropped; *hot* that the range was read right before.
//!
//! Processor time is that of the whole machine: kernel threads, servers and fio itself, since file
//! systems do much of their work on the thread that asks for it, and a comparison without that
//! would be none.

mod bars;
mod contestant;
mod copying;
mod ext4;
mod figures;
mod file_system;
mod fullness;
mod image;
mod mounted;
mod page;
mod pgbench;
mod plan;
mod postgres;
mod real_data;
mod real_page;
mod roster;
mod sets;
mod system;
mod wanted;

use std::path::Path;

use crate::args::{Args, Table};
use crate::failure::Failure;
use crate::fio::Job;
use crate::machine::drop_caches;
use crate::processors::Spent;
use contestant::Contestant;
pub(crate) use figures::Whole;
use figures::{JobFigures, SystemFigures};
use plan::{Before, Planned, plan};
use real_data::RealData;
use roster::{Notes, Roster};
use system::System;

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Whole, Failure> {
    check_names(args)?;
    let (size_bytes, jobs) = (args.size_bytes(), plan(args));
    let mut notes = Notes::default();
    let wanted = Contestant::ALL
        .into_iter()
        .filter(|one| args.has_table(Table::Fio) && args.takes_part(one.name()));
    let mut fio = Roster::new(Table::Fio.name(), wanted, Contestant::missing, &mut notes);
    let (mut real_data, sets) = RealData::prepare(args, folder, &mut notes)?;
    let (mut databases, pgbench) = pgbench::prepare(args, &mut notes);
    let names = jobs.iter().map(|planned| planned.name);
    let mut figures = Whole {
        size_bytes,
        seconds: args.seconds,
        memory_mib: args.memory_mib,
        caches_dropped: drop_caches(),
        systems: fio.names().map(|system| SystemFigures::new(system, names.clone())).collect(),
        sets,
        pgbench,
        pgbench_seconds: args.pgbench_seconds,
        ..Whole::default()
    };
    if args.has_table(Table::Fullness) {
        figures.levels = fullness::levels(args);
    }
    if figures.is_empty() {
        return Err(Failure::NoSystem(args.only.join(", ")));
    }
    for round in 0..args.rounds {
        let Whole { systems, sets, pgbench, .. } = &mut figures;
        fio.take_turns(args, folder, round, &mut notes, |at, contestant, folder| {
            let system = contestant.start(args, folder, size_bytes)?;
            take_turn(system, &jobs, round, &mut systems[at])
        })?;
        real_data.take_turns(args, folder, round, sets, &mut notes)?;
        databases.take_turns(args, folder, round, &mut notes, |at, contestant, folder| {
            pgbench::take_turn(args, folder, round, contestant, &mut pgbench[at])
        })?;
        fullness::take_turns(args, folder, round, &mut figures.levels)?;
    }
    let Notes { skipped, load_average } = notes;
    Ok(Whole { skipped, load_average, ..figures })
}

/// A name that nobody has would measure less than was asked for.
fn check_names(args: &Args) -> Result<(), Failure> {
    let known = |name: &str| {
        Contestant::ALL.into_iter().any(|one| one.name() == name) || Table::named(name).is_some()
    };
    match args.only.iter().find(|name| !known(name)) {
        Some(name) => Err(Failure::NoSystem(name.clone())),
        None if args.names_table(Table::Data) && args.data.is_empty() => Err(Failure::NoData),
        None => Ok(()),
    }
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
    let mut job = Job { seed, ..planned.job };
    let mut targets = vec![system.target()];
    match planned.before {
        Before::Nothing => {}
        Before::Restart => {
            system.restart()?;
            drop_caches();
        }
        Before::Reading(reading) => reading.run(&system.target()).map(drop)?,
        Before::Cloning(reading) => {
            reading.run(&system.target())?;
            targets = system.clones(job.connections)?;
            job.connections = 1;
        }
    }
    let before = Spent::now();
    let speed = job.run_on(&targets)?;
    let busy = Spent::now().busy_since(before);
    figures.cpu_seconds_per_gb.push(busy / speed.gb);
    figures.speed.push(match job.pattern.is_random() {
        true => speed.thousands_per_second,
        false => speed.mib_per_second,
    });
    Ok(())
}
