//! The study as plots.

use super::strategy::Strategy;
use super::study::{BURSTS, DISTANCES, Part, Row, Study};
use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

impl Study {
    /// The name of each plot's file, and the SVG in it.
    ///
    /// # Errors
    /// [`PlotError`] when one cannot be drawn.
    pub fn plots(&self) -> Result<Vec<(String, String)>, PlotError> {
        let mut plots = vec![("write.svg", svg(&[self.writes("mean", |row| row.write_us)])?)];
        plots.push(("write-p99.svg", svg(&[self.writes("p99", |row| row.write_p99_us)])?));
        if !self.traces(Part::Prefetch).is_empty() {
            plots.push(("bursts.svg", svg(&[self.burst_lines()])?));
            plots.push(("prefetch.svg", svg(&[self.prefetch_lines()])?));
        }
        Ok(plots.into_iter().map(|(name, svg)| (name.to_owned(), svg)).collect())
    }

    fn writes(&self, what: &str, value: impl Fn(&Row) -> f64) -> Panel {
        let traces = self.traces(Part::Strategies);
        let series = Strategy::ALL.into_iter().enumerate().map(|(color, strategy)| {
            let of_trace = |trace: &&str| {
                let runs = self.of(Part::Strategies, trace);
                runs.iter().find(|row| row.strategy == strategy).map(|row| value(row))
            };
            let values = traces.iter().map(of_trace).collect();
            Series { name: strategy.name().to_owned(), color, dashed: false, values }
        });
        let series: Vec<Series> = series.collect();
        Panel {
            title: format!("Write response ({what}) by trace"),
            x_title: "trace".to_owned(),
            y_title: "microseconds".to_owned(),
            x_names: traces.iter().map(|name| (*name).to_owned()).collect(),
            y: 0.0..highest(&series) * 1.4,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Bars,
            series,
            legend: SeriesLabelPosition::UpperRight,
        }
    }

    fn burst_lines(&self) -> Panel {
        let series = Strategy::ALL.into_iter().enumerate().map(|(color, strategy)| {
            let values = BURSTS.map(|mean| Some(self.gain(strategy, Some(mean)))).to_vec();
            Series { name: strategy.name().to_owned(), color, dashed: false, values }
        });
        let series: Vec<Series> = series.collect();
        Panel {
            title: "Write response by EaD's, mean of four traces".to_owned(),
            x_title: "mean length of bursts, requests".to_owned(),
            y_title: "times EaD's".to_owned(),
            x_names: BURSTS.map(|mean| mean.to_string()).to_vec(),
            y: 0.0..highest(&series) * 1.1,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Lines,
            series,
            legend: SeriesLabelPosition::UpperLeft,
        }
    }

    fn prefetch_lines(&self) -> Panel {
        let series = self.traces(Part::Prefetch).into_iter().enumerate().map(|(color, trace)| {
            let runs = self.of(Part::Prefetch, trace);
            let none = runs.first().map_or(f64::NAN, |row| row.write_us);
            let values = runs.iter().map(|row| Some(100.0 * row.write_us / none)).collect();
            Series { name: trace.to_owned(), color, dashed: false, values }
        });
        Panel {
            title: "EaD's write response by prefetch distance".to_owned(),
            x_title: "chunks fetched at a time".to_owned(),
            y_title: "% of that without prefetching".to_owned(),
            x_names: DISTANCES.map(|distance| distance.to_string()).to_vec(),
            y: 80.0..101.0,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Lines,
            series: series.collect(),
            legend: SeriesLabelPosition::LowerLeft,
        }
    }
}

fn highest(series: &[Series]) -> f64 {
    let values = series.iter().flat_map(|series| &series.values).flatten();
    values.fold(1.0_f64, |highest, &value| highest.max(value))
}
