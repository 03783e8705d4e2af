//! A raw image: the file is the disk. Its first bytes are looked at, so that an image of another
//! format is not taken for a disk.

use std::path::Path;

use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::Span;

/// Bytes at the start of a file that tell its format.
const MAGIC_BYTES_MAX: usize = 64;

/// First bytes of image formats that are not raw. A disk's own first bytes are boot code, which
/// none of these is.
pub(crate) const OTHER_FORMATS: [(&[u8], &str); 3] =
    [(b"KDMV", "VMDK"), (b"vhdxfile", "VHDX"), (b"<<< Oracle VM VirtualBox", "VDI")];

/// A raw image that is open.
#[derive(Debug)]
pub(crate) struct RawImage {
    file: HostFile,
}

impl RawImage {
    pub(crate) fn new(file: HostFile) -> Self {
        Self { file }
    }

    pub(crate) fn file(&self) -> &HostFile {
        &self.file
    }

    /// What is at `at_bytes` of the disk.
    pub(crate) fn span(&self, at_bytes: u64) -> Result<Span, ImageError> {
        self.file.span(at_bytes)
    }
}

/// The first bytes of `file`, zeros beyond its end.
pub(crate) fn first_bytes(file: &HostFile) -> Result<[u8; MAGIC_BYTES_MAX], ImageError> {
    let mut first = [0; MAGIC_BYTES_MAX];
    file.read_padded_at(0, &mut first)?;
    Ok(first)
}

/// An error when a file that begins so is an image of a format that is not read here.
pub(crate) fn refuse_other_formats(first: &[u8], path: &Path) -> Result<(), ImageError> {
    match OTHER_FORMATS.iter().find(|(magic, _)| first.starts_with(magic)) {
        Some((_, format)) => Err(ImageError::OtherFormat { path: path.to_owned(), format }),
        None => Ok(()),
    }
}
