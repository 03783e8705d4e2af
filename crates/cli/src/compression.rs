//! `--compression lz4 | zstd[:LEVEL] | none`, as it is written and shown.

use format::units::{Codec, Compression};
use thiserror::Error;

/// Levels that Zstandard has; those below 1 trade ratio for speed.
const ZSTD_LEVELS: std::ops::RangeInclusive<i8> = -7..=22;
const ZSTD_LEVEL_DEFAULT: i8 = 1;

/// Why a text names no compression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CompressionError {
    #[error("use lz4, zstd, zstd:LEVEL or none")]
    UnknownCodec,
    #[error("zstd has the levels {} to {}", ZSTD_LEVELS.start(), ZSTD_LEVELS.end())]
    NoSuchLevel,
}

/// The compression that `text` names.
pub(crate) fn parse_compression(text: &str) -> Result<Compression, CompressionError> {
    let level = match text {
        "none" => return Ok(Compression { codec: Codec::Raw, level: 0 }),
        "lz4" => return Ok(Compression { codec: Codec::Lz4, level: 0 }),
        "zstd" => ZSTD_LEVEL_DEFAULT,
        _ => {
            let level = text.strip_prefix("zstd:").ok_or(CompressionError::UnknownCodec)?;
            level.parse().map_err(|_| CompressionError::NoSuchLevel)?
        }
    };
    if !ZSTD_LEVELS.contains(&level) {
        return Err(CompressionError::NoSuchLevel);
    }
    Ok(Compression { codec: Codec::Zstd, level })
}

/// `compression` as [`parse_compression`] takes it.
pub(crate) fn compression_name(compression: Compression) -> String {
    match compression.codec {
        Codec::Raw => "none".to_owned(),
        Codec::Lz4 => "lz4".to_owned(),
        Codec::Zstd => format!("zstd:{}", compression.level),
    }
}

#[cfg(test)]
mod tests {
    use super::{CompressionError, compression_name, parse_compression};

    #[test]
    fn names_read_back() {
        for name in ["none", "lz4", "zstd:1", "zstd:22", "zstd:-7"] {
            assert_eq!(compression_name(parse_compression(name).unwrap()), name);
        }
        assert_eq!(parse_compression("zstd"), parse_compression("zstd:1"));
    }

    #[test]
    fn what_is_no_compression_says_what_is() {
        for text in ["", "LZ5", "gzip", "lz4:3", "none:1"] {
            assert_eq!(parse_compression(text), Err(CompressionError::UnknownCodec), "{text:?}");
        }
        for text in ["zstd:", "zstd:23", "zstd:-8", "zstd:fast", "zstd:1000"] {
            assert_eq!(parse_compression(text), Err(CompressionError::NoSuchLevel), "{text:?}");
        }
        assert!(CompressionError::NoSuchLevel.to_string().contains("-7 to 22"));
    }
}
