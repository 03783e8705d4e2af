//! The Markdown of `overwrite`.

use std::fmt::{self, Display, Formatter};

use crate::overwrite::{Overwrite, Written};
use crate::samples::Samples;

/// Device bytes for each reduced byte that are to be kept below.
const TARGET: f64 = 2.5;

impl Display for Overwrite {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let all = Written::sum(&self.tenths);
        let Self { pattern, seed, fill_percent, compressible_percent, times, load_average, .. } =
            self;
        let mib = |bytes: u64| bytes >> 20;
        writeln!(
            f,
            "{pattern}, seed {seed}; store of {} MiB, {} MiB of memory, {fill_percent}% full with \
             {} chunks ({compressible_percent}% of each zeros, frames of {} bytes); {} chunks \
             written over, {times} times the store's room in frames; load average \
             {load_average:.1}.\n",
            mib(self.capacity_bytes),
            mib(self.memory_bytes),
            self.chunks,
            self.live_bytes / self.chunks.max(1),
            all.chunks,
        )?;
        writeln!(
            f,
            "| device bytes for each reduced byte | whole run | last tenth |\n|---|---|---|"
        )?;
        let nothing = Written::default();
        let last = self.tenths.last().unwrap_or(&nothing);
        for ((name, bytes), (_, last_bytes)) in all.kinds().into_iter().zip(last.kinds()) {
            let (whole, last) = (all.per_reduced_byte(bytes), last.per_reduced_byte(last_bytes));
            writeln!(f, "| {name} | {whole:.3} | {last:.3} |")?;
        }
        writeln!(f, "| target | {TARGET} | |\n\n| | |\n|---|---|")?;
        let mut rates = Samples::default();
        self.tenths.iter().for_each(|part| rates.push(part.rate() / 1e3));
        writeln!(f, "| thousands of chunks a second, tenth by tenth | {rates} |")?;
        let (collected, liveness) = (all.containers_collected, all.liveness());
        writeln!(f, "| containers collected | {collected} |")?;
        writeln!(
            f,
            "| living when collected, mean | {liveness:.3}, last tenth {:.3} |",
            last.liveness()
        )?;
        writeln!(f, "| checkpoints | {} |\n| syncs | {} |", all.checkpoints, all.syncs)
    }
}
