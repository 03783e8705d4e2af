//! Images that are imported: files and block devices of the formats that `images` reads, compressed
//! files, and standard input. What the first bytes say decides; what is recognised and not read is
//! refused before the store is touched.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;

use engine::SECTOR_BYTES;
use format::stream::{STREAM_START_BYTES, StreamStart};
use images::{Compression, Content, DiskImage, FIRST_BYTES, ImageError, ImageFormat};

use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::stdin::unread;

/// What sentences call standard input.
const STANDARD_INPUT: &str = "standard input";

/// Where an image comes from.
pub(crate) enum Image {
    /// A disk whose size is known.
    Disk(DiskImage),
    /// Bytes until they end.
    Stream(RefCell<Box<dyn Read>>),
}

impl Image {
    /// What comes from `stream`, or the image at `path`: of this format, or of the one that its
    /// first bytes tell.
    pub(crate) fn open(
        path: &Path,
        format: Option<ImageFormat>,
        stream: Option<Box<dyn Read>>,
    ) -> Result<Self, CliError> {
        if let Some(stream) = stream {
            return Self::of_stream(format, stream);
        }
        if format.is_none()
            && let Content::Compressed(compression) = DiskImage::content_of(path)?
        {
            let failed = |source| ImageError::Io { path: path.to_owned(), source };
            let file = File::open(path).map_err(failed)?;
            return Self::expanded(path, compression, file);
        }
        let disk = DiskImage::open_as(path, format)?;
        let detected = match disk.format() {
            _ if format.is_some() => None,
            ImageFormat::Raw => None,
            ImageFormat::Qcow2 => Some("qcow2"),
            ImageFormat::Foreign(of) => of.qemu_name,
        };
        if let Some(detected) = detected {
            output::say(format_args!(
                "{}: detected format: {detected} (override with --format raw)",
                path.display()
            ));
        }
        Ok(Self::Disk(disk))
    }

    fn of_stream(format: Option<ImageFormat>, mut stream: Box<dyn Read>) -> Result<Self, CliError> {
        if format.is_some() {
            return Ok(Self::Stream(RefCell::new(stream)));
        }
        let (content, all) = look_at(&mut stream)?;
        let all = Box::new(all.chain(stream));
        let path = Path::new(STANDARD_INPUT);
        match content {
            Content::Disk => Ok(Self::Stream(RefCell::new(all))),
            Content::Compressed(compression) => Self::expanded(path, compression, all),
            Content::Qcow2 => Err(CliError::Qcow2FromStdin),
            Content::TamisStream => Err(ImageError::Stream { path: path.to_owned() }.into()),
            Content::Foreign(format) => {
                Err(ImageError::OtherFormat { path: path.to_owned(), format }.into())
            }
        }
    }

    /// The disk that `from` holds compressed. What else may be in there is told by its first bytes.
    fn expanded(
        path: &Path,
        compression: Compression,
        from: impl Read + 'static,
    ) -> Result<Self, CliError> {
        let name = path.display().to_string();
        let expanded = compression.expand(from).map_err(CliError::Stdin)?;
        let mut expanded = Expanding { expanded, name: name.clone(), compression };
        let (content, start) = look_at(&mut expanded)?;
        let mut all = start.chain(expanded);
        let (is_stream, start) =
            look_for_stream(&mut all).map_err(|error| unread(error, CliError::Stdin))?;
        match content {
            Content::Disk if !is_stream => {
                Ok(Self::Stream(RefCell::new(Box::new(start.chain(all)))))
            }
            _ => Err(CliError::CompressedNoDisk { name, compression }),
        }
    }

    /// What of it is to be read, holes left out, when that is known before. Damage of the tables
    /// that say so is found here, before anything is written.
    pub(crate) fn data_bytes(&self, interrupt: &Interrupt) -> Result<Option<u64>, CliError> {
        let Self::Disk(disk) = self else { return Ok(None) };
        let data_bytes = disk.data_bytes(|| interrupt.check().is_ok())?;
        interrupt.check()?;
        Ok(Some(data_bytes))
    }

    /// Its size, when that is known before it is read.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::Disk(disk) => Some(disk.size_bytes()),
            Self::Stream(_) => None,
        }
    }
}

/// That an image of this format may come through a pipe: what is not read from its start to its end
/// may not.
pub(crate) fn check_pipe(format: Option<ImageFormat>) -> Result<(), CliError> {
    match format {
        None | Some(ImageFormat::Raw) => Ok(()),
        Some(ImageFormat::Qcow2) => Err(CliError::Qcow2FromStdin),
        Some(ImageFormat::Foreign(format)) => {
            let path = STANDARD_INPUT.into();
            Err(ImageError::OtherFormat { path, format }.into())
        }
    }
}

/// A compressed image. Bytes that do not expand are damage of the image, and said so.
struct Expanding {
    expanded: Box<dyn Read>,
    name: String,
    compression: Compression,
}

impl Read for Expanding {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.expanded.read(out).map_err(|source| {
            if source.kind() != ErrorKind::InvalidData {
                return source;
            }
            let (name, compression) = (self.name.clone(), self.compression);
            io::Error::other(CliError::CompressedDamaged { name, compression, source })
        })
    }
}

/// What the first bytes of `stream` say it is, and those bytes.
fn look_at(stream: &mut impl Read) -> Result<(Content, Cursor<Vec<u8>>), CliError> {
    let mut first = vec![0; FIRST_BYTES];
    let length = read_full(stream, &mut first);
    first.truncate(length.map_err(|error| unread(error, CliError::Stdin))?);
    Ok((Content::of_first_bytes(&first), Cursor::new(first)))
}

/// Whether `from` begins with a stream, damaged or not, and what was read of it to know that.
pub(crate) fn look_for_stream(from: &mut impl Read) -> io::Result<(bool, Cursor<Vec<u8>>)> {
    let mut start = Vec::new();
    let mut found = StreamStart::Needs(STREAM_START_BYTES);
    while let StreamStart::Needs(bytes) = found {
        let (known, wanted) = (start.len(), start.len() + bytes);
        start.resize(wanted, 0);
        let length = read_full(from, start.get_mut(known..).unwrap_or_default())?;
        start.truncate(known + length);
        found = StreamStart::of(&start);
        if start.len() < wanted {
            break;
        }
    }
    Ok((found == StreamStart::Stream, Cursor::new(start)))
}

/// The size of a volume that holds an image of `bytes`: whole sectors.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(SECTOR_BYTES)
}

/// Reads from `stream` until `out` is full or the stream ends; returns how much came.
pub(crate) fn read_full(stream: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Whether all of `bytes` is zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // By stretches: the inner loop has no exit and so becomes wide instructions.
    bytes.chunks(1024).all(|part| part.iter().fold(0, |seen, byte| seen | byte) == 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use proptest::sample::Index;

    use super::{is_zero, padded, read_full};

    /// Gives its bytes one at a time.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = out.len().min(1);
            self.0.read(&mut out[..length])
        }
    }

    #[test]
    fn volumes_are_whole_sectors() {
        assert_eq!((padded(0), padded(1), padded(512), padded(513)), (0, 512, 512, 1024));
    }

    proptest! {
        #[test]
        fn a_slow_stream_fills_whole_buffers(
            bytes in vec(any::<u8>(), 0..300),
            size in 1_usize..64,
        ) {
            let mut stream = Trickle(Cursor::new(bytes.clone()));
            let (mut all, mut out) = (Vec::new(), vec![0; size]);
            loop {
                let length = read_full(&mut stream, &mut out).unwrap();
                all.extend_from_slice(&out[..length]);
                if length < size {
                    break;
                }
            }
            prop_assert_eq!(all, bytes);
        }

        #[test]
        fn zero_is_zero_everywhere(length in 0_usize..5000, at in any::<Index>()) {
            let mut bytes = vec![0; length];
            prop_assert_eq!(is_zero(&bytes), true);
            if length > 0 {
                bytes[at.index(length)] = 1;
                prop_assert_eq!(is_zero(&bytes), false);
            }
        }
    }
}
