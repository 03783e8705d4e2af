//! The Markdown of `latency`.

use std::fmt::{self, Display, Formatter};

use crate::latency::{Latency, Row};

/// What the background may cost at most.
const TARGET: f64 = 2.0;

impl Display for Latency {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { rate, depth, alone, beside } = self;
        writeln!(
            f,
            "Random requests of 4 KiB over one Unix socket (fio), in us; median of rounds (min to \
             max).\n\nOne at a time; by: the slowest hundredth, by that of nbdkit's memory.\n"
        )?;
        rows(f, alone)?;
        writeln!(
            f,
            "\n{rate} a second at random moments, seven reads for three writes, no more than \
             {depth} under way, beside what the store does in the background; by: the slowest \
             hundredth, by that of the same store right before (target: at most {TARGET}).\n"
        )?;
        rows(f, beside)
    }
}

fn rows(f: &mut Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        f,
        "| | half within | slowest hundredth | slowest thousandth | slowest | by |\n\
         |---|---|---|---|---|---|"
    )?;
    rows.iter().try_for_each(|row| {
        let Row { name, half_us, hundredth_us, thousandth_us, slowest_us, compared_us } = row;
        let by = hundredth_us.over(compared_us);
        writeln!(
            f,
            "| {name} | {half_us} | {hundredth_us} | {thousandth_us} | {slowest_us} | {by} |"
        )
    })
}
