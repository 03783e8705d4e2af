//! Reads: from memory, else from the bucket, without any lock of the bucket's.

use memcached::{Answer, Answers, Change, Get, GetDecision, Hit, ITEM_BYTES, Item, Request};
use objects::bucket::{Condition, Moment, Reader};

use crate::fault::fault_of;
use crate::hot::{HOT_VALUE_BYTES_MAX, HotItem, NewEntry};
use crate::long::{ItemReader, ItemSource};
use crate::marks::StoredItem;
use crate::shared::Shared;

/// What memory says of a read.
enum FromMemory {
    Answered,
    /// The item has ended, or there is none that is live.
    Missing,
    /// The read changes more of the item than memory has.
    Changes,
    /// The value is not in memory.
    NotHere,
}

impl Shared {
    /// Answers a read that does not move the item's end.
    pub(crate) fn get(
        &self,
        request: &Request<'_>,
        get: &Get<'_>,
        now_s: u64,
        answers: &mut Answers<'_, ItemReader>,
    ) {
        let found = self
            .hot
            .look(&self.bucket, get.key, |hot| self.get_from_memory(get, hot, now_s, answers));
        match found {
            Some(FromMemory::Answered) => {}
            Some(FromMemory::Missing) if get.vivify.is_none() => answers.answer(Answer::NotFound),
            Some(FromMemory::Missing | FromMemory::Changes) => {
                self.change(std::slice::from_ref(request), now_s, answers);
            }
            Some(FromMemory::NotHere) | None => self.get_stored(request, get, now_s, answers),
        }
    }

    fn get_from_memory(
        &self,
        get: &Get<'_>,
        hot: HotItem<'_>,
        now_s: u64,
        answers: &mut Answers<'_, ItemReader>,
    ) -> FromMemory {
        if !self.is_live(hot.item, hot.version, now_s) {
            return FromMemory::Missing;
        }
        let hit = match get.decide(Some(hot.item), now_s, || 0) {
            GetDecision::Hit(hit) if hit.change() == Change::Item => return FromMemory::Changes,
            GetDecision::Hit(hit) => hit,
            GetDecision::Miss | GetDecision::Create(_) => panic!("an item that is there is a hit"),
        };
        match hot.value {
            Some(value) => answers.hit(&hit, value),
            None if !wants_bytes(get) => answers.hit_without_value(&hit, hot.value_bytes),
            None => return FromMemory::NotHere,
        }
        *hot.item = hit.item;
        self.was_read(get);
        FromMemory::Answered
    }

    /// Whether clients may see an item; counts the ones that they may not.
    fn is_live(&self, item: &Item, version: u64, now_s: u64) -> bool {
        if !self.flushes.is_live(version) {
            self.totals.get_flushed.add(1);
            return false;
        }
        let is_over = item.expires.is_over(now_s);
        self.totals.get_expired.add(u64::from(is_over));
        !is_over
    }

    fn get_stored(
        &self,
        request: &Request<'_>,
        get: &Get<'_>,
        now_s: u64,
        answers: &mut Answers<'_, ItemReader>,
    ) {
        let moment = self.bucket.moment(get.key);
        let reader = match self.bucket.get(get.key, &Condition::None, now_s.saturating_mul(1000)) {
            Ok(reader) => reader,
            Err(error) => return answers.fail(&fault_of(&error)),
        };
        let reader = reader.filter(|reader| {
            let is_live = self.flushes.is_live(reader.info().version);
            self.totals.get_flushed.add(u64::from(!is_live));
            is_live
        });
        let Some(reader) = reader else {
            return match get.vivify {
                None => answers.answer(Answer::NotFound),
                Some(_) => self.change(std::slice::from_ref(request), now_s, answers),
            };
        };
        let stored = self.remembered(get.key, StoredItem::of(reader.info().clone()));
        let hit = match get.decide(Some(&stored.item), now_s, || 0) {
            GetDecision::Hit(hit) if hit.change() == Change::Item => {
                return self.change(std::slice::from_ref(request), now_s, answers);
            }
            GetDecision::Hit(hit) => hit,
            GetDecision::Miss | GetDecision::Create(_) => panic!("an item that is there is a hit"),
        };
        self.was_read(get);
        self.answer_stored(get, &hit, stored, reader, moment, answers);
    }

    /// What is read stays longer in a cache with a bound.
    pub(crate) fn was_read(&self, get: &Get<'_>) {
        if let Some(eviction) = &self.eviction
            && get.marks_access
        {
            eviction.read(get.key);
        }
    }

    /// Answers with what the bucket holds, and keeps it in memory.
    fn answer_stored(
        &self,
        get: &Get<'_>,
        hit: &Hit,
        stored: StoredItem,
        mut reader: Reader,
        moment: Option<Moment>,
        answers: &mut Answers<'_, ItemReader>,
    ) {
        let StoredItem { version, value_bytes, .. } = stored;
        let entry = if value_bytes > HOT_VALUE_BYTES_MAX as u64 {
            answers.hit_at(hit, value_bytes, ItemSource(reader));
            NewEntry::without_value(get.key, hit.item, version, value_bytes)
        } else {
            let mut value = vec![0; value_bytes as usize];
            match reader.read_at(0, &mut value) {
                Ok(read) => assert!(read == value.len(), "an object knows how long it is"),
                Err(error) => return answers.fail(&fault_of(&error)),
            }
            answers.hit(hit, &value);
            NewEntry::new(get.key, hit.item, version, &value)
        };
        if let Some(moment) = moment {
            self.hot.fill(&self.bucket, get.key, moment, entry);
        }
    }

    /// What is known about an item.
    pub(crate) fn inspect(&self, key: &[u8], now_s: u64) -> Result<Answer, memcached::Fault> {
        let found = self.hot.look(&self.bucket, key, |hot| {
            let is_live = self.is_live(hot.item, hot.version, now_s);
            is_live.then_some((*hot.item, hot.value_bytes))
        });
        let found = match found {
            Some(found) => found,
            None => {
                let now_ms = now_s.saturating_mul(1000);
                let info = self.bucket.head(key, &Condition::None, now_ms);
                let info = info.map_err(|error| fault_of(&error))?;
                let live = info.filter(|info| self.flushes.is_live(info.version));
                live.map(StoredItem::of).map(|stored| (stored.item, stored.value_bytes))
            }
        };
        Ok(match found {
            None => Answer::NotFound,
            Some((item, value_bytes)) => {
                let size_bytes = (key.len() + ITEM_BYTES) as u64 + value_bytes;
                Answer::Inspected { item, size_bytes }
            }
        })
    }

    /// An item of the bucket with what memory knows of it beside.
    pub(crate) fn remembered(&self, key: &[u8], stored: StoredItem) -> StoredItem {
        let remembered = self.hot.look(&self.bucket, key, |hot| {
            (hot.version == stored.version).then_some((hot.item.accessed_s, hot.item.fetched))
        });
        match remembered.flatten() {
            Some((accessed_s, fetched)) => {
                StoredItem { item: Item { accessed_s, fetched, ..stored.item }, ..stored }
            }
            None => stored,
        }
    }
}

/// Whether a read looks at the bytes of a value.
pub(crate) fn wants_bytes(get: &Get<'_>) -> bool {
    get.wants_value || get.wants_count || get.part.is_some()
}
