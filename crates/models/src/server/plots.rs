//! The model of a server, drawn: cores and DRAM by throughput (Figures 4 and 5), the engine by
//! updates (Figure 13), the ladder (Figure 14).

use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

use crate::cidr::{mail_io, web_vm_io};
use crate::units::GbPerSecond;

use super::cores::core_cost;
use super::design::Design;
use super::dram::dram_traffic;
use super::large_chunks::large_chunk_limits;
use super::limits::limits;
use super::table_engine::table_engine_gb;
use super::workload::{READ_MIXED, WRITE_H, WRITE_L, WRITE_M, WRITES_PROFILED, Workload};

const RATES: [u32; 8] = [5, 15, 25, 35, 45, 55, 65, 75];
const WORKLOADS: [&Workload; 4] = [&WRITE_H, &WRITE_M, &WRITE_L, &READ_MIXED];

/// Each with the name of its file.
///
/// # Errors
/// [`PlotError`] when one cannot be drawn.
pub fn plots() -> Result<Vec<(&'static str, String)>, PlotError> {
    Ok(vec![
        ("server-needs.svg", svg(&[needs_panel(true), needs_panel(false)])?),
        ("server-engine.svg", svg(&[engine_panel()])?),
        ("server-ladder.svg", svg(&[ladder_panel()])?),
    ])
}

fn needs_panel(of_cores: bool) -> Panel {
    let of = |design, rate: u32| {
        let rate = GbPerSecond(f64::from(rate));
        match of_cores {
            true => (rate * core_cost(design, &WRITES_PROFILED).total()).0,
            false => (rate * dram_traffic(design, &WRITES_PROFILED).total()).0,
        }
    };
    let designs = [Design::CidrPlus, Design::NicHashing, Design::FOUR_UPDATES];
    let lines = designs.into_iter().enumerate().map(|(color, design)| Series {
        name: design.name().to_owned(),
        color: color + 1,
        dashed: false,
        values: RATES.iter().map(|&rate| Some(of(design, rate))).collect(),
    });
    let (there, most) = if of_cores { (22.0, 70.0) } else { (170.0, 330.0) };
    let bound = Series {
        name: "a socket".to_owned(),
        color: 0,
        dashed: true,
        values: vec![Some(there); RATES.len()],
    };
    Panel {
        title: if of_cores { "Cores, profiled writes" } else { "DRAM, profiled writes" }.to_owned(),
        x_title: "GB/s of clients".to_owned(),
        y_title: if of_cores { "cores" } else { "GB/s" }.to_owned(),
        x_names: RATES.iter().map(u32::to_string).collect(),
        y: 0.0..most,
        y_named_max: f64::INFINITY,
        y_is_logarithmic: false,
        form: Form::Lines,
        series: lines.chain([bound]).collect(),
        legend: SeriesLabelPosition::UpperLeft,
    }
}

fn engine_panel() -> Panel {
    let series = [1, 2, 3, 4].map(|updates| {
        let values = [&WRITE_H, &WRITE_M, &WRITE_L].map(|load| {
            let GbPerSecond(gb) = table_engine_gb(load, updates);
            Some(gb)
        });
        let name = if updates == 1 { "1 update".to_owned() } else { format!("{updates} updates") };
        Series::bars(&name, updates as usize, values.into())
    });
    let names = [&WRITE_H, &WRITE_M, &WRITE_L].map(|load| load.name.to_owned());
    Panel::bars("Table cache alone", "workload", "GB/s", names.into(), series.into())
}

fn ladder_panel() -> Panel {
    let (mail, web_vm) = (mail_io(), web_vm_io());
    let large = WORKLOADS.map(|load| {
        let io = if load.name == WRITE_L.name { &web_vm } else { &mail };
        Some(large_chunk_limits(load, io).throughput().0)
    });
    let rungs = Design::LADDER.iter().enumerate().map(|(color, &design)| {
        let values = WORKLOADS.map(|load| Some(limits(design, load).throughput().0));
        Series::bars(design.name(), color + 1, values.into())
    });
    let series = [Series::bars("CIDR, 32 KiB", 0, large.into())].into_iter().chain(rungs);
    let names = WORKLOADS.map(|load| load.name.to_owned());
    Panel::bars("A socket of 22 cores", "workload", "GB/s", names.into(), series.collect())
}
