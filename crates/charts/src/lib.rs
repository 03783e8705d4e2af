//! Room `charts`: what was measured, as SVG: panels of lines or of bars on a light ground, with a
//! title, units at the axes and a legend.
//!
//! Values on the horizontal axis stand at even distances and are named, since what a study varies
//! is a short list. The vertical axis may be logarithmic. A room of its own, because the lab, the
//! benchmarks and `tamis bench` draw, and none of them may import another.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

use std::fmt::Display;
use std::ops::Range;

use plotters::backend::SVGBackend;
pub use plotters::chart::SeriesLabelPosition;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::{BLACK, Color, RGBColor, WHITE};
use thiserror::Error;

const PANEL_WIDTH_MIN: u32 = 640;
/// What an axis, a margin and a letter of a name take.
const BESIDE_NAMES_WIDTH: u32 = 120;
const LETTER_WIDTH: u32 = 8;
const BETWEEN_NAMES_LETTERS: u32 = 2;
const HEIGHT: u32 = 480;
const FONT: &str = "sans-serif";
/// A vertical axis of bars is so many times as long as the highest: a legend stands above them.
const LEGEND_ROOM: f64 = 1.35;
/// Room between groups of bars, of a group's width.
const GAP: f64 = 0.25;
/// Told apart also by those who see few colours (Okabe and Ito), and black.
const COLORS: [RGBColor; 9] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 20),
    RGBColor(140, 140, 140),
];

/// A plot could not be drawn: a fault of this program.
#[derive(Debug, Error)]
#[error("a plot cannot be drawn: {0}")]
pub struct PlotError(String);

impl PlotError {
    fn of(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

/// What shows a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// A mark, joined with those beside it.
    Lines,
    /// A bar, beside those of the other series.
    Bars,
}

/// Values by what is varied; none where nothing was measured.
#[derive(Clone, Debug)]
pub struct Series {
    /// As the legend has it.
    pub name: String,
    /// Which of the colours; several series may share one.
    pub color: usize,
    /// Whether a line has gaps.
    pub dashed: bool,
    /// One for each name on the horizontal axis.
    pub values: Vec<Option<f64>>,
}

/// One chart with its axes.
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What is varied.
    pub x_title: String,
    /// What was measured, with its unit.
    pub y_title: String,
    /// What is varied, by name.
    pub x_names: Vec<String>,
    /// From the foot of the vertical axis to its top; above 0 where it is logarithmic.
    pub y: Range<f64>,
    /// Above it there is room for a legend, and no figure at the axis.
    pub y_named_max: f64,
    /// Every step is so many times the one before.
    pub y_is_logarithmic: bool,
    /// What shows a value.
    pub form: Form,
    /// All that is shown.
    pub series: Vec<Series>,
    /// Where their names stand.
    pub legend: SeriesLabelPosition,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Panels side by side, as one SVG; all as wide as the one that needs most.
///
/// # Errors
/// [`PlotError`] when it cannot be drawn.
pub fn svg(panels: &[Panel]) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let width = panels.iter().map(Panel::width).max().unwrap_or(PANEL_WIDTH_MIN);
        let size = (width * panels.len() as u32, HEIGHT);
        let whole = SVGBackend::with_string(&mut text, size).into_drawing_area();
        whole.fill(&WHITE).map_err(PlotError::of)?;
        for (area, panel) in whole.split_evenly((1, panels.len())).iter().zip(panels) {
            panel.draw(area)?;
        }
        whole.present().map_err(PlotError::of)?;
    }
    Ok(text)
}

impl Series {
    /// Bars of one colour.
    #[must_use]
    pub fn bars(name: &str, color: usize, values: Vec<Option<f64>>) -> Self {
        Self { name: name.to_owned(), color, dashed: false, values }
    }
}

impl Panel {
    /// Bars from 0 up, with room for a legend above the highest.
    #[must_use]
    pub fn bars(
        title: &str,
        x_title: &str,
        y_title: &str,
        x_names: Vec<String>,
        series: Vec<Series>,
    ) -> Self {
        let values = series.iter().flat_map(|series| &series.values).flatten();
        let highest = values.fold(1.0_f64, |highest, &value| highest.max(value));
        Self {
            title: title.to_owned(),
            x_title: x_title.to_owned(),
            y_title: y_title.to_owned(),
            x_names,
            y: 0.0..highest * LEGEND_ROOM,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Bars,
            series,
            legend: SeriesLabelPosition::UpperRight,
        }
    }

    /// So many pixels that no name runs into the next one.
    fn width(&self) -> u32 {
        let letters = self.x_names.iter().map(|name| name.chars().count()).max();
        let letters = letters.unwrap_or_default() as u32 + BETWEEN_NAMES_LETTERS;
        let names = letters * LETTER_WIDTH * self.x_names.len() as u32;
        PANEL_WIDTH_MIN.max(names + BESIDE_NAMES_WIDTH)
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), PlotError> {
        let last = self.x_names.len() as f64 - 1.0;
        let y = self.height(self.y.start)..self.height(self.y.end);
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .caption(&self.title, (FONT, 17))
            .x_label_area_size(46)
            .y_label_area_size(62)
            .build_cartesian_2d(-0.5..last + 0.5, y)
            .map_err(PlotError::of)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .x_labels(2 * self.x_names.len() + 1)
            .x_label_formatter(&|x| self.x_name(*x))
            .y_label_formatter(&|y| self.y_name(*y))
            .x_desc(&self.x_title)
            .y_desc(&self.y_title)
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()
            .map_err(PlotError::of)?;
        for (place, series) in self.series.iter().enumerate() {
            match self.form {
                Form::Lines => self.line(&mut chart, series)?,
                Form::Bars => self.draw_bars(&mut chart, place, series)?,
            }
        }
        chart
            .configure_series_labels()
            .position(self.legend.clone())
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 14))
            .draw()
            .map_err(PlotError::of)
    }

    fn line(&self, chart: &mut Chart<'_, '_>, series: &Series) -> Result<(), PlotError> {
        let points: Vec<(f64, f64)> = (0..)
            .zip(&series.values)
            .filter_map(|(x, value)| Some((f64::from(x), self.height((*value)?))))
            .collect();
        let color = COLORS[series.color % COLORS.len()];
        let marks = points.clone().into_iter().map(|at| Circle::new(at, 3, color.filled()));
        let style = color.stroke_width(2);
        let drawn = if series.dashed {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))
        } else {
            chart.draw_series(LineSeries::new(points, style))
        };
        let name = drawn.map_err(PlotError::of)?.label(series.name.clone());
        let dashed = series.dashed;
        name.legend(move |(x, y)| {
            let end = if dashed { x + 8 } else { x + 18 };
            PathElement::new(vec![(x, y), (end, y)], style)
        });
        chart.draw_series(marks).map_err(PlotError::of)?;
        Ok(())
    }

    fn draw_bars(
        &self,
        chart: &mut Chart<'_, '_>,
        place: usize,
        series: &Series,
    ) -> Result<(), PlotError> {
        let width = (1.0 - GAP) / self.series.len() as f64;
        let left = GAP / 2.0 - 0.5 + place as f64 * width;
        let floor = self.height(self.y.start);
        let color = COLORS[series.color % COLORS.len()];
        let bars = (0..).zip(&series.values).filter_map(|(x, value)| {
            let (x, top) = (f64::from(x) + left, self.height((*value)?));
            Some(Rectangle::new([(x, floor), (x + width, top)], color.filled()))
        });
        let drawn = chart.draw_series(bars).map_err(PlotError::of)?;
        drawn
            .label(series.name.clone())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], color.filled()));
        Ok(())
    }

    /// Where a value stands; what lies outside stands at the edge.
    fn height(&self, value: f64) -> f64 {
        let value = value.clamp(self.y.start, self.y.end);
        if self.y_is_logarithmic { value.log10() } else { value }
    }

    fn x_name(&self, x: f64) -> String {
        let is_named = (x - x.round()).abs() < 1e-6 && x > -0.1;
        let name = is_named.then(|| self.x_names.get(x.round() as usize)).flatten();
        name.cloned().unwrap_or_default()
    }

    fn y_name(&self, y: f64) -> String {
        if !self.y_is_logarithmic {
            return if y > self.y_named_max { String::new() } else { format!("{y:.0}") };
        }
        let value = 10_f64.powf(y);
        let digits = (1.0 - y.floor()).clamp(0.0, 4.0) as usize;
        format!("{value:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Panel, Series, SeriesLabelPosition, svg};

    fn panel(form: Form, names: &[&str]) -> Panel {
        let values = (1..=names.len()).map(|value| Some(value as f64)).collect();
        Panel {
            title: "What costs".to_owned(),
            x_title: "kind".to_owned(),
            y_title: "microseconds".to_owned(),
            x_names: names.iter().map(|&name| name.to_owned()).collect(),
            y: 0.5..20.0,
            y_named_max: 10.0,
            y_is_logarithmic: true,
            form,
            series: vec![Series { name: "p99".to_owned(), color: 1, dashed: false, values }],
            legend: SeriesLabelPosition::UpperRight,
        }
    }

    #[test]
    fn a_chart_names_what_it_shows() {
        for form in [Form::Lines, Form::Bars] {
            let drawn = svg(&[panel(form, &["blake3", "xxh3"]), panel(form, &["a"])]).unwrap();
            for text in ["What costs", "microseconds", "blake3", "xxh3", "p99"] {
                assert!(drawn.contains(text), "{text} is not in {drawn}");
            }
            assert!(drawn.contains("width=\"1280\""), "{drawn}");
        }
    }

    #[test]
    fn many_long_names_make_it_wider() {
        let drawn = svg(&[panel(Form::Bars, &["a-rather-long-name"; 10])]).unwrap();
        assert!(drawn.contains("width=\"1720\""), "{drawn}");
    }
}
