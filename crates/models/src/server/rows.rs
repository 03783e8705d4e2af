//! The rows that the model of a server has: B4, B5, B7, F5, F7 to F10.

use crate::cidr::{BlockIo, mail_io, web_vm_io};
use crate::parameter::Parameter;
use crate::row::Tolerance::{Percent, Points};
use crate::row::{Paper, Row};
use crate::units::GbPerSecond;

use super::cores::{self, CoreCost, core_cost};
use super::design::Design;
use super::dram::{self, DramTraffic, dram_traffic};
use super::large_chunks::large_chunk_limits;
use super::limits::{self, Bottleneck, limits};
use super::table_engine::{self, table_engine_gb};
use super::workload::{
    self, MIXED_PROFILED, READ_MIXED, WRITE_H, WRITE_L, WRITE_M, WRITES_PROFILED, Workload,
};

/// What the model is given.
pub static PARAMETERS: [&Parameter; 19] = [
    &workload::PROFILED_HITS,
    &cores::PROFILED,
    &cores::PREDICTOR,
    &cores::TABLE_CACHE,
    &cores::TREE,
    &cores::TABLE_SSD,
    &cores::REPLACEMENT,
    &cores::READ,
    &dram::THROUGH_DRAM,
    &dram::BUCKET_FILL,
    &dram::BUCKETS_PER_MISS,
    &table_engine::UPDATES,
    &table_engine::SERIAL,
    &table_engine::LEAVES,
    &table_engine::UPDATES_PER_MISS,
    &limits::SOCKET_CORES,
    &limits::DRAM_GB,
    &limits::PCIE_GB,
    &READ_STEPS,
];

/// Stages of a read, each a batch handed on: SSD, to the host, to the FPGA, back, to the NIC; and
/// SSD, to the FPGA, to the NIC.
static READ_STEPS: Parameter = Parameter::derived(
    "stages of a read with FIDR, of five",
    3.0,
    "",
    "Figure 6: SSD to engine to NIC; all are taken as equally long",
);

const TARGET: GbPerSecond = GbPerSecond(75.0);
const WRITES: [&Workload; 3] = [&WRITE_H, &WRITE_M, &WRITE_L];
static DRAM_FITS: [&Parameter; 2] = [&dram::THROUGH_DRAM, &workload::PROFILED_HITS];
static CORE_FITS: [&Parameter; 2] = [&workload::PROFILED_HITS, &cores::READ];
static ENGINE_FITS: [&Parameter; 3] =
    [&table_engine::UPDATES, &table_engine::SERIAL, &table_engine::LEAVES];

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::Fidr, id, section)
}

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    [
        large_chunks(),
        bandwidth(),
        paths(),
        processors(),
        engine(),
        memory_saved(),
        cores_saved(),
        ladder(),
    ]
    .concat()
}

fn large_chunks() -> Vec<Row> {
    let at = |id| (Paper::Cidr, id, "FIDR 3.1");
    let large = |workload, io: &BlockIo| large_chunk_limits(workload, io).throughput().0;
    let small = |workload| limits(Design::CidrPlus, workload).throughput().0;
    let (mail, web_vm) = (mail_io(), web_vm_io());
    let whole = BlockIo { asked: 8, put_together: 8, read: 0, written: 8 };
    let row = |id, what, holds| Row::statement(at(id), what, holds).predicted_with(&CORE_FITS);
    vec![
        row(
            "R5",
            "a socket carries less with chunks of 32 KiB than with 4 KiB: single blocks of Mail",
            large(&WRITE_H, &mail) < small(&WRITE_H),
        )
        .note(
            "the rung below CIDR+ in the ladder's plot, nothing fitted; with runs of eight blocks \
             on average it carries about as much as CIDR+, since it has no table cache",
        ),
        row("R6", "the same: Web-vm", large(&WRITE_L, &web_vm) < small(&WRITE_L)),
        row(
            "R7",
            "it carries more where clients write whole chunks of 32 KiB",
            large(&WRITE_L, &whole) > small(&WRITE_L),
        ),
    ]
}

fn bandwidth() -> Vec<Row> {
    let needed = |workload| (TARGET * dram_traffic(Design::CidrPlus, workload).total()).0;
    let carried = |workload| limits(Design::CidrPlus, workload).dram.0;
    let rows = [
        (
            at("B4a", "3.2.1"),
            "DRAM bandwidth for 75 GB/s of writes",
            317.0,
            needed(&WRITES_PROFILED),
        ),
        (at("B4b", "3.2.1"), "the same, half reads", 269.0, needed(&MIXED_PROFILED)),
        (
            at("B4c", "3.2.1"),
            "what DRAM of 170 GB/s carries, writes",
            40.0,
            carried(&WRITES_PROFILED),
        ),
        (at("B4d", "3.2.1"), "the same, half reads", 47.0, carried(&MIXED_PROFILED)),
    ];
    let rows = rows.map(|(place, what, stated, ours)| {
        Row::modelled(place, what, "GB/s", (stated, Percent(3.0)), ours).predicted_with(&DRAM_FITS)
    });
    rows.into()
}

fn paths() -> Vec<Row> {
    type Path = fn(&DramTraffic) -> f64;
    let path: [([&str; 2], Path); 5] = [
        (["NIC, writes", "NIC, half reads"], |traffic| traffic.nic.0),
        (["predictor, writes", "predictor, half reads"], |traffic| traffic.prediction.0),
        (["FPGAs, writes", "FPGAs, half reads"], |traffic| traffic.accelerator.0),
        (["table cache, writes", "table cache, half reads"], |traffic| traffic.table_cache.0),
        (["data SSDs, writes", "data SSDs, half reads"], |traffic| traffic.data_ssd.0),
    ];
    let stated = [[0.997, 1.002, 1.074, 1.086, 0.072], [0.994, 0.499, 1.277, 0.542, 0.283]];
    let ids = [["B5a", "B5b", "B5c", "B5d", "B5e"], ["B5f", "B5g", "B5h", "B5i", "B5j"]];
    let mut rows = Vec::new();
    for (column, workload) in [&WRITES_PROFILED, &MIXED_PROFILED].into_iter().enumerate() {
        let traffic = dram_traffic(Design::CidrPlus, workload);
        for (line, (what, of)) in path.iter().enumerate() {
            let stated = (stated[column][line], Percent(10.0));
            let row = Row::modelled(
                at(ids[column][line], "Table 1"),
                what[column],
                "B/B",
                stated,
                of(&traffic),
            );
            let is_fitted = column == 0 && (line == 2 || line == 4);
            let row = if is_fitted {
                row.fitted_on(&[&dram::THROUGH_DRAM])
            } else {
                row.predicted_with(&DRAM_FITS)
            };
            rows.push(row);
        }
    }
    rows
}

fn processors() -> Vec<Row> {
    let baseline = core_cost(Design::CidrPlus, &WRITES_PROFILED);
    let mixed = core_cost(Design::CidrPlus, &MIXED_PROFILED);
    vec![
        Row::modelled(
            at("B7a", "3.2.2"),
            "cores for 75 GB/s of writes",
            "",
            (67.0, Percent(5.0)),
            (TARGET * baseline.total()).0,
        )
        .closed_form()
        .note("by construction: the profile is what the model is given"),
        Row::modelled(
            at("B7b", "7.8"),
            "what 22 cores carry; the baseline fails over 25 GB/s",
            "GB/s",
            (25.0, Percent(5.0)),
            limits(Design::CidrPlus, &WRITES_PROFILED).cores.0,
        ),
        Row::modelled(
            at("B8b", "3.2.2"),
            "CPU of memory management and scheduling, half reads",
            "%",
            (50.8, Points(5.0)),
            mixed.profiled_overhead_percent(MIXED_PROFILED.write_share),
        )
        .predicted_with(&CORE_FITS),
        Row::unknown(at("B10", "Figs 4, 5"), "curves between the end points"),
    ]
}

fn engine() -> Vec<Row> {
    let gb = |workload, updates| table_engine_gb(workload, updates).0;
    let fig13 = |id, what, stated, ours| {
        Row::modelled(at(id, "7.4"), what, "GB/s", (stated, Percent(10.0)), ours)
            .fitted_on(&ENGINE_FITS)
    };
    vec![
        fig13("F5a", "table cache alone, one update, Write-M", 27.1, gb(&WRITE_M, 1)),
        fig13("F5b", "one update, Write-H", 54.0, gb(&WRITE_H, 1))
            .note("the same rate of updates as Write-M, within 5%"),
        fig13("F5c", "four updates, Write-M", 63.8, gb(&WRITE_M, 4))
            .note("2.35 times one update: \"almost linear\" is not 4"),
        fig13("F5d", "four updates, Write-H", 127.0, gb(&WRITE_H, 4))
            .note("leaves read from DRAM bound it, as the paper says"),
        Row::modelled(
            at("F5e", "Table 5"),
            "large tree, four updates, Write-M",
            "GB/s",
            (64.0, Percent(10.0)),
            gb(&WRITE_M, 4),
        )
        .predicted_with(&ENGINE_FITS),
        Row::statement(
            at("F5f", "7.4"),
            "with four updates Write-H is bound by DRAM, Write-M by updates",
            gb(&WRITE_H, 5) <= gb(&WRITE_H, 4) && gb(&WRITE_M, 5) > gb(&WRITE_M, 4),
        )
        .predicted_with(&ENGINE_FITS),
        Row::unknown(at("F5g", "Fig 13"), "Write-L, and two and three updates"),
    ]
}

fn memory_saved() -> Vec<Row> {
    let saved = |workload| {
        let total = |design| dram_traffic(design, workload).total().0;
        100.0 * (1.0 - total(Design::FOUR_UPDATES) / total(Design::CidrPlus))
    };
    let writes = WRITES.map(saved).into_iter().fold(0.0, f64::max);
    vec![
        Row::modelled(
            at("F7a", "7.2"),
            "DRAM bandwidth saved, at most, writes",
            "%",
            (79.1, Points(5.0)),
            writes,
        ),
        Row::modelled(
            at("F7b", "7.2"),
            "DRAM bandwidth saved, Read-Mixed",
            "%",
            (84.9, Points(5.0)),
            saved(&READ_MIXED),
        ),
        Row::statement(
            at("F7c", "7.2"),
            "more hits, more saved",
            saved(&WRITE_H) > saved(&WRITE_M) && saved(&WRITE_M) > saved(&WRITE_L),
        ),
    ]
    .into_iter()
    .map(|row| row.predicted_with(&DRAM_FITS))
    .collect()
}

fn cores_saved() -> Vec<Row> {
    let share = |workload: &Workload, of: fn(&CoreCost) -> f64| {
        let cost = core_cost(Design::CidrPlus, workload);
        100.0 * of(&cost) / cost.total().0
    };
    let predictor = |workload: &Workload| share(workload, |cost| cost.predictor.0);
    let cache = |workload: &Workload| share(workload, |cost| cost.tree.0 + cost.table_ssd.0);
    let both = |workload: &Workload| predictor(workload) + cache(workload);
    let most = |of: &dyn Fn(&Workload) -> f64| WRITES.map(of).into_iter().fold(0.0, f64::max);
    let row = |id, what, stated, ours| {
        Row::modelled(at(id, "7.3"), what, "%", (stated, Points(5.0)), ours)
            .predicted_with(&CORE_FITS)
    };
    vec![
        row("F8a", "CPU saved without predictor, most", 37.0, most(&predictor)),
        row("F8b", "the same, least: Read-Mixed", 20.0, predictor(&READ_MIXED))
            .fitted_on(&[&cores::READ]),
        row("F8c", "CPU saved by the hardware cache, most", 44.0, most(&cache))
            .fitted_on(&[&workload::PROFILED_HITS]),
        row("F8d", "the same, least: Read-Mixed", 19.0, cache(&READ_MIXED)),
        row("F8e", "CPU saved in all, most, writes", 68.0, most(&both)),
        row("F8f", "CPU saved in all, Read-Mixed", 39.0, both(&READ_MIXED)),
    ]
}

fn ladder() -> Vec<Row> {
    let gb = |design, workload| limits(design, workload).throughput().0;
    let gain = |design, workload| gb(design, workload) / gb(Design::CidrPlus, workload);
    let most = |design| WRITES.map(|load| gain(design, load)).into_iter().fold(0.0, f64::max);
    let full = Design::FOUR_UPDATES;
    let row = |id, section, what, unit, stated, ours| {
        Row::modelled(at(id, section), what, unit, (stated, Percent(10.0)), ours)
            .predicted_with(&CORE_FITS)
    };
    let lowers = |load| gb(Design::ONE_UPDATE, load) < gb(Design::NicHashing, load);
    let after = 700.0 * READ_STEPS.value / 5.0;
    vec![
        row(
            "F9a",
            "7.5",
            "NIC hashing, peer-to-peer: gain, most",
            "x",
            1.6,
            most(Design::NicHashing),
        ),
        row("F9b", "7.5", "FIDR: gain, most", "x", 3.3, most(full)),
        row("F9c", "7.5", "FIDR: gain, Read-Mixed", "x", 1.7, gain(full, &READ_MIXED)),
        row("F9d", "talk", "FIDR: throughput, most", "GB/s", 80.0, gb(full, &WRITE_H)),
        Row::statement(
            at("F9e", "7.5"),
            "one update at a time lowers Write-L and Write-M, four raise them",
            [&WRITE_L, &WRITE_M]
                .into_iter()
                .all(|load| lowers(load) && gb(full, load) > gb(Design::ONE_UPDATE, load)),
        )
        .predicted_with(&CORE_FITS),
        Row::statement(
            at("F9f", "7.5"),
            "four updates give Read-Mixed nothing: cores bind it",
            (gain(full, &READ_MIXED) - gain(Design::ONE_UPDATE, &READ_MIXED)).abs() < 1e-9
                && limits(full, &READ_MIXED).least().1 == Bottleneck::Cores,
        )
        .predicted_with(&CORE_FITS),
        Row::unknown(at("F9g", "Fig 14"), "bars of the workloads that the text does not name"),
        Row::modelled(
            at("F10", "7.6.2"),
            "a read from SSD to NIC, from 700 with CIDR+",
            "us",
            (490.0, Percent(20.0)),
            after,
        )
        .note("only how many times a batch is handed on is modelled, and 700 is the authors'"),
        Row::physical(at("F11", "Table 4"), "LUTs of the NIC's reduction, writes", "K", 125.0),
        Row::physical(at("F3", "Table 5"), "LUTs of the cache engine, large tree", "K", 348.0),
    ]
}
