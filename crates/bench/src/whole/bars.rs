//! The figures as bars: medians, one group for each system.

use charts::{Panel, PlotError, Series, svg};

use super::plan::PARTS;
use super::{SystemFigures, Whole};

const FILES: [&str; 5] =
    ["sequential.svg", "random-writes.svg", "random-reads.svg", "mixed.svg", "flushed-writes.svg"];

impl Whole {
    /// The name of each plot's file, and the SVG in it.
    pub(crate) fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let mut plots = Vec::new();
        for (file, part) in FILES.into_iter().zip(&PARTS) {
            let columns = part.columns.iter().enumerate().map(|(color, (column, job))| {
                let median = |system: &SystemFigures| Some(system.of(job)?.speed.median());
                self.series(column, color + 1, median)
            });
            plots.push((file, svg(&[self.panel(part.title, part.unit, columns.collect())])?));
        }
        let stored = |system: &SystemFigures| Some(100.0 * system.stored_share.median());
        let bars = vec![self.series("stored", 2, stored)];
        plots.push(("stored.svg", svg(&[self.panel("Stored", "% of what was written", bars)])?));
        Ok(plots)
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
