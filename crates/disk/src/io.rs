//! What is asked of a disk, what comes back, and the trait between.

use format::units::{BLOCK_BYTES, Zone};

use crate::ahead::AllocationAhead;
use crate::buffer::{AlignedBuf, SharedBuf};
use crate::error::{Cause, ErrorClass, IoError, Verb};
use crate::growth::{ForeignGrowth, ZoneGrowth};

/// One operation and the buffer it owns until it completes.
#[derive(Debug)]
pub enum IoKind {
    /// Fills the whole buffer.
    Read {
        /// Comes back in [`Completion::buf`].
        buf: AlignedBuf,
    },
    /// Writes the whole buffer.
    Write {
        /// Released at completion.
        buf: SharedBuf,
        /// Whether it is durable when it completes, as if a sync had followed; nothing else is
        /// because of it.
        durable: bool,
    },
    /// Makes durable every write of the zone that completed before this was submitted.
    Sync,
}

/// An operation on one zone.
#[derive(Debug)]
pub struct Io {
    /// Where.
    pub zone: Zone,
    /// From the start of the zone, a multiple of [`BLOCK_BYTES`]; of no meaning for a sync.
    pub offset_bytes: u64,
    /// What.
    pub kind: IoKind,
    /// Comes back in [`Completion::tag`]; the disk does not look at it.
    pub tag: u64,
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The operation's.
    pub tag: u64,
    /// The operation's.
    pub zone: Zone,
    /// How it ended. A failed write may have reached the medium in part.
    pub result: Result<(), IoError>,
    /// The bytes of a read that succeeded.
    pub buf: Option<AlignedBuf>,
    /// The operation itself, with its buffer, if it failed: it can be submitted again.
    pub failed: Option<Box<Io>>,
}

/// Zones of bytes, driven asynchronously by one owner.
///
/// An implementation stands on files, on objects, on another machine; nothing here says which.
/// [`crate::conformance`] holds every implementation to the promises in the head of this crate.
pub trait Disk: Send {
    /// Takes an operation. Never waits for the medium: what does not fit the queue of the device
    /// waits in memory. The operation may start only at the next `poll` or `wait`; the doorbell
    /// rings, so that a thread that sleeps on it comes to poll.
    fn submit(&mut self, io: Io);

    /// Appends what has completed, without waiting, and starts what was submitted.
    fn poll(&mut self, done: &mut Vec<Completion>);

    /// Whether `poll` would have something to hand back, as far as can be told without a system
    /// call.
    fn has_ended(&mut self) -> bool {
        false
    }

    /// As `poll`, but waits until at least one operation completes, if any is in flight.
    fn wait(&mut self, done: &mut Vec<Completion>);

    /// Operations submitted and not yet handed back.
    fn in_flight(&self) -> usize;

    /// Takes zones that were added, and the lengths that zones have by now. The implementation
    /// prepared `growth` beforehand, on another thread: this call opens no file and does not
    /// wait. [`Disk::size_bytes`] tells the new sizes when it returns.
    ///
    /// # Errors
    /// [`ForeignGrowth`] when another kind of disk prepared it; no zone has changed then.
    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        growth.expect_nothing()
    }

    /// The store does not use the data zones numbered from `data_zones` on: a growth that failed
    /// has left them. The disk may release them, so that the next growth can prepare them again.
    /// Nothing is in flight on them.
    fn release_data_zones(&mut self, data_zones: usize) {
        let _ = data_zones;
    }

    /// What has made operations slower than they should be since the disk was opened, in a sentence
    /// that says what to do about it.
    fn degradation(&self) -> Option<&str> {
        None
    }

    /// Size of a zone, a multiple of [`BLOCK_BYTES`]; 0 when there is no such zone.
    fn size_bytes(&self, zone: Zone) -> u64;

    /// What allocates room for zones as they fill; None where every zone has all of its room. A
    /// zone that this does not know has all of its room.
    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        None
    }
}

impl IoKind {
    pub(crate) fn length_bytes(&self) -> usize {
        match self {
            Self::Read { buf } => buf.len(),
            Self::Write { buf, .. } => buf.len(),
            Self::Sync => 0,
        }
    }
}

impl Io {
    /// Whether a zone of this size can do this; a size of 0 says that there is no such zone. An
    /// implementation asks before it begins.
    ///
    /// # Errors
    /// The [`IoError`] with which the operation is to complete.
    pub fn check(&self, size_bytes: u64) -> Result<(), IoError> {
        let Self { zone, offset_bytes, .. } = *self;
        if size_bytes == 0 {
            return Err(IoError::NoSuchZone { zone });
        }
        let buf_start = match &self.kind {
            IoKind::Sync => return Ok(()),
            IoKind::Read { buf } => buf.as_ptr().addr(),
            IoKind::Write { buf, .. } => buf.as_ptr().addr(),
        };
        let length_bytes = self.kind.length_bytes();
        let block = BLOCK_BYTES as u64;
        let aligned = offset_bytes.is_multiple_of(block)
            && length_bytes != 0
            && length_bytes.is_multiple_of(BLOCK_BYTES)
            && buf_start.is_multiple_of(BLOCK_BYTES);
        if !aligned {
            return Err(IoError::Misaligned { zone, offset_bytes, length_bytes });
        }
        let end = offset_bytes.checked_add(length_bytes as u64);
        if end.is_none_or(|end| end > size_bytes) {
            return Err(IoError::OutOfRange { zone, offset_bytes, length_bytes, size_bytes });
        }
        Ok(())
    }

    /// Ends the operation: with success a read's buffer goes back and a write's is released, with
    /// an error the whole operation goes back.
    #[must_use]
    pub fn complete(self, result: Result<(), IoError>) -> Completion {
        let (tag, zone) = (self.tag, self.zone);
        if result.is_err() {
            return Completion { tag, zone, result, buf: None, failed: Some(Box::new(self)) };
        }
        let buf = match self.kind {
            IoKind::Read { buf } => Some(buf),
            IoKind::Write { .. } | IoKind::Sync => None,
        };
        Completion { tag, zone, result, buf, failed: None }
    }

    /// Ends the operation because the medium refuses it, for the reason in `sentence`.
    #[must_use]
    pub fn refuse(self, class: ErrorClass, sentence: &str) -> Completion {
        let verb = match self.kind {
            IoKind::Read { .. } => Verb::Read,
            IoKind::Write { .. } => Verb::Write,
            IoKind::Sync => Verb::Sync,
        };
        let cause = Cause::new(class, sentence);
        let (zone, offset_bytes) = (self.zone, self.offset_bytes);
        self.complete(Err(IoError::Failed { verb, zone, offset_bytes, cause }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset_bytes: u64, buf: SharedBuf) -> Io {
        Io { zone: Zone::Tables, offset_bytes, kind: IoKind::Write { buf, durable: false }, tag: 0 }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let two = SharedBuf::from(AlignedBuf::new_zeroed(2 * BLOCK_BYTES));
        let size_bytes = 4 * BLOCK_BYTES as u64;
        let check = |offset, buf: &SharedBuf| write(offset, buf.clone()).check(size_bytes);
        assert_eq!(check(8192, &two), Ok(()));
        assert!(matches!(check(512, &two), Err(IoError::Misaligned { .. })));
        assert!(matches!(check(0, &two.slice(0..512)), Err(IoError::Misaligned { .. })));
        assert!(matches!(check(0, &two.slice(512..4608)), Err(IoError::Misaligned { .. })));
        assert!(matches!(check(0, &two.slice(0..0)), Err(IoError::Misaligned { .. })));
        assert!(matches!(check(12288, &two), Err(IoError::OutOfRange { .. })));
        assert!(matches!(check(u64::MAX - 4095, &two), Err(IoError::OutOfRange { .. })));
        assert!(matches!(write(0, two).check(0), Err(IoError::NoSuchZone { .. })));
    }
}
