//! EaD's rows: X1, X4, X6 to X11; `data_rows.rs` has those on data, `platform_rows.rs` X6's tails.
//! Those of the simulator are of short made traces; `models flash` runs long ones, and
//! `docs/measurements/014-flash.md` has them.

use crate::parameter::Parameter;
use crate::row::Row;
use crate::row::Tolerance::{Percent, Points};

use super::bloom::BLOOM_BITS;
use super::data_rows::{REQUESTS, SEED, at, data_rows};
use super::device::{Setup, run};
use super::formula::{ead_ns, hashed_ns};
use super::geometry::Geometry;
use super::latency::Latency;
use super::made::{BURST_MEAN, Original};
use super::paper::{BEST_DISTANCES, CASES, gain};
use super::platform_rows::platform_rows;
use super::prefetch::PrefetchSetup;
use super::strategy::Strategy;

/// How requests come.
static BURSTS: Parameter = Parameter::fitted(
    "requests of a burst, EaD's simulator",
    BURST_MEAN as f64,
    "on average",
    "on 3.4 for SHA-1",
);
/// EaD's filter.
static BLOOM: Parameter =
    Parameter::fitted("bits of EaD's Bloom filter, two functions", BLOOM_BITS, "", "on Table 4");

/// What the simulator is given beside Table 5.
pub static PARAMETERS: [&Parameter; 2] = [&BURSTS, &BLOOM];

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    [closed_forms(), platform_rows(), data_rows(), gains(), cases(), prefetch()].concat()
}

/// Microseconds of an average write; infinite if the device is too small.
fn write_us(original: &Original, strategy: Strategy, distance: u64) -> f64 {
    let trace = original.make(REQUESTS, BURST_MEAN, SEED);
    let prefetch = PrefetchSetup { distance, ..PrefetchSetup::USUAL };
    let setup = Setup { prefetch, ..Setup::usual(strategy) };
    run(&trace, &setup).map_or(f64::INFINITY, |figures| figures.write_us())
}

fn gains() -> Vec<Row> {
    let usual = PrefetchSetup::USUAL.distance;
    let ours = |strategy| {
        let gain = |original: &Original| {
            write_us(original, strategy, usual) / write_us(original, Strategy::Ead, usual)
        };
        Original::TRACES.iter().map(gain).sum::<f64>() / Original::TRACES.len() as f64
    };
    let row = |id, what, strategy| {
        let stated = gain(strategy).unwrap_or(f64::NAN);
        Row::modelled(at(id, "4.4"), what, "x", (stated, Percent(25.0)), ours(strategy))
    };
    vec![
        row("X7a", "write response beside EaD: SHA-1", Strategy::Sha1).fitted_on(&[&BURSTS]),
        row("X7b", "SHA-256", Strategy::Sha256).predicted_with(&[&BURSTS]),
        row("X7c", "sampling", Strategy::Sampling).predicted_with(&[&BURSTS]).note(
            "sampling hashes only what was seen before, so it waits less than SHA-1 wherever \
             hashing is the bottleneck; what makes the paper's slower than SHA-1 it leaves out",
        ),
    ]
}

fn cases() -> Vec<Row> {
    let ids = [["X4a", "X4b"], ["X4c", "X4d"], ["X4e", "X4f"], ["X4g", "X4h"]];
    let what = [
        ["writes that the filter does not know: VMDK", "filter yes, table no: VMDK"],
        ["filter does not know: Kernel", "filter yes, table no: Kernel"],
        ["filter does not know: MobileSys", "filter yes, table no: MobileSys"],
        ["filter does not know: Firefox", "filter yes, table no: Firefox"],
    ];
    let mut rows = Vec::new();
    for (set, original) in Original::DATA_SETS.iter().enumerate() {
        let trace = original.make(REQUESTS, BURST_MEAN, SEED);
        let Ok(figures) = run(&trace, &Setup::usual(Strategy::Ead)) else { continue };
        for case in 0..2 {
            let ours = figures.percent_of_writes(figures.cases[case]);
            let place = at(ids[set][case], "Table 4");
            let stated = (CASES[set][case], Points(1.5));
            let row = Row::modelled(place, what[set][case], "%", stated, ours);
            rows.push(row.fitted_on(&[&BLOOM]));
        }
    }
    rows
}

fn prefetch() -> Vec<Row> {
    let kernel = &Original::DATA_SETS[1];
    let gains_most = |original: &Original| {
        write_us(original, Strategy::Ead, 0) / write_us(original, Strategy::Ead, 5)
    };
    let others = Original::DATA_SETS.iter().filter(|original| original.name != kernel.name);
    let most = gains_most(kernel);
    let distances = [0, 1, 2, 3, 5, 8].map(|distance| write_us(kernel, Strategy::Ead, distance));
    let best = (0..).zip(distances).min_by(|one, other| one.1.total_cmp(&other.1));
    let best = best.map_or(0, |(place, _)| [0, 1, 2, 3, 5, 8][place as usize]);
    let usual = PrefetchSetup::USUAL.distance;
    vec![
        Row::statement(
            at("X9a", "4.3"),
            "reading ahead gains on all data sets, and most on Kernel",
            most > 1.0 && others.map(gains_most).all(|gain| gain > 1.0 && gain < most),
        )
        .predicted_with(&[&BURSTS]),
        Row::modelled(
            at("X9b", "4.3"),
            "best prefetch distance: Kernel",
            "chunks",
            (BEST_DISTANCES[1] as f64, Points(1.0)),
            f64::from(best),
        )
        .predicted_with(&[&BURSTS])
        .note(
            "reading ahead costs nothing on a simulated device of 72 dies, so none is best; \
             the paper's was measured by a host with an SSD, whose reads cost what it leaves out",
        ),
        Row::modelled(
            at("X10", "4.2"),
            "sampling beside SHA-1 on Kernel: slower",
            "x",
            (1.0, crate::row::Tolerance::AtLeast),
            write_us(kernel, Strategy::Sampling, usual) / write_us(kernel, Strategy::Sha1, usual),
        )
        .predicted_with(&[&BURSTS])
        .note(
            "on the simulated device hashing is the bottleneck, and sampling hashes less; what \
             it costs a real host to sample, which would turn the order, the paper leaves out",
        ),
    ]
}

fn closed_forms() -> Vec<Row> {
    let Latency { read_ns, program_ns, sha1_ns, .. } = Latency::EAD;
    let gain = |ratio| hashed_ns(program_ns, sha1_ns, ratio) / ead_ns(program_ns, read_ns, ratio);
    let note = "derived from the paper's own formula; its simulator has 3.4 on average, so most of \
                that is waiting";
    vec![
        Row::exact(
            at("X1", "Table 5"),
            "the simulated device",
            "GiB",
            (144.0, 0),
            Geometry::EAD.bytes() as f64 / (1_u64 << 30) as f64,
        )
        .note("derived from its pages, blocks, planes, dies, chips and channels"),
        Row::exact(
            at("X8a", "4.2"),
            "formula: gain over SHA-1, Homes",
            "x",
            (1.20, 2),
            gain(0.333),
        )
        .note(note),
        Row::exact(at("X8b", "4.2"), "Web-vm", "x", (1.24, 2), gain(0.473)),
        Row::exact(at("X8c", "4.2"), "Mail", "x", (1.99, 2), gain(0.910)),
        Row::exact(at("X8d", "4.2"), "Hadoop", "x", (1.17, 2), gain(0.207)),
        Row::physical(at("X6a", "4.2"), "throughput beside MD5", "x", 2.3),
        Row::physical(at("X6b", "4.2"), "response beside SHA-256", "x", 4.2),
        Row::unknown(at("X11", "Figs 1, 9, 12, 13, 14b"), "bars and curves"),
    ]
}
