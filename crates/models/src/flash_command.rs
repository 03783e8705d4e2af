//! `models flash`: ways to find a duplicate on a simulated flash device, as tables, JSON, CSV and
//! plots.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use models::flash::{Latency, Row, Study, Trace};

#[derive(Args)]
#[command(after_help = "Examples: models flash --requests 20000\n          \
    models flash --trace webmail.blkparse --requests 1000000 --json")]
pub(crate) struct Arguments {
    /// Requests of 4 KiB of each trace.
    #[arg(long, default_value_t = 100_000,
        value_parser = clap::value_parser!(u64).range(1_000..=4_000_000_000))]
    requests: u64,
    /// A trace in the format of FIU's IODedup, at its own times, instead of the made ones.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Of the made traces; the same seed gives the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What an erase takes, in microseconds: the paper does not say.
    #[arg(long, default_value_t = Latency::EAD.erase_ns / 1000,
        value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    erase_us: u64,
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
        let study = self.study()?;
        let unwritten =
            |path: &Path, error| format!("{} cannot be written: {error}", path.display());
        if let Some(path) = &self.csv {
            write_csv(path, &study).map_err(|error| unwritten(path, error))?;
        }
        if let Some(folder) = &self.plots {
            let plots = study.plots().map_err(|error| error.to_string())?;
            std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
            for (name, svg) in plots {
                let path = folder.join(name);
                std::fs::write(&path, svg).map_err(|error| unwritten(&path, error))?;
            }
        }
        if self.json {
            let json = serde_json::to_string_pretty(&study).map_err(|error| error.to_string())?;
            println!("{json}");
        } else {
            print!("{study}");
        }
        Ok(())
    }

    fn study(&self) -> Result<Study, String> {
        let latency = Latency { erase_ns: self.erase_us * 1000, ..Latency::EAD };
        let Some(path) = &self.trace else {
            let study = Study::of_made(self.requests, self.seed, latency, |what| {
                eprintln!("{what}");
            });
            return study.map_err(|error| error.to_string());
        };
        let unread = |error: io::Error| format!("{} cannot be read: {error}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let input = BufReader::new(File::open(path).map_err(unread)?);
        let trace = Trace::of_fiu(input, &name, self.requests).map_err(unread)?;
        if trace.writes().0 == 0 {
            return Err(format!("{} has no write in it that could be understood", path.display()));
        }
        Study::of_trace(&trace, latency).map_err(|error| error.to_string())
    }
}

fn write_csv(path: &Path, study: &Study) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", Row::CSV_HEADING)?;
    study.rows.iter().try_for_each(|row| writeln!(file, "{}", row.csv()))?;
    file.flush()
}
