//! The study as text: ours beside the paper's, with its kind.

use std::fmt::{self, Display, Formatter};

use super::formula::{ead_ns, hashed_ns};
use super::made::{BURST_MEAN, Original};
use super::paper::{BEST_DISTANCES, CASES, INCONSISTENCIES, gain};
use super::strategy::Strategy;
use super::study::{BURSTS, DISTANCES, Part, Row, Study};
use crate::columns::aligned;
use crate::kind::Kind;

/// How far a modelled figure may be from the paper's.
const NEAR: f64 = 0.25;

impl Display for Study {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.strategies(f)?;
        if self.traces(Part::Prefetch).is_empty() {
            return Ok(());
        }
        self.gains(f)?;
        self.bursts(f)?;
        self.formula(f)?;
        self.cases(f)?;
        self.prefetch(f)?;
        self.collections(f)?;
        writeln!(f, "Where the paper disagrees with itself\n")?;
        INCONSISTENCIES.iter().try_for_each(|sentence| writeln!(f, "- {sentence}"))
    }
}

fn row_of<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

impl Study {
    fn strategies(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Response times, us; the paper's bars for each trace are unknown\n")?;
        let mut rows = vec![row_of([
            "trace",
            "strategy",
            "write",
            "p99",
            "read",
            "/ ead",
            "duplicates, %",
            "of the trace",
        ])];
        for trace in self.traces(Part::Strategies) {
            let runs = self.of(Part::Strategies, trace);
            let ead = runs.iter().find(|row| row.strategy == Strategy::Ead);
            for run in &runs {
                let mut row = vec![trace.to_owned(), run.strategy.name().to_owned()];
                row.extend([run.write_us, run.write_p99_us].map(|us| format!("{us:.1}")));
                row.push(run.read_us.map_or("-".to_owned(), |us| format!("{us:.2}")));
                let times = ead.map_or(f64::NAN, |ead| run.write_us / ead.write_us);
                row.push(format!("{times:.2}"));
                row.push(format!("{:.2}", run.duplicate_percent));
                row.push(format!("{:.2}", run.trace_duplicate_percent));
                rows.push(row);
            }
        }
        aligned(f, 2, &rows)
    }

    fn gains(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Write response by EaD's, mean of the four traces (bursts of {BURST_MEAN})\n")?;
        let mut rows = vec![row_of(["strategy", "kind", "said", "paper", "ours", "off, %"])];
        for strategy in Strategy::ALL {
            let ours = self.gain(strategy, Some(BURST_MEAN));
            let paper = gain(strategy);
            let off = paper.map(|paper| ours / paper - 1.0);
            let (kind, said) = match (strategy, off) {
                (_, None) => (Kind::Unknown, ""),
                (Strategy::Sha1, _) => (Kind::Modelled, "fitted, by the bursts"),
                (_, Some(off)) if off.abs() <= NEAR => (Kind::Modelled, "reproduced"),
                _ => (Kind::Modelled, "not reproduced"),
            };
            let mut row = row_of([strategy.name(), kind.name(), said]);
            row.push(paper.map_or("-".to_owned(), |paper| format!("{paper:.1}")));
            row.push(format!("{ours:.2}"));
            row.push(off.map_or(String::new(), |off| format!("{:+.0}", 100.0 * off)));
            rows.push(row);
        }
        aligned(f, 3, &rows)
    }

    fn bursts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "The same by the mean length of bursts, the one free parameter\n")?;
        let mut rows = vec![vec!["strategy".to_owned()]];
        rows[0].extend(BURSTS.map(|mean| mean.to_string()));
        for strategy in Strategy::ALL {
            let mut row = vec![strategy.name().to_owned()];
            row.extend(BURSTS.map(|mean| format!("{:.2}", self.gain(strategy, Some(mean)))));
            rows.push(row);
        }
        aligned(f, 1, &rows)
    }

    fn formula(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "SHA-1 by EaD: the paper's formula (exact), and ours alone and in bursts\n")?;
        let heading = ["trace", "formula", "bursts of 1", "bursts of the study", "paper"];
        let mut rows = vec![row_of(heading)];
        let latency = &self.latency;
        for original in Original::TRACES {
            let ratio = original.duplicate_percent / 100.0;
            let formula = hashed_ns(latency.program_ns, latency.sha1_ns, ratio)
                / ead_ns(latency.program_ns, latency.read_ns, ratio);
            let gain = |part, mean| {
                let runs = self.of(part, original.name);
                let of = |strategy| {
                    let is_meant =
                        |row: &&&Row| (row.strategy, row.burst_mean) == (strategy, Some(mean));
                    runs.iter().find(is_meant).map_or(f64::NAN, |row| row.write_us)
                };
                of(Strategy::Sha1) / of(Strategy::Ead)
            };
            let mut row = vec![original.name.to_owned(), format!("{formula:.2}")];
            row.push(format!("{:.2}", gain(Part::Bursts, 1)));
            row.push(format!("{:.2}", gain(Part::Strategies, BURST_MEAN)));
            row.push("unknown".to_owned());
            rows.push(row);
        }
        aligned(f, 1, &rows)
    }

    fn cases(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "EaD's four cases, % of the writes. Modelled: cases 1 and 2, by the filter. Given: the \
             share of case 3 among contents, and the duplicates\n"
        )?;
        let mut rows = vec![row_of(["data", "whose", "1", "2", "3", "4", "4 by sha1"])];
        for (original, paper) in Original::DATA_SETS.iter().zip(CASES) {
            let mut row = row_of([original.name, "paper"]);
            row.extend(paper.map(|percent| format!("{percent:.3}")));
            rows.push(row);
            let runs = self.of(Part::Prefetch, original.name);
            let Some(run) = runs.first() else { continue };
            let mut row = row_of(["", "ours"]);
            row.extend(run.case_percent.map(|percent| format!("{percent:.3}")));
            row.push(format!("{:.3}", run.trace_duplicate_percent));
            rows.push(row);
        }
        aligned(f, 2, &rows)
    }

    fn prefetch(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "EaD's write response by prefetch distance, us. The paper's best (physical, on an \
             Intel 750) and ours\n"
        )?;
        let mut rows = vec![vec!["data".to_owned()]];
        rows[0].extend(DISTANCES.map(|distance| distance.to_string()));
        rows[0].extend(["paper's best", "ours"].map(str::to_owned));
        for (original, paper) in Original::DATA_SETS.iter().zip(BEST_DISTANCES) {
            let runs = self.of(Part::Prefetch, original.name);
            let mut row = vec![original.name.to_owned()];
            row.extend(runs.iter().map(|run| format!("{:.2}", run.write_us)));
            let best = runs.iter().min_by(|a, b| a.write_us.total_cmp(&b.write_us));
            row.push(paper.to_string());
            row.push(best.map_or(String::new(), |run| run.prefetch_distance.to_string()));
            rows.push(row);
        }
        aligned(f, 1, &rows)
    }

    fn collections(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The same traces on a device of 18 dies of one plane, four fifths of it addressed. \
             The paper has no such figures (unknown)\n"
        )?;
        let mut rows = vec![row_of([
            "trace",
            "strategy",
            "programs",
            "moved",
            "erases",
            "amplification",
            "duplicates, %",
            "write, us",
            "p99, us",
        ])];
        for trace in self.traces(Part::Collections) {
            for run in self.of(Part::Collections, trace) {
                let mut row = vec![trace.to_owned(), run.strategy.name().to_owned()];
                let counts = [run.figures.programs, run.figures.moved, run.figures.erases];
                row.extend(counts.map(|count| count.to_string()));
                row.push(format!("{:.3}", run.amplification));
                row.push(format!("{:.2}", run.duplicate_percent));
                row.extend([run.write_us, run.write_p99_us].map(|us| format!("{us:.1}")));
                rows.push(row);
            }
        }
        aligned(f, 2, &rows)
    }
}
