//! What each number of cores carries, drawn.

use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

use crate::carried::{CORES, Machine, carried};
use crate::costs::StageCosts;
use crate::demand::Demand;
use crate::offload::Offload;

/// Lines for what may be done elsewhere, and the demand, as SVG.
///
/// # Errors
/// [`PlotError`] when it cannot be drawn.
pub fn plot(demand: &Demand, costs: &StageCosts, machine: &Machine) -> Result<String, PlotError> {
    let gb =
        |offload, cores| carried(demand, costs, machine, offload, cores).bytes_per_second / 1e9;
    let mut series: Vec<Series> = Offload::ALL
        .into_iter()
        .enumerate()
        .map(|(color, offload)| Series {
            name: format!("elsewhere: {}", offload.name()),
            color: color + 1,
            dashed: false,
            values: CORES.map(|cores| Some(gb(offload, cores))).into(),
        })
        .collect();
    let wanted = demand.bytes_per_second / 1e9;
    series.push(Series {
        name: "wanted".to_owned(),
        color: 0,
        dashed: true,
        values: vec![Some(wanted); CORES.len()],
    });
    let all = series.iter().flat_map(|series| &series.values).flatten();
    let highest = all.fold(wanted, |highest, &value| highest.max(value));
    let panel = Panel {
        title: "What cores carry".to_owned(),
        x_title: "cores".to_owned(),
        y_title: "GB/s of clients".to_owned(),
        x_names: CORES.map(|cores| cores.to_string()).into(),
        y: 0.0..highest * 1.1,
        y_named_max: f64::INFINITY,
        y_is_logarithmic: false,
        form: Form::Lines,
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    svg(&[panel])
}
