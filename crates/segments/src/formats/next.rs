//! What a format says of the bytes that it is shown.

/// Members and buffers from this length on are whole frames; with shorter ones a segment for each
/// would cost more than it finds.
const WHOLE_BYTES_MIN: u64 = 16 << 10;

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A frame of this length, at least 1, that is a segment or several.
    Whole(u64),
    /// A frame of this length, at least 1, that runs on from the one before.
    Loose(u64),
    /// More bytes tell; nothing has changed in the format.
    More,
    /// From here on the file is cut by its content.
    Unknown,
}

impl Next {
    /// A frame of the length, whole if it is long; unknown without a byte.
    pub(super) fn long_is_whole(length_bytes: u64) -> Self {
        match length_bytes {
            0 => Self::Unknown,
            WHOLE_BYTES_MIN.. => Self::Whole(length_bytes),
            _ => Self::Loose(length_bytes),
        }
    }
}
