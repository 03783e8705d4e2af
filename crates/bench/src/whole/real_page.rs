//! Real data and pgbench as Markdown.

use std::fmt::{self, Formatter};

use super::figures::{PgbenchFigures, SetFigures, SystemFigures, Whole};
use super::page::{BASE, cell, heading};
use super::pgbench::{CLIENTS, SCALE};
use super::real_data::JOBS;

const SET_COLUMNS: [&str; 5] = [
    "write, durable, MiB/s",
    "read, cold, MiB/s",
    "processor s for 10^9 bytes, write",
    "read",
    "stored",
];
const PGBENCH_COLUMNS: [&str; 6] = [
    "transactions a second",
    "latency, 95th percentile, ms",
    "processor ms a transaction",
    "filling the tables, s",
    "files, MiB",
    "stored, MiB",
];

impl Whole {
    pub(super) fn real_data(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.sets.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n## Real data\n\n\
             A set is one file of the blocks of 128 KiB that hold anything at all: of disk images, \
             the same share of each; of another folder, of an ext4 image made of it. It is copied \
             in by nbdcopy over as many connections as the server offers, up to four, or by dd \
             where the system is a file, and flushed; no side looks for zeros. Stored: after that, \
             by what was written. Every byte that was read back was held to the set's."
        )?;
        self.sets.iter().try_for_each(|set| one_set(f, set))
    }

    pub(super) fn databases(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(first) = self.pgbench.first() else { return Ok(()) };
        writeln!(
            f,
            "\n## PostgreSQL: pgbench, {CLIENTS} clients, scale {SCALE}\n\n\
             {} s of transactions, each durable when it is answered (PostgreSQL's defaults, \
             shared_buffers=32MB). On the file systems as they are; else on ext4, on a loop device \
             past the page cache over the raw file, or over the volume of a server as nbdfuse \
             shows it. A loop device syncs the file's times as well (fsync), a server only its \
             bytes (fdatasync): on a disk that others use `raw` and btrfs pay for \
             that. Files: of the cluster at the end; stored: what the system needs for them, and \
             what was freed in ext4 and not trimmed; `raw` and `nbdkit` have all of their \
             image from the beginning. Every commit that was reported was there afterwards.\n",
            self.pgbench_seconds,
        )?;
        heading(f, PGBENCH_COLUMNS.into_iter())?;
        let base = Some(first).filter(|system| system.system == BASE);
        self.pgbench.iter().try_for_each(|system| database(f, system, base))
    }
}

fn one_set(f: &mut Formatter<'_>, set: &SetFigures) -> fmt::Result {
    writeln!(f, "\n### `{}`, {} MiB\n", set.set, set.size_bytes >> 20)?;
    heading(f, SET_COLUMNS.into_iter())?;
    let base = SystemFigures::named(&set.systems, BASE);
    for system in &set.systems {
        write!(f, "| {} |", system.system)?;
        JOBS.iter().try_for_each(|job| cell(f, system, base, job))?;
        for job in &system.jobs {
            write!(f, " {} |", job.cpu_seconds_per_gb)?;
        }
        writeln!(f, " {} |", system.stored_share)?;
    }
    Ok(())
}

fn database(
    f: &mut Formatter<'_>,
    of: &PgbenchFigures,
    base: Option<&PgbenchFigures>,
) -> fmt::Result {
    let speed = &of.transactions_per_second;
    write!(f, "| {} | {speed}", of.system)?;
    let base = base.filter(|base| base.system != of.system && !speed.is_empty());
    if let Some(base) = base {
        write!(f, " x{:.2}", speed.over(&base.transactions_per_second).median())?;
    }
    let others =
        [&of.p95_ms, &of.cpu_ms_per_transaction, &of.fill_seconds, &of.files_mib, &of.stored_mib];
    others.iter().try_for_each(|samples| write!(f, " | {samples}"))?;
    writeln!(f, " |")
}

#[cfg(test)]
mod tests {
    use super::super::figures::{PgbenchFigures, SetFigures, Skipped, SystemFigures, Whole};
    use super::super::real_data::JOBS;

    #[test]
    fn every_set_has_a_table_with_ratios_to_the_raw_file() {
        let mut figures = Whole::default();
        for set in ["vm", "source"] {
            let systems = [("raw", 2.0), ("tamis", 3.0), ("nbdkit", 0.0)].map(|(system, speed)| {
                let mut of = SystemFigures::new(system, JOBS);
                // Who was out has no figures at all.
                of.jobs.iter_mut().filter(|_| speed > 0.0).for_each(|job| job.speed.push(speed));
                of
            });
            let systems = systems.to_vec();
            figures.sets.push(SetFigures { set: set.to_owned(), size_bytes: 5 << 20, systems });
        }
        let page = figures.to_string();
        for heading in ["### `vm`, 5 MiB", "### `source`, 5 MiB"] {
            assert!(page.contains(heading), "{page}");
        }
        assert_eq!(page.matches("3.00 (3.00 to 3.00) x1.50").count(), 4, "{page}");
        assert_eq!(page.matches("| nbdkit | - | - | - | - | - |").count(), 2, "{page}");
        assert!(!page.contains("pgbench") && !page.contains("## Sequential"), "{page}");
        let files: Vec<_> = figures.plots().unwrap().into_iter().map(|(file, _)| file).collect();
        assert_eq!(files, ["real-data.svg", "real-data-stored.svg"]);
    }

    #[test]
    fn a_database_has_a_line_for_each_system() {
        let mut figures = Whole { pgbench_seconds: 7, ..Whole::default() };
        for (system, speed) in [("raw", 400.0), ("tamis", 300.0)] {
            let mut of = PgbenchFigures { system, ..PgbenchFigures::default() };
            of.transactions_per_second.push(speed);
            of.stored_mib.push(speed / 2.0);
            figures.pgbench.push(of);
        }
        let (system, reason) = ("zfs-fuse", "no zpool".to_owned());
        figures.skipped.push(Skipped { system, table: "pgbench".to_owned(), reason });
        let page = figures.to_string();
        let line = "| tamis | 300 (300 to 300) x0.75 | - | - | - | - | 150 (150 to 150) |";
        assert!(page.contains(line) && page.contains("7 s of transactions"), "{page}");
        assert!(page.contains("pgbench: `zfs-fuse` is missing"), "{page}");
        let files: Vec<_> = figures.plots().unwrap().into_iter().map(|(file, _)| file).collect();
        assert_eq!(files, ["pgbench.svg"]);
    }
}
