//! A snapshot, or what changed between two, as a stream for another store (`docs/format.md`).

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use engine::{ChangedRange, Client, VolumeInfo};
use format::stream::{DATA_BYTES_MAX, Section, StreamCourse, StreamHeader};

use crate::args::ExportArgs;
use crate::difference::Difference;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Unit};
use crate::stream::describe;
use crate::target::Target;
use crate::volume_walk::VolumeWalk;

/// Sections that are read ahead.
const READ_AHEAD_SECTIONS: usize = 8;

/// What a stream came to.
pub(super) struct Streamed {
    /// Of the volume.
    pub(super) image_bytes: u64,
    /// In the stream.
    pub(super) data_bytes: u64,
    pub(super) took: Duration,
}

/// Writes the stream that `args` ask for.
pub(super) fn export(
    client: &Client,
    args: &ExportArgs,
    interrupt: &Interrupt,
) -> Result<Streamed, CliError> {
    let target = snapshot(client, args, &args.volume)?;
    let base = match (&args.from, args.volume.split_once('@')) {
        (Some(from), Some((volume, _))) => {
            Some(snapshot(client, args, &format!("{volume}@{from}"))?)
        }
        _ => None,
    };
    let ranges = ranges(client, base.as_ref(), &target, interrupt)?;
    let data = ranges.iter().filter(|range| !range.unmapped);
    let header = StreamHeader {
        uuid: client.geometry()?.uuid,
        chunk_bytes: client.geometry()?.chunk_bytes,
        data_bytes: data.map(|range| range.length_bytes).sum(),
        target: describe(client, &target)?,
        base: base.map(|base| describe(client, &base)).transpose()?,
    };
    let out = Target::open(&args.file, 0, args.overwrite)?;
    let mut progress = Progress::new("exporting", Unit::Bytes, Some(header.data_bytes));
    let written = match out.file() {
        Some(mut file) => {
            write(client, &target, &header, &ranges, &mut file, (&mut progress, interrupt))
        }
        None => {
            let mut stdout = io::stdout().lock();
            write(client, &target, &header, &ranges, &mut stdout, (&mut progress, interrupt))
        }
    };
    let took = progress.finish();
    if let Err(error) = written {
        out.abandon();
        return Err(match error {
            Failure::Write(source) => out.failed(source),
            Failure::Other(error) => error,
        });
    }
    out.complete()?;
    Ok(Streamed { image_bytes: target.size_bytes, data_bytes: header.data_bytes, took })
}

fn snapshot(client: &Client, args: &ExportArgs, name: &str) -> Result<VolumeInfo, CliError> {
    let found = client.volumes()?.into_iter().find(|volume| volume.name == name);
    let (store, name) = (args.store.clone(), name.to_owned());
    match found {
        Some(snapshot) if snapshot.taken_unix_s.is_some() => Ok(snapshot),
        Some(_) => Err(CliError::StreamOfVolume { name }),
        None => Err(CliError::NoVolume { store, name }),
    }
}

/// What the stream says of `target`, as far as it reaches.
fn ranges(
    client: &Client,
    base: Option<&VolumeInfo>,
    target: &VolumeInfo,
    interrupt: &Interrupt,
) -> Result<Vec<ChangedRange>, CliError> {
    let Some(base) = base else { return data_of(client, target, interrupt) };
    let step = |request| Ok(client.difference(request)?);
    let mut ranges = Difference::between(&base.name, &target.name, interrupt, step)?.ranges;
    // What lies beyond a volume that has become smaller is gone with its size.
    ranges.retain_mut(|range| {
        let left_bytes = target.size_bytes.saturating_sub(range.offset_bytes);
        range.length_bytes = range.length_bytes.min(left_bytes);
        range.length_bytes > 0
    });
    Ok(ranges)
}

fn data_of(
    client: &Client,
    target: &VolumeInfo,
    interrupt: &Interrupt,
) -> Result<Vec<ChangedRange>, CliError> {
    let mut walk = VolumeWalk::new(client, client.volume(&target.name)?);
    let mut ranges = Vec::new();
    while let Some(piece) = walk.next_piece()? {
        interrupt.check()?;
        if !piece.hole {
            let (offset_bytes, length_bytes) = (piece.offset_bytes, piece.length_bytes);
            ChangedRange { offset_bytes, length_bytes, unmapped: false }.add_to(&mut ranges);
        }
    }
    Ok(ranges)
}

/// Why a stream was not written.
enum Failure {
    Write(io::Error),
    Other(CliError),
}

fn write(
    client: &Client,
    target: &VolumeInfo,
    header: &StreamHeader,
    ranges: &[ChangedRange],
    out: &mut impl Write,
    (progress, interrupt): (&mut Progress, &Interrupt),
) -> Result<(), Failure> {
    let mut out = BufWriter::new(out);
    let start = header.encode();
    let mut course = StreamCourse::begin(header, &start);
    out.write_all(&start).map_err(Failure::Write)?;
    let (sections, received) = sync_channel(READ_AHEAD_SECTIONS);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_ahead(client, &target.name, ranges, interrupt, sections));
        let mut written = Ok(());
        for (section, payload) in received {
            let head = course.encode(section, &payload);
            written = out.write_all(&head).and_then(|()| out.write_all(&payload));
            progress.advance(payload.len() as u64);
            if written.is_err() {
                break;
            }
        }
        // The receiver is gone by now, so a reader that would wait at it ends.
        let read = reader.join().map_err(|_| CliError::EngineVanished).flatten();
        read.map_err(Failure::Other)?;
        written.map_err(Failure::Write)
    })?;
    let end = course.encode(Section::End, &[]);
    out.write_all(&end).and_then(|()| out.flush()).map_err(Failure::Write)
}

fn read_ahead(
    client: &Client,
    name: &str,
    ranges: &[ChangedRange],
    interrupt: &Interrupt,
    to: SyncSender<(Section, Vec<u8>)>,
) -> Result<(), CliError> {
    let volume = client.volume(name)?;
    for &ChangedRange { offset_bytes, length_bytes, unmapped } in ranges {
        interrupt.check()?;
        if unmapped {
            if to.send((Section::Hole { offset_bytes, length_bytes }, Vec::new())).is_err() {
                return Ok(());
            }
            continue;
        }
        let end_bytes = offset_bytes + length_bytes;
        let mut offset_bytes = offset_bytes;
        while offset_bytes < end_bytes {
            interrupt.check()?;
            let length_bytes = DATA_BYTES_MAX.min(end_bytes - offset_bytes);
            let mut payload = vec![0; usize::try_from(length_bytes).unwrap_or(0)];
            client.read_at(&volume, offset_bytes, &mut payload)?;
            if to.send((Section::Data { offset_bytes, length_bytes }, payload)).is_err() {
                return Ok(());
            }
            offset_bytes += length_bytes;
        }
    }
    Ok(())
}
