//! The figures as Markdown.

use std::fmt::{self, Display, Formatter};

use super::figures::{SystemFigures, Whole};
use super::plan::{PARTS, Part};

/// Whom the others are compared with.
pub(super) const BASE: &str = "raw";
/// Jobs whose processor time is shown.
const CPU_JOBS: [(&str, &str); 4] = [
    ("sequential write", "sequential write"),
    ("sequential read, cold", "sequential read, cold"),
    ("random write, depth 32", "random write, depth 32"),
    ("random read, hot, depth 32", "random read, hot, depth 32"),
];

impl Display for Whole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.method(f)?;
        if !self.systems.is_empty() {
            PARTS.iter().try_for_each(|part| self.part(f, part))?;
            self.costs(f)?;
        }
        self.real_data(f)?;
        self.databases(f)?;
        self.fullness(f)
    }
}

impl Whole {
    fn method(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { size_bytes, seconds, memory_mib, load_average, .. } = self;
        let cold = if self.caches_dropped { "dropped" } else { "NOT dropped: no permission" };
        writeln!(
            f,
            "fio over a volume of {} MiB, {seconds} s a random job; \
             buffer_compress_percentage=50, dedupe_percentage=50; Tamis with --memory \
             {memory_mib}M. Each system is alone when it is measured, and new in every round. \
             Cold: started again, page cache {cold}. Hot: the range was read before; random ones \
             stay in an eighth of the volume. Clones: the same, and each client reads one of \
             its own, where there are clones. File systems are used through the page cache, `raw` \
             and qemu-nbd past it, nbdkit through it. Median (min to max) of the rounds, and how \
             many times the raw file of the same round. Load when a turn began: {load_average}.\
             \n\n\
             - `raw`: a preallocated file with O_DIRECT, no server; `nbdkit`: its file plugin on \
             one; `qemu-raw`: qemu-nbd --cache=none on one\n\
             - `nothing`: a server that does nothing, one thread a connection; what the client \
             and the socket allow and cost\n\
             - `qcow2`, `qcow2-compressed`: qemu-nbd --cache=none; with its filter that \
             compresses every cluster written\n\
             - `btrfs-zstd`, `btrfs-lzo`: compress=zstd:3 or lzo on a loop device with direct \
             I/O; `zfs-fuse`: dedup=on, compression=on\n\
             - `tamis`; `tamis-sync`: serve --sync; `tamis-xxh3`: init --fingerprint xxh3 \
             --verify; `tamis-zstd`: init --compression zstd:3",
            size_bytes >> 20,
        )?;
        let mut skipped = self.skipped.iter();
        skipped.try_for_each(|one| {
            // What a program says may have several lines.
            let reason = one.reason.split_whitespace().collect::<Vec<_>>().join(" ");
            let (table, system) = (&one.table, one.system);
            writeln!(f, "- **{table}: `{system}` is missing, or from some round on**: {reason}")
        })
    }

    fn part(&self, f: &mut Formatter<'_>, part: &Part) -> fmt::Result {
        writeln!(f, "\n## {}: {}\n", part.title, part.unit)?;
        heading(f, part.columns.iter().map(|(column, _)| *column))?;
        let base = SystemFigures::named(&self.systems, BASE);
        for system in &self.systems {
            write!(f, "| {} |", system.system)?;
            for (_, job) in part.columns {
                cell(f, system, base, job)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## Processor seconds for 10^9 bytes, and what is stored\n\n\
             Of the whole machine, fio and the kernel included. Stored: after every block of the \
             volume was written once, with what finds it and without what the empty system has, \
             by what was written.\n"
        )?;
        heading(f, CPU_JOBS.iter().map(|(column, _)| *column).chain(["stored"]))?;
        for system in &self.systems {
            write!(f, "| {} |", system.system)?;
            for (_, job) in CPU_JOBS {
                match system.of(job) {
                    Some(figures) => write!(f, " {} |", figures.cpu_seconds_per_gb)?,
                    None => write!(f, " - |")?,
                }
            }
            writeln!(f, " {} |", system.stored_share)?;
        }
        Ok(())
    }

    fn fullness(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(empty) = self.levels.first() else { return Ok(()) };
        writeln!(
            f,
            "\n## Tamis by how full its store is\n\n\
             Default mode, room of 4 GiB. A volume that the jobs stay in was written first, and \
             another filled the store, with chunks that repeat nothing and are a ninth as long \
             when stored, so that tables fill as well; then the server was started again. The \
             writes replace what is there, so a full store collects meanwhile. Used: of the room \
             for data, and for tables. Times: of the nearly empty store of the same round.\n"
        )?;
        write!(f, "| |")?;
        self.levels.iter().try_for_each(|level| write!(f, " {} |", level.name))?;
        write!(f, "\n|---|")?;
        self.levels.iter().try_for_each(|_| write!(f, "---|"))?;
        write!(f, "\n| used |")?;
        for level in &self.levels {
            let (data, tables) = (level.data_used.median(), level.tables_used.median());
            write!(f, " {:.0}%, {:.0}% |", 100.0 * data, 100.0 * tables)?;
        }
        for (number, base) in empty.jobs.iter().enumerate() {
            write!(f, "\n| {} | {} |", base.job, base.speed)?;
            for level in self.levels.iter().skip(1) {
                let speed = &level.jobs[number].speed;
                write!(f, " {speed} x{:.2} |", speed.over(&base.speed).median())?;
            }
        }
        writeln!(f)
    }
}

/// The speed of one job, and how many times the base's it is.
pub(super) fn cell(
    f: &mut Formatter<'_>,
    system: &SystemFigures,
    base: Option<&SystemFigures>,
    job: &str,
) -> fmt::Result {
    let Some(figures) = system.of(job) else { return write!(f, " - |") };
    match base.filter(|base| base.system != system.system).and_then(|base| base.of(job)) {
        None => write!(f, " {} |", figures.speed),
        // Who cannot do the job has no speed, and no ratio.
        Some(_) if figures.speed.is_empty() => write!(f, " - |"),
        Some(base) => {
            let times = figures.speed.over(&base.speed).median();
            write!(f, " {} x{times:.2} |", figures.speed)
        }
    }
}

/// The first two lines of a table with a line for each system.
pub(super) fn heading<'a>(
    f: &mut Formatter<'_>,
    columns: impl Iterator<Item = &'a str> + Clone,
) -> fmt::Result {
    write!(f, "| system |")?;
    columns.clone().try_for_each(|column| write!(f, " {column} |"))?;
    write!(f, "\n|---|")?;
    columns.clone().try_for_each(|_| write!(f, "---|"))?;
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::figures::{Skipped, SystemFigures, Whole};
    use super::super::fullness::levels;
    use super::super::plan::plan;
    use crate::args::Args;

    #[test]
    fn every_system_has_a_line_in_every_table_and_a_ratio_to_the_raw_file() {
        let jobs = plan(&Args::parse_from(["bench", "whole"]));
        let mut figures = Whole::default();
        for (system, speed) in [("raw", 2.0), ("tamis", 3.0)] {
            let mut of = SystemFigures::new(system, jobs.iter().map(|planned| planned.name));
            of.jobs.iter_mut().for_each(|job| job.speed.push(speed));
            figures.systems.push(of);
        }
        let (table, reason) = ("fio".to_owned(), "no zpool".to_owned());
        figures.skipped.push(Skipped { system: "zfs-fuse", table, reason });
        let page = figures.to_string();
        assert!(!page.contains("how full"), "{page}");
        let lines = page.lines().filter(|line| line.starts_with("| tamis |"));
        assert_eq!(lines.count(), 6, "{page}");
        assert_eq!(page.matches("3.00 (3.00 to 3.00) x1.50").count(), jobs.len(), "{page}");
        assert!(
            page.contains("- **fio: `zfs-fuse` is missing, or from some round on**: no zpool"),
            "{page}"
        );
        for (_, svg) in figures.plots().unwrap() {
            assert!(svg.contains("tamis"), "{svg}");
        }
    }

    #[test]
    fn a_full_store_is_held_to_the_empty_one() {
        let mut figures =
            Whole { levels: levels(&Args::parse_from(["bench", "whole"])), ..Whole::default() };
        for (level, speed) in figures.levels.iter_mut().zip([4.0, 2.0, 3.0]) {
            level.jobs.iter_mut().for_each(|job| job.speed.push(speed));
        }
        let page = figures.to_string();
        let lines =
            page.lines().filter(|line| line.contains("x0.50 |") && line.contains("x0.75 |"));
        assert_eq!(lines.count(), figures.levels[0].jobs.len(), "{page}");
        assert!(!page.contains("## Sequential"), "{page}");
        let plots = figures.plots().unwrap();
        assert_eq!(plots.iter().map(|(file, _)| *file).collect::<Vec<_>>(), ["fullness.svg"]);
    }
}
