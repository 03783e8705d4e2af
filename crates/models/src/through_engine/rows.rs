//! The rows that the real engine counted: Table 3's duplicates, and CAL'17's devices.

use crate::row::Tolerance::Points;
use crate::row::{Basis, Paper, Row};

use super::{DeviceRun, Measured, WorkloadRun};

/// A line of Table 3, in percent, and the rows that are made of it.
struct Stated {
    workload: &'static str,
    duplicates: (&'static str, &'static str, f64),
    /// Read-Mixed writes what Write-H does, and has no rate of hits of its own.
    hits: Option<(&'static str, &'static str, f64)>,
}

const TABLE_3: [Stated; 4] = [
    Stated {
        workload: "write-h",
        duplicates: ("W1a", "duplicates that an engine store finds: Write-H", 88.0),
        hits: Some(("W1b", "its look-ups that hit in FIDR's own table", 90.0)),
    },
    Stated {
        workload: "write-m",
        duplicates: ("W2a", "duplicates found: Write-M", 84.0),
        hits: Some(("W2b", "hits", 81.0)),
    },
    Stated {
        workload: "write-l",
        duplicates: ("W3a", "duplicates found: Write-L", 43.1),
        hits: Some(("W3b", "hits", 45.0)),
    },
    Stated {
        workload: "read-mixed",
        duplicates: ("W4a", "duplicates found: Read-Mixed", 88.0),
        hits: None,
    },
];
/// The law has to be so near to what is counted, in points.
const LAW_POINTS: f64 = 3.0;

/// All of them; none without figures.
#[must_use]
pub fn rows() -> Vec<Row> {
    let measured = Measured::committed().unwrap_or_default();
    [workloads(&measured.workloads), devices(&measured.devices)].concat()
}

fn workloads(runs: &[WorkloadRun]) -> Vec<Row> {
    let mut rows = Vec::new();
    for Stated { workload, duplicates, hits } in TABLE_3 {
        let Some(run) = runs.iter().find(|run| run.workload == workload) else { continue };
        let row = |(id, what, stated), points, ours| {
            let place = (Paper::Fidr, id, "Table 3");
            Row::modelled(place, what, "%", (stated, Points(points)), ours)
        };
        let found = row(duplicates, 0.5, run.engine.duplicate_percent);
        rows.push(Row { basis: Basis::Engine, ..found });
        rows.extend(hits.map(|hits| row(hits, 1.0, run.bucket_hit_percent)));
    }
    rows
}

fn devices(runs: &[DeviceRun]) -> Vec<Row> {
    let mut sets: Vec<&str> = runs.iter().map(|run| run.data.as_str()).collect();
    sets.dedup();
    let places = [["C5a", "C5b"], ["C6a", "C6b"]];
    let what = [
        [
            "the more engine stores deduplicate for themselves, the fewer duplicates: first set",
            "the law says what they find, to 3 points: first set",
        ],
        ["the same: second set", "the law: second set"],
    ];
    let mut rows = Vec::new();
    for ((set, ids), what) in sets.into_iter().zip(places).zip(what) {
        let of_set: Vec<&DeviceRun> = runs.iter().filter(|run| run.data == set).collect();
        let falls = of_set.windows(2).all(|pair| pair[1].found_percent < pair[0].found_percent);
        let off = |run: &&DeviceRun| (run.law_percent - run.found_percent).abs();
        let is_near = of_set.iter().map(off).all(|off| off <= LAW_POINTS);
        for ((id, what), holds) in ids.into_iter().zip(what).zip([falls, is_near]) {
            let row = Row::statement((Paper::Cal, id, "talk"), what, holds);
            rows.push(Row { basis: Basis::Engine, ..row });
        }
    }
    rows
}
