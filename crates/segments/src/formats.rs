//! File formats whose parts are known, read as their bytes come.
//!
//! Each is a small machine that says how long the frame is that begins with the bytes it is shown.
//! None of them trusts what it reads: lengths are bounds for segments and nothing else, so a file
//! that lies is cut badly and stored right.

mod arrow;
mod collect;
mod flatbuffer;
mod next;
mod npy;
mod numbers;
mod parquet;
mod safetensors;
mod tar;
mod zip;

use arrow::Arrow;
pub(crate) use next::Next;
use npy::Npy;
use parquet::Parquet;
use safetensors::Safetensors;
use tar::Tar;
use zip::Zip;

/// Formats that [`SegmentPolicy::Auto`](crate::SegmentPolicy::Auto) knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatName {
    /// Apache Parquet: each page with its header is a segment.
    Parquet,
    /// Apache Arrow IPC, as a file or as a stream: each long buffer is a segment or several.
    Arrow,
    /// NumPy's `.npy`: the array begins a segment.
    Npy,
    /// `.safetensors`: each long tensor begins a segment.
    Safetensors,
    /// tar, in all of its headers: each long member begins a segment.
    Tar,
    /// zip, where local headers say lengths: each long member begins a segment.
    Zip,
}

impl FormatName {
    /// The format of a file that begins so. 4 KiB are enough to tell; without a known format none.
    #[must_use]
    pub fn of(start: &[u8]) -> Option<Self> {
        Format::of(start).map(|format| match format {
            Format::Parquet(_) => Self::Parquet,
            Format::Arrow(_) => Self::Arrow,
            Format::Npy(_) => Self::Npy,
            Format::Safetensors(_) => Self::Safetensors,
            Format::Tar(_) => Self::Tar,
            Format::Zip(_) => Self::Zip,
        })
    }
}

/// A format under way in a file.
pub(crate) enum Format {
    Parquet(Parquet),
    Arrow(Box<Arrow>),
    Npy(Npy),
    Safetensors(Box<Safetensors>),
    Tar(Tar),
    Zip(Zip),
}

impl Format {
    /// The format of a file that begins so.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        Parquet::of(start)
            .map(Self::Parquet)
            .or_else(|| Arrow::of(start).map(|arrow| Self::Arrow(Box::new(arrow))))
            .or_else(|| Npy::of(start).map(Self::Npy))
            .or_else(|| Zip::of(start).map(Self::Zip))
            .or_else(|| Tar::of(start).map(Self::Tar))
            .or_else(|| Safetensors::of(start).map(|tensors| Self::Safetensors(Box::new(tensors))))
    }

    /// The frame that begins with the first of `ahead`, which is not empty. Each call begins where
    /// the last frame ends, but for one behind [`Next::More`].
    pub(crate) fn next(&mut self, ahead: &[u8]) -> Next {
        match self {
            Self::Parquet(format) => format.next(ahead),
            Self::Arrow(format) => format.next(ahead),
            Self::Npy(format) => format.next(ahead),
            Self::Safetensors(format) => format.next(ahead),
            Self::Tar(format) => format.next(ahead),
            Self::Zip(format) => format.next(ahead),
        }
    }
}
