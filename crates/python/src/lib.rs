//! Room python: the engine for Python programs, as the extension module `tamis._tamis`.
//!
//! ```text
//! tamis (Python: one interface over this and over S3) ──> _tamis: Engine, Reader, Writer
//!                                                            └──> buckets, objects, store
//! ```
//!
//! Here is only what must be in Rust: verbs of a store, bytes in and out, errors by their kinds.
//! Names, dataclasses, file objects and tables are Python's (`python/tamis`).
//!
//! Invariants:
//!
//! * The interpreter's lock is released wherever something waits, and no lock of ours is held
//!   while it is waited for.
//! * A call that takes long looks for signals every few megabytes, so Ctrl-C ends it.
//! * What another process opened is neither used nor dropped here (`here.rs`).
//!
//! The module uses the stable ABI from Python 3.9 on: one wheel for all later versions. That ABI
//! has no buffers before 3.11, so bytes come as `bytes`; the Python half cuts other buffers.

mod engine_handle;
mod errors;
mod here;
mod listing;
mod putting;
mod reader;
mod weighing;
mod writer;

use pyo3::prelude::{Bound, PyModule, PyModuleMethods, PyResult, pymodule};

/// The module.
#[pymodule]
fn _tamis(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<engine_handle::Engine>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<writer::Writer>()
}
