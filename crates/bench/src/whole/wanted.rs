//! Which figures of whole systems are held to what.

use super::figures::{JobFigures, Level, SystemFigures, Whole};
use super::real_data::JOBS;
use crate::samples::Samples;
use crate::wanted::{Bound, Wanted};

const TAMIS: &str = "tamis";
/// What the client and the socket alone allow and cost.
const NOTHING: &str = "nothing";
/// Jobs of Tamis's default mode, whose speed they are held to, and how many times it is wanted.
const SPEEDS: [(&str, &str, f64); 8] = [
    ("random write, depth 32", "raw", 2.0),
    ("random write, 4 x 32", "raw", 2.0),
    ("sequential write", "nbdkit", 0.9),
    ("sequential read, cold", "nbdkit", 0.9),
    ("random read, cold, depth 32", "nbdkit", 0.8),
    ("random read, hot, depth 32", "nbdkit", 1.5),
    ("flushed writes, 1 client", "raw", 0.8),
    ("flushed writes, 8 clients", "raw", 2.0),
];
/// Part of what fio writes that may be stored.
const STORED: f64 = 0.25;
/// Who stores less than it is given, too.
const REDUCERS: [&str; 4] = ["qcow2-compressed", "btrfs-zstd", "btrfs-lzo", "zfs-fuse"];
/// Tamis's modes that they are compared with: the cheapest of those that store no more.
const MODES: [&str; 3] = [TAMIS, "tamis-xxh3", "tamis-zstd"];
/// Jobs of fio in which they are.
const REDUCED: [&str; 2] = ["sequential write", "random write, depth 32"];
/// How many times what Tamis writes in a processor second they may need.
const PROCESSOR_TIMES: f64 = 2.0;
/// Of the nearly empty store's speed, when it is nearly full.
const FULL: f64 = 0.9;

impl Whole {
    /// All that these systems show.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = speeds(&self.systems);
        wanted.extend(stored(&self.systems));
        wanted.extend(processor_time(&self.systems, "fio", &REDUCED));
        for set in &self.sets {
            wanted.extend(processor_time(&set.systems, &set.set, &JOBS[..1]));
        }
        if let [empty, .., full] = self.levels.as_slice() {
            wanted.extend(fullness(empty, full));
        }
        wanted
    }
}

fn speeds(systems: &[SystemFigures]) -> Vec<Wanted> {
    let held = |&(job, rival, least): &(&str, &str, f64)| {
        let speed = |system| Some(&SystemFigures::named(systems, system)?.of(job)?.speed);
        let times = ratio(speed(TAMIS)?, speed(rival)?)?;
        let nothing = speed(NOTHING).and_then(|nothing| ratio(nothing, speed(rival)?));
        let what = format!("{job}: times {rival}");
        let wanted = Wanted::new(what, Bound::AtLeast(least), times);
        Some(wanted.beside(nothing.unwrap_or_default()))
    };
    SPEEDS.iter().filter_map(held).collect()
}

fn stored(systems: &[SystemFigures]) -> Option<Wanted> {
    let share = SystemFigures::named(systems, TAMIS)?.stored_share.clone();
    let what = "stored of what fio wrote in sequence";
    (!share.is_empty()).then(|| Wanted::new(what, Bound::AtMost(STORED), share))
}

/// What each system that reduces data needs of the processors for the same bytes.
fn processor_time(systems: &[SystemFigures], data: &str, jobs: &[&str]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for rival in REDUCERS.into_iter().filter_map(|name| SystemFigures::named(systems, name)) {
        for job in jobs {
            let Some(theirs) = seconds(rival, job).filter(|theirs| !theirs.is_empty()) else {
                continue;
            };
            let what = format!("{data}, {job}: writes a processor second, times {}", rival.system);
            let bound = Bound::AtLeast(PROCESSOR_TIMES);
            let (by, times) = match cheapest(systems, rival, job) {
                Some((mode, ours)) => (format!("by `{mode}`"), theirs.over(ours)),
                None => ("no mode stores less".to_owned(), Samples::default()),
            };
            let nothing = SystemFigures::named(systems, NOTHING);
            let nothing = nothing.and_then(|nothing| ratio(theirs, seconds(nothing, job)?));
            let wanted_here = Wanted::new(format!("{what} ({by})"), bound, times);
            wanted.push(wanted_here.beside(nothing.unwrap_or_default()));
        }
    }
    wanted
}

/// Of the modes that store no more than `rival`, the one that needs least of the processors.
fn cheapest<'a>(
    systems: &'a [SystemFigures],
    rival: &SystemFigures,
    job: &str,
) -> Option<(&'static str, &'a Samples)> {
    let most = rival.stored_share.median();
    let modes = MODES.into_iter().filter_map(|mode| {
        let system = SystemFigures::named(systems, mode)?;
        let saves = !system.stored_share.is_empty() && system.stored_share.median() <= most;
        Some((mode, seconds(system, job)?)).filter(|(_, took)| saves && !took.is_empty())
    });
    modes.min_by(|(_, one), (_, other)| one.median().total_cmp(&other.median()))
}

fn fullness<'a>(empty: &'a Level, full: &'a Level) -> impl Iterator<Item = Wanted> + 'a {
    let held = |(full_job, job): (&JobFigures, &JobFigures)| {
        let what = format!("{}: {}, times {}", job.words(), full.name, empty.name);
        let times = ratio(&full_job.speed, &job.speed)?;
        Some(Wanted::new(what, Bound::AtLeast(FULL), times))
    };
    full.jobs.iter().zip(&empty.jobs).filter_map(held)
}

fn seconds<'a>(system: &'a SystemFigures, job: &str) -> Option<&'a Samples> {
    Some(&system.of(job)?.cpu_seconds_per_gb)
}

/// Nothing where one of them was not measured.
fn ratio(ours: &Samples, theirs: &Samples) -> Option<Samples> {
    Some(ours.over(theirs)).filter(|times| !times.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::figures::{SetFigures, SystemFigures, Whole};
    use super::super::real_data::JOBS;
    use crate::wanted::Wanted;

    /// A system of one job with a speed, processor seconds and the share that is stored.
    fn system(name: &'static str, job: &'static str, figures: [f64; 3]) -> SystemFigures {
        let mut of = SystemFigures::new(name, [job]);
        let [speed, seconds, stored] = figures;
        of.jobs[0].speed.push(speed);
        of.jobs[0].cpu_seconds_per_gb.push(seconds);
        of.stored_share.push(stored);
        of
    }

    fn lines(wanted: &[Wanted]) -> Vec<String> {
        wanted.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_speed_is_held_to_its_rival() {
        let job = "sequential write";
        let systems = [("raw", 100.0), ("nbdkit", 40.0), ("tamis", 50.0), ("nothing", 80.0)]
            .map(|(name, speed)| system(name, job, [speed, 1.0, 0.25]));
        let wanted = Whole { systems: systems.to_vec(), ..Whole::default() }.wanted();
        assert_eq!(
            lines(&wanted),
            [
                "| sequential write: times nbdkit | at least 0.9 | 1.25 (1.25 to 1.25) | reached | \
                 2.00 (2.00 to 2.00) |",
                "| stored of what fio wrote in sequence | at most 0.25 | 0.25 (0.25 to 0.25) | \
                 reached | |",
            ]
        );
    }

    #[test]
    fn who_reduces_is_compared_with_the_cheapest_mode_that_stores_no_more() {
        let of = |name, seconds, stored| system(name, JOBS[0], [1.0, seconds, stored]);
        let systems = vec![
            of("btrfs-zstd", 6.0, 0.4),
            of("btrfs-lzo", 6.0, 0.6),
            of("zfs-fuse", 6.0, 0.2),
            of("tamis", 2.0, 0.5),
            of("tamis-zstd", 4.0, 0.3),
        ];
        let set = SetFigures { set: "vm".to_owned(), size_bytes: 1, systems };
        let wanted = Whole { sets: vec![set], ..Whole::default() }.wanted();
        let what = "| vm, copy in: writes a processor second, times";
        assert_eq!(
            lines(&wanted),
            [
                format!(
                    "{what} btrfs-zstd (by `tamis-zstd`) | at least 2 | 1.50 (1.50 to 1.50) | \
                         **missed** | |"
                ),
                format!(
                    "{what} btrfs-lzo (by `tamis`) | at least 2 | 3.00 (3.00 to 3.00) | \
                         reached | |"
                ),
                format!("{what} zfs-fuse (no mode stores less) | at least 2 | - | **missed** | |"),
            ]
        );
    }
}
