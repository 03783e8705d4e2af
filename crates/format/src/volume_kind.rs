//! What a volume is for, and flags of volumes: what doors and programs must know of one before they
//! open it.

use std::fmt;

use crate::error::{FormatError, Structure};

/// What a volume's bytes are.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum VolumeKind {
    /// A disk: its clients say what the bytes mean.
    #[default]
    Block = 0,
    /// A bucket of objects: an index and values. No block door may serve it.
    Bucket = 1,
}

impl VolumeKind {
    /// All of them, by their numbers.
    pub const ALL: [Self; 2] = [Self::Block, Self::Bucket];

    /// What this number stands for; the numbers are stored.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// How people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Bucket => "bucket",
        }
    }

    /// What a name stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for VolumeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Flags of one volume, beside what every volume has. This program knows none.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct VolumeFlags {
    /// Flags that a program need not know: it keeps them.
    pub compatible: u32,
}

impl VolumeFlags {
    /// From the two words of a catalog entry.
    pub(crate) fn from_words(incompatible: u32, compatible: u32) -> Result<Self, FormatError> {
        match incompatible {
            0 => Ok(Self { compatible }),
            unknown => Err(FormatError::field(
                Structure::CatalogEntry,
                "incompatible flags",
                u64::from(unknown),
            )),
        }
    }
}
