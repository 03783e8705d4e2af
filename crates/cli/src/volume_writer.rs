//! Many writes to one volume at a time, in order of submission, with one account of what failed.
//!
//! A write is acknowledged when it is in the engine's write buffer; those that must wait, and all
//! to a served store, come back through a sink. The first failure is kept and ends the whole
//! operation. Requests in flight are bounded here, since trims, unlike writes, take no credit of
//! the write buffer.
//!
//! A writer that is dropped has nothing in flight any more, whatever has failed: requests that are
//! still to be done hold the volume, and change it behind a caller that goes on from the failure.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use engine::ChunkBuf;

use crate::data::{VolumeData, WriteFailure, WriteSink};
use crate::error::CliError;
use crate::image::is_zero;

/// Requests that may be in flight.
const IN_FLIGHT_MAX: u32 = 256;

/// The writing side of one volume.
pub(crate) struct VolumeWriter<'a> {
    volume: &'a VolumeData,
    /// Nothing is mapped where it writes: zeros are there already.
    blank: bool,
    outcomes: Ended,
}

impl<'a> VolumeWriter<'a> {
    /// Of `volume`, which is `blank` when it maps nothing yet.
    pub(crate) fn new(volume: &'a VolumeData, blank: bool) -> Self {
        Self { volume, blank, outcomes: Ended::default() }
    }

    /// Room for `length_bytes` at `offset_bytes`; waits while the write buffer is full.
    pub(crate) fn buffer(&self, offset_bytes: u64, length_bytes: usize) -> ChunkBuf {
        self.volume.buffer(offset_bytes, length_bytes)
    }

    /// Writes `buf`; returns the bytes that were not all zeros.
    pub(crate) fn write(&self, offset_bytes: u64, buf: ChunkBuf) -> Result<u64, CliError> {
        let length_bytes = buf.bytes().len() as u64;
        if is_zero(buf.bytes()) {
            return self.zero(offset_bytes, length_bytes).map(|()| 0);
        }
        self.begin()?;
        self.volume.write(offset_bytes, buf, &self.outcomes.0);
        Ok(length_bytes)
    }

    /// Makes a range read as zeros.
    pub(crate) fn zero(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), CliError> {
        if self.blank || length_bytes == 0 {
            return Ok(());
        }
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        while at < end {
            let length_bytes = (end - at).min(self.volume.zero_bytes_max());
            self.begin()?;
            self.volume.zero(at, length_bytes, &self.outcomes.0);
            at += length_bytes;
        }
        Ok(())
    }

    /// Waits for all that was begun and makes it durable.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        self.outcomes.wait_below(1)?;
        self.volume.flush()
    }

    fn begin(&self) -> Result<(), CliError> {
        self.outcomes.wait_below(IN_FLIGHT_MAX)?;
        self.outcomes.state().in_flight += 1;
        Ok(())
    }
}

/// Outcomes that have all come when it is dropped.
#[derive(Debug, Default)]
struct Ended(Arc<Outcomes>);

impl Deref for Ended {
    type Target = Outcomes;

    fn deref(&self) -> &Outcomes {
        &self.0
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // A failure has been told to the caller that began a request after it, or asked for the
        // end.
        let _ = self.wait_below(1);
    }
}

/// What came of the requests.
#[derive(Debug, Default)]
struct Outcomes {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    in_flight: u32,
    failure: Option<WriteFailure>,
}

impl Outcomes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than `bound` requests are in flight; an error when one has failed.
    fn wait_below(&self, bound: u32) -> Result<(), CliError> {
        let mut state = self.state();
        while state.in_flight >= bound {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.failure {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }
}

impl WriteSink for Outcomes {
    fn end(&self, outcome: Result<(), WriteFailure>) {
        let mut state = self.state();
        state.in_flight -= 1;
        if let Err(error) = outcome {
            state.failure.get_or_insert(error);
        }
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use engine::RequestError;

    use super::{Ended, Outcomes};
    use crate::data::{WriteFailure, WriteSink};
    use crate::error::CliError;

    #[test]
    fn the_first_failure_is_the_one_that_is_told() {
        let outcomes = Outcomes::default();
        outcomes.state().in_flight = 3;
        outcomes.end(Ok(()));
        outcomes.end(Err(WriteFailure::Request(RequestError::NoSpace)));
        outcomes.end(Err(WriteFailure::Request(RequestError::Closing)));
        let told = outcomes.wait_below(1);
        assert!(matches!(told, Err(CliError::Request(RequestError::NoSpace))), "{told:?}");
    }

    #[test]
    fn what_has_failed_ends_when_the_rest_has() {
        let ended = Ended::default();
        ended.state().in_flight = 2;
        ended.end(Err(WriteFailure::Request(RequestError::NoSpace)));
        let (outcomes, core) = (Arc::clone(&ended.0), Arc::clone(&ended.0));
        let completing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            core.end(Ok(()));
        });
        drop(ended);
        assert_eq!(outcomes.state().in_flight, 0);
        completing.join().unwrap();
    }

    #[test]
    fn waiting_ends_when_enough_have_ended() {
        let outcomes = Arc::new(Outcomes::default());
        outcomes.state().in_flight = 8;
        let core = Arc::clone(&outcomes);
        let completing = thread::spawn(move || (0..8).for_each(|_| core.end(Ok(()))));
        outcomes.wait_below(1).unwrap();
        assert_eq!(outcomes.state().in_flight, 0);
        completing.join().unwrap();
    }
}
