//! All data, in pieces.
//!
//! A piece is a buffer of a mebibyte with one or more *segments*: stretches of files, each at an
//! offset that is a multiple of the largest chunk size, as it was in its file. So chunks of any
//! size can be cut from it, a large file fills piece after piece, and small files share one. Files
//! are read one after the other, by one thread at a time: as fast as a disk gives them, since the
//! system reads ahead while the threads compute.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use format::superblock::CHUNK_BYTES_MAX;
use images::{DiskImage, ImageError};

use crate::walk::Walk;

/// Bytes of a piece.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// What a segment begins at a multiple of.
const ALIGN_BYTES: u64 = CHUNK_BYTES_MAX as u64;
/// How far the system is asked to read ahead.
const AHEAD_BYTES: u64 = 8 << 20;
/// Unreadable files that are told by name.
const UNREADABLE_NAMED_MAX: usize = 1000;

/// A file that could not be read, or not to its end.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: ImageError,
    /// What was read of it before, if that was anything.
    pub part: Option<PartRead>,
}

/// The part of a file that was read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PartRead {
    /// From its start to here.
    pub read_bytes: u64,
    /// Of the whole file, or of the disk in it.
    pub size_bytes: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct UnreadableFiles {
    /// How many there are.
    pub count: u64,
    /// Those of them that were read in part.
    pub in_part: u64,
    /// The first thousand.
    pub named: Vec<Unreadable>,
}

/// A buffer of data; see the head of this file.
pub(crate) struct Piece {
    bytes: Vec<u8>,
    filled: usize,
    segments: Vec<Segment>,
}

#[derive(Copy, Clone, Debug)]
struct Segment {
    start: usize,
    length: usize,
}

impl Piece {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; PIECE_BYTES], filled: 0, segments: Vec::new() }
    }

    /// Every chunk of `chunk_bytes` with how much of it is inside its file; the rest of the last
    /// one is zeros.
    pub(crate) fn chunks(&self, chunk_bytes: usize) -> impl Iterator<Item = (&[u8], usize)> {
        self.segments.iter().flat_map(move |segment| {
            let end = segment.start + segment.length;
            let starts = (segment.start..end).step_by(chunk_bytes);
            starts.filter_map(move |start| {
                let chunk = self.bytes.get(start..start + chunk_bytes)?;
                Some((chunk, chunk_bytes.min(end - start)))
            })
        })
    }

    fn clear(&mut self) {
        self.filled = 0;
        self.segments.clear();
    }

    fn room(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Room for a segment of `length` bytes and the zeros behind it.
    fn segment(&mut self, length: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled = (start + length).next_multiple_of(ALIGN_BYTES as usize).min(self.bytes.len());
        self.segments.push(Segment { start, length });
        &mut self.bytes[start..self.filled]
    }

    /// Takes the last segment back.
    fn drop_segment(&mut self) {
        if let Some(segment) = self.segments.pop() {
            self.filled = segment.start;
        }
    }
}

/// How much data was read, for others to see, and whether it is to end.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) done_bytes: AtomicU64,
    pub(crate) stop: AtomicBool,
}

/// The source of pieces.
pub(crate) struct Pieces<'a> {
    walk: Walk,
    current: Option<Current>,
    /// Of the files before the current one.
    logical_bytes: u64,
    /// Data of all files: holes are not read.
    read_bytes: u64,
    files: u64,
    unreadable: UnreadableFiles,
    reading: &'a Reading,
}

/// The file that is being read.
struct Current {
    path: PathBuf,
    image: DiskImage,
    /// What is before it has been read.
    at_bytes: u64,
    /// What is known to be data.
    run: Range<u64>,
}

/// What all the pieces came from.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) files: u64,
    pub(crate) logical_bytes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) unreadable: UnreadableFiles,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(paths: &[PathBuf], reading: &'a Reading) -> Self {
        Self {
            walk: Walk::new(paths),
            current: None,
            logical_bytes: 0,
            read_bytes: 0,
            files: 0,
            unreadable: UnreadableFiles::default(),
            reading,
        }
    }

    /// Fills `piece` with what comes next; false when nothing does.
    pub(crate) fn fill(&mut self, piece: &mut Piece) -> bool {
        piece.clear();
        while piece.room() >= ALIGN_BYTES as usize && !self.reading.stop.load(Ordering::Relaxed) {
            if self.current.is_none() && !self.open_next() {
                break;
            }
            let Some(current) = &mut self.current else { continue };
            match current.fill(piece) {
                Ok(Some(length)) => {
                    self.read_bytes += length;
                    self.reading.done_bytes.store(self.read_bytes, Ordering::Relaxed);
                }
                Ok(None) => self.leave(None),
                Err(error) => self.leave(Some(error)),
            }
        }
        !piece.segments.is_empty()
    }

    /// What there was, at the end.
    pub(crate) fn into_sources(self) -> Sources {
        let Self { files, logical_bytes, read_bytes, unreadable, .. } = self;
        Sources { files, logical_bytes, read_bytes, unreadable }
    }

    /// Opens the next file; false when there is none.
    fn open_next(&mut self) -> bool {
        let Some(found) = self.walk.next() else { return false };
        let path = found.path().to_owned();
        match found.open() {
            Ok(image) => self.current = Some(Current { path, image, at_bytes: 0, run: 0..0 }),
            Err(error) => self.note_unreadable(path, error, None),
        }
        true
    }

    /// Leaves the current file, at its end or where it cannot be read.
    fn leave(&mut self, error: Option<ImageError>) {
        let Some(current) = self.current.take() else { return };
        let size_bytes = current.image.size_bytes();
        // Of a file that ends in an error only what was read is counted.
        let read_bytes =
            if error.is_some() { current.at_bytes.min(size_bytes) } else { size_bytes };
        self.logical_bytes = self.logical_bytes.saturating_add(read_bytes);
        self.files += u64::from(error.is_none() || read_bytes > 0);
        if let Some(error) = error {
            let part = (read_bytes > 0).then_some(PartRead { read_bytes, size_bytes });
            self.note_unreadable(current.path, error, part);
        }
    }

    fn note_unreadable(&mut self, path: PathBuf, error: ImageError, part: Option<PartRead>) {
        self.unreadable.count += 1;
        self.unreadable.in_part += u64::from(part.is_some());
        if self.unreadable.named.len() < UNREADABLE_NAMED_MAX {
            self.unreadable.named.push(Unreadable { path, error, part });
        }
    }
}

impl Current {
    /// Adds the next data of the file to `piece`, which has room; how much, or none when none is
    /// left.
    fn fill(&mut self, piece: &mut Piece) -> Result<Option<u64>, ImageError> {
        let size_bytes = self.image.size_bytes();
        if self.at_bytes >= self.run.end {
            match self.image.next_data(self.at_bytes)? {
                Some(run) => self.run = run,
                None => return Ok(None),
            }
        }
        let start = (self.run.start - self.run.start % ALIGN_BYTES).max(self.at_bytes);
        let room = piece.room() as u64;
        let end = self.run.end.next_multiple_of(ALIGN_BYTES).min(size_bytes).min(start + room);
        let length = usize::try_from(end - start).unwrap_or(0);
        self.image.read_ahead(start + AHEAD_BYTES, PIECE_BYTES as u64);
        // Beyond the end of the image zeros are read: those that fill up the last chunk.
        if let Err(error) = self.image.read_at(start, piece.segment(length)) {
            piece.drop_segment();
            return Err(error);
        }
        self.at_bytes = end.next_multiple_of(ALIGN_BYTES);
        Ok(Some(end - start))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Piece, Pieces, Reading};

    /// A directory of its own for one test, removed when the test ends.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("tamis-estimate-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn pieces(paths: &[PathBuf], chunk_bytes: usize) -> (usize, Vec<(Vec<u8>, usize)>) {
        let reading = Reading::default();
        let mut pieces = Pieces::new(paths, &reading);
        let (mut piece, mut count, mut chunks) = (Piece::new(), 0, Vec::new());
        while pieces.fill(&mut piece) {
            count += 1;
            chunks.extend(piece.chunks(chunk_bytes).map(|(chunk, real)| (chunk.to_vec(), real)));
        }
        (count, chunks)
    }

    #[test]
    fn small_files_share_a_piece_and_end_in_zeros() {
        let folder = Folder::new();
        for number in 1..=10_u8 {
            let bytes = vec![number; 1000 * usize::from(number)];
            fs::write(folder.path().join(number.to_string()), bytes).unwrap();
        }
        let (count, mut chunks) = pieces(&[folder.path().to_owned()], 4096);
        assert_eq!(count, 1);
        chunks.sort();
        assert_eq!(chunks.len(), 1 + 1 + 1 + 1 + 2 + 2 + 2 + 2 + 3 + 3);
        for (chunk, real) in chunks {
            assert!(chunk[..real].iter().all(|byte| *byte == chunk[0]));
            assert!(chunk[real..].iter().all(|byte| *byte == 0));
            assert!(real > 0 && chunk.len() == 4096);
        }
    }

    #[test]
    fn a_sparse_file_gives_the_chunks_that_it_has() {
        let folder = Folder::new();
        let path = folder.path().join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len((64 << 20) + 100).unwrap();
        for (at, byte) in [(0_u64, 1_u8), ((5 << 20) + 4096, 2), ((64 << 20) + 99, 3)] {
            file.write_all_at(&[byte], at).unwrap();
        }
        for chunk_bytes in [4096, 65536] {
            let (count, chunks) = pieces(std::slice::from_ref(&path), chunk_bytes);
            let filled = chunks.iter().filter(|(chunk, _)| chunk.iter().any(|byte| *byte != 0));
            let marks: Vec<u8> = filled.map(|(chunk, _)| *chunk.iter().max().unwrap()).collect();
            assert_eq!(marks, [1, 2, 3]);
            assert!(count <= 2, "{count} pieces for three chunks");
            assert_eq!(chunks.last().unwrap().1, 100);
        }
    }
}
