//! CIDR's and CAL'17's ideas, drawn.

use charts::{Panel, PlotError, Series, svg};
use traces::{Workload, WorkloadKind};

use crate::flash::{BURST_MEAN, Original};

use super::devices::{found_by_law, found_on_devices};
use super::predictor::predict;
use super::rows::{REQUESTS, SEED, amplification};

const RUNS: [u64; 5] = [1, 2, 4, 8, 32];
const DEVICES: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Samples of the predictor, in percent of the unique chunks.
const SAMPLES_PERCENT: [u64; 5] = [1, 5, 25, 100, 400];

/// Each with the name of its file.
///
/// # Errors
/// [`PlotError`] when one cannot be drawn.
pub fn plots() -> Result<Vec<(&'static str, String)>, PlotError> {
    Ok(vec![
        ("cidr-large-chunks.svg", svg(&[large_chunks_panel()])?),
        ("cidr-predictor.svg", svg(&[predictor_panel()])?),
        ("cal-devices.svg", svg(&[devices_panel()])?),
    ])
}

fn large_chunks_panel() -> Panel {
    let series = [("Mail", 2, 1), ("Web-vm", 1, 2)].map(|(name, place, color)| {
        let of = |run_mean| amplification(&Original { run_mean, ..Original::TRACES[place] });
        Series::bars(name, color, RUNS.map(|run| Some(of(run))).into())
    });
    let names = RUNS.map(|run| run.to_string());
    let title = "Chunks of 32 KiB under writes of 4 KiB";
    let y = "blocks moved for a block written";
    Panel::bars(title, "blocks of a run on average", y, names.into(), series.into())
}

fn predictor_panel() -> Panel {
    let kinds = [WorkloadKind::WriteH, WorkloadKind::WriteM, WorkloadKind::WriteL];
    let series = kinds.into_iter().enumerate().map(|(color, kind)| {
        let workload = Workload::new(kind, REQUESTS, SEED);
        let right = |percent| {
            let predicted = predict(&workload, workload.unique_chunks() * percent / 100);
            Some(100.0 * predicted.right_ratio())
        };
        Series::bars(kind.name(), color + 1, SAMPLES_PERCENT.map(right).into())
    });
    let names = SAMPLES_PERCENT.map(|percent| percent.to_string());
    let x = "samples, % of unique chunks";
    Panel::bars("Unique or duplicate, guessed", x, "% right", names.into(), series.collect())
}

fn devices_panel() -> Panel {
    let traces = [("Mail", 2, 1), ("Web-vm", 1, 3)];
    let series = traces.into_iter().flat_map(|(name, place, color)| {
        let trace = Original::TRACES[place].make(REQUESTS, BURST_MEAN, SEED);
        let found = DEVICES.map(|devices| Some(found_on_devices(&trace, devices)));
        let law = DEVICES.map(|devices| Some(found_by_law(&trace, devices)));
        [
            Series::bars(&format!("{name}, striped"), color, found.into()),
            Series::bars(&format!("{name}, law"), color + 1, law.into()),
        ]
    });
    let names = DEVICES.map(|devices| devices.to_string());
    let title = "Duplicates found, each device for itself";
    Panel::bars(title, "devices", "% of writes", names.into(), series.collect())
}
