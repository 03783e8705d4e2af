//! Changes: a run of requests is one transaction of the bucket.
//!
//! ```text
//! keys locked ─> each request: found ─ decided ─ staged, its outcome kept
//!     ─> commit ─> hot items replaced ─> unlocked ─> outcomes answered in order
//! ```
//!
//! A store whose value does not fit a batch ends the run before it and goes alone. A run that the
//! bucket refuses is tried request by request, so each has its own answer. Where the changes are
//! made and only their flush has failed, all are answered with that.

use std::borrow::Cow;

use memcached::{
    Answer, Answers, Arithmetic, ArithmeticDecision, Change, Delete, DeleteDecision, Fault, Get,
    GetDecision, Item, Join, NUMBER_BYTES_MAX, Operation, Request, Store, StoreDecision, Touch,
};
use objects::bucket::{Moment, Transaction};
use objects::values::TOGETHER_BYTES_MAX;

use crate::fault::{Refusal, fault_of};
use crate::hot::{NewEntry, Replaced, Replacement};
use crate::long::ItemReader;
use crate::marks::{StoredItem, description_of, new_description};
use crate::outcome::{HitValue, Outcome};
use crate::read::wants_bytes;
use crate::shared::Shared;

/// A value that is no number, for counting: what is longer than a number is looked at no further.
const NO_NUMBER: &[u8] = &[b'x'; NUMBER_BYTES_MAX + 1];

/// Why a run was not carried out.
struct Refused {
    fault: Fault,
    /// The changes are made all the same: a crash may take them back.
    is_made: bool,
}

impl Shared {
    /// Carries out requests that change items, and answers them.
    pub(crate) fn change(
        &self,
        requests: &[Request<'_>],
        now_s: u64,
        answers: &mut Answers<'_, ItemReader>,
    ) {
        let mut rest = requests;
        while let Some((first, behind)) = rest.split_first() {
            match self.change_together(rest, now_s) {
                Ok(outcomes) if outcomes.is_empty() => {
                    self.change_alone(first, now_s).give(answers);
                    rest = behind;
                }
                Ok(outcomes) => {
                    rest = &rest[outcomes.len()..];
                    outcomes.into_iter().for_each(|outcome| outcome.give(answers));
                }
                Err(Refused { fault, is_made }) if is_made || behind.is_empty() => {
                    return rest.iter().for_each(|_| answers.fail(&fault));
                }
                Err(_) => {
                    self.change(std::slice::from_ref(first), now_s, answers);
                    return self.change(behind, now_s, answers);
                }
            }
        }
    }

    /// Carries out the front of a list of requests, as far as their values fit a batch.
    fn change_together(
        &self,
        requests: &[Request<'_>],
        now_s: u64,
    ) -> Result<Vec<Outcome>, Refused> {
        let keys = requests.iter().filter_map(|request| request.operation.key());
        let transaction = self.bucket.transaction(keys, now_s.saturating_mul(1000));
        let transaction =
            transaction.map_err(|error| Refused { fault: fault_of(&error), is_made: false })?;
        let mut run = Run { shared: self, transaction, now_s, touched: Vec::new(), stored: 0 };
        let mut outcomes = Vec::with_capacity(requests.len());
        for request in requests {
            match run.step(&request.operation) {
                Ok(Some(outcome)) => outcomes.push(outcome),
                Ok(None) => break,
                Err(Refusal(fault)) => outcomes.push(Outcome::Fault(fault)),
            }
        }
        run.commit()?;
        self.keep_bound(now_s);
        Ok(outcomes)
    }

    fn change_alone(&self, request: &Request<'_>, now_s: u64) -> Outcome {
        match &request.operation {
            Operation::Store(store) => match self.store_alone(store, now_s) {
                Ok(answer) => Outcome::Answer(answer),
                Err(fault) => Outcome::Fault(fault),
            },
            operation => panic!("only a store is too long for a batch, and not {operation:?}"),
        }
    }
}

/// One transaction.
struct Run<'a> {
    shared: &'a Shared,
    transaction: Transaction<'a>,
    now_s: u64,
    touched: Vec<Touched<'a>>,
    /// Items that were stored by now.
    stored: u64,
}

/// A key of the transaction.
struct Touched<'a> {
    key: &'a [u8],
    /// The moment before the change: the key is locked, so it is not another one by then.
    before: Option<Moment>,
    /// The live item as the transaction has it by now, once it was looked for.
    found: Option<Option<StoredItem>>,
    now: Now<'a>,
}

/// What the transaction has made of a key.
enum Now<'a> {
    Unchanged,
    /// Another item with the same value.
    Described,
    Value(Cow<'a, [u8]>),
    Removed,
}

impl<'a> Run<'a> {
    /// Stages one request; none: its value does not fit a batch.
    fn step(&mut self, operation: &Operation<'a>) -> Result<Option<Outcome>, Refusal> {
        match operation {
            Operation::Get(get) => self.get(get).map(Some),
            Operation::Store(store) => self.store(store),
            Operation::Delete(delete) => self.delete(delete).map(Some),
            Operation::Arithmetic(sum) => self.count(sum).map(Some),
            Operation::Touch(touch) => self.touch(touch).map(Some),
            Operation::Inspect { .. } | Operation::Flush { .. } => {
                panic!("{operation:?} is no part of a transaction")
            }
        }
    }

    fn get(&mut self, get: &Get<'a>) -> Result<Outcome, Refusal> {
        let at = self.place_of(get.key);
        let found = self.found(at)?.cloned();
        match get.decide(found.as_ref().map(|found| &found.item), self.now_s, || 0) {
            GetDecision::Miss => Ok(Outcome::Answer(Answer::NotFound)),
            GetDecision::Create(mut hit) => {
                let version = self.transaction.new_version()?;
                hit.item.cas = or_version(hit.item.cas, version);
                hit.before.cas = hit.item.cas;
                self.put(at, hit.item, version, Cow::Borrowed(&[]))?;
                Ok(Outcome::Hit(hit, HitValue::Whole(Vec::new())))
            }
            GetDecision::Hit(hit) => {
                self.shared.was_read(get);
                let Some(found) = found else { panic!("a hit is of an item") };
                let value = self.value_for(get, at, found.value_bytes)?;
                if hit.change() != Change::None {
                    self.describe(at, &found, hit.item, None)?;
                }
                Ok(Outcome::Hit(hit, value))
            }
        }
    }

    fn value_for(
        &mut self,
        get: &Get<'a>,
        at: usize,
        value_bytes: u64,
    ) -> Result<HitValue, Refusal> {
        if !wants_bytes(get) {
            return Ok(HitValue::Unwanted { value_bytes });
        }
        if value_bytes > TOGETHER_BYTES_MAX as u64
            && let Some(reader) = self.transaction.reader(get.key)?
        {
            return Ok(HitValue::Long { value_bytes, reader: Box::new(reader) });
        }
        Ok(HitValue::Whole(self.value(at)?.into_owned()))
    }

    fn store(&mut self, store: &Store<'a>) -> Result<Option<Outcome>, Refusal> {
        let at = self.place_of(store.key);
        let now_s = self.now_s;
        let found = if store.needs_item() { self.found(at)? } else { None };
        let old = found.map(|found| (&found.item, found.value_bytes));
        let (mut item, join) = match store.decide(old, now_s, || 0) {
            StoreDecision::Refuse(answer) => return Ok(Some(Outcome::Answer(answer))),
            StoreDecision::Write { value_bytes, .. } if value_bytes > TOGETHER_BYTES_MAX as u64 => {
                return Ok(None);
            }
            StoreDecision::Write { item, join, .. } => (item, join),
        };
        let value = match join {
            Join::Replace => Cow::Borrowed(store.value),
            Join::Append => Cow::Owned([&self.value(at)?[..], store.value].concat()),
            Join::Prepend => Cow::Owned([store.value, &self.value(at)?[..]].concat()),
            Join::Over { offset } => {
                let old = self.value(at)?;
                let (front, rest) = old.split_at(offset as usize);
                let behind = rest.get(store.value.len()..).unwrap_or_default();
                Cow::Owned([front, store.value, behind].concat())
            }
        };
        let version = self.transaction.new_version()?;
        item.cas = or_version(item.cas, version);
        let value_bytes = value.len() as u64;
        self.put(at, item, version, value)?;
        Ok(Some(Outcome::Answer(Answer::Stored { cas: item.cas, value_bytes })))
    }

    fn delete(&mut self, delete: &Delete<'a>) -> Result<Outcome, Refusal> {
        let at = self.place_of(delete.key);
        let found = self.found(at)?.cloned();
        match delete.decide(found.as_ref().map(|found| &found.item), self.now_s, || 0) {
            DeleteDecision::Refuse(answer) => return Ok(Outcome::Answer(answer)),
            DeleteDecision::Remove => self.remove(at)?,
            DeleteDecision::Keep { mut item, is_emptied } => {
                let Some(found) = found else { panic!("an item that is kept was there") };
                let version = self.transaction.new_version()?;
                item.cas = or_version(item.cas, version);
                match is_emptied {
                    true => self.put(at, item, version, Cow::Borrowed(&[]))?,
                    false => self.describe(at, &found, item, Some(version))?,
                }
            }
        }
        Ok(Outcome::Answer(Answer::Deleted))
    }

    fn count(&mut self, sum: &Arithmetic<'a>) -> Result<Outcome, Refusal> {
        let at = self.place_of(sum.key);
        let found = self.found(at)?.cloned();
        let value = match &found {
            Some(found) if found.value_bytes <= NUMBER_BYTES_MAX as u64 => self.value(at)?,
            _ => Cow::Borrowed(NO_NUMBER),
        };
        let old = found.as_ref().map(|found| (&found.item, &value[..]));
        match sum.decide(old, self.now_s, || 0) {
            ArithmeticDecision::Refuse(answer) => Ok(Outcome::Answer(answer)),
            ArithmeticDecision::Write { mut hit, number, value } => {
                let version = self.transaction.new_version()?;
                hit.item.cas = or_version(hit.item.cas, version);
                if hit.is_new {
                    hit.before.cas = hit.item.cas;
                }
                self.put(at, hit.item, version, Cow::Owned(value.as_bytes().to_vec()))?;
                Ok(Outcome::Answer(Answer::Number { hit, number }))
            }
        }
    }

    fn touch(&mut self, touch: &Touch<'a>) -> Result<Outcome, Refusal> {
        let at = self.place_of(touch.key);
        let found = self.found(at)?.cloned();
        let item = touch.decide(found.as_ref().map(|found| &found.item), self.now_s);
        Ok(match (item, found) {
            (Some(item), Some(found)) => {
                self.describe(at, &found, item, None)?;
                Outcome::Answer(Answer::Touched)
            }
            _ => Outcome::Answer(Answer::NotFound),
        })
    }

    fn place_of(&mut self, key: &'a [u8]) -> usize {
        if let Some(at) = self.touched.iter().position(|touched| touched.key == key) {
            return at;
        }
        let before = self.shared.bucket.moment(key);
        self.touched.push(Touched { key, before, found: None, now: Now::Unchanged });
        self.touched.len() - 1
    }

    /// The live item of a key.
    fn found(&mut self, at: usize) -> Result<Option<&StoredItem>, Refusal> {
        let touched = &mut self.touched[at];
        if touched.found.is_none() {
            let shared = self.shared;
            let info = self.transaction.get(touched.key)?;
            let live = info.filter(|info| shared.flushes.is_live(info.version));
            let key = touched.key;
            touched.found = Some(live.map(|info| shared.remembered(key, StoredItem::of(info))));
        }
        Ok(self.touched[at].found.as_ref().and_then(Option::as_ref))
    }

    /// The value of a live item.
    fn value(&mut self, at: usize) -> Result<Cow<'a, [u8]>, Refusal> {
        let touched = &self.touched[at];
        if let Now::Value(value) = &touched.now {
            return Ok(value.clone());
        }
        Ok(Cow::Owned(self.transaction.read(touched.key)?.unwrap_or_default()))
    }

    fn put(
        &mut self,
        at: usize,
        item: Item,
        version: u64,
        value: Cow<'a, [u8]>,
    ) -> Result<(), Refusal> {
        self.stored += 1;
        if item.expires.is_over(self.now_s) {
            return self.remove(at);
        }
        let touched = &mut self.touched[at];
        let described = new_description(&item, version);
        let metadata = described.metadata.clone();
        self.transaction.put(touched.key, value.clone(), described, version, None)?;
        let value_bytes = value.len() as u64;
        touched.found = Some(Some(StoredItem { item, version, value_bytes, metadata }));
        touched.now = Now::Value(value);
        Ok(())
    }

    /// The item changes and its value stays.
    fn describe(
        &mut self,
        at: usize,
        found: &StoredItem,
        item: Item,
        new_version: Option<u64>,
    ) -> Result<(), Refusal> {
        if item.expires.is_over(self.now_s) {
            return self.remove(at);
        }
        let touched = &mut self.touched[at];
        let version = new_version.unwrap_or(found.version);
        let described = description_of(&item, version, found.metadata.clone())?;
        let metadata = described.metadata.clone();
        self.transaction.describe(touched.key, described, new_version)?;
        touched.found = Some(Some(StoredItem { item, version, metadata, ..*found }));
        if matches!(touched.now, Now::Unchanged) {
            touched.now = Now::Described;
        }
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Result<(), Refusal> {
        let touched = &mut self.touched[at];
        self.transaction.remove(touched.key)?;
        touched.found = Some(None);
        touched.now = Now::Removed;
        Ok(())
    }

    fn commit(self) -> Result<(), Refused> {
        let Self { shared, transaction, touched, stored, .. } = self;
        let replaced: Vec<Replaced<'_>> = touched.into_iter().filter_map(replaced).collect();
        if replaced.is_empty() {
            return Ok(());
        }
        let mut is_made = false;
        let committed = transaction.commit_then(shared.durability, || {
            is_made = true;
            shared.totals.stored.add(stored);
            shared.hot.replace(&shared.bucket, replaced.into_iter());
        });
        committed.map_err(|error| Refused { fault: fault_of(&error), is_made })
    }
}

/// What memory holds of a key from the commit on.
fn replaced(touched: Touched<'_>) -> Option<Replaced<'_>> {
    let Touched { key, before, found, now } = touched;
    let now = match (now, found.flatten()) {
        (Now::Unchanged, _) => return None,
        (Now::Removed, _) => Replacement::Nothing,
        (Now::Described, Some(found)) => Replacement::Item(found.item, found.version),
        (Now::Value(value), Some(StoredItem { item, version, .. })) => {
            Replacement::Entry(NewEntry::new(key, item, version, &value))
        }
        (Now::Described | Now::Value(_), None) => panic!("what was put is there"),
    };
    Some(Replaced { key, before, now })
}

/// The version that a decision has left open is that of the object.
fn or_version(cas: u64, version: u64) -> u64 {
    if cas == 0 { version } else { cas }
}
