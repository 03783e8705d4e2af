//! The figures as bars: medians, one group for each system.

use charts::{Panel, PlotError, Series, svg};

use super::plan::PARTS;
use super::{JobFigures, SystemFigures, Whole};

const FILES: [&str; 5] =
    ["sequential.svg", "random-writes.svg", "random-reads.svg", "mixed.svg", "flushed-writes.svg"];

impl Whole {
    /// The name of each plot's file, and the SVG in it.
    pub(crate) fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let mut plots = Vec::new();
        for (file, part) in FILES.into_iter().zip(&PARTS).filter(|_| !self.systems.is_empty()) {
            let columns = part.columns.iter().enumerate().map(|(color, (column, job))| {
                let median = |system: &SystemFigures| {
                    system.of(job).filter(|job| !job.speed.is_empty()).map(|job| job.speed.median())
                };
                self.series(column, color + 1, median)
            });
            plots.push((file, svg(&[self.panel(part.title, part.unit, columns.collect())])?));
        }
        if !self.systems.is_empty() {
            let stored = |system: &SystemFigures| Some(100.0 * system.stored_share.median());
            let bars = vec![self.series("stored", 2, stored)];
            plots
                .push(("stored.svg", svg(&[self.panel("Stored", "% of what was written", bars)])?));
        }
        if let Some(panel) = self.fullness_panel() {
            plots.push(("fullness.svg", svg(&[panel])?));
        }
        Ok(plots)
    }

    /// Every job in times of the empty store.
    fn fullness_panel(&self) -> Option<Panel> {
        let empty = self.levels.first()?;
        // What is behind the comma is the unit's, and there is none here.
        let name = |job: &JobFigures| {
            let words = job.job.rsplit_once(", ").map_or(job.job, |(words, _)| words);
            words.to_owned()
        };
        let series = self.levels.iter().enumerate().map(|(color, level)| {
            let jobs = level.jobs.iter().zip(&empty.jobs);
            let times = jobs.map(|(job, base)| Some(job.speed.over(&base.speed).median()));
            Series::bars(level.name, color + 1, times.collect())
        });
        let names = empty.jobs.iter().map(name).collect();
        let title = "Tamis by how full its store is";
        Some(Panel::bars(title, "job", "times the nearly empty store", names, series.collect()))
    }

    fn series(
        &self,
        name: &str,
        color: usize,
        value: impl Fn(&SystemFigures) -> Option<f64>,
    ) -> Series {
        Series::bars(name, color, self.systems.iter().map(value).collect())
    }

    fn panel(&self, title: &str, unit: &str, series: Vec<Series>) -> Panel {
        let names = self.systems.iter().map(|system| system.system.to_owned()).collect();
        Panel::bars(title, "system", unit, names, series)
    }
}
