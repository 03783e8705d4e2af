//! Where one segment of a value ends and the next begins.
//!
//! A segment begins on a chunk of its own, so what is inserted before it moves it and changes none
//! of its chunks. *Fixed* segments end at multiples of a length: what is inserted changes all
//! behind it. *Content-defined* ones end where the bytes say so: behind the next end all is as it
//! was. They cost a padded chunk each, and a shorter one compresses less. *Framed* ones begin where
//! a file format has its own parts begin: pages of Parquet, buffers of Arrow, members of archives.
//!
//! ```text
//! bytes ─> Cutter: FixedCutter │ CdcCutter │ AutoCutter ─┬─> FixedCutter
//!                                                        ├─> CdcCutter
//!                                                        └─> FramedCutter ─ formats::Format
//! ```
//!
//! [`thrift`] is public for room `parquet_footer`, which reads what the walk of pages does without.
//!
//! Cutters know nothing of where values are stored. Whatever the bytes are, the segments of a value
//! come to the value: a file that is not what it begins as is cut by its content from there on.

mod auto;
mod cdc;
mod fixed;
mod formats;
mod framed;
mod policy;
#[cfg(test)]
mod testing;
pub mod thrift;

pub use cdc::{CDC, CdcCutter, CdcLengths};
pub use fixed::{FIXED_BYTES, FixedCutter};
pub use formats::FormatName;
pub use framed::FramedCutter;
pub use policy::SegmentPolicy;

/// Says where segments end.
pub trait Cutter: Send {
    /// Length of the segment that begins with the first of `bytes`, at least 1 and at most all of
    /// them; none when more bytes are needed to tell. With `is_end` nothing follows `bytes`, and
    /// there is an answer. Each call begins where the last answer ended; `bytes` are not empty.
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize>;

    /// Longest segment: with as many bytes there is an answer.
    fn segment_bytes_max(&self) -> usize;
}
