//! A qcow2 image: a header, a level-1 table of level-2 tables, which say where each cluster of the
//! disk is. Only the disk as it is now is read, not its internal snapshots.
//!
//! The level-1 table is kept in memory (at most 32 MiB) and one level-2 table (at most 2 MiB):
//! a reader of an image from its start to its end reads each table once.

mod expanded;
mod header;
mod l2_table;

use std::cell::RefCell;
use std::path::Path;

use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::{CompressedCluster, Place, Span};
use expanded::Expanded;
pub(crate) use header::{Backing, MAGIC};
use header::{Header, HeaderError};
use l2_table::{L2Table, OFFSET_MASK};

/// The largest cluster: the header, its extensions and the name of the backing file are in the
/// first.
const FIRST_CLUSTER_BYTES_MAX: u64 = 2 << 20;

/// A qcow2 image that is open.
#[derive(Debug)]
pub(crate) struct Qcow2Image {
    file: HostFile,
    /// Holds the clusters, if the image's own file does not.
    data_file: Option<HostFile>,
    header: Header,
    l1: Vec<u64>,
    l2: RefCell<LastL2>,
    expanded: RefCell<Expanded>,
}

/// The level-2 table that was used last.
#[derive(Debug, Default)]
struct LastL2 {
    /// 0 is none: the header is there.
    offset_bytes: u64,
    words: Vec<u64>,
}

impl Qcow2Image {
    pub(crate) fn open(file: HostFile) -> Result<Self, ImageError> {
        let first_bytes = file.size_bytes().min(FIRST_CLUSTER_BYTES_MAX);
        let mut first = vec![0; usize::try_from(first_bytes).unwrap_or(0)];
        file.read_exact_at(0, &mut first)?;
        let header = Header::decode(&first).map_err(|error| refusal(file.path(), error))?;
        let l1 = read_table(&file, header.l1_offset_bytes, header.l1_entries)?;
        let (l2, expanded) = (RefCell::default(), RefCell::default());
        Ok(Self { file, data_file: None, header, l1, l2, expanded })
    }

    /// The name of the file that holds the clusters, where this one does not: the caller opens it
    /// and sets it ([`Self::set_data_file`]).
    pub(crate) fn data_file_name(&self) -> Option<&[u8]> {
        self.header.data_file.as_deref()
    }

    /// Reads the clusters from `data`.
    pub(crate) fn set_data_file(&mut self, data: HostFile) {
        self.data_file = Some(data);
    }

    /// The file that holds the clusters.
    fn data(&self) -> &HostFile {
        self.data_file.as_ref().unwrap_or(&self.file)
    }

    /// All its own files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &HostFile> {
        std::iter::once(&self.file).chain(&self.data_file)
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
            l2.words = self.read_l2(l2_offset)?;
            l2.offset_bytes = l2_offset;
        }
        let data_bytes = self.data().size_bytes();
        let table = L2Table { header: &self.header, words: &l2.words, data_bytes };
        let span = table.span(l2_number * span_bytes, at_bytes);
        span.map_err(|what| self.damaged(what))
    }

    /// Fills `out` with bytes of clusters that lie in the file as they are. A disk need not end
    /// with a cluster, but all that the disk has must be there.
    pub(crate) fn read_at(&self, host_bytes: u64, out: &mut [u8]) -> Result<(), ImageError> {
        let data = self.data();
        let end_bytes = host_bytes.checked_add(out.len() as u64);
        if end_bytes.is_none_or(|end_bytes| end_bytes > data.size_bytes()) {
            let what = format!("the file ends inside the cluster that is read at {host_bytes}");
            return Err(ImageError::Damaged { path: data.path().to_owned(), what });
        }
        data.read_exact_at(host_bytes, out)
    }

    /// Fills `out` with bytes of a compressed cluster.
    pub(crate) fn read_compressed(
        &self,
        cluster: CompressedCluster,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        self.expanded.borrow_mut().read(&self.file, &self.header, cluster, out)
    }

    fn read_l2(&self, offset_bytes: u64) -> Result<Vec<u64>, ImageError> {
        let aligned = offset_bytes.is_multiple_of(self.header.cluster_bytes());
        if !aligned || offset_bytes >= self.file.size_bytes() {
            return Err(self.damaged(format!("a level-2 table would be at {offset_bytes}")));
        }
        let words = self.header.l2_entries() as usize * self.header.l2_entry_words();
        read_table(&self.file, offset_bytes, words)
    }

    fn damaged(&self, what: String) -> ImageError {
        ImageError::Damaged { path: self.file.path().to_owned(), what }
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
