//! EaD's rows: X1 to X11.

use crate::row::{Paper, Row};

use super::formula::{ead_ns, hashed_ns};
use super::geometry::Geometry;
use super::latency::Latency;

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::Ead, id, section)
}

/// Those in closed form.
#[must_use]
pub fn rows() -> Vec<Row> {
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
