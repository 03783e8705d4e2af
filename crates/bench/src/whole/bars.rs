//! The figures as bars: medians, one group for each system.

use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

use super::plan::PARTS;
use super::{SystemFigures, Whole};

/// Above the highest bar there is room for a legend.
const ROOM: f64 = 1.35;
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
        let values = self.systems.iter().map(value).collect();
        Series { name: name.to_owned(), color, dashed: false, values }
    }

    fn panel(&self, title: &str, unit: &str, series: Vec<Series>) -> Panel {
        let values = series.iter().flat_map(|series| &series.values).flatten();
        let highest = values.fold(1.0_f64, |highest, &value| highest.max(value));
        Panel {
            title: title.to_owned(),
            x_title: "system".to_owned(),
            y_title: unit.to_owned(),
            x_names: self.systems.iter().map(|system| system.system.to_owned()).collect(),
            y: 0.0..highest * ROOM,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Bars,
            series,
            legend: SeriesLabelPosition::UpperRight,
        }
    }
}
