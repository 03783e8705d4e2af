//! EaD's row X6, its prototype on a real SSD: what its tail follows from.

use crate::row::Row;
use crate::row::Tolerance::Percent;

use super::data_rows::at;

/// 99th percentiles of responses on one data set, in microseconds (section 4.2).
struct Tail {
    row: (&'static str, &'static str),
    ead_us: f64,
    md5_us: f64,
    sha256_us: f64,
}

const TAILS: [Tail; 4] = [
    Tail {
        row: ("X6c", "99th percentile of EaD, from those of MD5 and SHA-256: first data set"),
        ead_us: 36.0,
        md5_us: 53.0,
        sha256_us: 71.0,
    },
    Tail { row: ("X6d", "second"), ead_us: 21.0, md5_us: 38.0, sha256_us: 56.0 },
    Tail { row: ("X6e", "third"), ead_us: 31.0, md5_us: 54.0, sha256_us: 73.0 },
    Tail { row: ("X6f", "fourth"), ead_us: 27.0, md5_us: 52.0, sha256_us: 71.0 },
];
/// The code of a chunk (Table 5).
const ECC_US: f64 = 1.0;

/// Hashing is what differs between the two, and SHA-256 takes twice as long as MD5; so what they
/// differ by is a hash of MD5, which EaD does without.
fn ead_us(md5_us: f64, sha256_us: f64) -> f64 {
    let md5_hash_us = sha256_us - md5_us;
    md5_us - md5_hash_us + ECC_US
}

/// All of them.
pub(super) fn platform_rows() -> Vec<Row> {
    let row = |tail: &Tail| {
        let ours = ead_us(tail.md5_us, tail.sha256_us);
        Row::modelled(at(tail.row.0, "4.2"), tail.row.1, "us", (tail.ead_us, Percent(15.0)), ours)
    };
    let mut rows: Vec<Row> = TAILS.iter().map(row).collect();
    for row in &mut rows[2..] {
        row.note = "EaD is faster here than MD5 less its hash: so less must wait in queues, of \
                    which the paper says nothing for its prototype";
    }
    rows
}
