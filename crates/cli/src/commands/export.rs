//! `tamis export`: a volume out as a raw image.
//!
//! Only data is read; holes stay holes in a file, are written as zeros to a stream or a device. A
//! file is written under a hidden name, synced, and renamed: under its own name it is always
//! whole. Several threads read, since decompression and verification happen on the reader's side,
//! or on the server's for each of its connections, where the store is served.

use std::time::Duration;

use serde::Serialize;

use crate::args::ExportArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::human_bytes;
use crate::store::engine_options;
use crate::target::Target;

mod copy;
mod stream;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    volume: String,
    /// The snapshot that a stream leads on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    image_bytes: u64,
    /// Of the image, what is not holes; of a stream, what it carries.
    data_bytes: u64,
    seconds: f64,
}

pub(super) fn run(args: &ExportArgs) -> Result<(), CliError> {
    let streams = args.stream || args.from.is_some();
    let interrupt = Interrupt::listen()?;
    let options = engine_options(&args.engine, false);
    let summary = Store::with_engine(&args.store, &options, |store| {
        let (volume, from) = (args.volume.clone(), args.from.clone());
        if streams {
            let stream::Streamed { image_bytes, data_bytes, took } =
                stream::export(store, args, &interrupt)?;
            let seconds = took.as_secs_f64();
            return Ok(Summary { volume, from, image_bytes, data_bytes, seconds });
        }
        let name = store.volume(&args.store, &args.volume)?.name;
        let data = store.open(&name, "export")?;
        let image_bytes = data.size_bytes();
        let target = Target::open(&args.file, image_bytes, args.overwrite)?;
        let progress = Progress::new("exporting", Unit::Bytes, Some(image_bytes));
        let (data_bytes, took) = copy::copy(&data, target, progress, &interrupt)?;
        Ok(Summary { volume, from, image_bytes, data_bytes, seconds: took.as_secs_f64() })
    })?;
    if args.file.as_os_str() == "-" {
        // Standard output carries the image: the result goes where it does no harm.
        output::say(sentence(&summary));
        return Ok(());
    }
    if args.format.json {
        output::print_json(&summary)
    } else {
        output::print_sentence(sentence(&summary))
    }
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
