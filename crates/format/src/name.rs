//! Names that users give, of volumes and of domains.

use std::fmt;

use thiserror::Error;

use crate::error::{FormatError, Structure};
use crate::shown::is_shown;

/// Longest name of a volume.
pub const NAME_BYTES_MAX: usize = 255;

/// Why a text is no name for a volume.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum NameError {
    /// It has no characters, or too many.
    #[error("a name has 1 to {NAME_BYTES_MAX} bytes, this one {found_bytes}")]
    Length {
        /// Of the text, in UTF-8.
        found_bytes: usize,
    },
    /// It would be taken for an option or a hidden file.
    #[error("a name cannot start with '{found}'")]
    Start {
        /// The first character.
        found: char,
    },
    /// A blank at an end is not seen.
    #[error("a name cannot begin or end with a blank")]
    Blank,
    /// It holds what separates names elsewhere, or does not show itself ([`crate::shown`]).
    #[error("a name cannot contain '{}'", found.escape_default())]
    Character {
        /// The first such character.
        found: char,
    },
}

/// A text that names a volume: it can stand in a path, a URL and a terminal, and what people read
/// of it is all of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VolumeName(String);

impl VolumeName {
    /// The text as a name that somebody gives now.
    ///
    /// # Errors
    /// [`NameError`] when it is none.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let name = Self::parse_stored(text)?;
        if text.starts_with(' ') || text.ends_with(' ') {
            return Err(NameError::Blank);
        }
        match text.chars().find(|character| !is_shown(*character)) {
            Some(found) => Err(NameError::Character { found }),
            None => Ok(name),
        }
    }

    /// The text as a name that a store may hold: earlier releases refused less, and what they
    /// named is still found, renamed and deleted by its name.
    ///
    /// # Errors
    /// [`NameError`] when no release took it.
    pub fn parse_stored(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(NameError::Length { found_bytes: text.len() });
        }
        if let Some(found) = text.chars().next().filter(|start| matches!(start, '-' | '.')) {
            return Err(NameError::Start { found });
        }
        match text.chars().find(|c| c.is_control() || matches!(c, '/' | '@')) {
            Some(found) => Err(NameError::Character { found }),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn decode(structure: Structure, bytes: &[u8]) -> Result<String, FormatError> {
        let name = std::str::from_utf8(bytes).ok().and_then(|text| Self::parse_stored(text).ok());
        match name {
            Some(Self(name)) => Ok(name),
            None => Err(FormatError::field(structure, "name of length", bytes.len() as u64)),
        }
    }
}

impl From<VolumeName> for String {
    fn from(name: VolumeName) -> Self {
        name.0
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
