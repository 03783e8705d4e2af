//! An operation under way: how a device's answers add up to a completion.
//!
//! Devices may do less than they were asked (a short read or write) or say "not now"; both are
//! continued here, the same way for every real disk, so that callers see whole operations only.

use format::units::Zone;
use rustix::io::Errno;

use crate::error::{Cause, ErrorClass, IoError, Verb};
use crate::io::{Completion, Io, IoKind};

/// How often "not now" is taken for an answer before it counts as a failure.
const RETRIES_MAX: u16 = 1024;

/// An operation and how far it has come.
pub(crate) struct Operation {
    pub(crate) io: Io,
    done_bytes: usize,
    retries: u16,
    /// Whether the device makes durable by itself what is to be.
    durable_writes: bool,
}

impl Operation {
    /// `durable_writes`: whether the device makes durable by itself what is to be.
    pub(crate) fn new(io: Io, durable_writes: bool) -> Self {
        Self { io, done_bytes: 0, retries: 0, durable_writes }
    }

    fn is_durable_write(&self) -> bool {
        matches!(self.io.kind, IoKind::Write { durable: true, .. })
    }

    /// Whether the device is to be asked to write durably.
    pub(crate) fn writes_through(&self) -> bool {
        self.is_durable_write() && self.durable_writes
    }

    fn syncs_after(&self) -> bool {
        self.is_durable_write() && !self.durable_writes
    }

    /// Whether the device is to be asked for a sync next.
    pub(crate) fn is_at_sync(&self) -> bool {
        let is_written = self.done_bytes == self.io.kind.length_bytes();
        matches!(self.io.kind, IoKind::Sync) || self.syncs_after() && is_written
    }

    /// From now on the device is not asked to write durably: a sync follows instead.
    pub(crate) fn sync_behind(&mut self) {
        self.durable_writes = false;
    }

    pub(crate) fn zone(&self) -> Zone {
        self.io.zone
    }

    /// Bytes of the buffer that are done.
    pub(crate) fn done_bytes(&self) -> usize {
        self.done_bytes
    }

    /// Where in the zone the rest begins.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.io.offset_bytes + self.done_bytes as u64
    }

    /// Takes the device's answer: `Some` when the operation has ended, `None` when the rest of it
    /// is to be asked for again.
    pub(crate) fn advance(&mut self, answer: Result<usize, Errno>) -> Option<Result<(), IoError>> {
        match answer {
            Ok(bytes) => self.advance_by(bytes),
            Err(Errno::INTR | Errno::AGAIN) if self.retries < RETRIES_MAX => {
                self.retries += 1;
                None
            }
            Err(source) => Some(Err(self.failed(source))),
        }
    }

    pub(crate) fn complete(self, result: Result<(), IoError>) -> Completion {
        self.io.complete(result)
    }

    fn advance_by(&mut self, bytes: usize) -> Option<Result<(), IoError>> {
        if self.is_at_sync() {
            return Some(Ok(()));
        }
        let length_bytes = self.io.kind.length_bytes();
        if bytes == 0 {
            let (zone, offset_bytes) = (self.io.zone, self.offset_bytes());
            return Some(Err(IoError::EndOfFile { zone, offset_bytes }));
        }
        self.done_bytes = (self.done_bytes + bytes).min(length_bytes);
        (self.done_bytes == length_bytes && !self.syncs_after()).then_some(Ok(()))
    }

    fn failed(&self, source: Errno) -> IoError {
        let verb = match self.io.kind {
            _ if self.is_at_sync() => Verb::Sync,
            IoKind::Read { .. } => Verb::Read,
            IoKind::Write { .. } | IoKind::Sync => Verb::Write,
        };
        let (zone, offset_bytes) = (self.io.zone, self.io.offset_bytes);
        let cause = Cause::new(class_of(verb, source), &source.to_string());
        IoError::Failed { verb, zone, offset_bytes, cause }
    }
}

/// What an error of the kernel means for an operation on a file or device.
fn class_of(verb: Verb, errno: Errno) -> ErrorClass {
    match errno {
        // A reservation that another host holds; a client that a cluster has cut off.
        Errno::BADE | Errno::SHUTDOWN => ErrorClass::Fenced,
        // Linux tells of a failed sync once and forgets the pages: no later one makes up for it.
        _ if verb == Verb::Sync => ErrorClass::Permanent,
        Errno::NOSPC | Errno::DQUOT if verb == Verb::Write => ErrorClass::NoSpace,
        // The kernel lacks memory or a path to the device, or the device is busy.
        Errno::AGAIN
        | Errno::INTR
        | Errno::NOMEM
        | Errno::NOBUFS
        | Errno::BUSY
        | Errno::TIMEDOUT
        | Errno::NOLINK => ErrorClass::Transient,
        _ => ErrorClass::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::AlignedBuf;

    fn read_of(length_bytes: usize) -> Operation {
        let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(length_bytes) };
        Operation::new(Io { zone: Zone::Journal, offset_bytes: 4096, kind, tag: 7 }, false)
    }

    #[test]
    fn short_answers_are_continued_where_they_ended() {
        let mut read = read_of(8192);
        assert_eq!(read.advance(Ok(512)), None);
        assert_eq!(read.advance(Err(Errno::INTR)), None);
        assert_eq!((read.done_bytes(), read.offset_bytes()), (512, 4608));
        assert_eq!(read.advance(Ok(7680)), Some(Ok(())));
    }

    #[test]
    fn a_file_that_ends_is_an_error() {
        let mut read = read_of(8192);
        assert_eq!(read.advance(Ok(4096)), None);
        let end = IoError::EndOfFile { zone: Zone::Journal, offset_bytes: 8192 };
        assert_eq!(read.advance(Ok(0)), Some(Err(end)));
    }

    #[test]
    fn not_now_is_an_answer_only_so_often() {
        let mut read = read_of(4096);
        let answers = std::iter::repeat_with(|| read.advance(Err(Errno::AGAIN)));
        let tries = answers.take_while(Option::is_none).take(5000).count();
        assert_eq!(tries, usize::from(RETRIES_MAX));
    }

    #[test]
    fn the_kernels_errors_have_classes() {
        use ErrorClass::{Fenced, NoSpace, Permanent, Transient};
        let cases = [
            (Errno::NOSPC, [Permanent, NoSpace, Permanent]),
            (Errno::DQUOT, [Permanent, NoSpace, Permanent]),
            (Errno::IO, [Permanent; 3]),
            (Errno::BADE, [Fenced; 3]),
            (Errno::TIMEDOUT, [Transient, Transient, Permanent]),
        ];
        for (errno, classes) in cases {
            let verbs = [Verb::Read, Verb::Write, Verb::Sync];
            assert_eq!(verbs.map(|verb| class_of(verb, errno)), classes, "{errno}");
        }
    }

    #[test]
    fn a_sync_moves_no_bytes() {
        let sync = Io { zone: Zone::Data(0), offset_bytes: 0, kind: IoKind::Sync, tag: 0 };
        assert_eq!(Operation::new(sync, false).advance(Ok(0)), Some(Ok(())));
    }

    #[test]
    fn a_durable_write_is_synced_unless_the_device_does_so() {
        let write = |durable_writes| {
            let buf = AlignedBuf::new_zeroed(8192).into();
            let kind = IoKind::Write { buf, durable: true };
            let io = Io { zone: Zone::Journal, offset_bytes: 0, kind, tag: 0 };
            Operation::new(io, durable_writes)
        };
        assert_eq!(write(true).advance(Ok(8192)), Some(Ok(())));
        let mut synced = write(false);
        assert_eq!(synced.advance(Ok(4096)), None);
        assert!(!synced.is_at_sync());
        assert_eq!(synced.advance(Ok(4096)), None);
        assert!(synced.is_at_sync());
        assert_eq!(synced.advance(Ok(0)), Some(Ok(())));
        let mut lost = write(false);
        assert_eq!(lost.advance(Ok(8192)), None);
        let failed = lost.advance(Err(Errno::IO));
        let is_of_sync =
            |error: &IoError| matches!(error, IoError::Failed { verb: Verb::Sync, .. });
        assert!(failed.unwrap().is_err_and(|error| is_of_sync(&error)));
    }
}
