//! The experiments of DedupCore's report, drawn.

use charts::{Panel, PlotError, Series, svg};

use super::lookup::{Dispatch, Engine};
use super::study::{DMA_GB, deletion_gb, insertion_gb, worst_loss_percent};

const MACHINES: [usize; 5] = [2, 4, 6, 8, 16];
const OLD: [u64; 6] = [0, 20, 40, 60, 80, 100];

/// Each with the name of its file.
///
/// # Errors
/// [`PlotError`] when one cannot be drawn.
pub fn plots() -> Result<Vec<(&'static str, String)>, PlotError> {
    Ok(vec![
        ("dedupcore-machines.svg", svg(&[machines_panel()])?),
        ("dedupcore-old-pages.svg", svg(&[old_panel()])?),
    ])
}

fn machines_panel() -> Panel {
    type Measured = fn(usize, Dispatch) -> f64;
    let series = [
        ("writes, ordered", 1, insertion_gb as Measured, Dispatch::Ordered),
        ("writes, ready", 2, insertion_gb, Dispatch::Ready),
        ("erases, ordered", 3, deletion_gb, Dispatch::Ordered),
        ("erases, ready", 4, deletion_gb, Dispatch::Ready),
    ];
    let series = series.map(|(name, color, of, dispatch)| {
        let values = MACHINES.map(|machines| Some(of(machines, dispatch)));
        Series::bars(name, color, values.into())
    });
    let names = MACHINES.map(|machines| machines.to_string());
    Panel::bars("Old pages, full table", "state machines", "GB/s", names.into(), series.into())
}

fn old_panel() -> Panel {
    let engines = [("6, no filter", 6, false), ("6, filters", 6, true), ("8, no filter", 8, false)];
    let series = engines.into_iter().enumerate().map(|(color, (name, machines, filters))| {
        let engine = Engine { machines, filters, dispatch: Dispatch::Ordered };
        let gb = |old| DMA_GB.value * (1.0 - worst_loss_percent(&engine, 100 - old) / 100.0);
        Series::bars(name, color + 1, OLD.map(|old| Some(gb(old))).into())
    });
    let names = OLD.map(|old| old.to_string());
    let title = "Table that just has room";
    Panel::bars(title, "old pages, %", "GB/s", names.into(), series.collect())
}
