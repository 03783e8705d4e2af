//! An object that is being put.

use buckets::ObjectWriter;
use objects::bucket::Put;
use pyo3::prelude::{PyResult, Python, pyclass, pymethods};

use crate::errors::Refused;
use crate::here::Here;

/// Bytes between two looks for signals.
const PIECE_BYTES: usize = 4 << 20;

/// Version, ETag and length of what was put.
pub(crate) type PutTuple = (u64, String, u64);

/// Writes one object; dropped, it leaves nothing.
#[pyclass(frozen, module = "tamis._tamis")]
pub(crate) struct Writer {
    bucket: String,
    key: Vec<u8>,
    if_absent: bool,
    open: Here<ObjectWriter>,
}

impl Writer {
    pub(crate) fn new(bucket: &str, key: Vec<u8>, if_absent: bool, writer: ObjectWriter) -> Self {
        Self { bucket: bucket.to_owned(), key, if_absent, open: Here::new(writer) }
    }

    fn told(&self, refused: Refused) -> Refused {
        refused.of_put(self.if_absent, &self.bucket, &self.key)
    }
}

#[pymethods]
impl Writer {
    /// Appends bytes.
    pub(crate) fn write(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            py.check_signals()?;
            py.detach(|| self.open.with(|writer| Ok(writer.write(piece)?)))
                .map_err(|refused| self.told(refused))?;
        }
        Ok(())
    }

    /// Ends the object, which is visible when this returns.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<PutTuple> {
        let finish = || {
            let writer = self.open.take()?.ok_or_else(Refused::closed)?;
            writer.finish().map_err(|error| self.told(error.into()))
        };
        let Put { version, etag, size_bytes } = py.detach(finish)?;
        Ok((version, etag.to_string(), size_bytes))
    }

    /// Abandons the put.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.take()?;
        py.detach(|| drop(open));
        Ok(())
    }
}
