//! `tamis import`: a raw or qcow2 image into a volume.
//!
//! The image is read in pieces straight into the engine's write buffers, which slow the reading to
//! the speed of the store; where the store is served, into buffers that are sent to its server.
//! Holes of the image and pieces that are all zeros are not written: in a
//! volume that holds nothing they are there already, in one that is overwritten they are trimmed.
//! Chunks of zeros inside a piece are the engine's to find.
//!
//! An image goes into a volume of its own, called `NAME~importing`, until everything is flushed:
//!
//! ```text
//! no volume NAME    NAME~importing filled -> called NAME
//! volume NAME       NAME~importing filled -> NAME~importing@whole taken
//!                     -> NAME takes what that holds, in one step -> NAME~importing deleted
//! ```
//!
//! So under its own name a volume is always whole: what it was, or the image. A failure before the
//! last step, whatever it is, changes nothing of it. What an import that was killed left behind is
//! removed by the next one into NAME; users' own volumes cannot be called so (`staging.rs`). A
//! volume that is replaced needs room for the image beside what it holds, less what they share.

use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use engine::control::Rollback;
use engine::{NewVolume, RequestError, SnapshotRequest, VolumeInfo, VolumeKind, VolumeWritten};
use format::catalog::VolumeName;
use images::DiskImage;
use serde::Serialize;

use super::confirm::confirm;
use super::volume::settings::{Setting, set_up};
use crate::args::{Force, ImportArgs, VolumeCodec};
use crate::control::Store;
use crate::error::{BucketsError, CliError};
use crate::image::{Image, check_pipe, padded, read_full};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::human_bytes;
use crate::staging::{check_name, check_room, marks_of, put_aside, staging_volume};
use crate::stdin::unread;
use crate::store::engine_options;
use crate::stream_source::Source;
use crate::volume_writer::VolumeWriter;

mod stream;

/// What is read and written at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Runs of data are widened to this, the largest chunk size, so that no chunk is written in parts.
const RUN_ALIGN_BYTES: u64 = 64 << 10;
/// First size of a volume for a stream, whose length is known only at its end; doubled as needed.
const STREAM_BYTES_FIRST: u64 = 1 << 30;

/// The snapshot of a staged volume that holds all of the image.
const STAGED_SNAPSHOT: &str = "whole";

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    volume: String,
    /// The one that a stream led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// That one was there before, and nothing was imported.
    #[serde(skip)]
    was_there: bool,
    image_bytes: u64,
    /// Of the image, what was not holes; of a stream, what it brought.
    read_bytes: u64,
    /// Of the image, what was not holes or long runs of zeros; of a stream, what it brought.
    data_bytes: u64,
    /// What became of it, whatever else the store gains or loses meanwhile.
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    written: VolumeWritten,
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
            return report(args, &stream::run(args, *source, &interrupt)?);
        }
        Source::Image(stream) => stream,
    };
    let image = Image::open(&args.file, args.image_format(), stream);
    // A signal of the terminal also ends a program that reads the image for us.
    interrupt.check()?;
    let image = image?;
    if image.size_bytes() == Some(0) {
        return Err(CliError::ImageEmpty);
    }
    let to_read_bytes = image.data_bytes(&interrupt)?;
    let options = engine_options(&args.engine, false);
    let summary = Store::with_engine(&args.store, &options, |store| {
        let progress = Progress::new("importing", Unit::Bytes, to_read_bytes);
        let (read_bytes, data_bytes, written) = (0, 0, VolumeWritten::default());
        let mut import =
            Import { store, image: &image, progress, interrupt, read_bytes, data_bytes, written };
        let image_bytes = import.fill_volume(args)?;
        Ok(import.summary(args.volume.clone(), image_bytes))
    })?;
    report(args, &summary)
}

fn report(args: &ImportArgs, summary: &Summary) -> Result<(), CliError> {
    if args.format.json { output::print_json(summary) } else { print_text(summary) }
}

fn print_text(summary: &Summary) -> Result<(), CliError> {
    let target = summary.snapshot.as_ref().unwrap_or(&summary.volume);
    if summary.was_there {
        return output::print_sentence(format_args!(
            "{target} is there already: nothing was imported"
        ));
    }
    let seconds = human_duration(Duration::from_secs_f64(summary.seconds));
    // Of what was read: holes take no time, and where nothing is read there is no rate.
    let speed = summary.read_bytes as f64 / summary.seconds.max(1e-3);
    let speed = match summary.read_bytes {
        0 => String::new(),
        _ => format!(", {}/s", human_bytes(speed as u64)),
    };
    let saved = summary.written.saved_note().map_or_else(String::new, |saved| format!(", {saved}"));
    // What the percentage is of: chunks that the volume maps now, as `tamis stats` counts them.
    let mapped_bytes = summary.written.unique_bytes + summary.written.duplicate_bytes;
    output::print_sentence(format_args!(
        "imported {} into {target}: {} of data now take {}{saved} ({seconds}{speed})",
        human_bytes(summary.image_bytes),
        human_bytes(mapped_bytes),
        human_bytes(summary.written.stored_bytes),
    ))
}

/// One import on its way.
struct Import<'a> {
    store: &'a Store,
    image: &'a Image,
    progress: Progress,
    interrupt: Interrupt,
    read_bytes: u64,
    data_bytes: u64,
    /// What became of it in the volume that only this import writes.
    written: VolumeWritten,
}

impl Import<'_> {
    /// Imports into the volume that `args` name; returns the bytes of the image.
    fn fill_volume(&mut self, args: &ImportArgs) -> Result<u64, CliError> {
        let all = self.store.volumes()?;
        match all.iter().find(|volume| volume.name == args.volume) {
            Some(volume) => {
                check_settings(volume, args)?;
                self.store.check_unopened(&volume.name, args.force)?;
                ask_about(volume, args)?;
                self.fill_existing(volume, &all, args)
            }
            None => self.fill_new(args),
        }
    }

    fn fill_existing(
        &mut self,
        volume: &VolumeInfo,
        all: &[VolumeInfo],
        args: &ImportArgs,
    ) -> Result<u64, CliError> {
        let (name, mapped_bytes) = (volume.name.clone(), volume.mapped_bytes);
        let overwrite = args.overwrite;
        if volume.taken_unix_s.is_some() {
            return Err(RequestError::NotAVolume { name }.into());
        }
        if mapped_bytes > 0 && !overwrite {
            return Err(CliError::VolumeHoldsData { name, mapped_bytes });
        }
        if let Some((_, replaced)) = put_aside(all).find(|(of, _)| *of == name && !overwrite) {
            return Err(CliError::PutAsideStill { volume: name, replaced: replaced.to_owned() });
        }
        if volume.read_only {
            return Err(RequestError::ReadOnly { volume: name }.into());
        }
        let image_bytes = self.image.size_bytes();
        if image_bytes.is_some_and(|bytes| padded(bytes) > volume.size_bytes) {
            let volume_bytes = volume.size_bytes;
            return Err(CliError::ImageTooLarge { name, image_bytes, volume_bytes });
        }
        let staging = staging_volume(&name);
        let new = NewVolume {
            name: staging.clone(),
            size_bytes: volume.size_bytes,
            domain: volume.domain.clone(),
            kind: volume.kind,
            read_only: false,
        };
        let image_bytes = self.stage(new, &name, Room::Fixed, &Setting::all_of(volume))?;
        self.concluded(&staging, |import| import.replace(volume, &staging, args.force))?;
        // What the image has taken the place of is no half of a stream, for whose import to
        // discard, nor anything that one has put aside. Marks that stay lead nowhere.
        marks_of(&name, all).for_each(|mark| drop(self.store.delete(mark)));
        Ok(image_bytes)
    }

    fn fill_new(&mut self, args: &ImportArgs) -> Result<u64, CliError> {
        let (name, domain) = (args.volume.as_str(), args.domain.clone());
        if VolumeName::parse(name).is_err() {
            return Err(engine::RequestError::BadName { name: name.to_owned() }.into());
        }
        check_room(name)?;
        let staging = staging_volume(name);
        let size_bytes = self.image.size_bytes().map_or(STREAM_BYTES_FIRST, padded);
        let new = NewVolume { name: staging.clone(), size_bytes, domain, ..NewVolume::default() };
        let image_bytes = self.stage(new, name, Room::Growing, &settings_of_new(args))?;
        self.concluded(&staging, |import| {
            import.store.resize(&staging, padded(image_bytes))?;
            import.store.rename(&staging, name)?;
            Ok(())
        })?;
        Ok(image_bytes)
    }

    /// Fills a volume of its own with the image, for the one that is called `name`; returns the
    /// bytes of the image.
    fn stage(
        &mut self,
        new: NewVolume,
        name: &str,
        room: Room,
        settings: &[Setting],
    ) -> Result<u64, CliError> {
        let staging = new.name.clone();
        if self.store.volumes()?.iter().any(|volume| volume.name == staging) {
            self.store
                .check_unopened(&staging, Force { force: false })
                .map_err(|error| of_volume(error, &staging, name))?;
            // An import that was killed has left it, perhaps with its snapshot.
            self.store.delete_with_snapshots(&staging)?;
        }
        let made = self.store.ask(new)?;
        self.concluded(&staging, |import| {
            set_up(import.store, made, settings)?;
            import.copy(&staging, room).map_err(|error| of_volume(error, &staging, name))
        })
    }

    /// What `work` comes to; the volume of its own is removed if that is an error.
    fn concluded<T>(
        &mut self,
        staging: &str,
        work: impl FnOnce(&mut Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let done = work(self);
        if done.is_err() {
            // The first error is the one to tell; what is left is removed by the next import.
            let _ = self.store.delete_with_snapshots(staging);
        }
        done
    }

    /// Lets a volume hold what the staged one does, in one step.
    fn replace(&self, volume: &VolumeInfo, staging: &str, force: Force) -> Result<(), CliError> {
        let (volumes, name) = (vec![staging.to_owned()], STAGED_SNAPSHOT.to_owned());
        self.store.ask(SnapshotRequest { volumes, name, taken_unix_s: 0 })?;
        self.interrupt.check()?;
        let rollback = Rollback {
            snapshot: format!("{staging}@{STAGED_SNAPSHOT}"),
            volume: Some(volume.name.clone()),
            id: None,
        };
        self.store.ask_alone(rollback, force)?;
        // The image is in its place: what stays of this is removed by the next import.
        let _ = self.store.delete_with_snapshots(staging);
        Ok(())
    }

    /// Fills a volume that holds nothing.
    fn copy(&mut self, name: &str, room: Room) -> Result<u64, CliError> {
        let volume = self.store.open(name, "import")?;
        let writer = VolumeWriter::new(&volume, true);
        let image_bytes = match self.image {
            Image::Disk(disk) => self.copy_disk(name, disk, &writer)?,
            Image::Stream(stream) => {
                self.copy_stream(name, &mut *stream.borrow_mut(), &writer, room)?
            }
        };
        writer.finish()?;
        self.written = self.store.written_into(name)?;
        Ok(image_bytes)
    }

    fn copy_disk(
        &mut self,
        name: &str,
        disk: &DiskImage,
        to: &VolumeWriter<'_>,
    ) -> Result<u64, CliError> {
        let end_bytes = padded(disk.size_bytes());
        let mut at = 0;
        while let Some(run) = disk.next_data(at)? {
            let start = (run.start - run.start % RUN_ALIGN_BYTES).max(at);
            let end = run.end.next_multiple_of(RUN_ALIGN_BYTES).min(end_bytes);
            to.zero(at, start - at)?;
            self.copy_run(name, disk, start..end, to)?;
            at = end;
        }
        to.zero(at, end_bytes - at)?;
        disk.check_length()?;
        Ok(disk.size_bytes())
    }

    fn copy_run(
        &mut self,
        name: &str,
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
            self.show(name, piece_end - at);
            at = piece_end;
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
        let mut volume_bytes = self.size_of(name)?;
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
            self.show(name, length as u64);
            if length < piece.len() {
                break;
            }
        }
        if at == 0 { Err(CliError::ImageEmpty) } else { Ok(at) }
    }

    /// The size of a volume now: it may have been enlarged since it was opened.
    fn size_of(&self, name: &str) -> Result<u64, CliError> {
        let found = self.store.volumes()?.into_iter().find(|volume| volume.name == name);
        let gone = || RequestError::NoSuchVolume { name: name.to_owned() };
        Ok(found.ok_or_else(gone)?.size_bytes)
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
                Ok(self.store.resize(name, volume_bytes.saturating_mul(2))?.size_bytes)
            }
        }
    }

    /// Counts `bytes` of the image that were read and are being written into volume `name`.
    fn show(&mut self, name: &str, bytes: u64) {
        self.read_bytes += bytes;
        self.progress.advance(bytes);
        let store = self.store;
        self.progress.note_now_and_then(|| store.written_into(name).ok()?.saved_note());
    }

    fn summary(self, volume: String, image_bytes: u64) -> Summary {
        let Self { progress, read_bytes, data_bytes, written, .. } = self;
        let seconds = progress.finish().as_secs_f64();
        Summary {
            volume,
            snapshot: None,
            was_there: false,
            image_bytes,
            read_bytes,
            data_bytes,
            written,
            seconds,
        }
    }
}

/// The error, with the name of the volume that the image is for.
fn of_volume(error: CliError, staging: &str, name: &str) -> CliError {
    let mut error = error;
    match &mut error {
        CliError::Request(
            RequestError::QuotaExceeded { volume: told } | RequestError::InUse { name: told, .. },
        )
        | CliError::ImageTooLarge { name: told, .. }
            if told == staging =>
        {
            name.clone_into(told);
        }
        _ => {}
    }
    error
}

/// That a volume which is there is no bucket, is in the domain and has the codec that were asked
/// for, if any
/// were.
fn check_settings(volume: &VolumeInfo, args: &ImportArgs) -> Result<(), CliError> {
    if volume.kind == VolumeKind::Bucket {
        return Err(BucketsError::is_bucket(&args.store, &volume.name).into());
    }
    let other = |has: String, option| {
        let name = volume.name.clone();
        Err(CliError::OtherSetting { name, has, option })
    };
    if args.domain.is_some() && args.domain != volume.domain {
        return other("is in another domain".to_owned(), "--domain");
    }
    match (args.compression.map(VolumeCodec::own), volume.compression) {
        (Some(asked), has) if asked != has => {
            let with =
                has.map_or_else(|| "as the store does".to_owned(), |has| format!("with {has}"));
            other(format!("compresses new data {with}"), "--compression")
        }
        _ => Ok(()),
    }
}

/// What a volume that an import makes is set to.
fn settings_of_new(args: &ImportArgs) -> Vec<Setting> {
    let own = args.compression.and_then(VolumeCodec::own);
    own.map(|own| Setting::Compression(Some(own))).into_iter().collect()
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

/// Whether the volume may be enlarged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Room {
    Fixed,
    Growing,
}
