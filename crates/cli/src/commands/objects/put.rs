//! `tamis put`: a file, standard input, or all files below a directory, into a bucket.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use admin::{ObjectKey, ObjectPut, ObjectSource, PutObject};
use buckets::now_unix_ms;
use serde::Serialize;

use crate::args::PutArgs;
use crate::control::Store;
use crate::error::{BucketsError, CliError, PlaceError};
use crate::interrupt::Interrupt;
use crate::object_path::ObjectPath;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::{counted, human_bytes};
use crate::stdin::{Stdin, unread};

/// What `--json` prints of one object.
#[derive(Serialize)]
struct Shown<'a> {
    key: &'a ObjectKey,
    #[serde(flatten)]
    put: ObjectPut,
}

/// What it prints of a directory.
#[derive(Serialize)]
struct AllShown {
    objects: u64,
    object_bytes: u64,
    seconds: f64,
}

/// The bytes of a file on their way.
struct Reading<'a> {
    from: &'a mut dyn Read,
    path: &'a Path,
    progress: &'a mut Progress,
    interrupt: &'a Interrupt,
}

impl ObjectSource for Reading<'_> {
    type Error = CliError;

    fn fill(&mut self, out: &mut [u8]) -> Result<usize, CliError> {
        let mut length = 0;
        while length < out.len() {
            self.interrupt.check()?;
            match self.from.read(&mut out[length..]) {
                Ok(0) => break,
                Ok(read) => {
                    length += read;
                    self.progress.advance(read as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(unread(error, |source| unreadable(self.path, source)));
                }
            }
        }
        Ok(length)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> CliError {
    match path.as_os_str() == "-" {
        true => CliError::Stdin(source),
        false => PlaceError::unreadable(path, source).into(),
    }
}

pub(in crate::commands) fn run(args: &PutArgs) -> Result<(), CliError> {
    let target = ObjectPath::parse(&args.target)?;
    let interrupt = Interrupt::listen()?;
    match args.recursive {
        true => put_tree(args, &target, &interrupt),
        false => put_one(args, &target, &interrupt),
    }
}

fn wish(args: &PutArgs, target: &ObjectPath, key: ObjectKey) -> PutObject {
    let lasts_ms =
        |lasts: std::time::Duration| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    PutObject {
        bucket: target.bucket.clone(),
        key,
        if_absent: args.if_absent,
        expires_unix_ms: args.expires_in.map(|lasts| now_unix_ms().saturating_add(lasts_ms(lasts))),
        content_type: args.content_type.clone(),
        acknowledged: false,
    }
}

fn put_one(args: &PutArgs, target: &ObjectPath, interrupt: &Interrupt) -> Result<(), CliError> {
    let path = args.file.as_path();
    let is_stdin = path.as_os_str() == "-";
    let key = match (target.is_prefix(), path.file_name()) {
        (false, _) => target.key.clone(),
        (true, _) if is_stdin => return Err(BucketsError::NamelessInput.into()),
        (true, Some(name)) => target.below(name.as_bytes()),
        (true, None) => return Err(BucketsError::IsDirectory { path: path.to_owned() }.into()),
    };
    let (mut from, size_bytes): (Box<dyn Read>, Option<u64>) = match is_stdin {
        true => (Box::new(Stdin::open(interrupt)?), None),
        false => {
            let (file, size_bytes) = open(path)?;
            (Box::new(file), Some(size_bytes))
        }
    };
    let mut progress = Progress::new("putting", Unit::Bytes, size_bytes);
    let put = Store::with(&target.store, |store| {
        let (from, progress) = (from.as_mut(), &mut progress);
        let mut source = Reading { from, path, progress, interrupt };
        store.put_object(wish(args, target, key.clone()), &mut source)
    });
    let took = progress.finish();
    let put = put?;
    if args.format.json {
        return output::print_json(&Shown { key: &key, put });
    }
    let (bytes, took) = (human_bytes(put.size_bytes), human_duration(took));
    output::print_line(format_args!("put {}: {bytes} ({took})", target.place(&key)))
}

/// A file to be read, and its size now.
fn open(path: &Path) -> Result<(File, u64), CliError> {
    let failed = |source| CliError::from(PlaceError::unreadable(path, source));
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    match metadata.is_dir() {
        true => Err(BucketsError::IsDirectory { path: path.to_owned() }.into()),
        false => Ok((file, metadata.len())),
    }
}

fn put_tree(args: &PutArgs, target: &ObjectPath, interrupt: &Interrupt) -> Result<(), CliError> {
    let root = args.file.as_path();
    if !root.is_dir() {
        return Err(BucketsError::NoDirectory { path: root.to_owned() }.into());
    }
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let total_bytes = files.iter().map(|(_, bytes)| bytes).sum();
    let mut progress = Progress::new("putting", Unit::Bytes, Some(total_bytes));
    let mut object_bytes = 0;
    let put = Store::with(&target.store, |store| {
        for (number, (path, _)) in files.iter().enumerate() {
            interrupt.check()?;
            let name = path.strip_prefix(root).unwrap_or(path);
            let key = target.below(name.as_os_str().as_bytes());
            let (mut from, _) = open(path)?;
            let (from, progress) = (&mut from, &mut progress);
            let mut source = Reading { from, path, progress, interrupt };
            // A crash keeps a prefix, so the last file makes all of them durable.
            let acknowledged = number + 1 < files.len();
            let wish = PutObject { acknowledged, ..wish(args, target, key) };
            object_bytes += store.put_object(wish, &mut source)?.size_bytes;
        }
        Ok(())
    });
    let took = progress.finish();
    put?;
    let objects = files.len() as u64;
    if args.format.json {
        let seconds = took.as_secs_f64();
        return output::print_json(&AllShown { objects, object_bytes, seconds });
    }
    output::print_line(format_args!(
        "put {} of {} into {} ({})",
        counted(objects, "object"),
        human_bytes(object_bytes),
        target.place(&target.prefix()),
        human_duration(took),
    ))
}

/// All files below a directory, with their sizes; links and what is no file are left out.
fn collect(directory: &Path, files: &mut Vec<(PathBuf, u64)>) -> Result<(), CliError> {
    let failed = |source| CliError::from(PlaceError::unreadable(directory, source));
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push((entry.path(), entry.metadata().map_err(failed)?.len()));
        } else {
            output::say(format_args!("note: {} is no file, and left out", entry.path().display()));
        }
    }
    Ok(())
}
