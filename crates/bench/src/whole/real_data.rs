//! Real data: each set copied into every system, and out of it again.
//!
//! A turn begins with a new system as large as the set, which is copied in (the clock stops when it
//! is durable). Then the server is started again, what is stored is counted, and all of it is
//! read. A second reading, which no clock runs for, holds every byte to the set's.

use std::path::Path;
use std::time::Instant;

use super::contestant::{Contestant, is_there};
use super::copying::{compare, copy_in, copy_out};
use super::figures::{JobFigures, SetFigures, SystemFigures};
use super::roster::{Notes, Roster};
use super::sets::Set;
use super::system::System;
use crate::args::{Args, Table};
use crate::failure::Failure;
use crate::machine::drop_caches;
use crate::processors::Spent;

/// What is measured of each set.
pub(super) const JOBS: [&str; 2] = ["copy in", "copy out"];

/// The sets, and who takes part in each.
pub(super) struct RealData(Vec<(Set, Roster)>);

impl RealData {
    /// Makes the sets in `folder`, and their figures, which are empty.
    pub(super) fn prepare(
        args: &Args,
        folder: &Path,
        notes: &mut Notes,
    ) -> Result<(Self, Vec<SetFigures>), Failure> {
        let (mut sets, mut figures) = (Vec::new(), Vec::new());
        let sources = args.data.iter().filter(|_| args.has_table(Table::Data));
        for source in sources {
            let set = Set::make(source, folder, args.data_mib << 20)?;
            let takes_part = |one: &Contestant| one.keeps_data() && args.takes_part(one.name());
            let wanted = Contestant::ALL.into_iter().filter(takes_part);
            let table = format!("{} {}", Table::Data.name(), set.name);
            let roster = Roster::new(&table, wanted, missing, notes);
            figures.push(SetFigures {
                set: set.name.clone(),
                size_bytes: set.size_bytes,
                systems: roster.names().map(|name| SystemFigures::new(name, JOBS)).collect(),
            });
            sets.push((set, roster));
        }
        Ok((Self(sets), figures))
    }

    /// A turn of each system with each set.
    pub(super) fn take_turns(
        &mut self,
        args: &Args,
        folder: &Path,
        round: u64,
        figures: &mut [SetFigures],
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        for ((set, roster), figures) in self.0.iter_mut().zip(figures) {
            roster.take_turns(args, folder, round, notes, |at, contestant, folder| {
                let system = contestant.start(args, folder, set.size_bytes)?;
                take_turn(system, set, &mut figures.systems[at])
            })?;
        }
        Ok(())
    }
}

/// Why it cannot take part here, if so.
fn missing(contestant: Contestant) -> Option<String> {
    let copied = contestant.is_served() && !is_there("nbdcopy");
    contestant.missing().or_else(|| copied.then(|| "there is no nbdcopy here".to_owned()))
}

fn take_turn(
    mut system: Box<dyn System>,
    set: &Set,
    figures: &mut SystemFigures,
) -> Result<(), Failure> {
    set.warm()?;
    let target = system.target();
    let [written, read] = figures.jobs.as_mut_slice() else { return Ok(()) };
    timed(set, written, || copy_in(&set.image, &target))?;
    system.restart()?;
    figures.stored_share.push(system.stored_bytes()? as f64 / set.size_bytes as f64);
    drop_caches();
    timed(set, read, || copy_out(&target))?;
    compare(&set.image, &target, set.size_bytes)?;
    system.remove()
}

fn timed(
    set: &Set,
    figures: &mut JobFigures,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (before, begun) = (Spent::now(), Instant::now());
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    let busy = Spent::now().busy_since(before);
    figures.speed.push(set.size_bytes as f64 / f64::from(1 << 20) / seconds);
    figures.cpu_seconds_per_gb.push(busy / (set.size_bytes as f64 / 1e9));
    Ok(())
}
