//! The Markdown of `latency`.

use std::fmt::{self, Display, Formatter};

use crate::latency::{Latency, Row};
use crate::samples::Samples;
use crate::wanted::{Bound, Wanted};

/// What the background may cost at most.
const TARGET: f64 = 2.0;

impl Latency {
    /// What this is held to.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Wanted> {
        self.beside.iter().map(|row| {
            let what = format!("{}: the slowest hundredth, times the quiet store's", row.name);
            Wanted::new(what, Bound::AtMost(TARGET), row.by())
        })
    }
}

impl Row {
    /// The slowest hundredth, by that of what it is compared with.
    fn by(&self) -> Samples {
        self.hundredth_us.over(&self.compared_us)
    }
}

impl Display for Latency {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { rate, alone, beside, ended_early } = self;
        writeln!(
            f,
            "Random requests of 4 KiB over one Unix socket, in us; median of rounds (min to \
             max).\n\nOne at a time (fio); by: the slowest hundredth, by that of nbdkit's \
             memory.\n"
        )?;
        rows(f, alone)?;
        writeln!(
            f,
            "\n{rate} a second at random moments, seven reads for three writes, each counted from \
             the moment it was due, beside what the store does in the background (beside a \
             deletion for one second); by: the slowest hundredth, by that of the same store right \
             before.\n"
        )?;
        rows(f, beside)?;
        ended_early.iter().try_for_each(|what| {
            writeln!(f, "\nNot counted, as it ended before the requests did: {what}.")
        })
    }
}

fn rows(f: &mut Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        f,
        "| | half within | slowest hundredth | slowest thousandth | slowest | by |\n\
         |---|---|---|---|---|---|"
    )?;
    rows.iter().try_for_each(|row| {
        let Row { name, half_us, hundredth_us, thousandth_us, slowest_us, .. } = row;
        let by = row.by();
        writeln!(
            f,
            "| {name} | {half_us} | {hundredth_us} | {thousandth_us} | {slowest_us} | {by} |"
        )
    })
}
