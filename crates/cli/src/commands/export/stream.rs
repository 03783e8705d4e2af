//! A snapshot, or what changed between two, as a stream for another store (`docs/format.md`).
//!
//! What the stream says is walked through twice, once to count for its header and once to write it:
//! a volume may have more ranges than there is memory. Snapshots do not change in between.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use admin::{GetIdentity, Identity};
use engine::{ChangedRange, VolumeInfo};
use format::stream::{DATA_BYTES_MAX, Section, StreamCourse, StreamHeader};

use crate::args::ExportArgs;
use crate::control::Store;
use crate::data::VolumeData;
use crate::difference::Comparison;
use crate::error::{CliError, Present};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::stream::describe;
use crate::target::{Target, is_device};
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
    store: &Store,
    args: &ExportArgs,
    interrupt: &Interrupt,
) -> Result<Streamed, CliError> {
    let target = snapshot(store, args, &args.volume)?;
    let base = match (&args.from, args.volume.split_once('@')) {
        (Some(from), Some((volume, _))) => {
            Some(snapshot(store, args, &format!("{volume}@{from}"))?)
        }
        _ => None,
    };
    let data = store.open(&target.name, "export")?;
    let ranges = Ranges { store, data: &data, base: base.as_ref(), target: &target, interrupt };
    let data_bytes = ranges.data_bytes()?;
    let Identity { uuid, chunk_bytes } = store.ask(GetIdentity {})?;
    let header = StreamHeader {
        uuid,
        chunk_bytes,
        data_bytes,
        target: describe(store, &target)?,
        base: base.as_ref().map(|base| describe(store, base)).transpose()?,
    };
    // It would not end with the stream, and pass for a disk.
    if is_device(&args.file) {
        return Err(CliError::StreamToDevice { path: args.file.clone() });
    }
    let out = Target::open(&args.file, 0, args.overwrite)?;
    if let (None, Some(domain)) = (&base, &target.domain) {
        output::say(format_args!(
            "{} is in domain {domain}, which a stream does not say: `tamis import` makes a volume \
             in the domain that its own --domain names, or in none",
            target.name
        ));
    }
    let mut progress = Progress::new("exporting", Unit::Bytes, Some(header.data_bytes));
    let written = match out.file() {
        Some(mut file) => write(&header, &ranges, &mut file, &mut progress),
        None => write(&header, &ranges, &mut io::stdout().lock(), &mut progress),
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

fn snapshot(store: &Store, args: &ExportArgs, name: &str) -> Result<VolumeInfo, CliError> {
    let found = store.volumes()?.into_iter().find(|volume| volume.name == name);
    let name = name.to_owned();
    match found {
        Some(snapshot) if snapshot.taken_unix_s.is_some() => Ok(snapshot),
        Some(_) => Err(CliError::StreamOfVolume { name }),
        None => {
            let (store, present) = (args.store.clone(), Present::default());
            Err(CliError::NoVolume { store, name, present })
        }
    }
}

/// What a stream says, range by range.
#[derive(Copy, Clone)]
struct Ranges<'a> {
    store: &'a Store,
    data: &'a VolumeData,
    base: Option<&'a VolumeInfo>,
    target: &'a VolumeInfo,
    interrupt: &'a Interrupt,
}

impl Ranges<'_> {
    /// What the stream will carry.
    fn data_bytes(&self) -> Result<u64, CliError> {
        let mut data_bytes = 0;
        self.each(true, |range| {
            data_bytes += if range.unmapped { 0 } else { range.length_bytes };
            Ok(true)
        })?;
        Ok(data_bytes)
    }

    /// Tells `found` each, in ascending order, as long as that says to go on.
    fn each(
        &self,
        shown: bool,
        mut found: impl FnMut(ChangedRange) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let Some(base) = self.base else { return self.each_with_data(found) };
        let (from, to, interrupt) = (&base.name, &self.target.name, self.interrupt);
        let step = |request| self.store.ask(request);
        Comparison { from, to, interrupt, shown }.walk(step, |mut range| {
            // What lies beyond a volume that has become smaller is gone with its size.
            let left_bytes = self.target.size_bytes.saturating_sub(range.offset_bytes);
            range.length_bytes = range.length_bytes.min(left_bytes);
            if range.length_bytes > 0 { found(range) } else { Ok(true) }
        })?;
        Ok(())
    }

    fn each_with_data(
        &self,
        mut found: impl FnMut(ChangedRange) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let mut walk = VolumeWalk::new(self.data);
        let mut last = Vec::new();
        while let Some(piece) = walk.next_piece()? {
            self.interrupt.check()?;
            if piece.hole {
                continue;
            }
            let (offset_bytes, length_bytes) = (piece.offset_bytes, piece.length_bytes);
            ChangedRange { offset_bytes, length_bytes, unmapped: false }.add_to(&mut last);
            if last.len() > 1 && !found(last.remove(0))? {
                return Ok(());
            }
        }
        last.pop().map_or(Ok(true), found).map(drop)
    }
}

/// Why a stream was not written.
enum Failure {
    Write(io::Error),
    Other(CliError),
}

fn write(
    header: &StreamHeader,
    ranges: &Ranges<'_>,
    out: &mut impl Write,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(out);
    let start = header.encode();
    let mut course = StreamCourse::begin(header, &start);
    out.write_all(&start).map_err(Failure::Write)?;
    let (sections, received) = sync_channel(READ_AHEAD_SECTIONS);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_ahead(ranges, sections));
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

fn read_ahead(ranges: &Ranges<'_>, to: SyncSender<(Section, Vec<u8>)>) -> Result<(), CliError> {
    ranges.each(false, |ChangedRange { offset_bytes, length_bytes, unmapped }| {
        ranges.interrupt.check()?;
        if unmapped {
            let hole = Section::Hole { offset_bytes, length_bytes };
            return Ok(to.send((hole, Vec::new())).is_ok());
        }
        let end_bytes = offset_bytes + length_bytes;
        let mut offset_bytes = offset_bytes;
        while offset_bytes < end_bytes {
            ranges.interrupt.check()?;
            let length_bytes = DATA_BYTES_MAX.min(end_bytes - offset_bytes);
            let mut payload = vec![0; usize::try_from(length_bytes).unwrap_or(0)];
            ranges.data.read(offset_bytes, &mut payload)?;
            if to.send((Section::Data { offset_bytes, length_bytes }, payload)).is_err() {
                return Ok(false);
            }
            offset_bytes += length_bytes;
        }
        Ok(true)
    })
}
