//! A stream applied to a volume (`docs/format.md`): the volume holds what the stream leads to, and
//! has the snapshot that it names, or is as it was.
//!
//! ```text
//! without a base   NAME~importing made -> applied -> its snapshot taken -> called NAME
//! with a base A    NAME@B~importing taken -> applied to NAME -> NAME@B taken -> the first deleted
//! ```
//!
//! NAME@B~importing, the mark, is what NAME held before: a failure rolls back to it. An import
//! that was killed leaves it behind, and the next one rolls back to it first. So nothing is ever
//! called B that is not: its snapshot is taken when the end of the stream has been seen and
//! everything before it has been found right.
//!
//! With `--overwrite` what NAME holds is discarded for B, and for nothing less: NAME@B~replaced is
//! taken of it, before NAME goes back to A and the mark is taken. As long as it is there, it is the
//! one to go back to, also when an import was killed before it took its mark: the next one goes
//! back to it where that gives nothing up, and where it would, it is the user who decides.
//!
//! Going back discards what was written since, so it must be the import that wrote it. A mark
//! counts only while it is the last that happened to NAME: who has rolled back, or taken a
//! snapshot, has seen what the import left, and what is there is theirs. A mark whose import came
//! to its end is removed by the next import, and with the snapshot B.

use engine::control::{Rollback, TakeCopied};
use engine::{NewVolume, RequestError, SnapshotRequest, VolumeInfo, VolumeWritten};
use format::stream::{Section, StreamHeader, StreamVersion};

use super::{Summary, check_settings, settings_of_new};
use crate::args::ImportArgs;
use crate::commands::confirm::confirm;
use crate::commands::volume::settings::set_up;
use crate::control::Store;
use crate::difference::Comparison;
use crate::error::{CliError, Present, StreamNotApplied};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::staging::{
    check_name, check_room, comes_of, completed_name, led_to, marks_for, marks_of, staging_name,
};
use crate::store::engine_options;
use crate::stream::{is_version, sample};
use crate::stream_source::StreamSource;
use crate::volume_writer::VolumeWriter;

/// Applies `source` to the volume that `args` name.
pub(super) fn run(
    args: &ImportArgs,
    mut source: StreamSource,
    interrupt: &Interrupt,
) -> Result<Summary, CliError> {
    let options = engine_options(&args.engine, false);
    let StreamHeader { target, data_bytes, .. } = source.header.clone();
    Store::with_engine(&args.store, &options, |store| {
        let progress = Progress::new("importing", Unit::Bytes, Some(data_bytes));
        let mut import =
            StreamImport { store, interrupt, progress, written: VolumeWritten::default() };
        let brought_bytes = import.apply_to(args, &mut source)?;
        let data_bytes = brought_bytes.unwrap_or(0);
        let seconds = import.progress.finish().as_secs_f64();
        Ok(Summary {
            volume: args.volume.clone(),
            snapshot: Some(format!("{}@{}", args.volume, target.name)),
            was_there: brought_bytes.is_none(),
            image_bytes: target.size_bytes,
            read_bytes: data_bytes,
            data_bytes,
            written: import.written,
            seconds,
        })
    })
}

/// A stream on its way into a store.
struct StreamImport<'a> {
    store: &'a Store,
    interrupt: &'a Interrupt,
    progress: Progress,
    /// What became of what the stream brought.
    written: VolumeWritten,
}

impl StreamImport<'_> {
    /// Applies `source` as `args` ask for; returns how many bytes of data it brought, and none if
    /// the snapshot that it leads to is there already.
    fn apply_to(
        &mut self,
        args: &ImportArgs,
        source: &mut StreamSource,
    ) -> Result<Option<u64>, CliError> {
        let volume = &args.volume;
        let header = source.header.clone();
        check_name(&header.target.name)?;
        let done = format!("{volume}@{}", header.target.name);
        self.forget_ended(volume)?;
        if let Some(snapshot) = self.find(&done)? {
            if !is_version(self.store, &snapshot, &header.target)? {
                return Err(RequestError::VolumeExists { name: done }.into());
            }
            return Ok(None);
        }
        let brought_bytes = match &header.base {
            None => self.fill_new(args, source, &header)?,
            Some(base) => self.change(args, source, &header, base)?,
        };
        Ok(Some(brought_bytes))
    }

    fn find(&self, name: &str) -> Result<Option<VolumeInfo>, CliError> {
        Ok(self.store.volumes()?.into_iter().find(|volume| volume.name == name))
    }

    /// Deletes a snapshot, if it is there.
    fn forget(&self, name: &str) -> Result<(), CliError> {
        match self.find(name)? {
            Some(_) => self.store.delete(name),
            None => Ok(()),
        }
    }

    fn forget_all(&self, names: [&String; 2]) -> Result<(), CliError> {
        names.into_iter().try_for_each(|name| self.forget(name))
    }

    /// Deletes the marks of imports into a volume that came to their end.
    fn forget_ended(&self, volume: &str) -> Result<(), CliError> {
        let all = self.store.volumes()?;
        let is_there = |name: &str| all.iter().any(|other| other.name == name);
        for mark in marks_of(volume, &all).filter(|mark| is_there(completed_name(mark))) {
            self.store.delete(mark)?;
        }
        Ok(())
    }

    fn fill_new(
        &mut self,
        args: &ImportArgs,
        source: &mut StreamSource,
        header: &StreamHeader,
    ) -> Result<u64, CliError> {
        let name = &args.volume;
        if self.find(name)?.is_some() {
            return Err(RequestError::VolumeExists { name: name.clone() }.into());
        }
        check_room(name)?;
        let staging = staging_name(name);
        if self.find(&staging)?.is_some() {
            self.store.delete_with_snapshots(&staging)?;
        }
        let (size_bytes, domain) = (header.target.size_bytes, args.domain.clone());
        let new = NewVolume { name: staging.clone(), size_bytes, domain, ..NewVolume::default() };
        let made = self.store.ask(new)?;
        let filled = set_up(self.store, made, &settings_of_new(args));
        let filled =
            filled.and_then(|_| self.apply(&staging, source, true)).and_then(|data_bytes| {
                self.conclude(&staging, &header.target)?;
                self.store.rename(&staging, name)?;
                Ok(data_bytes)
            });
        if filled.is_err() {
            // The first error is the one to tell; what is left is removed by the next import.
            let _ = self.store.delete_with_snapshots(&staging);
        }
        filled
    }

    fn change(
        &mut self,
        args: &ImportArgs,
        source: &mut StreamSource,
        header: &StreamHeader,
        base: &StreamVersion,
    ) -> Result<u64, CliError> {
        let volume = &args.volume;
        let Some(found) = self.find(volume)? else {
            let (store, name) = (args.store.clone(), volume.clone());
            return Err(CliError::NoVolume { store, name, present: Present::default() });
        };
        check_settings(&found, args)?;
        self.store.end_opens(volume, args.force)?;
        check_room(&header.target.name)?;
        let (volume, name) = (volume.clone(), base.name.clone());
        let base_name = format!("{volume}@{name}");
        match self.find(&base_name)? {
            None => return Err(StreamNotApplied::NoBase { volume, base: name }.into()),
            Some(found) if !is_version(self.store, &found, base)? => {
                return Err(StreamNotApplied::OtherBase { volume, base: name }.into());
            }
            Some(_) => {}
        }
        if args.overwrite && !args.confirm.yes && !self.is_same(&base_name, &volume)? {
            let question = format_args!("Discard what {volume} has changed since {base_name}?");
            confirm(&args.confirm, question)?;
        }
        let [mark, replaced] = marks_for(&format!("{volume}@{}", header.target.name));
        let before = if args.overwrite { &replaced } else { &mark };
        self.undo_killed(&found, args.overwrite, &mark)?;
        self.have_back(&volume, &base_name, [&mark, &replaced])?;
        if !args.overwrite && !self.is_same(&base_name, &volume)? {
            return Err(StreamNotApplied::ChangedSinceBase { volume, base: name }.into());
        }
        // Those that are there may be from before what happened to the volume since.
        self.forget_all([&mark, &replaced])?;
        self.take(before)?;
        let go_back = args.overwrite.then_some((base_name.as_str(), mark.as_str()));
        let changed = self.lead_on(&volume, source, go_back);
        let back = if changed.is_err() { self.undo(&volume, before) } else { Ok(()) };
        match (changed, back) {
            // What was taken of it stays, and the next import begins with that.
            (Err(error), Err(source)) => Err(CliError::NotUndone {
                volume,
                error: Box::new(error),
                source: Box::new(source),
            }),
            (changed, _) => {
                // Those that stay though the import came to its end go when it is repeated.
                let _ = self.forget_all([&mark, &replaced]);
                changed
            }
        }
    }

    /// Applies the stream to a volume that holds its base, or after it has gone back to that, and a
    /// mark has been taken, and gives it the snapshot.
    fn lead_on(
        &mut self,
        volume: &str,
        source: &mut StreamSource,
        go_back: Option<(&str, &str)>,
    ) -> Result<u64, CliError> {
        if let Some((base_name, mark)) = go_back {
            self.roll_back(base_name)?;
            self.take(mark)?;
        }
        let data_bytes = self.apply(volume, source, false)?;
        self.conclude(volume, &source.header.target)?;
        Ok(data_bytes)
    }

    /// Goes back after a failure: to what was asked of the volume before, all is answered.
    fn undo(&self, volume: &str, before: &str) -> Result<(), CliError> {
        self.store.open(volume, "import")?.flush()?;
        self.roll_back(before)
    }

    fn roll_back(&self, snapshot: &str) -> Result<(), CliError> {
        self.store.ask(Rollback { snapshot: snapshot.to_owned(), volume: None, id: None }).map(drop)
    }

    /// Lets a volume be what it was before an import that was killed: the one that took `mark`, or
    /// with `--overwrite` any.
    fn undo_killed(
        &self,
        volume: &VolumeInfo,
        overwrite: bool,
        mark: &str,
    ) -> Result<(), CliError> {
        let parent = volume.parent.as_deref().filter(|parent| overwrite || *parent == mark);
        let Some(led_to) = parent.and_then(|parent| led_to(&volume.name, parent)) else {
            return Ok(());
        };
        let [mark, replaced] = marks_for(led_to);
        let before = if self.find(&replaced)?.is_some() { &replaced } else { &mark };
        output::say(format_args!("{} goes back to {before}, where an import began", volume.name));
        self.roll_back(before)?;
        self.forget_all([&mark, &replaced])
    }

    /// Lets a volume hold again what an import put aside that was killed before it took its mark.
    /// Nothing is discarded for it: the volume holds what its base does.
    fn have_back(
        &self,
        volume: &str,
        base_name: &str,
        [mark, replaced]: [&String; 2],
    ) -> Result<(), CliError> {
        let all = self.store.volumes()?;
        if !all.iter().any(|other| other.name == *replaced) || comes_of(volume, replaced, &all) {
            return Ok(());
        }
        if !self.is_same(base_name, volume)? {
            let (volume, replaced) = (volume.to_owned(), replaced.clone());
            return Err(CliError::PutAsideStill { volume, replaced });
        }
        output::say(format_args!("{volume} goes back to {replaced}, which an import put aside"));
        self.roll_back(replaced)?;
        self.forget_all([mark, replaced])
    }

    fn is_same(&self, one: &str, other: &str) -> Result<bool, CliError> {
        let step = |request| self.store.ask(request);
        let (from, to, interrupt) = (one, other, self.interrupt);
        let mut same = true;
        let compared = Comparison { from, to, interrupt, shown: true }.walk(step, |_| {
            same = false;
            Ok(same)
        })?;
        let [size_bytes, other_bytes] = compared.sizes_bytes;
        Ok(same && size_bytes == other_bytes)
    }

    /// Takes a mark.
    fn take(&self, full_name: &str) -> Result<(), CliError> {
        let (volume, name) = full_name.split_once('@').unwrap_or_default();
        let (volumes, name, taken_unix_s) = (vec![volume.to_owned()], name.to_owned(), 0);
        self.store.ask(SnapshotRequest { volumes, name, taken_unix_s })
    }

    /// Everything that the stream says, to its end.
    fn apply(
        &mut self,
        name: &str,
        source: &mut StreamSource,
        blank: bool,
    ) -> Result<u64, CliError> {
        let size_bytes = source.header.target.size_bytes;
        if self.store.open(name, "import")?.size_bytes() != size_bytes {
            self.store.resize(name, size_bytes)?;
        }
        let volume = self.store.open(name, "import")?;
        let writer = VolumeWriter::new(&volume, blank);
        let (store, before) = (self.store, self.store.written_into(name)?);
        let mut payload = Vec::new();
        let mut data_bytes = 0;
        while let Some(section) = source.next_section(&mut payload)? {
            self.interrupt.check()?;
            match section {
                Section::Data { offset_bytes, length_bytes } => {
                    let mut buf = writer.buffer(offset_bytes, payload.len());
                    buf.bytes_mut().copy_from_slice(&payload);
                    writer.write(offset_bytes, buf)?;
                    data_bytes += length_bytes;
                    self.progress.set_done(data_bytes);
                    self.progress.note_now_and_then(|| {
                        store.written_into(name).ok()?.since(&before).saved_note()
                    });
                }
                Section::Hole { offset_bytes, length_bytes } => {
                    writer.zero(offset_bytes, length_bytes)?;
                }
                Section::End => {}
            }
        }
        writer.finish()?;
        self.written = store.written_into(name)?.since(&before);
        Ok(data_bytes)
    }

    /// The volume has become what the stream leads to: it gets the snapshot.
    fn conclude(&self, volume: &str, target: &StreamVersion) -> Result<(), CliError> {
        let full = format!("{volume}@{}", target.name);
        if sample(self.store, volume)? != target.sample {
            return Err(
                StreamNotApplied::NotTheTarget { volume: volume.to_owned(), target: full }.into()
            );
        }
        let StreamVersion { name, taken_unix_s, origin, .. } = target.clone();
        let request = SnapshotRequest { volumes: vec![volume.to_owned()], name, taken_unix_s };
        match origin {
            None => self.store.ask(request),
            Some(origin) => self.store.ask(TakeCopied { snapshots: request, origin }),
        }
    }
}
