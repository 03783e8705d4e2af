//! `models cache-study`: the model of the tables' cache over workloads and traces, as tables, JSON,
//! CSV and plots.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use models::cache::{Question, Record, Stream, Study};
use traces::{Workload, WorkloadKind};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(10);
const REQUESTS: u64 = 5_000_000;
const REQUESTS_QUICK: u64 = 40_000;

#[derive(Args)]
#[command(after_help = "Examples: models cache-study --quick\n          \
    models cache-study --requests 5000000 --jobs 2 --csv study.csv --plots .")]
pub(crate) struct Arguments {
    /// Requests of each workload, and of the trace at most [default: 5000000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(8..=500_000_000))]
    requests: Option<u64>,
    /// Few requests: everything is gone through in seconds, at the price of what it says.
    #[arg(long, conflicts_with = "requests")]
    quick: bool,
    /// A trace in the format of FIU's IODedup instead of the made workloads.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Only the runs of one question: size, filter, locality, index, fairness or sharing.
    #[arg(long, value_name = "QUESTION", value_parser = question)]
    question: Option<Question>,
    /// Of the workloads and of the places of fingerprints; the same seed gives the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads, one run each.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Print everything as JSON instead of as tables.
    #[arg(long)]
    json: bool,
    /// Write one line for each run to this file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw plots as SVG into this folder, which is made if it is missing.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

impl Arguments {
    /// Makes the study and tells it.
    pub(crate) fn run(&self) -> Result<(), String> {
        let streams = self.streams()?;
        let begun = Instant::now();
        let told = Mutex::new(begun);
        let study = Study::run(&streams, self.question, self.seed, self.jobs, |done, all| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed() >= PROGRESS {
                *told = Instant::now();
                let left = begun.elapsed().mul_f64((all - done) as f64 / done as f64).as_secs();
                eprintln!("{done} of {all} runs, about {left} s to go");
            }
        });
        if let Some(path) = &self.csv {
            write_csv(path, &study)
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        if let Some(folder) = &self.plots {
            write_plots(folder, &study)?;
        }
        if self.json {
            let json = serde_json::to_string_pretty(&study).map_err(|error| error.to_string())?;
            println!("{json}");
        } else {
            print!("{study}");
        }
        Ok(())
    }

    fn streams(&self) -> Result<Vec<Stream>, String> {
        let usual = if self.quick { REQUESTS_QUICK } else { REQUESTS };
        let requests = self.requests.unwrap_or(usual);
        let Some(path) = &self.trace else {
            let workload = |kind| Stream::of_workload(&Workload::new(kind, requests, self.seed));
            return Ok(WorkloadKind::ALL.map(workload).to_vec());
        };
        let unread = |error: io::Error| format!("{} cannot be read: {error}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let input = BufReader::new(File::open(path).map_err(unread)?);
        let stream = Stream::of_trace(input, &name, requests).map_err(unread)?;
        if stream.writes() == 0 {
            return Err(format!("{} has no write in it that could be understood", path.display()));
        }
        Ok(vec![stream])
    }
}

fn question(name: &str) -> Result<Question, String> {
    let found = Question::ALL.into_iter().find(|question| question.name() == name);
    found.ok_or_else(|| {
        let names = Question::ALL.map(Question::name).join(", ");
        format!("the questions are {names}")
    })
}

fn write_csv(path: &Path, study: &Study) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", Record::CSV_HEADING)?;
    study.runs.iter().try_for_each(|run| writeln!(file, "{}", run.csv()))?;
    file.flush()
}

fn write_plots(folder: &Path, study: &Study) -> Result<(), String> {
    let plots = study.plots().map_err(|error| error.to_string())?;
    let unwritten = |path: &Path, error| format!("{} cannot be written: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
    for (name, svg) in plots {
        let path = folder.join(name);
        std::fs::write(&path, svg).map_err(|error| unwritten(&path, error))?;
    }
    Ok(())
}
