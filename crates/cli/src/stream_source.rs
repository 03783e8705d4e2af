//! A stream that is read: from a file or standard input, section by section, all of it checked.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use format::FormatError;
use format::stream::{
    SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, Section, StreamCourse, StreamHeader,
};
use images::ImageError;

use crate::args::ImportFormat;
use crate::error::CliError;
use crate::image::{look_for_stream, read_full};
use crate::interrupt::Interrupt;
use crate::stdin::{Stdin, unread};

/// What standard input or a file turned out to be.
pub(crate) enum Source {
    /// A stream, its header taken.
    Stream(Box<StreamSource>),
    /// Something else; all of it, if it is standard input.
    Image(Option<Box<dyn Read>>),
}

/// A stream behind its header.
pub(crate) struct StreamSource {
    pub(crate) header: StreamHeader,
    from: Box<dyn Read>,
    course: StreamCourse,
}

impl Source {
    /// What is at `path`, `-` being standard input: what `asked` says, or what its start says. A
    /// stream whose start is damaged is refused, and is no image.
    pub(crate) fn open(
        path: &Path,
        asked: Option<ImportFormat>,
        interrupt: &Interrupt,
    ) -> Result<Self, CliError> {
        let piped = path.as_os_str() == "-";
        let image_asked = matches!(asked, Some(ImportFormat::Image(_)));
        let file_type = if piped { None } else { fs::metadata(path).ok().map(|of| of.file_type()) };
        let is_device = file_type.is_some_and(|of| of.is_block_device());
        let mut from: Box<dyn Read> = if piped {
            Box::new(Stdin::open(interrupt)?)
        } else if !image_asked && (is_device || file_type.is_some_and(|of| of.is_file())) {
            Box::new(File::open(path).map_err(|source| unreadable(0, source))?)
        } else {
            return Ok(Self::Image(None));
        };
        if image_asked {
            return Ok(Self::Image(Some(from)));
        }
        let (is_stream, start) =
            look_for_stream(&mut from).map_err(|error| unreadable(0, error))?;
        match (is_stream, asked) {
            (false, Some(_)) => return Err(CliError::NoStream { path: path.to_owned() }),
            (false, None) => {
                let all: Box<dyn Read> = Box::new(start.chain(from));
                return Ok(Self::Image(piped.then_some(all)));
            }
            (true, _) if is_device => {
                return Err(ImageError::Stream { path: path.to_owned() }.into());
            }
            (true, _) => {}
        }
        let stream = StreamSource::begin(Box::new(start.chain(from)))?;
        Ok(Self::Stream(Box::new(stream)))
    }
}

impl StreamSource {
    fn begin(mut from: Box<dyn Read>) -> Result<Self, CliError> {
        let mut bytes = [0; STREAM_HEADER_BYTES];
        let length = read_full(&mut from, &mut bytes).map_err(|error| unreadable(0, error))?;
        if length < bytes.len() {
            return Err(CliError::StreamCut { at_bytes: length as u64 });
        }
        let damaged = |source| CliError::StreamDamaged { at_bytes: 0, source };
        let header = StreamHeader::decode(&bytes).map_err(damaged)?;
        let course = StreamCourse::begin(&header, &bytes);
        Ok(Self { header, from, course })
    }

    /// The next section, its payload in `payload`; none when the stream has come to its end, whole
    /// and sound.
    pub(crate) fn next_section(
        &mut self,
        payload: &mut Vec<u8>,
    ) -> Result<Option<Section>, CliError> {
        let mut header = [0; SECTION_HEADER_BYTES];
        self.read(&mut header, 0)?;
        let section = self.course.decode(&header).map_err(|error| self.damaged(error))?;
        payload.resize(usize::try_from(section.payload_bytes()).unwrap_or(0), 0);
        self.read(payload, SECTION_HEADER_BYTES as u64)?;
        let at_bytes = self.course.stream_bytes();
        self.course
            .verify(section, &header, payload)
            .map_err(|source| CliError::StreamDamaged { at_bytes, source })?;
        if section != Section::End {
            return Ok(Some(section));
        }
        let at_bytes = self.course.stream_bytes();
        match read_full(&mut self.from, &mut [0]) {
            Ok(0) => Ok(None),
            Ok(_) => Err(CliError::StreamTooLong { at_bytes }),
            Err(error) => Err(unreadable(at_bytes, error)),
        }
    }

    fn damaged(&self, source: FormatError) -> CliError {
        CliError::StreamDamaged { at_bytes: self.course.stream_bytes(), source }
    }

    /// Fills `out` with the bytes that follow `behind_bytes` further on.
    fn read(&mut self, out: &mut [u8], behind_bytes: u64) -> Result<(), CliError> {
        let at_bytes = self.course.stream_bytes() + behind_bytes;
        match read_full(&mut self.from, out) {
            Ok(length) if length == out.len() => Ok(()),
            Ok(length) => Err(CliError::StreamCut { at_bytes: at_bytes + length as u64 }),
            Err(error) => Err(unreadable(at_bytes, error)),
        }
    }
}

fn unreadable(at_bytes: u64, error: io::Error) -> CliError {
    unread(error, |source| CliError::StreamUnreadable { at_bytes, source })
}
