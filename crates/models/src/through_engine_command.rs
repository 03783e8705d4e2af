//! `models through-engine`: drives the real engine, and writes what it counted into the crate.

use std::path::{Path, PathBuf};

use clap::Args;
use models::through_engine::{Measured, read_folder, run_devices, run_workload};
use traces::WorkloadKind;

/// Stores that real data is striped over.
const DEVICES: [u64; 5] = [1, 2, 4, 8, 16];

#[derive(Args)]
#[command(after_help = "Example: models through-engine --data versions=/srv/versions")]
pub(crate) struct Arguments {
    /// Requests of each of FIDR's workloads; 0 leaves their figures as they are.
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Decides every address and every content.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folders of real data, each with a name; without any those figures stay as they are.
    #[arg(long, value_name = "NAME=FOLDER", value_parser = named_folder)]
    data: Vec<(String, PathBuf)>,
    /// The most chunks of 4 KiB that are taken of each folder.
    #[arg(long, default_value_t = 64 << 10)]
    chunks: usize,
    /// The file that gets the figures.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "crates/models/src/through_engine/figures.json"
    )]
    into: PathBuf,
}

impl Arguments {
    /// Runs and writes.
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut measured = Measured::committed().map_err(|error| error.to_string())?;
        if self.requests > 0 {
            let runs = WorkloadKind::ALL.map(|kind| {
                eprintln!("{}", kind.name());
                run_workload(kind, self.requests, self.seed)
            });
            let runs: Result<_, _> = runs.into_iter().collect();
            measured.workloads = runs.map_err(|error| error.to_string())?;
        }
        if !self.data.is_empty() {
            measured.devices.clear();
        }
        for (name, folder) in &self.data {
            let real = read_folder(folder, name, self.chunks).map_err(|error| error.to_string())?;
            for devices in DEVICES {
                eprintln!("{name}, {devices} devices");
                let run = run_devices(&real, devices).map_err(|error| error.to_string())?;
                measured.devices.push(run);
            }
        }
        self.write(&measured)
    }

    fn write(&self, measured: &Measured) -> Result<(), String> {
        let text = serde_json::to_string_pretty(measured).map_err(|error| error.to_string())?;
        std::fs::write(&self.into, text + "\n")
            .map_err(|error| format!("{} cannot be written: {error}", self.into.display()))
    }
}

fn named_folder(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && Path::new(folder).is_dir() => {
            Ok((name.to_owned(), PathBuf::from(folder)))
        }
        _ => Err("a name, = and a folder that exists".to_owned()),
    }
}
