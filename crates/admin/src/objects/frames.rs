//! The frames in which bytes of objects pass: their length in 4 bytes, big-endian, and the bytes.
//!
//! ```text
//! 0: the object is complete   1 to FRAME_BYTES_MAX: bytes follow   FFFF_FFFF: it failed, a line
//! follows that says why   all other lengths: no frame
//! ```

use thiserror::Error;

/// Bytes of the head of a frame.
pub const FRAME_HEAD_BYTES: usize = 4;
/// Most bytes of an object in a frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
const FAILED: u32 = u32::MAX;

/// How a frame begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FrameHead {
    /// Number of bytes of the object that follow, 1 to [`FRAME_BYTES_MAX`].
    Bytes(usize),
    /// The object is complete.
    End,
    /// The object ends here, incomplete; a line of JSON follows that says why.
    Failed,
}

/// The head of a frame has a length that no frame has.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("a frame of an object has {bytes} bytes, and {FRAME_BYTES_MAX} are the most")]
pub struct FrameError {
    /// The length.
    pub bytes: u32,
}

impl FrameHead {
    /// Reads a head.
    ///
    /// # Errors
    /// [`FrameError`] when the length is none of a frame.
    ///
    /// ```
    /// use admin::frames::FrameHead;
    /// assert_eq!(FrameHead::decode([0, 0, 1, 0]), Ok(FrameHead::Bytes(256)));
    /// ```
    pub fn decode(head: [u8; FRAME_HEAD_BYTES]) -> Result<Self, FrameError> {
        match u32::from_be_bytes(head) {
            0 => Ok(Self::End),
            FAILED => Ok(Self::Failed),
            bytes if bytes as usize <= FRAME_BYTES_MAX => Ok(Self::Bytes(bytes as usize)),
            bytes => Err(FrameError { bytes }),
        }
    }

    /// The head as it is sent.
    ///
    /// # Panics
    /// When [`FrameHead::Bytes`] has a length that no frame has.
    #[must_use]
    pub fn encode(self) -> [u8; FRAME_HEAD_BYTES] {
        let length = match self {
            Self::End => 0,
            Self::Failed => FAILED,
            Self::Bytes(bytes) => {
                assert!((1..=FRAME_BYTES_MAX).contains(&bytes), "a frame has a length of frames");
                bytes as u32
            }
        };
        length.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{FRAME_BYTES_MAX, FrameError, FrameHead};

    #[test]
    fn the_ends_of_the_lengths_are_frames_and_what_lies_behind_is_none() {
        for head in [
            FrameHead::End,
            FrameHead::Failed,
            FrameHead::Bytes(1),
            FrameHead::Bytes(FRAME_BYTES_MAX),
        ] {
            assert_eq!(FrameHead::decode(head.encode()), Ok(head));
        }
        for bytes in [FRAME_BYTES_MAX as u32 + 1, u32::MAX - 1] {
            assert_eq!(FrameHead::decode(bytes.to_be_bytes()), Err(FrameError { bytes }));
        }
    }

    proptest! {
        #[test]
        fn a_head_that_is_read_is_sent_as_it_came(head in any::<[u8; 4]>()) {
            if let Ok(read) = FrameHead::decode(head) {
                assert_eq!(read.encode(), head);
            }
        }
    }
}
