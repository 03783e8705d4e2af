//! A raw image: the file is the disk. Its ends are looked at, so that an image of another format is
//! not taken for a disk.

use crate::content::{Content, FIRST_BYTES, LAST_BYTES};
use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::Span;

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

/// What the ends of `file` say it is.
pub(crate) fn content_of(file: &HostFile) -> Result<Content, ImageError> {
    let mut first = vec![0; FIRST_BYTES];
    file.read_padded_at(0, &mut first)?;
    first.truncate(usize::try_from(file.size_bytes()).unwrap_or(FIRST_BYTES));
    let mut last = [0; LAST_BYTES];
    if let Some(at_bytes) = file.size_bytes().checked_sub(LAST_BYTES as u64) {
        file.read_padded_at(at_bytes, &mut last)?;
    }
    Ok(Content::of_ends(&first, &last))
}
