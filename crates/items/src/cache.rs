//! The cache of one connection: requests in order, alike ones together.

use std::sync::Arc;

use memcached::{Answer, Answers, Cache, Counts, Fault, Figures, Operation, Request, Store};

use crate::fault::fault_of;
use crate::long::{ItemReader, ItemWriter};
use crate::shared::Shared;
use crate::upkeep::Upkeep;

/// The items of a bucket as one connection, or one thread, sees them. [`crate::Items`] makes one.
pub struct ItemsConnection {
    shared: Arc<Shared>,
    /// The bucket is cleaned as long as somebody is served from it.
    _upkeep: Option<Arc<Upkeep>>,
}

impl ItemsConnection {
    pub(crate) fn new(shared: Arc<Shared>, upkeep: Option<Arc<Upkeep>>) -> Self {
        Self { shared, _upkeep: upkeep }
    }

    fn run_next<'r>(
        &self,
        requests: &'r [Request<'r>],
        now_s: u64,
        answers: &mut Answers<'_, ItemReader>,
    ) -> &'r [Request<'r>] {
        let shared = &self.shared;
        let Some((request, behind)) = requests.split_first() else { return requests };
        match &request.operation {
            Operation::Get(get) if get.touch.is_none() => {
                shared.get(request, get, now_s, answers);
                behind
            }
            Operation::Inspect { key } => {
                match shared.inspect(key, now_s) {
                    Ok(answer) => answers.answer(answer),
                    Err(fault) => answers.fail(&fault),
                }
                behind
            }
            Operation::Flush { at_s } => {
                match shared.flushes.flush(&shared.bucket, *at_s, shared.durability) {
                    Ok(()) => answers.answer(Answer::Flushed),
                    Err(error) => answers.fail(&fault_of(&error)),
                }
                behind
            }
            _ => {
                let alike = requests.iter().take_while(|request| request.operation.is_change());
                let (changes, behind) = requests.split_at(alike.count());
                let _waiting = shared.begin_changes(changes);
                shared.change(changes, now_s, answers);
                behind
            }
        }
    }
}

impl Cache for ItemsConnection {
    type Writer = ItemWriter;
    type Reader = ItemReader;

    fn run(&mut self, requests: &[Request<'_>], now_s: u64, answers: &mut Answers<'_, ItemReader>) {
        if let Err(fault) = self.shared.flush_if_due(now_s) {
            return requests.iter().for_each(|_| answers.fail(&fault));
        }
        let mut rest = requests;
        while !rest.is_empty() {
            rest = self.run_next(rest, now_s, answers);
        }
    }

    fn would_wait(&self, requests: &[Request<'_>], _now_s: u64) -> bool {
        self.shared.would_wait(requests)
    }

    fn begin_store(&mut self, _store: &Store<'_>, _now_s: u64) -> Result<ItemWriter, Fault> {
        Ok(ItemWriter::new(&self.shared.bucket))
    }

    fn finish_store(
        &mut self,
        writer: ItemWriter,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        let shared = &self.shared;
        shared.flush_if_due(now_s)?;
        shared.store_long(store, writer, now_s)
    }

    fn figures(&mut self, _now_s: u64) -> Figures {
        self.shared.figures()
    }

    fn count(&mut self, counts: &Counts) {
        self.shared.totals.count(counts);
    }

    fn reset_counts(&mut self) {
        self.shared.totals.reset(self.shared.bucket.expired_objects());
        if let Some(eviction) = &self.shared.eviction {
            eviction.evicted.reset();
        }
    }
}
