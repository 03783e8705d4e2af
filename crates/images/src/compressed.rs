//! Disks that come compressed, as cloud images do: expanded while they are read, from their start
//! to their end.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;

/// What is read of compressed bytes at once.
const BUFFER_BYTES: usize = 256 << 10;

/// How a file is compressed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.gz`
    Gzip,
    /// `.bz2`
    Bzip2,
    /// `.xz`
    Xz,
    /// `.zst`
    Zstd,
}

impl Compression {
    /// How what begins with these bytes is compressed, if it is.
    #[must_use]
    pub fn of_first_bytes(first: &[u8]) -> Option<Self> {
        // Behind the three letters comes the size of blocks, and then the mark of a block or of the
        // end.
        let bzip2 = first.starts_with(b"BZh")
            && first
                .get(4..10)
                .is_some_and(|mark| matches!(mark, b"1AY&SY" | b"\x17\x72\x45\x38\x50\x90"));
        [
            (Self::Gzip, first.starts_with(b"\x1f\x8b\x08")),
            (Self::Bzip2, bzip2),
            (Self::Xz, first.starts_with(b"\xfd7zXZ\0")),
            (Self::Zstd, first.starts_with(b"\x28\xb5\x2f\xfd")),
        ]
        .into_iter()
        .find_map(|(compression, is_so)| is_so.then_some(compression))
    }

    /// The bytes that `from` holds compressed, of all its members one behind the other. What does
    /// not expand is an error of kind [`ErrorKind::InvalidData`]; so is an end in the middle.
    ///
    /// # Errors
    /// When there is no memory for a decoder.
    pub fn expand(self, from: impl Read + 'static) -> io::Result<Box<dyn Read>> {
        let from = BufReader::with_capacity(BUFFER_BYTES, from);
        Ok(match self {
            Self::Gzip => Box::new(Checked(MultiGzDecoder::new(from))),
            Self::Bzip2 => Box::new(Checked(MultiBzDecoder::new(from))),
            Self::Xz => Box::new(Checked(XzDecoder::new_multi_decoder(from))),
            Self::Zstd => Box::new(Checked(zstd_decoder(from)?)),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Windows of up to 2 GiB, as `zstd --long=31` makes them, would be memory that a stranger's file
/// takes: what `zstd -d` itself takes unasked is the bound.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

fn zstd_decoder<R: BufRead>(from: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(from)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Decoders name what is wrong with the bytes by several kinds of error; here it is one. An error
/// of the reader below is none of theirs and stays what it is.
struct Checked<R>(R);

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                io::Error::new(ErrorKind::InvalidData, error)
            }
            // Of zstd, which names no kind; what comes from below carries an error of its own.
            ErrorKind::Other if error.raw_os_error().is_none() && !is_foreign(&error) => {
                io::Error::new(ErrorKind::InvalidData, error)
            }
            _ => error,
        })
    }
}

/// Whether an error carries a value of its own rather than a sentence.
fn is_foreign(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.source().is_some())
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, ErrorKind, Read, Write};

    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::Index;

    use super::Compression;

    const ALL: [Compression; 4] =
        [Compression::Gzip, Compression::Bzip2, Compression::Xz, Compression::Zstd];

    fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match compression {
            Compression::Gzip => {
                let mut into = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                into.write_all(bytes).unwrap();
                into.finish().unwrap();
            }
            Compression::Bzip2 => {
                let mut into = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
                into.write_all(bytes).unwrap();
                into.finish().unwrap();
            }
            Compression::Xz => {
                let mut into = liblzma::write::XzEncoder::new(&mut out, 1);
                into.write_all(bytes).unwrap();
                into.finish().unwrap();
            }
            Compression::Zstd => out = zstd::encode_all(bytes, 1).unwrap(),
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn what_was_compressed_comes_back_and_a_cut_is_an_error(
            first in vec(0_u8..4, 1..20_000),
            second in vec(any::<u8>(), 1..2000),
            cut in any::<Index>(),
        ) {
            for compression in ALL {
                // Two members, as `cat a.gz b.gz` makes them.
                let one = compress(compression, &first);
                let whole = [one.as_slice(), &compress(compression, &second)].concat();
                prop_assert_eq!(Compression::of_first_bytes(&whole), Some(compression));
                let mut out = Vec::new();
                let mut reader = compression.expand(Cursor::new(whole)).unwrap();
                reader.read_to_end(&mut out).unwrap();
                prop_assert!(out == [first.as_slice(), &second].concat());
                let mut short = one.clone();
                short.truncate(1 + cut.index(one.len() - 1));
                let read = compression.expand(Cursor::new(short)).and_then(|mut reader| {
                    reader.read_to_end(&mut Vec::new())
                });
                prop_assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
            }
        }
    }

    #[test]
    fn an_error_of_the_reader_stays_what_it_is() {
        struct Refusing;
        impl Read for Refusing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(ErrorKind::PermissionDenied.into())
            }
        }
        for compression in ALL {
            let mut reader = compression.expand(Refusing).unwrap();
            let error = reader.read(&mut [0; 10]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{compression}");
        }
    }
}
