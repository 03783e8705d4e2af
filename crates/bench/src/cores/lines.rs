//! The figures as lines: throughput by processors as the model has it, and by threads as it was
//! measured, beside the model.

use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

use super::{Cores, StreamFigures};

const FILE: &str = "cores.svg";
const UNIT: &str = "MiB/s";
/// Above the highest value there is room for a legend: the axis is logarithmic.
const LEGEND_ROOM: f64 = 6.0;

impl Cores {
    /// The name of each plot's file, and the SVG in it.
    pub(crate) fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let by_processors = self.streams.iter().enumerate().map(|(number, of)| Series {
            name: of.stream.name().to_owned(),
            color: color(number),
            dashed: false,
            values: of.modelled.iter().map(|modelled| Some(modelled.mib_per_second)).collect(),
        });
        let by_threads = self.streams.iter().enumerate().flat_map(|(number, of)| {
            let series = |name: &str, dashed, values| Series {
                name: format!("{}, {name}", of.stream.name()),
                color: color(number),
                dashed,
                values,
            };
            let measured = of.measured.iter().map(|figures| Some(figures.mib_per_second.median()));
            let modelled = of.measured.iter().map(|figures| Some(figures.modelled?.mib_per_second));
            [
                series("measured", false, measured.collect()),
                series("modelled", true, modelled.collect()),
            ]
        });
        let first = self.streams.first();
        let names = |names: fn(&StreamFigures) -> Vec<String>| first.map(names).unwrap_or_default();
        let processors = names(|of| each(of.modelled.iter().map(|one| one.processors)));
        let workers = names(|of| each(of.measured.iter().map(|one| one.workers)));
        let title = format!("Measured on {} processors", self.processors);
        let modelled = panel("Modelled", "processors", processors, by_processors.collect());
        let measured = panel(&title, "workers, and as many clients", workers, by_threads.collect());
        Ok(vec![(FILE, svg(&[modelled, measured])?)])
    }
}

fn color(stream: usize) -> usize {
    stream + 1
}

fn each(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

fn panel(title: &str, x_title: &str, x_names: Vec<String>, series: Vec<Series>) -> Panel {
    let values = || series.iter().flat_map(|series| &series.values).flatten().copied();
    let least = values().fold(f64::INFINITY, f64::min).clamp(1.0, 1e6);
    let most = values().fold(least, f64::max);
    Panel {
        title: title.to_owned(),
        x_title: x_title.to_owned(),
        y_title: UNIT.to_owned(),
        x_names,
        y: least / 1.5..most * LEGEND_ROOM,
        y_named_max: most * 1.5,
        y_is_logarithmic: true,
        form: Form::Lines,
        series,
        legend: SeriesLabelPosition::UpperLeft,
    }
}
