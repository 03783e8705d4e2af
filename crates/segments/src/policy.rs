//! How a bucket cuts values.

use crate::auto::AutoCutter;
use crate::{CDC, CdcCutter, Cutter, FIXED_BYTES, FixedCutter};

/// How a bucket cuts values into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentPolicy {
    /// What measurements/048 found best for the kind of value: fixed for databases of pages, whose
    /// versions differ in whole pages in their places; framed for formats whose parts are known
    /// ([`FormatName`](crate::FormatName)); content-defined for all others.
    #[default]
    Auto,
    /// Segments of [`FIXED_BYTES`].
    Fixed,
    /// Segments whose ends the content defines, of the mean length of [`CDC`].
    Cdc,
}

impl SegmentPolicy {
    /// A cutter for one value.
    #[must_use]
    pub fn cutter(self) -> Box<dyn Cutter> {
        match self {
            Self::Fixed => Box::new(FixedCutter::new(FIXED_BYTES)),
            Self::Cdc => Box::new(CdcCutter::new(CDC)),
            Self::Auto => Box::new(AutoCutter::new()),
        }
    }
}
