//! One store three times: nearly empty, half full, nearly full; the same jobs on each.
//!
//! A store is filled in order, in a volume that is not measured, by chunks that repeat nothing and
//! of which a tenth is left when they are compressed: so its tables fill as its data does. Then it
//! is served anew. How full it is is what `tamis stats` says: what does not come back by itself.
//! The jobs write over a small volume that was written before the filling, so that a full store has
//! to give back what it gets: collection is part of its figures, as it is of a user's.

use std::path::Path;

use super::figures::{JobFigures, Level};
use super::plan::{Planned, filler, fullness_plan, fullness_volume_bytes};
use super::take_job;
use crate::args::{Args, Table};
use crate::failure::Failure;
use crate::samples::Samples;
use crate::served::{Mode, Tamis};

/// Room of the store: little, for it is filled in every round.
const CAPACITY_BYTES: u64 = 4 << 30;
/// How full it is, and what tables call it.
const LEVELS: [(f64, &str); 3] = [(0.0, "nearly empty"), (0.5, "half full"), (0.9, "90% full")];
/// Filling is over when so little of the room is missing.
const CLOSE: f64 = 0.005;
/// A store that misses its level by more than so much of the room is of another.
const OFF_MAX: f64 = 0.02;
/// Plain bytes for each stored one of what fills a store, at least: the first attempt stays below.
const PLAIN_MIN: f64 = 7.0;
/// Each later attempt estimates what is missing by what is stored, and the next is closer.
const ATTEMPTS: u32 = 6;
const FILLER: &str = "filler";
/// Enough for what is compressed to a tenth.
const FILLER_BYTES: u64 = 16 * CAPACITY_BYTES;

/// No figures yet.
pub(super) fn levels(args: &Args) -> Vec<Level> {
    let jobs: Vec<JobFigures> =
        fullness_plan(args).iter().map(|planned| JobFigures::new(planned.name)).collect();
    let level = |&(_, name): &(f64, &'static str)| Level {
        name,
        data_used: Samples::default(),
        tables_used: Samples::default(),
        jobs: jobs.clone(),
    };
    LEVELS.iter().map(level).collect()
}

/// A turn of each level, another one first in each round.
pub(super) fn take_turns(
    args: &Args,
    folder: &Path,
    round: u64,
    levels: &mut [Level],
) -> Result<(), Failure> {
    let jobs = fullness_plan(args);
    for turn in 0..levels.len() {
        let at = (turn + round as usize) % levels.len();
        eprintln!("round {} of {}: tamis, {}", round + 1, args.rounds, levels[at].name);
        take_turn(args, folder, round, (&jobs, LEVELS[at].0), &mut levels[at])?;
    }
    Ok(())
}

fn take_turn(
    args: &Args,
    folder: &Path,
    round: u64,
    (jobs, share): (&[Planned], f64),
    level: &mut Level,
) -> Result<(), Failure> {
    let tamis = Tamis::make(
        args,
        folder.join(Table::Fullness.name()),
        Mode::default(),
        CAPACITY_BYTES,
        CAPACITY_BYTES,
    )?;
    let mut tamis = Box::new(tamis);
    tamis.create_volume(crate::served::VOLUME, fullness_volume_bytes(args))?;
    tamis.create_volume(FILLER, FILLER_BYTES)?;
    tamis.serve()?;
    // The jobs write over this.
    jobs.iter().take(1).try_for_each(|first| first.job.run(&tamis.target()).map(drop))?;
    fill(&tamis, share)?;
    tamis.restart()?;
    let data_used = tamis.figure("data_used_ratio")?;
    check_level(share, data_used)?;
    level.data_used.push(data_used);
    level.tables_used.push(tamis.figure("tables_used_ratio")?);
    for (number, planned) in jobs.iter().enumerate() {
        take_job(tamis.as_mut(), planned, seed(round, number), &mut level.jobs[number])?;
    }
    tamis.remove()
}

/// Writes what is new until so much of the room is used.
fn fill(tamis: &Tamis, share: f64) -> Result<(), Failure> {
    let mut offset_bytes = 0;
    for attempt in 0..ATTEMPTS {
        let missing = share - tamis.figure("data_used_ratio")?;
        if missing < CLOSE {
            break;
        }
        let plain = if attempt == 0 { PLAIN_MIN } else { tamis.figure("compression_ratio")? };
        let job = filler((missing * CAPACITY_BYTES as f64 * plain) as u64, u64::from(attempt));
        let job = crate::fio::Job { offset_bytes, ..job };
        job.run(&tamis.volume(FILLER))?;
        offset_bytes += job.size_bytes;
    }
    Ok(())
}

/// That a store which was to be filled so far is.
fn check_level(share: f64, used: f64) -> Result<(), Failure> {
    if share == 0.0 || (used - share).abs() <= OFF_MAX {
        return Ok(());
    }
    Err(Failure::OffLevel { wanted_percent: 100.0 * share, used_percent: 100.0 * used })
}

/// The same for all levels, and unlike every other: the bytes must be new to the store.
fn seed(round: u64, number: usize) -> u64 {
    500_000 + 1000 * (round + 1) + number as u64
}

#[cfg(test)]
mod tests {
    use super::check_level;

    #[test]
    fn a_store_is_measured_at_the_level_that_it_is_called_by() {
        assert!(check_level(0.9, 0.893).is_ok() && check_level(0.9, 0.915).is_ok());
        assert!(check_level(0.9, 0.87).is_err() && check_level(0.9, 0.93).is_err());
        assert!(check_level(0.0, 0.1).is_ok(), "what the jobs write over is in every store");
        let told = check_level(0.5, 0.41).unwrap_err().to_string();
        assert!(told.contains("41%") && told.contains("50%"), "{told}");
    }
}
