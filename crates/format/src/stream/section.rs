//! Sections of a stream, and the order in which they come.
//!
//! [`StreamCourse`] is where a stream has come to, for its writer and for its reader: both count
//! sections and bytes alike. A reader takes the header of a section first, to know how much
//! follows, and believes it when the payload is there as well.

use crate::checksum::{crc32c, crc32c_append};
use crate::error::{FormatError, Structure};
use crate::field::{put_u32, put_u64, u32_at, u64_at};
use crate::stream::header::StreamHeader;

/// Length of a section's header; the payload of data follows.
pub const SECTION_HEADER_BYTES: usize = 32;

/// Most data in one section.
pub const DATA_BYTES_MAX: u64 = 1 << 20;

pub(crate) const CRC_AT: usize = 0;
pub(crate) const KIND_AT: usize = 4;
pub(crate) const ZERO_AT: usize = 5;
pub(crate) const NUMBER_AT: usize = 8;
pub(crate) const OFFSET_AT: usize = 16;
pub(crate) const LENGTH_AT: usize = 24;
const _: () = assert!(KIND_AT + 1 == ZERO_AT && ZERO_AT < NUMBER_AT);
pub(crate) const KIND_DATA: u8 = 1;
pub(crate) const KIND_HOLE: u8 = 2;
const KIND_END: u8 = 3;

/// What a section says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// The payload is what the target holds here.
    Data {
        /// In the volume.
        offset_bytes: u64,
        /// Of the payload: at most [`DATA_BYTES_MAX`].
        length_bytes: u64,
    },
    /// The target holds nothing here.
    Hole {
        /// In the volume.
        offset_bytes: u64,
        /// Of the range.
        length_bytes: u64,
    },
    /// The stream is over.
    End,
}

impl Section {
    /// Bytes of payload behind its header.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Self::Data { length_bytes, .. } => *length_bytes,
            Self::Hole { .. } | Self::End => 0,
        }
    }
}

/// Where a stream has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCourse {
    size_bytes: u64,
    /// Number of the next section.
    number: u64,
    /// End of the last range in the volume.
    reached_bytes: u64,
    /// Bytes of data sections that are still to come.
    data_left_bytes: u64,
    /// Of the stream so far.
    stream_bytes: u64,
    stream_crc: u32,
}

impl StreamCourse {
    /// Behind `header`, whose encoding `bytes` is.
    #[must_use]
    pub fn begin(header: &StreamHeader, bytes: &[u8]) -> Self {
        Self {
            size_bytes: header.target.size_bytes,
            number: 0,
            reached_bytes: 0,
            data_left_bytes: header.data_bytes,
            stream_bytes: bytes.len() as u64,
            stream_crc: crc32c(bytes),
        }
    }

    /// Bytes of the stream up to here.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        self.stream_bytes
    }

    /// The header of the next section, whose payload is `payload`.
    ///
    /// # Panics
    /// When the section cannot come here.
    #[must_use]
    pub fn encode(&mut self, section: Section, payload: &[u8]) -> [u8; SECTION_HEADER_BYTES] {
        let (kind, offset, length) = match section {
            Section::Data { offset_bytes, length_bytes } => (KIND_DATA, offset_bytes, length_bytes),
            Section::Hole { offset_bytes, length_bytes } => (KIND_HOLE, offset_bytes, length_bytes),
            Section::End => (KIND_END, self.stream_bytes, u64::from(self.stream_crc)),
        };
        assert!(self.check(section).is_ok(), "sections are written in their order");
        assert!(section.payload_bytes() == payload.len() as u64, "the payload is all of it");
        let mut header = [0; SECTION_HEADER_BYTES];
        header[KIND_AT] = kind;
        put_u64(&mut header, NUMBER_AT, self.number);
        put_u64(&mut header, OFFSET_AT, offset);
        put_u64(&mut header, LENGTH_AT, length);
        let crc = crc_of(&header, payload);
        put_u32(&mut header, CRC_AT, crc);
        self.go_on(section, &header, payload);
        header
    }

    /// What the header of the next section says. It is not to be believed before
    /// [`StreamCourse::verify`], but it can be: its payload is not longer than it may be.
    ///
    /// # Errors
    /// [`FormatError`] when no such section can come here.
    pub fn decode(&self, header: &[u8]) -> Result<Section, FormatError> {
        let structure = Structure::StreamSection;
        FormatError::at_least(structure, SECTION_HEADER_BYTES, header)?;
        let number = u64_at(header, NUMBER_AT);
        if number != self.number {
            return Err(FormatError::field(structure, "number", number));
        }
        let (offset_bytes, length_bytes) = (u64_at(header, OFFSET_AT), u64_at(header, LENGTH_AT));
        let section = match header[KIND_AT] {
            KIND_DATA => Section::Data { offset_bytes, length_bytes },
            KIND_HOLE => Section::Hole { offset_bytes, length_bytes },
            KIND_END => {
                let (expected, found) = (length_bytes as u32, self.stream_crc);
                if offset_bytes != self.stream_bytes || length_bytes != u64::from(expected) {
                    return Err(FormatError::field(structure, "length", offset_bytes));
                }
                FormatError::checksum(structure, expected, found)?;
                Section::End
            }
            other => return Err(FormatError::field(structure, "kind", u64::from(other))),
        };
        self.check(section)?;
        Ok(section)
    }

    /// Goes on behind a section whose header was decoded from `header`.
    ///
    /// # Errors
    /// [`FormatError`] when header or payload are damaged, or not all of the payload is there.
    pub fn verify(
        &mut self,
        section: Section,
        header: &[u8],
        payload: &[u8],
    ) -> Result<(), FormatError> {
        let structure = Structure::StreamSection;
        FormatError::at_least(structure, SECTION_HEADER_BYTES, header)?;
        let header = &header[..SECTION_HEADER_BYTES];
        let (expected_bytes, found_bytes) = (section.payload_bytes(), payload.len() as u64);
        if found_bytes != expected_bytes {
            return Err(FormatError::Length { structure, expected_bytes, found_bytes });
        }
        FormatError::checksum(structure, u32_at(header, CRC_AT), crc_of(header, payload))?;
        self.go_on(section, header, payload);
        Ok(())
    }

    fn check(&self, section: Section) -> Result<(), FormatError> {
        let structure = Structure::StreamSection;
        let (Section::Data { offset_bytes, length_bytes }
        | Section::Hole { offset_bytes, length_bytes }) = section
        else {
            let left = self.data_left_bytes;
            return if left == 0 {
                Ok(())
            } else {
                Err(FormatError::field(structure, "end", left))
            };
        };
        let inside = self.reached_bytes..=self.size_bytes;
        if !offset_bytes.is_multiple_of(512) || !inside.contains(&offset_bytes) {
            return Err(FormatError::field(structure, "offset", offset_bytes));
        }
        let payload_bytes = section.payload_bytes();
        let length_max = self.size_bytes - offset_bytes;
        if length_bytes == 0
            || !length_bytes.is_multiple_of(512)
            || length_bytes > length_max
            || payload_bytes > DATA_BYTES_MAX.min(self.data_left_bytes)
        {
            return Err(FormatError::field(structure, "length", length_bytes));
        }
        Ok(())
    }

    fn go_on(&mut self, section: Section, header: &[u8], payload: &[u8]) {
        if let Section::Data { offset_bytes, length_bytes }
        | Section::Hole { offset_bytes, length_bytes } = section
        {
            self.reached_bytes = offset_bytes + length_bytes;
        }
        self.data_left_bytes -= section.payload_bytes();
        self.number += 1;
        self.stream_bytes += (header.len() + payload.len()) as u64;
        self.stream_crc = crc32c_append(self.stream_crc, header);
        self.stream_crc = crc32c_append(self.stream_crc, payload);
    }
}

pub(crate) fn crc_of(header: &[u8], payload: &[u8]) -> u32 {
    crc32c_append(crc32c(&header[KIND_AT..]), payload)
}
