//! The figures as bars: medians, one group for each system.

use charts::{Panel, PlotError, Series, svg};

use super::figures::{PgbenchFigures, SystemFigures, Whole};
use super::plan::PARTS;
use super::real_data::JOBS;
use crate::samples::Samples;

const FILES: [&str; 5] =
    ["sequential.svg", "random-writes.svg", "random-reads.svg", "mixed.svg", "flushed-writes.svg"];

impl Whole {
    /// The name of each plot's file, and the SVG in it.
    pub(crate) fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let mut plots = Vec::new();
        for (file, part) in FILES.into_iter().zip(&PARTS).filter(|_| !self.systems.is_empty()) {
            let columns = part.columns.iter().enumerate().map(|(color, (column, job))| {
                let speed = |system: &SystemFigures| median(&system.of(job)?.speed);
                series(&self.systems, column, color + 1, speed)
            });
            let panel = panel(&self.systems, part.title, part.unit, columns.collect());
            plots.push((file, svg(&[panel])?));
        }
        if !self.systems.is_empty() {
            let bars = vec![series(&self.systems, "stored", 2, stored_percent)];
            let panel = panel(&self.systems, "Stored", "% of what was written", bars);
            plots.push(("stored.svg", svg(&[panel])?));
        }
        if let Some([speeds, stored]) = self.sets_panels() {
            plots.push(("real-data.svg", svg(&[speeds])?));
            plots.push(("real-data-stored.svg", svg(&[stored])?));
        }
        if let Some(panel) = self.databases_panel() {
            plots.push(("pgbench.svg", svg(&[panel])?));
        }
        if let Some(panel) = self.fullness_panel() {
            plots.push(("fullness.svg", svg(&[panel])?));
        }
        Ok(plots)
    }

    /// Every job in times of the empty store.
    fn fullness_panel(&self) -> Option<Panel> {
        let empty = self.levels.first()?;
        let series = self.levels.iter().enumerate().map(|(color, level)| {
            let jobs = level.jobs.iter().zip(&empty.jobs);
            let times = jobs.map(|(job, base)| Some(job.speed.over(&base.speed).median()));
            Series::bars(level.name, color + 1, times.collect())
        });
        let names = empty.jobs.iter().map(|job| job.words().to_owned()).collect();
        let title = "Tamis by how full its store is";
        Some(Panel::bars(title, "job", "times the nearly empty store", names, series.collect()))
    }

    /// How fast sets were copied in and out, and what is stored of them.
    fn sets_panels(&self) -> Option<[Panel; 2]> {
        let systems = &self.sets.first()?.systems;
        let (mut speeds, mut stored) = (Vec::new(), Vec::new());
        for set in &self.sets {
            for (job, what) in JOBS.iter().zip(["write, durable", "read, cold"]) {
                let (color, name) = (speeds.len() + 1, format!("{}: {what}", set.set));
                let speed = |system: &SystemFigures| median(&system.of(job)?.speed);
                speeds.push(series(&set.systems, &name, color, speed));
            }
            stored.push(series(&set.systems, &set.set, stored.len() + 1, stored_percent));
        }
        let title = "Real data: stored";
        Some([
            panel(systems, "Real data", "MiB/s", speeds),
            panel(systems, title, "% of what was written", stored),
        ])
    }

    /// Transactions a second.
    fn databases_panel(&self) -> Option<Panel> {
        let systems = &self.pgbench;
        let names = systems.iter().map(|system| system.system.to_owned()).collect();
        let speed = |system: &PgbenchFigures| median(&system.transactions_per_second);
        let bars = Series::bars("4 clients", 2, systems.iter().map(speed).collect());
        let panel = || {
            Panel::bars("PostgreSQL: pgbench", "system", "transactions a second", names, vec![bars])
        };
        (!systems.is_empty()).then(panel)
    }
}

fn stored_percent(system: &SystemFigures) -> Option<f64> {
    median(&system.stored_share).map(|share| 100.0 * share)
}

/// None where nothing was measured.
fn median(samples: &Samples) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.median())
}

fn series(
    systems: &[SystemFigures],
    name: &str,
    color: usize,
    value: impl Fn(&SystemFigures) -> Option<f64>,
) -> Series {
    Series::bars(name, color, systems.iter().map(value).collect())
}

fn panel(systems: &[SystemFigures], title: &str, unit: &str, series: Vec<Series>) -> Panel {
    let names = systems.iter().map(|system| system.system.to_owned()).collect();
    Panel::bars(title, "system", unit, names, series)
}
