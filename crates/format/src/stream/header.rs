//! The start of a stream: where it comes from and leads to.

use crate::catalog::{NAME_BYTES_MAX, Origin, VolumeName};
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at, u64_at};
use crate::stream::STREAM_VERSION;
use crate::superblock::CHUNK_BYTES_MAX;
use crate::units::{BLOCK_BYTES, UUID_BYTES};

/// Length of the header.
pub const STREAM_HEADER_BYTES: usize = 1024;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-ST");

pub(crate) const MAGIC_AT: usize = 0;
pub(crate) const CRC_AT: usize = 8;
pub(crate) const VERSION_AT: usize = 12;
pub(crate) const UUID_AT: usize = 16;
pub(crate) const CHUNK_BYTES_AT: usize = 32;
pub(crate) const FLAGS_AT: usize = 36;
pub(crate) const ZERO_AT: usize = 37;
pub(crate) const DATA_BYTES_AT: usize = 40;
pub(crate) const PADDING_AT: usize = 48;
pub(crate) const TARGET_AT: usize = 64;
pub(crate) const BASE_AT: usize = 352;
pub(crate) const TARGET_UUID_AT: usize = 640;
pub(crate) const BASE_UUID_AT: usize = 656;
pub(crate) const REST_AT: usize = 672;
const FLAG_BASE: u8 = 1;

pub(crate) const VERSION_BYTES: usize = 288;
pub(crate) const NAME_AT: usize = 0;
pub(crate) const NAME_BYTES_AT: usize = 255;
pub(crate) const NUMBER_AT: usize = 256;
pub(crate) const SAMPLE_AT: usize = 260;
pub(crate) const TAKEN_AT: usize = 264;
pub(crate) const SIZE_AT: usize = 272;
pub(crate) const VERSION_REST_AT: usize = 280;

const _: () = assert!(NAME_AT + NAME_BYTES_MAX == NAME_BYTES_AT && VERSION_AT + 4 == UUID_AT);
const _: () = assert!(FLAGS_AT + 1 == ZERO_AT && DATA_BYTES_AT + 8 == PADDING_AT);
const _: () = assert!(SIZE_AT + 8 == VERSION_REST_AT && VERSION_REST_AT < VERSION_BYTES);
const _: () =
    assert!(TARGET_AT + VERSION_BYTES == BASE_AT && BASE_AT + VERSION_BYTES == TARGET_UUID_AT);
const _: () =
    assert!(TARGET_UUID_AT + UUID_BYTES == BASE_UUID_AT && BASE_UUID_AT + UUID_BYTES == REST_AT);

/// A snapshot at either end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamVersion {
    /// Its own part of `volume@snapshot`, a [`VolumeName`].
    pub name: String,
    /// Where it was taken, which need not be where the stream comes from, and its number there;
    /// none when nobody knows.
    pub origin: Option<Origin>,
    /// When it was taken, in seconds since 1970; 0 when nobody knows.
    pub taken_unix_s: u64,
    /// Of the volume, at its moment.
    pub size_bytes: u64,
    /// [`crate::stream::sample_of`] its bytes.
    pub sample: u32,
}

/// What a stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The store that it comes from.
    pub uuid: [u8; UUID_BYTES],
    /// Length of that store's chunks.
    pub chunk_bytes: u32,
    /// Bytes in all its sections of data.
    pub data_bytes: u64,
    /// What a volume is to hold when the stream was applied to it.
    pub target: StreamVersion,
    /// What it holds before; none: nothing.
    pub base: Option<StreamVersion>,
}

impl StreamVersion {
    fn encode(&self, bytes: &mut [u8], uuid: &mut [u8]) {
        assert!(self.name.len() <= NAME_BYTES_MAX, "names are parsed before they are written");
        put_bytes(bytes, NAME_AT, self.name.as_bytes());
        bytes[NAME_BYTES_AT] = self.name.len() as u8;
        if let Some(origin) = &self.origin {
            put_u32(bytes, NUMBER_AT, origin.number);
            uuid.copy_from_slice(&origin.uuid);
        }
        put_u32(bytes, SAMPLE_AT, self.sample);
        put_u64(bytes, TAKEN_AT, self.taken_unix_s);
        put_u64(bytes, SIZE_AT, self.size_bytes);
    }

    fn decode(bytes: &[u8], uuid: [u8; UUID_BYTES]) -> Result<Self, FormatError> {
        let name = &bytes[NAME_AT..][..usize::from(bytes[NAME_BYTES_AT])];
        let size_bytes = u64_at(bytes, SIZE_AT);
        if size_bytes == 0 || !size_bytes.is_multiple_of(512) {
            return Err(FormatError::field(Structure::StreamHeader, "size", size_bytes));
        }
        Ok(Self {
            name: VolumeName::decode(Structure::StreamHeader, name)?,
            origin: Origin::from_fields(uuid, u32_at(bytes, NUMBER_AT)),
            taken_unix_s: u64_at(bytes, TAKEN_AT),
            size_bytes,
            sample: u32_at(bytes, SAMPLE_AT),
        })
    }
}

impl StreamHeader {
    /// The header's bytes.
    ///
    /// # Panics
    /// When a name is no [`VolumeName`].
    #[must_use]
    pub fn encode(&self) -> [u8; STREAM_HEADER_BYTES] {
        let mut bytes = [0; STREAM_HEADER_BYTES];
        put_u64(&mut bytes, MAGIC_AT, MAGIC);
        put_u32(&mut bytes, VERSION_AT, STREAM_VERSION);
        put_bytes(&mut bytes, UUID_AT, &self.uuid);
        put_u32(&mut bytes, CHUNK_BYTES_AT, self.chunk_bytes);
        put_u64(&mut bytes, DATA_BYTES_AT, self.data_bytes);
        let (versions, uuids) = bytes.split_at_mut(TARGET_UUID_AT);
        let (target_uuid, rest) = uuids.split_at_mut(UUID_BYTES);
        self.target.encode(&mut versions[TARGET_AT..BASE_AT], target_uuid);
        if let Some(base) = &self.base {
            versions[FLAGS_AT] = FLAG_BASE;
            base.encode(&mut versions[BASE_AT..], &mut rest[..UUID_BYTES]);
        }
        let crc = crc32c(&bytes[VERSION_AT..]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    /// What the first bytes of a stream say.
    ///
    /// # Errors
    /// [`FormatError`] when they are no header, or a newer program's.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::StreamHeader;
        FormatError::at_least(structure, STREAM_HEADER_BYTES, bytes)?;
        let bytes = &bytes[..STREAM_HEADER_BYTES];
        let found = u64_at(bytes, MAGIC_AT);
        if found != MAGIC {
            return Err(FormatError::Magic { structure, expected: MAGIC, found });
        }
        let (supported, found) = (STREAM_VERSION, u32_at(bytes, VERSION_AT));
        if found > supported {
            return Err(FormatError::NewerVersion { structure, supported, found });
        }
        let crc = crc32c(&bytes[VERSION_AT..]);
        FormatError::checksum(structure, u32_at(bytes, CRC_AT), crc)?;
        if found == 0 {
            return Err(FormatError::field(structure, "version", 0));
        }
        let chunk_bytes = u32_at(bytes, CHUNK_BYTES_AT);
        let possible = BLOCK_BYTES as u32..=CHUNK_BYTES_MAX;
        if !chunk_bytes.is_power_of_two() || !possible.contains(&chunk_bytes) {
            return Err(FormatError::field(structure, "chunk length", u64::from(chunk_bytes)));
        }
        let version = |at: usize, uuid_at| {
            StreamVersion::decode(&bytes[at..][..VERSION_BYTES], array_at(bytes, uuid_at))
        };
        let base = match bytes[FLAGS_AT] {
            0 => None,
            FLAG_BASE => Some(version(BASE_AT, BASE_UUID_AT)?),
            other => return Err(FormatError::field(structure, "flags", u64::from(other))),
        };
        Ok(Self {
            uuid: array_at(bytes, UUID_AT),
            chunk_bytes,
            data_bytes: u64_at(bytes, DATA_BYTES_AT),
            target: version(TARGET_AT, TARGET_UUID_AT)?,
            base,
        })
    }
}
