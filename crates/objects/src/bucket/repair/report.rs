//! What a repair kept, and what it names as lost or damaged.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use format::objects::settings::Figures;
use format::shown::Escaped;

/// Whose bytes they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An object's.
    Object {
        /// Its key.
        key: Vec<u8>,
    },
    /// An upload that is not completed.
    Upload {
        /// Its number.
        upload: u64,
    },
    /// A part of such an upload.
    Part {
        /// The upload's number.
        upload: u64,
        /// The part's number.
        number: u16,
    },
}

impl Display for Owner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { key } => write!(f, "object {}", Shown(key)),
            Self::Upload { upload } => write!(f, "upload {upload}"),
            Self::Part { upload, number } => write!(f, "part {number} of upload {upload}"),
        }
    }
}

/// A key for people: what is no text, or does not show itself, is escaped.
struct Shown<'a>(&'a [u8]);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => write!(f, "{}", Escaped::line(text)),
            Err(_) => write!(f, "{}", self.0.escape_ascii()),
        }
    }
}

/// What is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostPart {
    /// One object, upload or part.
    One {
        /// Which one.
        owner: Owner,
        /// Why it cannot be kept.
        reason: String,
    },
    /// Objects whose records cannot be read: any number, none included.
    Keys {
        /// Their keys are behind this one; none: any.
        behind: Option<Vec<u8>>,
        /// None is behind this one; none: any.
        last: Option<Vec<u8>>,
        /// What cannot be read.
        reason: String,
    },
    /// Uploads or parts of them that cannot be read.
    Uploads {
        /// What cannot be read.
        reason: String,
    },
    /// Settings or documents that cannot be read.
    Settings {
        /// What cannot be read, and what holds instead.
        reason: String,
    },
    /// Changes since the last merge that cannot be read.
    Log {
        /// Where, and why.
        reason: String,
    },
}

impl Display for LostPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::One { owner, reason } => write!(f, "{owner} is lost: {reason}"),
            Self::Keys { behind, last, reason } => {
                f.write_str("objects ")?;
                match (behind, last) {
                    (None, None) => f.write_str("of any key")?,
                    (Some(behind), None) => write!(f, "behind {}", Shown(behind))?,
                    (None, Some(last)) => write!(f, "up to {}", Shown(last))?,
                    (Some(behind), Some(last)) => {
                        write!(f, "behind {} and up to {}", Shown(behind), Shown(last))?;
                    }
                }
                write!(f, " may be lost: {reason}")
            }
            Self::Uploads { reason } => write!(f, "parts of uploads may be lost: {reason}"),
            Self::Settings { reason } => write!(f, "settings are lost: {reason}"),
            Self::Log { reason } => write!(
                f,
                "changes since the last merge are lost, and objects may be as they were before \
                 these: {reason}"
            ),
        }
    }
}

/// An object that is kept, and of which bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedObject {
    /// Which object or part.
    pub owner: Owner,
    /// The first range of its bytes that cannot be read.
    pub first_bytes: Range<u64>,
    /// How many bytes cannot be read in all.
    pub unreadable_bytes: u64,
}

impl Display for DamagedObject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { owner, first_bytes, unreadable_bytes } = self;
        write!(
            f,
            "{owner} is kept, and {unreadable_bytes} of its bytes cannot be read, bytes {} to {} \
             first",
            first_bytes.start,
            first_bytes.end.saturating_sub(1)
        )
    }
}

/// What a repair came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketRepair {
    /// What is kept.
    pub figures: Figures,
    /// The first parts that are lost.
    pub lost: Vec<LostPart>,
    /// How many there are.
    pub lost_count: u64,
    /// The first objects that are damaged.
    pub damaged: Vec<DamagedObject>,
    /// How many there are.
    pub damaged_count: u64,
    told_max: usize,
}

impl BucketRepair {
    pub(super) fn new(told_max: usize) -> Self {
        Self { told_max, ..Self::default() }
    }

    /// Whether everything that was put can be read.
    #[must_use]
    pub fn is_without_loss(&self) -> bool {
        self.lost_count == 0 && self.damaged_count == 0
    }

    pub(super) fn lose(&mut self, part: LostPart) {
        self.lost_count += 1;
        if self.lost.len() < self.told_max {
            self.lost.push(part);
        }
    }

    pub(super) fn lose_one(&mut self, owner: Owner, reason: impl Into<String>) {
        self.lose(LostPart::One { owner, reason: reason.into() });
    }

    /// Counts losses that nothing is known of but their number.
    pub(super) fn lose_untold(&mut self, count: u64) {
        self.lost_count += count;
    }

    pub(super) fn damage(&mut self, damaged: DamagedObject) {
        self.damaged_count += 1;
        if self.damaged.len() < self.told_max {
            self.damaged.push(damaged);
        }
    }
}
