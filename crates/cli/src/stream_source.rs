//! A stream that is read: from a file or standard input, section by section, all of it checked.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use format::FormatError;
use format::stream::{
    SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, Section, StreamCourse, StreamHeader, is_stream,
};

use crate::error::CliError;
use crate::image::read_full;
use crate::interrupt::Interrupt;
use crate::stdin::{Stdin, unread};

/// Bytes by which a stream is known.
const START_BYTES: usize = 8;

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
    /// What is at `path`, `-` being standard input; an image if that is `known`.
    pub(crate) fn open(path: &Path, known: bool, interrupt: &Interrupt) -> Result<Self, CliError> {
        let piped = path.as_os_str() == "-";
        let mut from: Box<dyn Read> = if piped {
            Box::new(Stdin::open(interrupt)?)
        } else if path.is_file() && !known {
            let open = File::open(path);
            Box::new(open.map_err(|source| CliError::StreamUnreadable { at_bytes: 0, source })?)
        } else {
            return Ok(Self::Image(None));
        };
        if known {
            return Ok(Self::Image(Some(from)));
        }
        let mut start = vec![0; START_BYTES];
        let length = read_full(&mut from, &mut start).map_err(|error| unreadable(0, error))?;
        start.truncate(length);
        let found = is_stream(&start);
        let all: Box<dyn Read> = Box::new(Cursor::new(start).chain(from));
        if !found {
            return Ok(Self::Image(piped.then_some(all)));
        }
        let stream = StreamSource::begin(all)?;
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
