//! Codecs, and what new frames are compressed with: as it is stored, and as people write it.
//!
//! People write `none`, `lz4`, `zstd` or `zstd:LEVEL`, in options and in JSON alike.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use thiserror::Error;

use crate::error::{FormatError, Structure};

/// How a frame's payload is made from its chunk.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Codec {
    /// It is the chunk.
    #[default]
    Raw = 0,
    /// LZ4 block format.
    Lz4 = 1,
    /// One Zstandard frame.
    Zstd = 2,
}

impl Codec {
    /// The codec that the format calls `number`.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Raw),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// How people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// What new frames are compressed with; [`Codec::Raw`] is no compression.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Compression {
    /// How.
    pub codec: Codec,
    /// How hard, in the codec's own terms.
    pub level: i8,
}

/// Levels that Zstandard has; those below 1 trade ratio for speed.
const ZSTD_LEVELS: RangeInclusive<i8> = -7..=22;
const ZSTD_LEVEL_DEFAULT: i8 = 1;
/// The number of a volume that follows its store; a codec's own is one less than what is stored.
const FOLLOWS_STORE: u8 = 0;

/// Why a text names no compression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompressionNameError {
    /// It begins with no codec's name.
    #[error("use lz4, zstd, zstd:LEVEL or none")]
    UnknownCodec,
    /// The codec has no such level.
    #[error("zstd has the levels {} to {}", ZSTD_LEVELS.start(), ZSTD_LEVELS.end())]
    NoSuchLevel,
}

impl Compression {
    /// The two bytes that say what a volume's new frames are compressed with; none: with what the
    /// store's are.
    pub(crate) fn volume_bytes(compression: Option<Self>) -> [u8; 2] {
        match compression {
            None => [FOLLOWS_STORE, 0],
            Some(Self { codec, level }) => [codec as u8 + 1, level.cast_unsigned()],
        }
    }

    /// The same, read back; `structure` is what holds the bytes.
    pub(crate) fn of_volume_bytes(
        structure: Structure,
        [number, level]: [u8; 2],
    ) -> Result<Option<Self>, FormatError> {
        if [number, level] == [FOLLOWS_STORE, 0] {
            return Ok(None);
        }
        let codec = number.checked_sub(1).and_then(Codec::from_number);
        let codec = codec
            .ok_or_else(|| FormatError::field(structure, "volume's codec", u64::from(number)))?;
        Ok(Some(Self { codec, level: level.cast_signed() }))
    }
}

/// As [`FromStr`] takes it.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.codec.name())?;
        if self.codec == Codec::Zstd { write!(f, ":{}", self.level) } else { Ok(()) }
    }
}

impl FromStr for Compression {
    type Err = CompressionNameError;

    fn from_str(text: &str) -> Result<Self, CompressionNameError> {
        let level = match text {
            "none" => return Ok(Self { codec: Codec::Raw, level: 0 }),
            "lz4" => return Ok(Self { codec: Codec::Lz4, level: 0 }),
            "zstd" => ZSTD_LEVEL_DEFAULT,
            _ => {
                let level = text.strip_prefix("zstd:").ok_or(CompressionNameError::UnknownCodec)?;
                level.parse().map_err(|_| CompressionNameError::NoSuchLevel)?
            }
        };
        if !ZSTD_LEVELS.contains(&level) {
            return Err(CompressionNameError::NoSuchLevel);
        }
        Ok(Self { codec: Codec::Zstd, level })
    }
}

#[cfg(test)]
mod tests {
    use super::{Compression, CompressionNameError};
    use crate::error::Structure;

    #[test]
    fn names_read_back() {
        for name in ["none", "lz4", "zstd:1", "zstd:22", "zstd:-7"] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
        }
        assert_eq!("zstd".parse::<Compression>(), "zstd:1".parse());
    }

    #[test]
    fn what_is_no_compression_says_what_is() {
        for text in ["", "LZ5", "gzip", "lz4:3", "none:1"] {
            let refused = text.parse::<Compression>();
            assert_eq!(refused, Err(CompressionNameError::UnknownCodec), "{text:?}");
        }
        for text in ["zstd:", "zstd:23", "zstd:-8", "zstd:fast", "zstd:1000"] {
            let refused = text.parse::<Compression>();
            assert_eq!(refused, Err(CompressionNameError::NoSuchLevel), "{text:?}");
        }
        assert!(CompressionNameError::NoSuchLevel.to_string().contains("-7 to 22"));
    }

    #[test]
    fn a_volume_follows_its_store_or_has_a_codec_that_exists() {
        let read = |bytes| Compression::of_volume_bytes(Structure::CatalogEntry, bytes);
        for name in ["none", "lz4", "zstd:22", "zstd:-7"] {
            let own = Some(name.parse().unwrap());
            assert_eq!(read(Compression::volume_bytes(own)).unwrap(), own);
        }
        assert_eq!(Compression::volume_bytes(None), [0, 0]);
        assert_eq!(read([0, 0]).unwrap(), None);
        for bytes in [[0, 1], [4, 0], [255, 0]] {
            assert!(read(bytes).is_err(), "{bytes:?} passed");
        }
    }
}
