//! Memory for the requests of tasks, which must not block their executor's thread.

use std::sync::Arc;
use std::task::Waker;

use reduce::{ChunkBuf, Permit};

use crate::door::client::Client;
use crate::door::client_reads::read_credit;

impl Client {
    /// As [`Client::try_buffer`]; where there is none, `waker` is woken when trying again may
    /// succeed. A task has no turn: threads that wait ([`Client::buffer`]) may overtake it.
    #[must_use]
    pub fn try_buffer_or_wake(
        &self,
        offset_bytes: u64,
        length_bytes: usize,
        waker: &Waker,
    ) -> Option<ChunkBuf> {
        let credit = self.buffer_credit(offset_bytes, length_bytes);
        let granted = self.intake.credits.try_take_or_wake(credit, waker);
        granted.then(|| {
            ChunkBuf::with_permit(length_bytes, Permit::new(Arc::clone(&self.permit), credit))
        })
    }

    /// As [`Client::buffers`]; where there is too little for all, `waker` is woken when trying
    /// again may succeed.
    #[must_use]
    pub fn try_buffers_or_wake(
        &self,
        writes: impl IntoIterator<Item = (u64, usize)>,
        waker: &Waker,
    ) -> Option<Vec<ChunkBuf>> {
        let credits = self.credits_of(writes);
        let credit = credits.iter().map(|&(_, credit)| credit).sum();
        let granted = self.intake.credits.try_take_or_wake(credit, waker);
        granted.then(|| self.buffers_of(credits))
    }

    /// As [`Client::try_read_memory`]; where there is none, `waker` is woken when trying again may
    /// succeed.
    #[must_use]
    pub fn try_read_memory_or_wake(&self, length_bytes: u32, waker: &Waker) -> Option<Permit> {
        let credit = read_credit(length_bytes);
        let granted = self.intake.read_credits.try_take_or_wake(credit, waker);
        granted.then(|| Permit::new(Arc::clone(&self.read_permit), credit))
    }
}
