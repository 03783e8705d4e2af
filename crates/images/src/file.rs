//! A file or block device of the host: its bytes and its holes.
//!
//! A reader goes by the length that it had when it was opened. A file that somebody makes
//! shorter meanwhile would look as if zeros followed, so every end that is met is held against that
//! length ([`ImageError::LengthChanged`]).

use std::fs::{self, File};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, SeekFrom as HoleSeek};
use rustix::io::Errno;

use crate::error::ImageError;
use crate::layer::{Place, Span};

/// A file that is open for reading.
#[derive(Debug)]
pub(crate) struct HostFile {
    file: File,
    path: PathBuf,
    size_bytes: u64,
    identity: FileIdentity,
}

/// Which file of the host it is, by whatever name it was opened: its device and its inode.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl HostFile {
    pub(crate) fn open(path: &Path) -> Result<Self, ImageError> {
        let failed = |source| ImageError::Io { path: path.to_owned(), source };
        // Before it is opened: opening a pipe would wait for its other end.
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(ImageError::NotSeekable { path: path.to_owned() });
        }
        let mut file = File::open(path).map_err(failed)?;
        let size_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let identity = FileIdentity { device: metadata.dev(), inode: metadata.ino() };
        // Advice only: a system that ignores it reads the same.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
        Ok(Self { file, path: path.to_owned(), size_bytes, identity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn identity(&self) -> FileIdentity {
        self.identity
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether there is data or a hole at `at_bytes`, and how far.
    pub(crate) fn span(&self, at_bytes: u64) -> Result<Span, ImageError> {
        let (data, hole) = (
            |end_bytes: u64| Span {
                end_bytes: end_bytes.min(self.size_bytes),
                place: Place::Host(at_bytes),
            },
            |end_bytes: u64| Span { end_bytes, place: Place::Zeros },
        );
        if at_bytes >= self.size_bytes {
            return Ok(hole(u64::MAX));
        }
        match rustix::fs::seek(&self.file, HoleSeek::Data(at_bytes)) {
            Ok(start_bytes) if start_bytes > at_bytes => Ok(hole(start_bytes)),
            Ok(_) => {
                let end = rustix::fs::seek(&self.file, HoleSeek::Hole(at_bytes));
                let end_bytes = end.map_err(|errno| self.unreadable(errno.into()))?;
                // A file that is written while it is read may have lost the data by now.
                Ok(if end_bytes > at_bytes { data(end_bytes) } else { hole(at_bytes + 1) })
            }
            Err(Errno::NXIO) if self.length_now()? < self.size_bytes => Err(self.changed()),
            Err(Errno::NXIO) => Ok(hole(u64::MAX)),
            // Not every file system and no block device knows of holes: then all is data.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(data(self.size_bytes)),
            Err(errno) => Err(self.unreadable(errno.into())),
        }
    }

    /// Fills `out` from `offset_bytes` on; all of it is inside the file, or that is an error.
    pub(crate) fn read_exact_at(
        &self,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        self.file.read_exact_at(out, offset_bytes).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => self.changed(),
            _ => self.unreadable(source),
        })
    }

    /// The same, with zeros for what lies beyond the end.
    pub(crate) fn read_padded_at(
        &self,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at_bytes = offset_bytes.saturating_add(filled as u64);
            match self.file.read_at(rest, at_bytes) {
                Ok(0) if at_bytes < self.size_bytes => return Err(self.changed()),
                Ok(0) => {
                    rest.fill(0);
                    break;
                }
                Ok(length) => filled += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
        Ok(())
    }

    /// That it ends where it did when it was opened.
    pub(crate) fn check_length(&self) -> Result<(), ImageError> {
        if self.length_now()? == self.size_bytes { Ok(()) } else { Err(self.changed()) }
    }

    fn length_now(&self) -> Result<u64, ImageError> {
        // The length of a block device is not in what `fstat` says of it.
        let end = (&self.file).seek(SeekFrom::End(0));
        end.map_err(|source| self.unreadable(source))
    }

    fn changed(&self) -> ImageError {
        ImageError::LengthChanged { path: self.path.clone() }
    }

    /// Lets the system read what will be asked for soon.
    pub(crate) fn read_ahead(&self, offset_bytes: u64, length_bytes: u64) {
        if offset_bytes < self.size_bytes {
            let length = NonZeroU64::new(length_bytes);
            let _ = rustix::fs::fadvise(&self.file, offset_bytes, length, Advice::WillNeed);
        }
    }

    pub(crate) fn unreadable(&self, source: std::io::Error) -> ImageError {
        ImageError::Io { path: self.path.clone(), source }
    }
}
