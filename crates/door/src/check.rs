//! A request against its volume, before a single byte of payload is taken: what is refused costs
//! nothing but the draining of its payload. The engine checks ranges again when it takes a request,
//! for a volume may be resized in between.
//!
//! In two steps, because a protocol has checks of its own (flags, longest payloads) whose place is
//! between them: which error a request with several faults gets is part of the protocol.

use crate::errno::Errno;
use crate::request::{Operation, Request};

/// Why a request is refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the client's program.
    pub errno: Errno,
    /// For its user.
    pub sentence: &'static str,
}

const fn refusal(errno: Errno, sentence: &'static str) -> Result<(), Refusal> {
    Err(Refusal { errno, sentence })
}

/// Whether a volume that is `read_only`, or is not, lets an operation be asked of it.
///
/// # Errors
/// [`Errno::NotPermitted`].
pub fn check_permitted(operation: Operation, read_only: bool) -> Result<(), Refusal> {
    if read_only && operation.changes() {
        return refusal(Errno::NotPermitted, "the volume is read-only");
    }
    Ok(())
}

/// Whether the range of `request` lies in a volume of `size_bytes`.
///
/// # Errors
/// [`Errno::Invalid`], or [`Errno::NoSpace`] where a write would need a larger volume.
pub fn check_range<T>(request: &Request<T>, size_bytes: u64) -> Result<(), Refusal> {
    let length_bytes = u64::from(request.length_bytes);
    let end_bytes = request.offset_bytes.checked_add(length_bytes);
    if end_bytes.is_none_or(|end_bytes| end_bytes > size_bytes) {
        let errno = Errno::beyond_the_end(request.operation);
        return refusal(errno, "the range ends beyond the volume");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_permitted, check_range};
    use crate::errno::Errno;
    use crate::request::{Operation, Request};

    const RANGED: [Operation; 6] = [
        Operation::Read,
        Operation::Write,
        Operation::Trim,
        Operation::Prefetch,
        Operation::WriteZeroes,
        Operation::Extents { extents_max: 1 },
    ];

    fn verdict(operation: Operation, offset_bytes: u64, length_bytes: u32) -> Option<Errno> {
        let request = Request { operation, offset_bytes, length_bytes, durable: false, tag: () };
        check_range(&request, 1 << 40).err().map(|refusal| refusal.errno)
    }

    #[test]
    fn ranges_end_inside_the_volume() {
        for operation in RANGED {
            let beyond = match operation {
                Operation::Write | Operation::WriteZeroes => Errno::NoSpace,
                _ => Errno::Invalid,
            };
            let end = 1 << 40;
            assert_eq!(verdict(operation, end - 512, 512), None);
            assert_eq!(verdict(operation, end, 0), None);
            for (offset, length) in [(end - 1, 2), (end, 1), (u64::MAX - 511, 512), (u64::MAX, 1)] {
                assert_eq!(verdict(operation, offset, length), Some(beyond), "{operation:?}");
            }
            for (offset, length) in [(1, 512), (0, 511), (end - 1, 1)] {
                assert_eq!(verdict(operation, offset, length), None, "{operation:?}");
            }
        }
    }

    #[test]
    fn a_read_only_volume_is_only_read() {
        for operation in RANGED.into_iter().chain([Operation::Flush]) {
            let changes =
                [Operation::Write, Operation::Trim, Operation::WriteZeroes].contains(&operation);
            let refused = check_permitted(operation, true).err().map(|refusal| refusal.errno);
            assert_eq!(refused, changes.then_some(Errno::NotPermitted), "{operation:?}");
            assert_eq!(check_permitted(operation, false), Ok(()));
        }
    }
}
