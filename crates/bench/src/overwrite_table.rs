//! The Markdown of `overwrite`.

use std::fmt::{self, Display, Formatter};

use crate::overwrite::{Overwrite, Written};
use crate::samples::Samples;
use crate::wanted::{Bound, Wanted};

/// Device bytes for each reduced byte.
const TARGET: f64 = 2.5;

impl Overwrite {
    /// What this is held to.
    pub(crate) fn wanted(&self) -> Wanted {
        let mut times = Samples::default();
        times.push(Written::sum(&self.tenths).all_per_reduced_byte());
        let what = "overwriting at random: device bytes for each reduced byte";
        Wanted::new(what, Bound::AtMost(TARGET), times)
    }
}

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
        writeln!(f, "\n| | |\n|---|---|")?;
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;
    use crate::overwrite::{Overwrite, Written};
    use crate::report::Figures;

    #[test]
    fn what_reaches_the_device_is_held_to_something() {
        let reached = |collection_bytes| {
            let tenth = Written {
                reduced_bytes: 100,
                clients_bytes: 110,
                collection_bytes,
                ..Written::default()
            };
            let args = Args::parse_from(["bench", "overwrite"]);
            let overwrite = Some(Overwrite::new(&args, 1, 1, vec![tenth; 10]));
            let wanted = Figures { overwrite, ..Figures::default() }.wanted();
            wanted.iter().map(|one| one.reached).collect::<Vec<_>>()
        };
        assert_eq!((reached(140), reached(200)), (vec![true], vec![false]));
    }
}
