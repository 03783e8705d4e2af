//! All runs of a study: strategies over traces, how the gains move with the length of bursts, the
//! four cases and the prefetch distance on the data sets, and a device that has to collect.

use serde::Serialize;

use super::device::{Setup, run};
use super::figures::Figures;
use super::ftl::Full;
use super::geometry::Geometry;
use super::latency::Latency;
use super::made::{BURST_MEAN, Original};
use super::prefetch::PrefetchSetup;
use super::strategy::Strategy;
use super::trace::Trace;

pub(super) const BURSTS: [u64; 7] = [1, 3, 6, BURST_MEAN, 12, 18, 24];
pub(super) const DISTANCES: [u64; 9] = [0, 1, 2, 3, 4, 5, 6, 8, 12];
/// Of the pages of the device that collects, so many are addressed.
const ADDRESSED_PERCENT: u64 = 80;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which part of the study it belongs to.
    pub part: Part,
    /// Which requests.
    pub trace: String,
    /// Of the trace, in percent of the writes.
    pub trace_duplicate_percent: f64,
    /// How duplicates were found.
    pub strategy: Strategy,
    /// Requests of a burst on average; none where the trace has times of its own.
    pub burst_mean: Option<u64>,
    /// Chunks that EaD fetches at a time.
    pub prefetch_distance: u64,
    /// An average write, in microseconds.
    pub write_us: f64,
    /// What 99 of 100 writes do not exceed, in microseconds.
    pub write_p99_us: f64,
    /// An average read, in microseconds.
    pub read_us: Option<f64>,
    /// Duplicates found, in percent of the writes.
    pub duplicate_percent: f64,
    /// EaD's four cases, in percent of the writes.
    pub case_percent: [f64; 4],
    /// Pages written, by those that requests wrote.
    pub amplification: f64,
    /// Everything that was counted.
    pub figures: Figures,
}

/// What a run is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The strategies on the paper's device.
    Strategies,
    /// The same with bursts of other lengths.
    Bursts,
    /// EaD over the data sets, by prefetch distance.
    Prefetch,
    /// The strategies on a device so small that it collects.
    Collections,
}

impl Part {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strategies => "strategies",
            Self::Bursts => "bursts",
            Self::Prefetch => "prefetch",
            Self::Collections => "collections",
        }
    }
}

/// What was found out.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Everything by chance follows from it.
    pub seed: u64,
    /// Of each trace.
    pub requests: u64,
    /// The device.
    pub geometry: Geometry,
    /// What its steps take.
    pub latency: Latency,
    /// One for each run.
    pub rows: Vec<Row>,
}

impl Study {
    /// Runs the made traces and data sets, each of so many requests.
    ///
    /// # Errors
    /// [`Full`] when a device is too small.
    pub fn of_made(
        requests: u64,
        seed: u64,
        latency: Latency,
        mut told: impl FnMut(&str),
    ) -> Result<Self, Full> {
        let mut study = Self::new(requests, seed, latency);
        for burst_mean in BURSTS {
            let is_usual = burst_mean == BURST_MEAN;
            let part = if is_usual { Part::Strategies } else { Part::Bursts };
            told(&format!("bursts of {burst_mean}"));
            for original in Original::TRACES {
                let trace = original.make(requests, burst_mean, seed);
                study.run_strategies(part, &trace, Some(burst_mean))?;
                if is_usual {
                    study.run_collections(&trace)?;
                }
            }
        }
        told("prefetch distances");
        for original in Original::DATA_SETS {
            let trace = original.make(requests, BURST_MEAN, seed);
            for distance in DISTANCES {
                let prefetch = PrefetchSetup { distance, ..PrefetchSetup::USUAL };
                let setup = Setup { prefetch, latency, ..Setup::usual(Strategy::Ead) };
                study.run(Part::Prefetch, &trace, &setup, Some(BURST_MEAN))?;
            }
        }
        Ok(study)
    }

    /// Runs one trace, at its own times.
    ///
    /// # Errors
    /// [`Full`] when the device is too small.
    pub fn of_trace(trace: &Trace, latency: Latency) -> Result<Self, Full> {
        let mut study = Self::new(trace.requests.len() as u64, 0, latency);
        study.run_strategies(Part::Strategies, trace, None)?;
        Ok(study)
    }

    fn new(requests: u64, seed: u64, latency: Latency) -> Self {
        Self { seed, requests, geometry: Geometry::EAD, latency, rows: Vec::new() }
    }

    fn run_strategies(
        &mut self,
        part: Part,
        trace: &Trace,
        burst_mean: Option<u64>,
    ) -> Result<(), Full> {
        Strategy::ALL.into_iter().try_for_each(|strategy| {
            let setup = Setup { latency: self.latency, ..Setup::usual(strategy) };
            self.run(part, trace, &setup, burst_mean)
        })
    }

    /// Requests stay as far apart as they are, so a collection shows in the times of few.
    fn run_collections(&mut self, trace: &Trace) -> Result<(), Full> {
        let lbas = trace.requests.iter().map(|request| request.lba).max().unwrap_or(0) + 1;
        let geometry = Geometry::small(lbas * 100 / ADDRESSED_PERCENT);
        Strategy::ALL.into_iter().try_for_each(|strategy| {
            let setup = Setup { latency: self.latency, geometry, ..Setup::usual(strategy) };
            self.run(Part::Collections, trace, &setup, Some(BURST_MEAN))
        })
    }

    fn run(
        &mut self,
        part: Part,
        trace: &Trace,
        setup: &Setup,
        burst_mean: Option<u64>,
    ) -> Result<(), Full> {
        let figures = run(trace, setup)?;
        self.rows.push(Row {
            part,
            trace: trace.name.clone(),
            trace_duplicate_percent: trace.duplicate_percent(),
            strategy: setup.strategy,
            burst_mean,
            prefetch_distance: setup.prefetch.distance,
            write_us: figures.write_us(),
            write_p99_us: figures.write_p99_us(),
            read_us: figures.read_us(),
            duplicate_percent: figures.duplicate_percent(),
            case_percent: figures.cases.map(|count| figures.percent_of_writes(count)),
            amplification: figures.amplification(),
            figures,
        });
        Ok(())
    }

    /// The runs of a part and a trace, in their order.
    pub(super) fn of(&self, part: Part, trace: &str) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.part == part && row.trace == trace).collect()
    }

    /// The traces of a part, in their order.
    pub(super) fn traces(&self, part: Part) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in self.rows.iter().filter(|row| row.part == part) {
            if !names.contains(&row.trace.as_str()) {
                names.push(&row.trace);
            }
        }
        names
    }

    /// How many times as long a write takes as with EaD, with bursts of this length: on average
    /// over the traces.
    pub(super) fn gain(&self, strategy: Strategy, burst_mean: Option<u64>) -> f64 {
        let of = |strategy| {
            let is_meant = move |row: &&Row| {
                matches!(row.part, Part::Strategies | Part::Bursts)
                    && (row.strategy, row.burst_mean) == (strategy, burst_mean)
            };
            self.rows.iter().filter(is_meant)
        };
        let gains =
            of(strategy).zip(of(Strategy::Ead)).map(|(row, ead)| row.write_us / ead.write_us);
        let gains: Vec<f64> = gains.collect();
        gains.iter().sum::<f64>() / gains.len().max(1) as f64
    }
}

impl Row {
    /// The heading of the CSV form.
    pub const CSV_HEADING: &'static str = "part,trace,strategy,burst_mean,prefetch_distance,\
        write_us,write_p99_us,read_us,trace_duplicate_percent,duplicate_percent,case1_percent,\
        case2_percent,case3_percent,case4_percent,compare_reads,prefetch_reads,programs,moved,\
        erases,amplification";

    /// One line of CSV; the name of a trace loses its commas.
    #[must_use]
    pub fn csv(&self) -> String {
        let Figures { compare_reads, prefetch_reads, programs, moved, erases, .. } = self.figures;
        let burst = self.burst_mean.map_or(String::new(), |mean| mean.to_string());
        let read = self.read_us.map_or(String::new(), |us| format!("{us:.3}"));
        let cases = self.case_percent.map(|percent| format!("{percent:.4}")).join(",");
        format!(
            "{},{},{},{burst},{},{:.3},{:.3},{read},{:.3},{:.3},{cases},{compare_reads},\
             {prefetch_reads},{programs},{moved},{erases},{:.4}",
            self.part.name(),
            self.trace.replace(',', ""),
            self.strategy.name(),
            self.prefetch_distance,
            self.write_us,
            self.write_p99_us,
            self.trace_duplicate_percent,
            self.duplicate_percent,
            self.amplification,
        )
    }
}
