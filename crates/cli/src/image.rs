//! Raw images that are read: sparse files, block devices, standard input.
//!
//! A file tells where its holes are, so that importing a sparse terabyte costs what its data
//! costs. Everything is read in whole pieces into buffers of the caller's.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom as HoleSeek;
use rustix::io::Errno;

use crate::error::CliError;

/// First bytes of image formats that are not raw. A disk's own first bytes are boot code, which
/// none of these is.
const OTHER_FORMATS: [(&[u8], &str); 4] = [
    (b"QFI\xfb", "qcow2"),
    (b"KDMV", "VMDK"),
    (b"vhdxfile", "VHDX"),
    (b"<<< Oracle VM VirtualBox", "VDI"),
];

/// Where an image comes from.
#[derive(Debug)]
pub(crate) enum Image {
    /// A file or block device whose size is known.
    File(ImageFile),
    /// Bytes until they end.
    Stream,
}

/// A file or block device.
#[derive(Debug)]
pub(crate) struct ImageFile {
    file: File,
    path: PathBuf,
    size_bytes: u64,
}

impl Image {
    /// The image at `path`, `-` being standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stream);
        }
        ImageFile::open(path).map(Self::File)
    }

    /// Its size, when that is known before it is read.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.size_bytes),
            Self::Stream => None,
        }
    }
}

impl ImageFile {
    fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::ImageUnreadable { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(CliError::ImageNotSeekable { path: path.to_owned() });
        }
        let size_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if let Some(format) = other_format(&file).map_err(failed)? {
            return Err(CliError::ImageNotRaw { path: path.to_owned(), format });
        }
        Ok(Self { file, path: path.to_owned(), size_bytes })
    }

    /// Its size.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The first run of data at or after `from_bytes`; `None` when only a hole follows.
    pub(crate) fn next_data(&self, from_bytes: u64) -> Result<Option<Range<u64>>, CliError> {
        if from_bytes >= self.size_bytes {
            return Ok(None);
        }
        let start = match rustix::fs::seek(&self.file, HoleSeek::Data(from_bytes)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            // Not every file system and no block device knows of holes: then all is data.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                return Ok(Some(from_bytes..self.size_bytes));
            }
            Err(errno) => return Err(self.unreadable(errno.into())),
        };
        let end = rustix::fs::seek(&self.file, HoleSeek::Hole(start))
            .map_err(|errno| self.unreadable(errno.into()))?;
        let end = end.min(self.size_bytes);
        Ok((start < end).then_some(start..end))
    }

    /// Fills `out` from `offset_bytes` on, with zeros beyond the end of the image.
    pub(crate) fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), CliError> {
        let left = self.size_bytes.saturating_sub(offset_bytes);
        let there = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let (image, beyond) = out.split_at_mut(there);
        self.file.read_exact_at(image, offset_bytes).map_err(|source| self.unreadable(source))?;
        beyond.fill(0);
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> CliError {
        CliError::ImageUnreadable { path: self.path.clone(), source }
    }
}

fn other_format(file: &File) -> io::Result<Option<&'static str>> {
    let mut head = [0; 64];
    let length = file.read_at(&mut head, 0)?;
    let head = head.get(..length).unwrap_or_default();
    let found = OTHER_FORMATS.iter().find(|(magic, _)| head.starts_with(magic));
    Ok(found.map(|(_, name)| *name))
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

    use super::{Image, is_zero, read_full};
    use crate::error::CliError;
    use crate::testing::Folder;

    fn open(path: &std::path::Path) -> super::ImageFile {
        match Image::open(path).unwrap() {
            Image::File(file) => file,
            Image::Stream => panic!(),
        }
    }

    #[test]
    fn runs_of_data_cover_every_byte_that_is_not_zero() {
        let folder = Folder::new();
        let path = folder.path().join("sparse.img");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"one", 3 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"two", 50 << 20).unwrap();
        let image = open(&path);
        let mut runs = Vec::new();
        let mut from = 0;
        while let Some(run) = image.next_data(from).unwrap() {
            from = run.end;
            runs.push(run);
        }
        for data in [3 << 20, 50 << 20] {
            assert!(runs.iter().any(|run| run.contains(&data)), "{runs:?}");
        }
        assert!(image.next_data(64 << 20).unwrap().is_none());
    }

    #[test]
    fn a_read_beyond_the_end_is_zeros() {
        let folder = Folder::new();
        let path = folder.path().join("short.img");
        std::fs::write(&path, [7; 700]).unwrap();
        let mut out = [9; 512];
        open(&path).read_at(512, &mut out).unwrap();
        assert_eq!(out[..188], [7; 188]);
        assert_eq!(out[188..], [0; 324]);
    }

    #[test]
    fn other_formats_are_named() {
        let folder = Folder::new();
        let path = folder.path().join("disk");
        for (magic, name) in super::OTHER_FORMATS {
            std::fs::write(&path, [magic, &[0; 600]].concat()).unwrap();
            let refused = Image::open(&path);
            assert!(matches!(refused, Err(CliError::ImageNotRaw { format, .. }) if format == name));
        }
    }

    #[test]
    fn a_directory_is_no_image() {
        let folder = Folder::new();
        assert!(matches!(Image::open(folder.path()), Err(CliError::ImageNotSeekable { .. })));
    }

    /// Gives its bytes one at a time.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = out.len().min(1);
            self.0.read(&mut out[..length])
        }
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
