//! Memory that every write goes through, touched before the first one comes.
//!
//! What a process touches first the kernel has to find and to clear, in a virtual machine the host
//! as well: up to 2 ms for a MiB there. A server that has just begun would spend a tenth of its
//! processor time on that and more (measurements/026, 027), with its clients waiting. Only what any
//! load needs is touched: caches and tables grow with what is stored.

use crate::options::{FRAMES_BYTES_MAX, Options};
use crate::write::group::JOB_CHUNKS;

/// Of the requests that fill a write buffer; smaller ones take the memory of larger ones.
const REQUEST_BYTES: usize = 1 << 20;
/// Of the frames of a job, in a store with chunks of 4 KiB.
const FRAMES_BYTES: usize = JOB_CHUNKS * 4096;
/// The open one, and what is on its way to a device that keeps up.
const CONTAINERS: usize = 3;

impl Options {
    /// Touches the memory of the way of a write: of clients' bytes, of frames, of containers. For
    /// a server, on a thread of its own, once a store is open with these options; tens of
    /// milliseconds, within what [`Options::memory_bytes`] bounds.
    pub fn touch_memory(&self) {
        let write_buffer_bytes = usize::try_from(self.write_buffer_bytes()).unwrap_or(usize::MAX);
        reduce::pool::prepare(REQUEST_BYTES, write_buffer_bytes / REQUEST_BYTES);
        // Half of what may be there: the frames of a busy stream of which half is new.
        reduce::pool::prepare(FRAMES_BYTES, FRAMES_BYTES_MAX / 2 / FRAMES_BYTES);
        containers::prepare_memory(CONTAINERS);
    }
}
