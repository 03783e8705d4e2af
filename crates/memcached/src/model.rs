//! A cache in memory: the plain model that connections are tested with, and that an example serves.
//!
//! A sorted map from keys to items with their values. It shows what a cache has to do, in few
//! lines: find, let the operation decide, carry out. It bounds nothing and evicts nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::answer::{Answer, Fault};
use crate::answers::Answers;
use crate::cache::Cache;
use crate::decisions::{ArithmeticDecision, DeleteDecision, GetDecision, Join, StoreDecision};
use crate::item::{ITEM_BYTES, Item};
use crate::operation::{Get, Operation, Store};
use crate::request::Request;
use crate::stats::{Counts, Figures};
use crate::values::{ValueReader, ValueSource, ValueWriter};

#[derive(Clone, Debug)]
struct Entry {
    item: Item,
    value: Arc<[u8]>,
}

/// The model.
#[derive(Debug, Default)]
pub struct ModelCache {
    entries: BTreeMap<Box<[u8]>, Entry>,
    last_cas: u64,
    generation: u32,
    flush_at_s: Option<u64>,
    items_total: u64,
    get_expired: u64,
    get_flushed: u64,
    figures: Figures,
}

/// A long value that is being stored.
#[derive(Debug, Default)]
pub struct ModelWriter(Vec<u8>);

impl ValueWriter for ModelWriter {
    fn write(&mut self, part: &[u8]) -> Result<(), Fault> {
        self.0.extend_from_slice(part);
        Ok(())
    }
}

/// A long value that is being sent.
#[derive(Debug)]
pub struct ModelReader {
    value: Arc<[u8]>,
    read: usize,
    end: usize,
}

impl ValueReader for ModelReader {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let rest = &self.value[self.read..self.end];
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

impl ValueSource for &Arc<[u8]> {
    type Reader = ModelReader;

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Fault> {
        let offset = offset as usize;
        out.copy_from_slice(&self[offset..offset + out.len()]);
        Ok(())
    }

    fn into_reader(self, offset: u64, bytes: u64) -> Result<ModelReader, Fault> {
        let end = (offset + bytes) as usize;
        Ok(ModelReader { value: Arc::clone(self), read: offset as usize, end })
    }
}

impl ModelCache {
    /// What `stats` tells beside what the model knows itself.
    pub fn figures_mut(&mut self) -> &mut Figures {
        &mut self.figures
    }

    /// Drops an entry that is over, and gives one that is live.
    fn live(&mut self, key: &[u8], now_s: u64) -> Option<&Entry> {
        let item = self.entries.get(key)?.item;
        if !item.is_live(now_s, self.generation) {
            let is_flushed = item.generation < self.generation;
            self.get_flushed += u64::from(is_flushed);
            self.get_expired += u64::from(!is_flushed);
            self.entries.remove(key);
        }
        self.entries.get(key)
    }

    fn write(&mut self, key: &[u8], item: Item, value: Arc<[u8]>) {
        let item = Item { generation: self.generation, ..item };
        self.items_total += 1;
        self.entries.insert(key.into(), Entry { item, value });
    }

    fn change(&mut self, key: &[u8], item: Item) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.item = Item { generation: entry.item.generation, ..item };
        }
    }

    fn get(&mut self, get: &Get<'_>, now_s: u64, answers: &mut Answers<'_, ModelReader>) {
        let next = self.last_cas + 1;
        let entry = self.live(get.key, now_s).cloned();
        let decision = get.decide(entry.as_ref().map(|entry| &entry.item), now_s, || next);
        match (decision, entry) {
            (GetDecision::Hit(hit), Some(entry)) => {
                self.change(get.key, hit.item);
                answers.hit_at(&hit, entry.value.len() as u64, &entry.value);
            }
            (GetDecision::Create(hit), _) => {
                self.last_cas = next;
                self.write(get.key, hit.item, Arc::from([]));
                answers.hit_at(&hit, 0, &Arc::from([]));
            }
            _ => answers.answer(Answer::NotFound),
        }
    }

    fn store(&mut self, store: &Store<'_>, value: &[u8], now_s: u64) -> Answer {
        let next = self.last_cas + 1;
        let entry = self.live(store.key, now_s).cloned();
        let found = entry.as_ref().map(|entry| (&entry.item, entry.value.len() as u64));
        match store.decide(found, now_s, || next) {
            StoreDecision::Refuse(answer) => answer,
            StoreDecision::Write { item, join, value_bytes } => {
                self.last_cas = next;
                let old = entry.map(|entry| entry.value).unwrap_or_default();
                let value: Arc<[u8]> = match join {
                    Join::Replace => value.into(),
                    Join::Append => [&old[..], value].concat().into(),
                    Join::Prepend => [value, &old[..]].concat().into(),
                    Join::Over { offset } => {
                        let (front, rest) = old.split_at(offset as usize);
                        let behind = rest.get(value.len()..).unwrap_or_default();
                        [front, value, behind].concat().into()
                    }
                };
                assert!(value.len() as u64 == value_bytes, "a joined value has its length");
                self.write(store.key, item, value);
                Answer::Stored { cas: item.cas, value_bytes }
            }
        }
    }

    fn answer(&mut self, operation: &Operation<'_>, now_s: u64) -> Answer {
        let next = self.last_cas + 1;
        let entry = operation.key().and_then(|key| self.live(key, now_s).cloned());
        let item = entry.as_ref().map(|entry| &entry.item);
        match operation {
            Operation::Get(_) => panic!("reads are answered with values"),
            Operation::Store(store) => self.store(store, store.value, now_s),
            Operation::Delete(delete) => {
                match delete.decide(item, now_s, || next) {
                    DeleteDecision::Refuse(answer) => return answer,
                    DeleteDecision::Remove => drop(self.entries.remove(delete.key)),
                    DeleteDecision::Keep { item, is_emptied } => {
                        self.last_cas = next;
                        let value = entry.map(|entry| entry.value).filter(|_| !is_emptied);
                        self.write(delete.key, item, value.unwrap_or_default());
                    }
                }
                Answer::Deleted
            }
            Operation::Arithmetic(sum) => {
                let found = entry.as_ref().map(|entry| (&entry.item, &entry.value[..]));
                match sum.decide(found, now_s, || next) {
                    ArithmeticDecision::Refuse(answer) => answer,
                    ArithmeticDecision::Write { hit, number, value } => {
                        self.last_cas = next;
                        self.write(sum.key, hit.item, value.as_bytes().into());
                        Answer::Number { hit, number }
                    }
                }
            }
            Operation::Touch(touch) => match touch.decide(item, now_s) {
                None => Answer::NotFound,
                Some(item) => {
                    self.change(touch.key, item);
                    Answer::Touched
                }
            },
            Operation::Inspect { key } => match entry {
                None => Answer::NotFound,
                Some(Entry { item, value }) => {
                    let size_bytes = (key.len() + value.len() + ITEM_BYTES) as u64;
                    Answer::Inspected { item, size_bytes }
                }
            },
            Operation::Flush { at_s } => {
                self.flush_at_s = *at_s;
                if at_s.is_none() {
                    self.generation += 1;
                }
                Answer::Flushed
            }
        }
    }

    fn flush_if_due(&mut self, now_s: u64) {
        if self.flush_at_s.is_some_and(|at_s| at_s <= now_s) {
            self.flush_at_s = None;
            self.generation += 1;
        }
    }
}

impl Cache for ModelCache {
    type Writer = ModelWriter;
    type Reader = ModelReader;

    fn run(
        &mut self,
        requests: &[Request<'_>],
        now_s: u64,
        answers: &mut Answers<'_, ModelReader>,
    ) {
        self.flush_if_due(now_s);
        for request in requests {
            match &request.operation {
                Operation::Get(get) => self.get(get, now_s, answers),
                operation => {
                    let answer = self.answer(operation, now_s);
                    answers.answer(answer);
                }
            }
        }
    }

    fn begin_store(&mut self, _store: &Store<'_>, _now_s: u64) -> Result<ModelWriter, Fault> {
        Ok(ModelWriter::default())
    }

    fn finish_store(
        &mut self,
        writer: ModelWriter,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        self.flush_if_due(now_s);
        Ok(self.store(store, &writer.0, now_s))
    }

    fn figures(&mut self, now_s: u64) -> Figures {
        self.flush_if_due(now_s);
        self.entries.retain(|_, entry| entry.item.is_live(now_s, self.generation));
        let sizes = self.entries.iter().map(|(key, entry)| key.len() + entry.value.len());
        let bytes = sizes.map(|bytes| (bytes + ITEM_BYTES) as u64).sum();
        Figures {
            items: self.entries.len() as u64,
            items_total: self.items_total,
            bytes,
            get_expired: self.get_expired,
            get_flushed: self.get_flushed,
            ..self.figures.clone()
        }
    }

    fn count(&mut self, counts: &Counts) {
        self.figures.counts.add(counts);
    }

    /// The model takes the bound, and keeps to none.
    fn limit_bytes(&mut self, bytes: u64) -> bool {
        self.figures.bytes_max = bytes;
        true
    }

    fn reset_counts(&mut self) {
        self.figures.counts = Counts::default();
        self.items_total = 0;
    }
}
