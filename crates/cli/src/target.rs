//! Where an exported image goes: a new file, a block device, standard output.
//!
//! A file is written under a hidden name beside the one asked for and takes that name when it is
//! complete and synced. Dropped before that, it is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// An image that is being written.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Stream,
    File { file: File, hidden: PathBuf },
    Device { file: File },
}

impl Target {
    /// A target of `size_bytes` at `path`, `-` being standard output. What is there already is
    /// touched only with `overwrite`.
    pub(crate) fn open(path: &Path, size_bytes: u64, overwrite: bool) -> Result<Self, CliError> {
        let path = path.to_owned();
        if path.as_os_str() == "-" {
            return Ok(Self { path: PathBuf::from("standard output"), kind: Kind::Stream });
        }
        let there = fs::metadata(&path).ok();
        if there.is_some() && !overwrite {
            return Err(CliError::OutputExists { path });
        }
        let kind = match there {
            Some(meta) if meta.file_type().is_block_device() => open_device(&path, size_bytes)?,
            _ => create_hidden(&path, size_bytes)
                .map_err(|source| CliError::OutputFailed { path: path.clone(), source })?,
        };
        Ok(Self { path, kind })
    }

    /// The file or device to write into, each byte at its own place; `None` for a stream.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.kind {
            Kind::Stream => None,
            Kind::File { file, .. } | Kind::Device { file } => Some(file),
        }
    }

    /// Whether what is not written may be something else than zeros.
    pub(crate) fn needs_zeros(&self) -> bool {
        matches!(self.kind, Kind::Device { .. })
    }

    /// A failed write, with the name of what was written.
    pub(crate) fn failed(&self, source: io::Error) -> CliError {
        CliError::OutputFailed { path: self.path.clone(), source }
    }

    /// Makes what was written durable, and visible under its name.
    pub(crate) fn complete(&self) -> Result<(), CliError> {
        let completed = match &self.kind {
            Kind::Stream => Ok(()),
            Kind::Device { file } => file.sync_all(),
            Kind::File { file, hidden } => {
                file.sync_all().and_then(|()| fs::rename(hidden, &self.path))
            }
        };
        if completed.is_err() {
            self.abandon();
        }
        completed.map_err(|source| self.failed(source))
    }

    /// Removes what was written to a new file.
    pub(crate) fn abandon(&self) {
        if let Kind::File { hidden, .. } = &self.kind {
            // The error that led here is the one to tell.
            let _ = fs::remove_file(hidden);
        }
    }
}

fn create_hidden(path: &Path, size_bytes: u64) -> io::Result<Kind> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let hidden = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
    let hidden = path.with_file_name(hidden);
    let file = OpenOptions::new().write(true).create_new(true).open(&hidden)?;
    if let Err(error) = file.set_len(size_bytes) {
        let _ = fs::remove_file(&hidden);
        return Err(error);
    }
    Ok(Kind::File { file, hidden })
}

fn open_device(path: &Path, size_bytes: u64) -> Result<Kind, CliError> {
    let failed = |source| CliError::OutputFailed { path: path.to_owned(), source };
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    let device_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if device_bytes < size_bytes {
        let (path, volume_bytes) = (path.to_owned(), size_bytes);
        return Err(CliError::OutputTooSmall { path, device_bytes, volume_bytes });
    }
    Ok(Kind::Device { file })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::Target;
    use crate::error::CliError;
    use crate::testing::Folder;

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        let target = Target::open(&path, 8192, false).unwrap();
        target.file().unwrap().write_all_at(b"x", 4096).unwrap();
        assert!(!path.exists());
        target.complete().unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[4096]), (8192, 0, b'x'));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = Folder::new();
        Target::open(&folder.path().join("out.img"), 4096, false).unwrap().abandon();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_there_is_kept_unless_overwriting_is_asked_for() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        fs::write(&path, "precious").unwrap();
        let refused = Target::open(&path, 4096, false);
        assert!(matches!(refused, Err(CliError::OutputExists { .. })), "{refused:?}");
        let target = Target::open(&path, 4096, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        target.complete().unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 4096);
    }
}
