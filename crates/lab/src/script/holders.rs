//! What a script asks of vectors, hints and reservations, as text.

use std::fmt;

/// What can be asked of them. Ranges are in sectors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the head of `script.rs` says what each is")]
pub enum HolderVerb {
    Vector { volume: u32, first: u64, count: u64, content: u64, durable: bool },
    Unindexed { volume: u32, first: u64, count: u64, content: u64, durable: bool },
    Reserve { number: u32, volume: u32, chunks: u64, writes: u64, release: bool },
    Held { number: u32, first: u64, count: u64, content: u64, durable: bool },
    Unreserve { number: u32 },
    Full { volume: u32, first: u64, content: u64 },
}

impl HolderVerb {
    /// The verb of this name, with its numbers and its flag.
    pub(super) fn parse(verb: &str, numbers: &[u64], flag: Option<&str>) -> Option<Self> {
        let (durable, release) = (flag == Some("fua"), flag == Some("release"));
        let number = |at: usize| numbers.get(at).and_then(|&number| u32::try_from(number).ok());
        Some(match (verb, numbers) {
            ("vector", &[_, first, count, content]) => {
                Self::Vector { volume: number(0)?, first, count, content, durable }
            }
            ("unindexed", &[_, first, count, content]) => {
                Self::Unindexed { volume: number(0)?, first, count, content, durable }
            }
            ("reserve", &[_, _, chunks, writes]) => {
                let (number, volume) = (number(0)?, number(1)?);
                Self::Reserve { number, volume, chunks, writes, release }
            }
            ("held", &[_, first, count, content]) => {
                Self::Held { number: number(0)?, first, count, content, durable }
            }
            ("unreserve", &[_]) => Self::Unreserve { number: number(0)? },
            ("full", &[_, first, content]) => Self::Full { volume: number(0)?, first, content },
            _ => return None,
        })
    }
}

impl fmt::Display for HolderVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set, word: &'static str| if set { word } else { "" };
        match *self {
            Self::Vector { volume, first, count, content, durable } => {
                write!(f, "vector {volume} {first} {count} {content}{}", flag(durable, " fua"))
            }
            Self::Unindexed { volume, first, count, content, durable } => {
                write!(f, "unindexed {volume} {first} {count} {content}{}", flag(durable, " fua"))
            }
            Self::Reserve { number, volume, chunks, writes, release } => {
                let release = flag(release, " release");
                write!(f, "reserve {number} {volume} {chunks} {writes}{release}")
            }
            Self::Held { number, first, count, content, durable } => {
                write!(f, "held {number} {first} {count} {content}{}", flag(durable, " fua"))
            }
            Self::Unreserve { number } => write!(f, "unreserve {number}"),
            Self::Full { volume, first, content } => write!(f, "full {volume} {first} {content}"),
        }
    }
}
