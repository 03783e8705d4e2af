//! `tamis export`: a volume out as a raw image.
//!
//! Only data is read; holes stay holes in a file, are written as zeros to a stream or a device. A
//! file is written under a hidden name, synced, and renamed: under its own name it is always
//! whole. Several threads read, since decompression and verification happen on the reader's side.

use std::path::Path;
use std::time::Duration;

use engine::{Client, VolumeHandle};
use serde::Serialize;

use super::served;
use crate::args::ExportArgs;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::human_bytes;
use crate::store::{OpenStore, engine_options};
use crate::target::Target;

mod copy;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    volume: String,
    image_bytes: u64,
    /// Of the image, what is not holes.
    data_bytes: u64,
    seconds: f64,
}

pub(super) fn run(args: &ExportArgs) -> Result<(), CliError> {
    served::refuse(&args.store, &args.volume, served::Direction::Out, &args.file)?;
    let interrupt = Interrupt::listen()
        .map_err(|source| CliError::System { action: "signals cannot be heard", source })?;
    let options = engine_options(&args.engine, false);
    let summary = OpenStore::with(&args.store, options, |store| {
        let volume = find(store.client(), &args.store, &args.volume)?;
        let image_bytes = volume.size_bytes();
        let target = Target::open(&args.file, image_bytes, args.overwrite)?;
        let progress = Progress::new("exporting", Unit::Bytes, Some(image_bytes));
        let (data_bytes, took) = copy::copy(store.client(), volume, target, progress, &interrupt)?;
        let seconds = took.as_secs_f64();
        Ok(Summary { volume: args.volume.clone(), image_bytes, data_bytes, seconds })
    })?;
    if args.file.as_os_str() == "-" {
        // Standard output carries the image: the result goes where it does no harm.
        output::say(sentence(&summary));
        return Ok(());
    }
    if args.format.json {
        output::print_json(&summary)
    } else {
        output::print_line(sentence(&summary))
    }
}

fn find(client: &Client, store: &Path, name: &str) -> Result<VolumeHandle, CliError> {
    client.volume(name).map_err(|error| match error {
        engine::RequestError::NoSuchVolume { name } => {
            CliError::NoVolume { store: store.to_owned(), name }
        }
        other => other.into(),
    })
}

fn sentence(summary: &Summary) -> String {
    let speed = summary.data_bytes as f64 / summary.seconds.max(1e-3);
    format!(
        "exported {}: {} with {} of data ({}, {}/s)",
        summary.volume,
        human_bytes(summary.image_bytes),
        human_bytes(summary.data_bytes),
        human_duration(Duration::from_secs_f64(summary.seconds)),
        human_bytes(speed as u64),
    )
}
