//! How callers of `apply` share groups of the log.
//!
//! A caller that comes when no other writes is the *leader*: it takes all that wait, writes them as
//! one group, and hands out what each came to. One that comes meanwhile waits, and one of them
//! leads next. A caller alone finds nobody to wait for.
//!
//! Invariant: batches are written in the order in which they came, by one leader at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex};

use crate::index::IndexError;
use crate::index::batch::Batch;
use crate::index::locks::{lock, wait};

/// Bodies that are gathered into one group, but for a single longer one.
const GATHERED_BYTES_MAX: usize = 1 << 20;

/// Who waits, and who writes.
#[derive(Default)]
pub(crate) struct Sharing {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    next_ticket: u64,
    waiting: VecDeque<(u64, Batch)>,
    answers: BTreeMap<u64, Result<(), IndexError>>,
    is_led: bool,
}

impl Sharing {
    /// Has `batch` written by `write_group`, alone or with others, and waits for its answer. That
    /// gets the batches of a group and gives an answer for each.
    pub(crate) fn write(
        &self,
        batch: Batch,
        group_bytes_max: usize,
        write_group: impl Fn(Vec<Batch>) -> Vec<Result<(), IndexError>>,
    ) -> Result<(), IndexError> {
        let mut queue = lock(&self.queue);
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back((ticket, batch));
        loop {
            if let Some(answer) = queue.answers.remove(&ticket) {
                return answer;
            }
            if queue.is_led {
                queue = wait(&self.changed, queue);
                continue;
            }
            queue.is_led = true;
            let (tickets, batches) = queue.take_group(group_bytes_max.min(GATHERED_BYTES_MAX));
            drop(queue);
            let mut leader = Leader { sharing: self, tickets, answers: Vec::new() };
            leader.answers = write_group(batches);
            drop(leader);
            queue = lock(&self.queue);
        }
    }
}

#[cfg(test)]
impl Sharing {
    /// How many batches wait for a leader to come back.
    pub(in crate::index) fn waiting(&self) -> usize {
        lock(&self.queue).waiting.len()
    }

    pub(in crate::index) fn is_led(&self) -> bool {
        lock(&self.queue).is_led
    }
}

impl Queue {
    /// The batches that waited longest, as many as fit.
    fn take_group(&mut self, bytes_max: usize) -> (Vec<u64>, Vec<Batch>) {
        let (mut tickets, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some((_, batch)) = self.waiting.front() {
            bytes += batch.body.len();
            if bytes > bytes_max && !batches.is_empty() {
                break;
            }
            let Some((ticket, batch)) = self.waiting.pop_front() else { break };
            tickets.push(ticket);
            batches.push(batch);
        }
        (tickets, batches)
    }
}

/// Ends the lead and hands out the answers, after a panic as well: nobody waits for ever.
struct Leader<'a> {
    sharing: &'a Sharing,
    tickets: Vec<u64>,
    answers: Vec<Result<(), IndexError>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let panicked = || Err(IndexError::Damaged("writing its log has panicked".to_owned()));
        let mut answers = std::mem::take(&mut self.answers).into_iter();
        let mut queue = lock(&self.sharing.queue);
        for ticket in self.tickets.drain(..) {
            queue.answers.insert(ticket, answers.next().unwrap_or_else(panicked));
        }
        queue.is_led = false;
        self.sharing.changed.notify_all();
    }
}
