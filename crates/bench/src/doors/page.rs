//! The table of doors, and which of it is held to what.

use std::fmt::{self, Display, Formatter};

use super::{Doors, Row};
use crate::samples::Samples;
use crate::wanted::{Bound, Wanted};

/// Of what the engine could take through NBD, Tamis is to reach this much (issue 49).
const REACHABLE_LEAST: f64 = 0.6;

impl Doors {
    /// Every load is held to what the engine could take through NBD.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let held = |row: &Row| {
            let what = format!("{}: part of what the engine could take through NBD", row.load);
            Wanted::new(what, Bound::AtLeast(REACHABLE_LEAST), row.of_reachable.clone())
        };
        self.rows.iter().map(held).collect()
    }
}

impl Row {
    /// Thousands a second of single chunks, MiB/s of larger requests.
    fn shown(&self, operations: &Samples) -> Samples {
        operations.over_number(match self.is_large() {
            true => f64::from(1 << 20) / f64::from(self.block_bytes),
            false => 1000.0,
        })
    }

    fn is_large(&self) -> bool {
        self.block_bytes >= 1 << 20
    }
}

impl Display for Doors {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (mib, memory_mib) = (self.volume_bytes >> 20, self.memory_bytes >> 20);
        let verified =
            if self.verified { ", all reads compared with what was written" } else { "" };
        writeln!(
            f,
            "A volume of {mib} MiB, {memory_mib} MiB of memory; each run ends after {} s or {mib} \
             MiB{verified}. Requests of 4 KiB in thousands a second, of 1 MiB in MiB/s, median \
             (min to max). Half of the chunks repeat others; each is half noise, half zeros. \
             Columns 2 to 4 are by our client, or the same requests without a socket; \
             *reachable* is the lower of columns 3 and 4, round by round.\n\n\
             | | Tamis through NBD | a server that does nothing | the engine in process | Tamis / \
             nothing | Tamis / engine | **Tamis / reachable** | Tamis by fio |\n\
             |---|---|---|---|---|---|---|---|",
            self.seconds,
        )?;
        for row in &self.rows {
            let Row { load, of_nothing, of_engine, of_reachable, .. } = row;
            let [tamis, nothing, engine, fio] =
                [&row.tamis, &row.nothing, &row.engine, &row.fio].map(|figures| row.shown(figures));
            writeln!(
                f,
                "| {load} | {tamis} | {nothing} | {engine} | {of_nothing} | {of_engine} | \
                 **{of_reachable}** | {fio} |"
            )?;
        }
        writeln!(f, "\nLoad average when a round began: {}.", self.load_average)
    }
}
