//! `tamis estimate`: what a store would save, before there is one.
//!
//! A path that is not there ends it at once, since it is most likely mistyped; whatever else cannot
//! be read is told at the end, when the rest has been.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use estimate::{CodecFigures, Estimate, Figure, Options, SizeFigures, Unreadable};
use format::units::{Codec, Compression};
use images::ImageError;
use serde::Serialize;

use crate::args::{CHUNK_SIZES, Codecs, EstimateArgs};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::{human_bytes, human_count};
use crate::store::processors;
use crate::table::{Align, Table};

/// What `--compression all` is.
const ALL_COMPRESSIONS: [Compression; 3] = [
    Compression { codec: Codec::Lz4, level: 0 },
    Compression { codec: Codec::Zstd, level: 1 },
    Compression { codec: Codec::Raw, level: 0 },
];

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    /// Files, images and devices that were read.
    files: u64,
    /// Their sizes.
    logical_bytes: u64,
    /// Data in them that was read: holes are not.
    read_bytes: u64,
    seconds: f64,
    chunk_sizes: Vec<SizeFigures>,
    unreadable_files: u64,
    /// Those of them that were read in part: the figures are of that part as well.
    files_in_part: u64,
    /// The first thousand of them.
    unreadable: Vec<UnreadableFile>,
}

#[derive(Debug, Serialize)]
struct UnreadableFile {
    #[serde(serialize_with = "output::path_as_text")]
    path: PathBuf,
    reason: String,
    /// What was read of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
}

pub(super) fn run(args: EstimateArgs) -> Result<(), CliError> {
    check_paths(&args.paths)?;
    check_memory(args.memory)?;
    let interrupt = Interrupt::listen()?;
    let total_bytes = estimate::data_bytes(&args.paths, || interrupt.check().is_ok());
    let mut progress = Progress::new("reading", Unit::Bytes, Some(total_bytes));
    let found = estimate::estimate(&args.paths, &options(&args), |done_bytes| {
        // What grows meanwhile, or is stored compressed, is more than was counted.
        progress.set_done(done_bytes.min(total_bytes));
        if interrupt.check().is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // Broken off is what only a signal does.
    let Some(found) = found else { return interrupt.check() };
    let report = Report::new(found, progress.finish())?;
    if args.format.json {
        output::print_json(&report)?;
    } else {
        output::print(text(&report, args.memory))?;
        for file in &report.unreadable {
            output::say(file.sentence());
        }
    }
    match report.unreadable_files {
        0 => Ok(()),
        count => Err(CliError::NotAllRead { count, in_part: report.files_in_part }),
    }
}

pub(super) fn check_paths(paths: &[PathBuf]) -> Result<(), CliError> {
    for path in paths {
        match fs::metadata(path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(ImageError::Io { path: path.clone(), source }.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The tables are taken at once: whether the system has them to give is said before anything else.
fn check_memory(memory_bytes: u64) -> Result<(), CliError> {
    let bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| CliError::System {
        action: "--memory is more than this machine gives",
        source: io::ErrorKind::OutOfMemory.into(),
    })
}

fn options(args: &EstimateArgs) -> Options {
    let mut chunk_bytes = args.chunk_size.clone();
    if chunk_bytes.is_empty() {
        chunk_bytes = CHUNK_SIZES.into();
    }
    chunk_bytes.sort_unstable();
    chunk_bytes.dedup();
    let mut compressions: Vec<(String, Compression)> = Vec::new();
    let asked = args.compression.iter().flat_map(|codecs| match codecs {
        Codecs::All => ALL_COMPRESSIONS.to_vec(),
        Codecs::One(compression) => vec![*compression],
    });
    for compression in asked {
        if !compressions.iter().any(|(_, there)| *there == compression) {
            compressions.push((compression.to_string(), compression));
        }
    }
    let threads = args.threads.map_or_else(processors, usize::from);
    Options { chunk_bytes, compressions, memory_bytes: args.memory, threads }
}

impl Report {
    /// An error when there is nothing to report on but one failure.
    fn new(found: Estimate, elapsed: Duration) -> Result<Self, CliError> {
        let Estimate { files, logical_bytes, read_bytes, unreadable, sizes } = found;
        let mut unreadable_named = unreadable.named;
        if files == 0
            && unreadable.count == 1
            && let Some(only) = unreadable_named.pop()
        {
            return Err(only.error.into());
        }
        let named = unreadable_named.into_iter().map(UnreadableFile::new);
        Ok(Self {
            files,
            logical_bytes,
            read_bytes,
            seconds: elapsed.as_secs_f64(),
            chunk_sizes: sizes,
            unreadable_files: unreadable.count,
            files_in_part: unreadable.in_part,
            unreadable: named.collect(),
        })
    }
}

impl UnreadableFile {
    fn new(file: Unreadable) -> Self {
        Self {
            path: file.path,
            reason: file.error.to_string(),
            read_bytes: file.part.map(|part| part.read_bytes),
            size_bytes: file.part.map(|part| part.size_bytes),
        }
    }

    fn sentence(&self) -> String {
        match (self.read_bytes, self.size_bytes) {
            (Some(read_bytes), Some(size_bytes)) => format!(
                "only the first {} of {} were read: {}",
                human_bytes(read_bytes),
                human_bytes(size_bytes),
                self.reason
            ),
            _ => format!("not read: {}", self.reason),
        }
    }
}

fn text(report: &Report, memory_bytes: u64) -> String {
    let mut table = Table::with_heading([
        ("CHUNKS", Align::Right),
        ("CODEC", Align::Left),
        ("ZEROS", Align::Right),
        ("UNIQUE", Align::Right),
        ("DEDUP", Align::Right),
        ("STORED", Align::Right),
        ("COMPRESSION", Align::Right),
        ("METADATA", Align::Right),
        ("REDUCTION", Align::Right),
        ("SAVED", Align::Right),
    ])
    .with_keys(2);
    for size in &report.chunk_sizes {
        for codec in &size.codecs {
            table.row(row(size, codec));
        }
    }
    let speed = report.read_bytes as f64 / report.seconds.max(1e-3);
    let speed = match report.read_bytes {
        0 => String::new(),
        _ => format!(", {}/s", human_bytes(speed as u64)),
    };
    let mut text = format!(
        "{} in {} {} ({}{speed}){}\n\n{table}\n\
         dedup is data to unique, compression unique to stored, reduction data to\n\
         stored; data is what is not zeros, and saved is the part of it that a store\n\
         does not take, metadata counted\n",
        human_bytes(report.logical_bytes),
        human_count(report.files),
        plural(report.files),
        human_duration(Duration::from_secs_f64(report.seconds)),
        left_out(report),
    );
    if report.chunk_sizes.iter().any(|size| !size.exact) {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "what has a \u{b1} is from a sample, with its standard error: not all\n\
             fingerprints fit into {}, which --memory changes",
            human_bytes(memory_bytes)
        );
    }
    text
}

/// What the figures are not of, behind what they are of.
fn left_out(report: &Report) -> String {
    let unread = report.unreadable_files - report.files_in_part;
    let files = |count| format!("{} {}", human_count(count), plural(count));
    let mut text = String::new();
    if report.files_in_part > 0 {
        text += &format!("; of {} only a part", files(report.files_in_part));
    }
    if unread > 0 {
        text += &format!("; {} could not be read", files(unread));
    }
    text
}

fn plural(files: u64) -> &'static str {
    if files == 1 { "file" } else { "files" }
}

fn row(size: &SizeFigures, codec: &CodecFigures) -> [String; 10] {
    let bytes = |figure: &Figure| {
        format!("{}{}", human_bytes(figure.rounded()), margin(figure, figure.value))
    };
    let ratio = |figure: &Figure| format!("{:.2}x{}", figure.value, margin(figure, figure.value));
    let percent = |of: Figure| format!("{:.1}%{}", of.value * 100.0, margin(&of, 1.0));
    [
        human_bytes(u64::from(size.chunk_bytes)),
        codec.compression.clone(),
        human_bytes(size.zero_bytes),
        bytes(&size.unique_bytes),
        ratio(&size.dedup_ratio),
        bytes(&codec.stored_bytes),
        ratio(&codec.compression_ratio),
        bytes(&codec.metadata_bytes),
        ratio(&codec.reduction_ratio),
        codec.saved_fraction.map_or_else(|| "-".to_owned(), percent),
    ]
}

/// The standard error of `figure`, in percent of `whole`; nothing for what is exact.
fn margin(figure: &Figure, whole: f64) -> String {
    if figure.error == 0.0 || whole == 0.0 {
        return String::new();
    }
    format!(" \u{b1}{:.2}%", figure.error / whole * 100.0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use estimate::{CodecFigures, Figure, SizeFigures};

    use super::{Report, options, text};
    use crate::args::{Cli, Command};

    fn figure(value: f64, error: f64) -> Figure {
        Figure { value, error }
    }

    fn report(error: f64) -> Report {
        let codec = CodecFigures {
            compression: "lz4".to_owned(),
            stored_bytes: figure(1_073_741_824.0, error * 1_073_741_824.0),
            metadata_bytes: figure(1_048_576.0, 0.0),
            device_bytes: figure(1_074_790_400.0, 0.0),
            compression_ratio: figure(2.0, error),
            reduction_ratio: figure(4.0, 0.0),
            saved_fraction: Some(figure(0.75, error)),
        };
        let size = SizeFigures {
            chunk_bytes: 4096,
            exact: error == 0.0,
            sampled_fraction: 1.0,
            zero_bytes: 0,
            data_chunks: 1 << 20,
            data_bytes: 4 << 30,
            unique_chunks: figure(524_288.0, 0.0),
            unique_bytes: figure(2_147_483_648.0, 0.0),
            dedup_ratio: figure(2.0, 0.0),
            codecs: vec![codec],
        };
        Report {
            files: 1,
            logical_bytes: 4 << 30,
            read_bytes: 4 << 30,
            seconds: 4.0,
            chunk_sizes: vec![size],
            unreadable_files: 0,
            files_in_part: 0,
            unreadable: Vec::new(),
        }
    }

    #[test]
    fn people_see_a_table_and_what_it_means() {
        let exact = text(&report(0.0), 256 << 20);
        let lines: Vec<&str> = exact.lines().collect();
        assert_eq!(lines[0], "4 GiB in 1 file (4.00 s, 1 GiB/s)");
        let (left, right) = (lines[2].split_at(40), lines[3].split_at(40));
        assert_eq!(left.0, "CHUNKS  CODEC  ZEROS  UNIQUE  DEDUP  STO");
        assert_eq!(right.0, " 4 KiB  lz4      0 B   2 GiB  2.00x   1 ");
        assert_eq!(left.1, "RED  COMPRESSION  METADATA  REDUCTION");
        assert_eq!(right.1, "GiB        2.00x     1 MiB      4.00x");
        let (below, figures) = (lines[5], lines[6]);
        assert_eq!([below, figures], ["CHUNKS  CODEC  SAVED", " 4 KiB  lz4    75.0%"]);
        assert!(!exact.contains('\u{b1}'), "{exact}");
        let sampled = text(&report(0.01), 256 << 20);
        for words in ["1 GiB \u{b1}1.00%", "2.00x \u{b1}0.50%", "75.0% \u{b1}1.00%", "256 MiB"] {
            assert!(sampled.contains(words), "{words}: {sampled}");
        }
    }

    #[test]
    fn programs_find_every_figure_with_its_error() {
        let json = serde_json::to_value(report(0.01)).unwrap();
        let size = &json["chunk_sizes"][0];
        assert_eq!(size["chunk_bytes"], 4096);
        assert_eq!(size["unique_chunks"]["value"], 524_288.0);
        assert_eq!(size["codecs"][0]["compression"], "lz4");
        assert_eq!(size["codecs"][0]["compression_ratio"]["error"], 0.01);
    }

    #[test]
    fn what_is_asked_for_twice_is_tried_once() {
        let of = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Estimate(args) => options(&args),
            other => panic!("{other:?}"),
        };
        let names = |line: &str| -> Vec<String> {
            of(line).compressions.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(of("tamis estimate x").chunk_bytes, crate::args::CHUNK_SIZES);
        assert_eq!(of("tamis estimate x --chunk-size 8K,4K,8K").chunk_bytes, [4096, 8192]);
        assert_eq!(names("tamis estimate x"), ["lz4"]);
        assert_eq!(
            names("tamis estimate x --compression zstd:3,all"),
            ["zstd:3", "lz4", "zstd:1", "none"]
        );
    }
}
