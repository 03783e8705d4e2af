//! What block clients are told of a failure: the one map from the engine's errors to numbers.

use engine::RequestError;

use crate::request::Operation;

/// An error as Linux numbers it; protocols translate where theirs differ.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// EPERM: the volume is read-only.
    NotPermitted = 1,
    /// EIO: bytes could not be read or written.
    Io = 5,
    /// EINVAL: the request is invalid.
    Invalid = 22,
    /// ENOSPC: the store is full, or the write ends beyond the volume.
    NoSpace = 28,
    /// ESHUTDOWN: the store or the volume is going away; disconnect.
    Shutdown = 108,
}

impl Errno {
    /// What `error` is to the sender of an `operation`.
    #[must_use]
    pub fn of(error: &RequestError, operation: Operation) -> Self {
        match error {
            RequestError::NoSpace
            | RequestError::QuotaExceeded { .. }
            | RequestError::DeviceFull { .. } => Self::NoSpace,
            RequestError::ReadOnly { .. } | RequestError::StoreReadOnly => Self::NotPermitted,
            RequestError::OutOfRange { .. } => Self::beyond_the_end(operation),
            // A volume that was deleted under its clients: they are to disconnect.
            RequestError::Closing
            | RequestError::NoSuchVolume { .. }
            | RequestError::Fenced { .. } => Self::Shutdown,
            RequestError::VolumeExists { .. }
            | RequestError::BadName { .. }
            | RequestError::BadSize { .. } => Self::Invalid,
            _ => Self::Io,
        }
    }

    /// The error for a range that is not inside the volume.
    pub(crate) fn beyond_the_end(operation: Operation) -> Self {
        match operation {
            Operation::Write | Operation::WriteZeroes => Self::NoSpace,
            _ => Self::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::RequestError;

    use super::Errno;
    use crate::request::Operation;

    #[test]
    fn each_error_has_the_number_that_says_what_its_sender_can_do() {
        let beyond = RequestError::OutOfRange { offset_bytes: 0, length_bytes: 1, size_bytes: 0 };
        let failed = RequestError::WriteFailed { zone: String::new(), reason: String::new() };
        let fenced = RequestError::Fenced { zone: String::new(), reason: String::new() };
        let (volume, name) = (String::new, String::new);
        let cases = [
            (RequestError::NoSpace, Operation::Write, Errno::NoSpace),
            (RequestError::QuotaExceeded { volume: volume() }, Operation::Write, Errno::NoSpace),
            (RequestError::ReadOnly { volume: volume() }, Operation::Trim, Errno::NotPermitted),
            (beyond.clone(), Operation::Read, Errno::Invalid),
            (beyond.clone(), Operation::Trim, Errno::Invalid),
            (beyond.clone(), Operation::Write, Errno::NoSpace),
            (beyond, Operation::WriteZeroes, Errno::NoSpace),
            (RequestError::Closing, Operation::Flush, Errno::Shutdown),
            (RequestError::NoSuchVolume { name: name() }, Operation::Read, Errno::Shutdown),
            (RequestError::DeviceFull { reason: String::new() }, Operation::Write, Errno::NoSpace),
            (fenced, Operation::Read, Errno::Shutdown),
            (failed, Operation::Flush, Errno::Io),
            (RequestError::Damaged { volume: volume(), lba: 0 }, Operation::Read, Errno::Io),
        ];
        for (error, operation, expected) in cases {
            assert_eq!(Errno::of(&error, operation), expected, "{error}");
        }
    }
}
