//! `tamis import`: a raw or qcow2 image into a volume.
//!
//! The image is read in pieces straight into the engine's write buffers, which slow the reading to
//! the speed of the store. Holes of the image and pieces that are all zeros are not written: in a
//! volume that holds nothing they are there already, in one that is overwritten they are trimmed.
//! Chunks of zeros inside a piece are the engine's to find.
//!
//! A volume that is made for the image is called `NAME~importing` until everything is flushed, and
//! then renamed: under its own name it is always whole. What an import that was killed left behind
//! is removed by the next one; users' own volumes cannot be called so (`staging.rs`).

use std::io::Read;
use std::ops::Range;

use engine::{Client, NewVolume, RequestError, Stats, VolumeInfo};
use format::catalog::VolumeName;
use images::DiskImage;
use serde::Serialize;

use super::confirm::confirm;
use super::served;
use crate::args::ImportArgs;
use crate::error::CliError;
use crate::image::{Image, check_pipe, padded, read_full};
use crate::interrupt::Interrupt;
use crate::opener::opener;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::human_bytes;
use crate::staging::{check_name, check_room, is_replaced, marks_of, put_aside, staging_name};
use crate::stdin::unread;
use crate::store::{OpenStore, engine_options};
use crate::stream_source::Source;
use crate::volume_writer::VolumeWriter;

mod stream;

/// What is read and written at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Runs of data are widened to this, the largest chunk size, so that no chunk is written in parts.
const RUN_ALIGN_BYTES: u64 = 64 << 10;
/// First size of a volume for a stream, whose length is known only at its end; doubled as needed.
const STREAM_BYTES_FIRST: u64 = 1 << 30;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    volume: String,
    /// The one that a stream led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    image_bytes: u64,
    /// Of the image, what was not holes or long runs of zeros; of a stream, what it brought.
    data_bytes: u64,
    /// What the store grew by.
    stored_bytes: u64,
    seconds: f64,
}

pub(super) fn run(args: &ImportArgs) -> Result<(), CliError> {
    check_name(&args.volume)?;
    if args.file.as_os_str() == "-" {
        check_pipe(args.image_format())?;
    }
    let interrupt = Interrupt::listen()?;
    let stream = match Source::open(&args.file, args.import_format, &interrupt)? {
        Source::Stream(source) => {
            served::refuse_stream(&args.store)?;
            return report(args, &stream::run(args, *source, &interrupt)?);
        }
        Source::Image(stream) => stream,
    };
    served::refuse_import(args)?;
    let image = Image::open(&args.file, args.image_format(), stream);
    // A signal of the terminal also ends a program that reads the image for us.
    interrupt.check()?;
    let image = image?;
    if image.size_bytes() == Some(0) {
        return Err(CliError::ImageEmpty);
    }
    let options = engine_options(&args.engine, false);
    let summary = OpenStore::with(&args.store, options, |store| {
        let client = store.client();
        let progress = Progress::new("importing", Unit::Bytes, image.size_bytes());
        let before = client.stats()?;
        let mut import =
            Import { client, image: &image, before, progress, interrupt, data_bytes: 0 };
        let image_bytes = import.fill_volume(args)?;
        import.summary(args.volume.clone(), image_bytes)
    })?;
    report(args, &summary)
}

fn report(args: &ImportArgs, summary: &Summary) -> Result<(), CliError> {
    if args.format.json { output::print_json(summary) } else { print_text(summary) }
}

fn print_text(summary: &Summary) -> Result<(), CliError> {
    let speed = summary.image_bytes as f64 / summary.seconds.max(1e-3);
    output::print_line(format_args!(
        "imported {} into {}: {} of data now take {} ({}, {}/s)",
        human_bytes(summary.image_bytes),
        summary.snapshot.as_ref().unwrap_or(&summary.volume),
        human_bytes(summary.data_bytes),
        human_bytes(summary.stored_bytes),
        human_duration(std::time::Duration::from_secs_f64(summary.seconds)),
        human_bytes(speed as u64),
    ))
}

/// One import on its way.
struct Import<'a> {
    client: &'a Client,
    image: &'a Image,
    before: Stats,
    progress: Progress,
    interrupt: Interrupt,
    data_bytes: u64,
}

impl Import<'_> {
    /// Imports into the volume that `args` name; returns the bytes of the image.
    fn fill_volume(&mut self, args: &ImportArgs) -> Result<u64, CliError> {
        let all = self.client.volumes()?;
        match all.iter().find(|volume| volume.name == args.volume) {
            Some(volume) => {
                check_domain(volume, args)?;
                ask_about(volume, args)?;
                self.fill_existing(volume, &all, args.overwrite)
            }
            None => self.fill_new(&args.volume, args.domain.clone()),
        }
    }

    fn fill_existing(
        &mut self,
        volume: &VolumeInfo,
        all: &[VolumeInfo],
        overwrite: bool,
    ) -> Result<u64, CliError> {
        let (name, mapped_bytes) = (volume.name.clone(), volume.mapped_bytes);
        if volume.taken_unix_s.is_some() {
            return Err(RequestError::NotAVolume { name }.into());
        }
        if mapped_bytes > 0 && !overwrite {
            return Err(CliError::VolumeHoldsData { name, mapped_bytes });
        }
        if let Some((_, replaced)) = put_aside(all).find(|(of, _)| *of == name && !overwrite) {
            return Err(CliError::PutAsideStill { volume: name, replaced: replaced.to_owned() });
        }
        let image_bytes = self.image.size_bytes();
        if image_bytes.is_some_and(|bytes| padded(bytes) > volume.size_bytes) {
            let volume_bytes = volume.size_bytes;
            return Err(CliError::ImageTooLarge { name, image_bytes, volume_bytes });
        }
        // What the image brings is no half of a stream, for whose import to give up. What one has
        // put aside can be had back until the image has taken its place.
        let (replaced, halves): (Vec<_>, Vec<_>) =
            marks_of(&volume.name, all).partition(|mark| is_replaced(mark));
        let forget =
            |marks: Vec<&str>| marks.into_iter().try_for_each(|it| self.client.delete_volume(it));
        forget(halves)?;
        let image_bytes = self.copy(&volume.name, mapped_bytes == 0, Room::Fixed)?;
        forget(replaced)?;
        Ok(image_bytes)
    }

    fn fill_new(&mut self, name: &str, domain: Option<String>) -> Result<u64, CliError> {
        if VolumeName::parse(name).is_err() {
            return Err(engine::RequestError::BadName { name: name.to_owned() }.into());
        }
        check_room(name)?;
        let staging = staging_name(name);
        if self.client.volumes()?.iter().any(|volume| volume.name == staging) {
            // An import of a stream may have left it, which takes a snapshot.
            self.client.delete_volume_with_snapshots(&staging)?;
        }
        let size_bytes = self.image.size_bytes().map_or(STREAM_BYTES_FIRST, padded);
        let new = NewVolume { name: staging.clone(), size_bytes, domain, ..NewVolume::default() };
        self.client.ask(new)?;
        let copied = self.copy(&staging, true, Room::Growing).and_then(|image_bytes| {
            self.client.resize_volume(&staging, padded(image_bytes))?;
            self.client.rename_volume(&staging, name)?;
            Ok(image_bytes)
        });
        if copied.is_err() {
            // The first error is the one to tell; what is left is removed by the next import.
            let _ = self.client.delete_volume(&staging);
        }
        copied
    }

    fn copy(&mut self, name: &str, blank: bool, room: Room) -> Result<u64, CliError> {
        let volume = self.client.open_volume(name, opener("import"))?;
        let known = volume.handle();
        let writer = VolumeWriter::new(self.client, volume, blank);
        let image_bytes = match self.image {
            Image::Disk(disk) => self.copy_disk(disk, &writer)?,
            Image::Stream(stream) => {
                self.copy_stream(name, &mut *stream.borrow_mut(), &writer, room)?
            }
        };
        let end_bytes = padded(image_bytes);
        writer.zero(end_bytes, known.size_bytes().saturating_sub(end_bytes))?;
        writer.finish()?;
        Ok(image_bytes)
    }

    fn copy_disk(&mut self, disk: &DiskImage, to: &VolumeWriter<'_>) -> Result<u64, CliError> {
        let end_bytes = padded(disk.size_bytes());
        let mut at = 0;
        while let Some(run) = disk.next_data(at)? {
            let start = (run.start - run.start % RUN_ALIGN_BYTES).max(at);
            let end = run.end.next_multiple_of(RUN_ALIGN_BYTES).min(end_bytes);
            to.zero(at, start - at)?;
            self.copy_run(disk, start..end, to)?;
            at = end;
        }
        to.zero(at, end_bytes - at)?;
        disk.check_length()?;
        self.progress.set_done(disk.size_bytes());
        Ok(disk.size_bytes())
    }

    fn copy_run(
        &mut self,
        disk: &DiskImage,
        run: Range<u64>,
        to: &VolumeWriter<'_>,
    ) -> Result<(), CliError> {
        let mut at = run.start;
        while at < run.end {
            self.interrupt.check()?;
            // Pieces end on their own multiples, so that none but the first and last is short.
            let piece_end = (at + 1).next_multiple_of(PIECE_BYTES).min(run.end);
            let mut buf = to.buffer(at, usize::try_from(piece_end - at).unwrap_or(0));
            disk.read_at(at, buf.bytes_mut())?;
            self.data_bytes += to.write(at, buf)?;
            at = piece_end;
            self.show(at);
        }
        Ok(())
    }

    fn copy_stream(
        &mut self,
        name: &str,
        stream: &mut impl Read,
        to: &VolumeWriter<'_>,
        room: Room,
    ) -> Result<u64, CliError> {
        let mut piece = vec![0; usize::try_from(PIECE_BYTES).unwrap_or(0)];
        let mut volume_bytes = self.client.open_volume(name, opener("import"))?.size_bytes();
        let mut at = 0;
        loop {
            let length = read_full(stream, &mut piece);
            let length = length.map_err(|error| unread(error, CliError::Stdin))?;
            // A signal at a terminal ends the program before the pipe as well: what looks like the
            // end of the image is then none.
            self.interrupt.check()?;
            let (image, _) = piece.split_at(length);
            let end_bytes = padded(at + length as u64);
            if end_bytes > volume_bytes {
                volume_bytes = self.make_room(name, volume_bytes, room)?;
            }
            if length > 0 {
                let mut buf = to.buffer(at, usize::try_from(end_bytes - at).unwrap_or(0));
                let (start, padding) = buf.bytes_mut().split_at_mut(length);
                start.copy_from_slice(image);
                padding.fill(0);
                self.data_bytes += to.write(at, buf)?;
            }
            at += length as u64;
            self.show(at);
            if length < piece.len() {
                break;
            }
        }
        if at == 0 { Err(CliError::ImageEmpty) } else { Ok(at) }
    }

    /// The size of the volume after it has been enlarged for a stream that goes on.
    fn make_room(&self, name: &str, volume_bytes: u64, room: Room) -> Result<u64, CliError> {
        match room {
            Room::Fixed => Err(CliError::ImageTooLarge {
                name: name.to_owned(),
                image_bytes: None,
                volume_bytes,
            }),
            Room::Growing => {
                Ok(self.client.resize_volume(name, volume_bytes.saturating_mul(2))?.size_bytes)
            }
        }
    }

    fn show(&mut self, done_bytes: u64) {
        self.progress.set_done(done_bytes);
        let (client, before) = (self.client, &self.before);
        self.progress.note_now_and_then(|| saved_note(before, &client.stats().ok()?));
    }

    fn summary(self, volume: String, image_bytes: u64) -> Result<Summary, CliError> {
        let stats = self.client.stats()?;
        let stored_bytes = stats.stored_bytes.saturating_sub(self.before.stored_bytes);
        let seconds = self.progress.finish().as_secs_f64();
        let (snapshot, data_bytes) = (None, self.data_bytes);
        Ok(Summary { volume, snapshot, image_bytes, data_bytes, stored_bytes, seconds })
    }
}

/// That a volume which is there is in the domain that was asked for, if one was.
fn check_domain(volume: &VolumeInfo, args: &ImportArgs) -> Result<(), CliError> {
    if args.domain.is_none() || args.domain == volume.domain {
        return Ok(());
    }
    Err(CliError::OtherDomain { name: volume.name.clone() })
}

/// Whether what the volume holds is to be replaced.
fn ask_about(volume: &VolumeInfo, args: &ImportArgs) -> Result<(), CliError> {
    let VolumeInfo { name, mapped_bytes, .. } = volume;
    if !args.overwrite || *mapped_bytes == 0 || volume.taken_unix_s.is_some() {
        return Ok(());
    }
    let held = human_bytes(*mapped_bytes);
    confirm(&args.confirm, format_args!("Replace the {held} that volume {name} holds?"))
}

/// What was saved between two looks, of what the engine has placed by the second: what still waits
/// in the write buffer is neither saved nor stored.
fn saved_note(before: &Stats, now: &Stats) -> Option<String> {
    let placed = |stats: &Stats| stats.counters.chunks_duplicate + stats.counters.chunks_unique;
    let chunks = placed(now).checked_sub(placed(before)).filter(|chunks| *chunks > 0)?;
    let placed_bytes = chunks * u64::from(now.chunk_bytes);
    let grown_bytes = now.stored_bytes.saturating_sub(before.stored_bytes).min(placed_bytes);
    Some(format!("{}% saved", (placed_bytes - grown_bytes) * 100 / placed_bytes))
}

/// Whether the volume may be enlarged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Room {
    Fixed,
    Growing,
}

#[cfg(test)]
mod tests {
    use engine::{Counters, Stats};

    use super::saved_note;

    fn stats(chunks_unique: u64, chunks_duplicate: u64, stored_bytes: u64) -> Stats {
        let counters = Counters { chunks_unique, chunks_duplicate, ..Counters::default() };
        Stats { counters, stored_bytes, chunk_bytes: 4096, ..Stats::default() }
    }

    #[test]
    fn savings_are_of_what_has_been_placed() {
        let before = stats(10, 10, 40_000);
        assert_eq!(saved_note(&before, &before), None);
        let now = stats(20, 20, 40_000 + 20_480);
        assert_eq!(saved_note(&before, &now).unwrap(), "75% saved");
        let incompressible = stats(20, 10, 40_000 + 41_200);
        assert_eq!(saved_note(&before, &incompressible).unwrap(), "0% saved");
    }
}
