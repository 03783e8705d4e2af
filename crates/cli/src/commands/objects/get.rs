//! `tamis get`: an object into a file or to standard output, or all below a prefix into a
//! directory.
//!
//! A file is written under a hidden name and takes its own when the object is whole, as an export.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use admin::{GetObject, ObjectKey, ObjectShown, ObjectSink};
use serde::Serialize;

use super::each_page;
use crate::args::GetArgs;
use crate::control::Store;
use crate::error::place::unwritable;
use crate::error::{BucketsError, CliError};
use crate::interrupt::Interrupt;
use crate::object_path::ObjectPath;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::{counted, human_bytes};
use crate::target::{Target, is_device};

/// What `--json` prints of a directory.
#[derive(Serialize)]
struct AllShown {
    objects: u64,
    object_bytes: u64,
    seconds: f64,
}

/// An object on its way into a file.
struct Writing<'a> {
    path: &'a Path,
    overwrite: bool,
    /// Made when the object is known to be there.
    target: Option<Target>,
    object: Option<ObjectShown>,
    progress: &'a mut Progress,
    interrupt: &'a Interrupt,
}

impl ObjectSink for Writing<'_> {
    type Error = CliError;

    fn begin(&mut self, object: &ObjectShown) -> Result<(), CliError> {
        if is_device(self.path) {
            return Err(CliError::OutputUnfit { path: self.path.to_owned() });
        }
        self.target = Some(Target::open(self.path, 0, self.overwrite)?);
        self.object = Some(object.clone());
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.interrupt.check()?;
        if let Some(target) = &self.target {
            let written = match target.file() {
                Some(file) => write_to(file, bytes),
                None => io::stdout().lock().write_all(bytes),
            };
            written.map_err(|source| target.failed(source))?;
        }
        self.progress.advance(bytes.len() as u64);
        Ok(())
    }
}

fn write_to(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

pub(in crate::commands) fn run(args: &GetArgs) -> Result<(), CliError> {
    let source = ObjectPath::parse(&args.source)?;
    let interrupt = Interrupt::listen()?;
    match args.recursive {
        true => get_all(args, &source, &interrupt),
        false => get_one(args, source.with_key()?, &interrupt),
    }
}

/// Gets one object into `path`.
fn get(
    store: &Store,
    wish: GetObject,
    path: &Path,
    overwrite: bool,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Result<ObjectShown, CliError> {
    let mut writing = Writing { path, overwrite, target: None, object: None, progress, interrupt };
    let got = store.get_object(wish, &mut writing);
    let Writing { target, object, .. } = writing;
    if got.is_err()
        && let Some(target) = &target
    {
        target.abandon();
    }
    got?;
    match (target, object) {
        (Some(target), Some(object)) => {
            match target.file() {
                Some(_) => target.complete()?,
                None => io::stdout().flush().map_err(CliError::Stdout)?,
            }
            Ok(object)
        }
        _ => unreachable!("an object that was got had begun"),
    }
}

fn get_one(args: &GetArgs, source: ObjectPath, interrupt: &Interrupt) -> Result<(), CliError> {
    let name = source.key.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let path = match &args.file {
        Some(file) if file.is_dir() && is_plain(name) => file.join(OsStr::from_bytes(name)),
        Some(file) => file.clone(),
        None if is_plain(name) => PathBuf::from(OsStr::from_bytes(name)),
        None => return Err(BucketsError::UnsafeKey { key: source.key.to_string() }.into()),
    };
    let mut progress = Progress::new("getting", Unit::Bytes, None);
    let wish = GetObject { bucket: source.bucket.clone(), key: source.key.clone() };
    let got = Store::with(&source.store, |store| {
        get(store, wish, &path, args.overwrite, &mut progress, interrupt)
    });
    let took = progress.finish();
    let object = got?;
    if path.as_os_str() == "-" {
        return Ok(()); // Standard output carries the object.
    }
    if args.format.json {
        return output::print_json(&object);
    }
    let (bytes, took) = (human_bytes(object.size_bytes), human_duration(took));
    output::print_line(format_args!("got {}: {bytes} ({took})", path.display()))
}

fn get_all(args: &GetArgs, source: &ObjectPath, interrupt: &Interrupt) -> Result<(), CliError> {
    let root = args.file.clone().unwrap_or_else(|| PathBuf::from("."));
    let prefix = source.prefix();
    let mut progress = Progress::new("getting", Unit::Bytes, None);
    let (mut objects, mut object_bytes) = (0, 0);
    let got = Store::with(&source.store, |store| {
        each_page(store, source, &prefix, "", |page| {
            for object in page.objects {
                let path = root.join(file_of(&prefix, &object.key)?);
                make_directories(&root, &path)?;
                let wish = GetObject { bucket: source.bucket.clone(), key: object.key };
                let got = get(store, wish, &path, args.overwrite, &mut progress, interrupt)?;
                objects += 1;
                object_bytes += got.size_bytes;
            }
            Ok(())
        })?;
        match objects {
            0 => {
                let (bucket, prefix) = (source.bucket.clone(), prefix.to_string());
                Err(BucketsError::NothingUnder { bucket, prefix }.into())
            }
            _ => Ok(()),
        }
    });
    let took = progress.finish();
    got?;
    if args.format.json {
        let seconds = took.as_secs_f64();
        return output::print_json(&AllShown { objects, object_bytes, seconds });
    }
    output::print_line(format_args!(
        "got {} of {} into {} ({})",
        counted(objects, "object"),
        human_bytes(object_bytes),
        root.display(),
        human_duration(took),
    ))
}

/// Whether a part of a key is the name of a file in its directory.
fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&0) && !name.contains(&b'/')
}

/// The file of a key below the directory.
///
/// # Errors
/// [`BucketsError::UnsafeKey`] when the rest of the key is no path below it: it has `..`, `.`, an
/// empty part or a NUL, or begins or ends with `/`.
fn file_of(prefix: &ObjectKey, key: &ObjectKey) -> Result<PathBuf, CliError> {
    let rest = key.0.strip_prefix(prefix.0.as_slice()).unwrap_or(&key.0);
    match rest.split(|byte| *byte == b'/').all(is_plain) {
        true => Ok(PathBuf::from(OsStr::from_bytes(rest))),
        false => Err(BucketsError::UnsafeKey { key: key.to_string() }.into()),
    }
}

/// Makes the directories of a file below `root`. A link among them would lead out of it.
fn make_directories(root: &Path, file: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, source| unwritable(path, source);
    DirBuilder::new().recursive(true).create(root).map_err(|source| failed(root, source))?;
    let mut directory = root.to_owned();
    let below = file.strip_prefix(root).unwrap_or(file).parent().unwrap_or(Path::new(""));
    for component in below.components() {
        let Component::Normal(name) = component else { continue };
        directory.push(name);
        match fs::symlink_metadata(&directory) {
            Ok(there) if there.is_dir() => {}
            Ok(_) => return Err(CliError::OutputUnfit { path: directory }),
            Err(_) => {
                fs::create_dir(&directory).map_err(|source| failed(&directory, source))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use admin::ObjectKey;

    use super::file_of;

    #[test]
    fn no_key_leads_out_of_the_directory() {
        let file = |prefix: &str, key: &str| file_of(&prefix.into(), &ObjectKey::from(key)).ok();
        assert_eq!(file("", "a/b").unwrap().to_str(), Some("a/b"));
        assert_eq!(file("a/", "a/b..c").unwrap().to_str(), Some("b..c"));
        for key in ["/etc/x", "../x", "a/../../x", "a//b", "a/", "./a", "a/.", "a\0b", "a/.."] {
            assert_eq!(file("", key), None, "{key:?}");
        }
    }
}
