//! The allocator of this program, and who asks it for memory.
//!
//! Built as usual it is the server's, so that both allocate alike, and nothing is recorded. Built
//! with the feature `allocations` it is DHAT's, which keeps a backtrace for every allocation: all
//! that takes time takes many times as long then, so such a build counts and measures no speed.
//! What C libraries take from `malloc` by themselves is not seen (LZ4 works on the stack; each
//! worker keeps its context of Zstandard).

use std::path::Path;

#[cfg(not(feature = "allocations"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "allocations")]
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Whether this build records who allocates.
pub(crate) const RECORDS: bool = cfg!(feature = "allocations");

/// Does `work`, and writes to `file` who allocated meanwhile, on any thread, as DHAT's viewer reads
/// it; no file in a build that does not record.
#[cfg(feature = "allocations")]
pub(crate) fn recorded<T>(file: &Path, work: impl FnOnce() -> T) -> T {
    let _recording = dhat::Profiler::builder().file_name(file).trim_backtraces(None).build();
    work()
}

/// Does `work`.
#[cfg(not(feature = "allocations"))]
pub(crate) fn recorded<T>(_file: &Path, work: impl FnOnce() -> T) -> T {
    work()
}
