//! An object that is read, as it was when it was opened.

use objects::bucket::Reader as ObjectReader;
use pyo3::prelude::{Bound, PyResult, Python, pyclass, pymethods};
use pyo3::types::PyBytes;

use crate::errors::Refused;
use crate::here::Here;
use crate::listing::{ObjectTuple, object_tuple};

/// Bytes between two looks for signals.
const PIECE_BYTES: usize = 8 << 20;

/// Reads one object, whatever happens to its key meanwhile.
#[pyclass(frozen, module = "tamis._tamis")]
pub(crate) struct Reader {
    bucket: String,
    key: Vec<u8>,
    size_bytes: u64,
    info: ObjectTuple,
    open: Here<(ObjectReader, buckets::OpenBucket)>,
}

impl Reader {
    pub(crate) fn new(bucket: buckets::OpenBucket, key: Vec<u8>, reader: ObjectReader) -> Self {
        let info = object_tuple(key.clone(), reader.info());
        Self {
            bucket: bucket.name().to_owned(),
            key,
            size_bytes: reader.info().size_bytes,
            info,
            open: Here::new((reader, bucket)),
        }
    }

    /// Fills `out` from `offset` on, piece by piece; it lies inside the object.
    fn fill(&self, py: Python<'_>, offset: u64, out: &mut [u8]) -> PyResult<()> {
        let mut at = offset;
        for piece in out.chunks_mut(PIECE_BYTES) {
            py.check_signals()?;
            let read = || self.open.with(|(reader, _)| Ok(reader.read_at(at, piece)?));
            let length = py.detach(read).map_err(|refused| refused.of(&self.bucket, &self.key))?;
            assert!(length == piece.len(), "a reader's object keeps its length");
            at += length as u64;
        }
        Ok(())
    }

    /// What there is of a range.
    fn clipped(&self, offset: u64, length: u64) -> Result<usize, Refused> {
        let length = length.min(self.size_bytes.saturating_sub(offset));
        usize::try_from(length)
            .map_err(|_| Refused::bad_argument("this length is more than memory can hold"))
    }
}

#[pymethods]
impl Reader {
    /// The object without its bytes.
    #[getter]
    fn info(&self) -> ObjectTuple {
        self.info.clone()
    }

    /// Bytes from `offset` on, fewer than `length` at the object's end only.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.clipped(offset, length)?;
        PyBytes::new_with(py, length, |out| self.fill(py, offset, out))
    }

    /// Many ranges in one call, in their order.
    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        ranges.into_iter().map(|(offset, length)| self.read_at(py, offset, length)).collect()
    }

    /// Releases the object.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.take()?;
        py.detach(|| drop(open));
        Ok(())
    }
}
