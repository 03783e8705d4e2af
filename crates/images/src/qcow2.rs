//! A qcow2 image: a header, a level-1 table of level-2 tables, which say where each cluster of the
//! disk is. Only the disk as it is now is read, not its internal snapshots.
//!
//! The level-1 table is kept in memory (at most 32 MiB) and one level-2 table (at most 2 MiB):
//! whoever reads an image from its start to its end reads each table once.

mod header;

use std::cell::RefCell;
use std::path::Path;

use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::{Place, Span};
pub(crate) use header::{Backing, MAGIC};
use header::{Header, HeaderError};

/// The largest cluster: the header, its extensions and the name of the backing file are in the
/// first.
const FIRST_CLUSTER_BYTES_MAX: u64 = 2 << 20;
/// Bits of an entry that are an offset in the file.
const OFFSET_MASK: u64 = 0x00FF_FFFF_FFFF_FE00;
const COMPRESSED_FLAG: u64 = 1 << 62;
const ZERO_FLAG: u64 = 1;

/// A qcow2 image that is open.
#[derive(Debug)]
pub(crate) struct Qcow2Image {
    file: HostFile,
    header: Header,
    l1: Vec<u64>,
    l2: RefCell<L2Table>,
}

/// The level-2 table that was used last.
#[derive(Debug, Default)]
struct L2Table {
    /// 0 is none: the header is there.
    offset_bytes: u64,
    entries: Vec<u64>,
}

impl Qcow2Image {
    pub(crate) fn open(file: HostFile) -> Result<Self, ImageError> {
        let first_bytes = file.size_bytes().min(FIRST_CLUSTER_BYTES_MAX);
        let mut first = vec![0; usize::try_from(first_bytes).unwrap_or(0)];
        file.read_exact_at(0, &mut first)?;
        let header = Header::decode(&first).map_err(|error| refusal(file.path(), error))?;
        let l1 = read_table(&file, header.l1_offset_bytes, header.l1_entries)?;
        Ok(Self { file, header, l1, l2: RefCell::default() })
    }

    pub(crate) fn file(&self) -> &HostFile {
        &self.file
    }

    /// The size of the disk.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.header.size_bytes
    }

    /// The image below.
    pub(crate) fn backing(&self) -> Option<&Backing> {
        self.header.backing.as_ref()
    }

    /// What is at `at_bytes` of the disk.
    pub(crate) fn span(&self, at_bytes: u64) -> Result<Span, ImageError> {
        let size_bytes = self.header.size_bytes;
        if at_bytes >= size_bytes {
            return Ok(Span { end_bytes: u64::MAX, place: Place::Zeros });
        }
        let span = self.span_of_tables(at_bytes)?;
        // The tables go on behind the end; for a larger image above, zeros begin there.
        Ok(Span { end_bytes: span.end_bytes.min(size_bytes), ..span })
    }

    fn span_of_tables(&self, at_bytes: u64) -> Result<Span, ImageError> {
        let span_bytes = self.header.l2_span_bytes();
        let l2_number = at_bytes / span_bytes;
        let entry = usize::try_from(l2_number).ok().and_then(|number| self.l1.get(number));
        let l2_offset = entry.copied().unwrap_or(0) & OFFSET_MASK;
        if l2_offset == 0 {
            let end_bytes = (l2_number + 1).saturating_mul(span_bytes);
            return Ok(Span { end_bytes, place: Place::Below });
        }
        let mut l2 = self.l2.borrow_mut();
        if l2.offset_bytes != l2_offset {
            l2.offset_bytes = 0;
            l2.entries = self.read_l2(l2_offset)?;
            l2.offset_bytes = l2_offset;
        }
        self.span_in(&l2.entries, l2_number * span_bytes, at_bytes)
    }

    /// What the level-2 table of the disk from `start_bytes` on says of `at_bytes`: the stretch of
    /// clusters that lie one behind the other in the file, or that are all absent or zeros.
    fn span_in(&self, l2: &[u64], start_bytes: u64, at_bytes: u64) -> Result<Span, ImageError> {
        let cluster_bytes = self.header.cluster_bytes();
        let number = (at_bytes - start_bytes) / cluster_bytes;
        let mut entries = l2.iter().skip(usize::try_from(number).unwrap_or(usize::MAX));
        let first = self.place(entries.next().copied().unwrap_or(0))?;
        let mut end_bytes = start_bytes + (number + 1) * cluster_bytes;
        let mut expected = first;
        for entry in entries {
            if let Place::Host(offset_bytes) = expected {
                expected = Place::Host(offset_bytes + cluster_bytes);
            }
            // What is wrong with an entry is told when it is asked for.
            if self.place(*entry).ok() != Some(expected) {
                break;
            }
            end_bytes = end_bytes.saturating_add(cluster_bytes);
        }
        let place = match first {
            Place::Host(offset_bytes) => Place::Host(offset_bytes + at_bytes % cluster_bytes),
            other => other,
        };
        Ok(Span { end_bytes, place })
    }

    /// Where the cluster of an entry of level 2 is.
    fn place(&self, entry: u64) -> Result<Place, ImageError> {
        if entry & COMPRESSED_FLAG != 0 {
            let path = self.file.path().to_owned();
            return Err(ImageError::Unsupported { path, what: "with compressed clusters" });
        }
        if self.header.has_zero_flag && entry & ZERO_FLAG != 0 {
            return Ok(Place::Zeros);
        }
        match entry & OFFSET_MASK {
            0 => Ok(Place::Below),
            offset_bytes => {
                self.check_offset(offset_bytes, "a cluster")?;
                Ok(Place::Host(offset_bytes))
            }
        }
    }

    fn read_l2(&self, offset_bytes: u64) -> Result<Vec<u64>, ImageError> {
        self.check_offset(offset_bytes, "a level-2 table")?;
        read_table(&self.file, offset_bytes, usize::try_from(self.header.l2_entries()).unwrap_or(0))
    }

    fn check_offset(&self, offset_bytes: u64, what: &str) -> Result<(), ImageError> {
        let aligned = offset_bytes.is_multiple_of(self.header.cluster_bytes());
        if aligned && offset_bytes < self.file.size_bytes() {
            return Ok(());
        }
        let what = format!("{what} would be at {offset_bytes}");
        Err(ImageError::Damaged { path: self.file.path().to_owned(), what })
    }
}

/// The table of `entries` entries at `offset_bytes`.
fn read_table(file: &HostFile, offset_bytes: u64, entries: usize) -> Result<Vec<u64>, ImageError> {
    let length_bytes = entries as u64 * 8;
    let end_bytes = offset_bytes.checked_add(length_bytes);
    if end_bytes.is_none_or(|end_bytes| end_bytes > file.size_bytes()) {
        let what = format!("a table would be at {offset_bytes}, beyond the end of the file");
        return Err(ImageError::Damaged { path: file.path().to_owned(), what });
    }
    let mut bytes = vec![0; entries * 8];
    file.read_exact_at(offset_bytes, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_be_bytes(*word)).collect())
}

fn refusal(path: &Path, error: HeaderError) -> ImageError {
    let path = path.to_owned();
    match error {
        HeaderError::Unsupported(what) => ImageError::Unsupported { path, what },
        HeaderError::Damaged(what) => ImageError::Damaged { path, what },
    }
}
