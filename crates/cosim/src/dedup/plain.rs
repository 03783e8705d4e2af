//! What the core must say: a plain map, one operation after the other.

use std::collections::HashMap;

use super::ports::{Answer, Digest, Op, Verdict};

/// Digest to count and, once an answer named it, index.
#[derive(Clone, Debug)]
pub struct PlainMap {
    pages: HashMap<Digest, (u32, u32)>,
    used: HashMap<u32, Digest>,
    count_max: u32,
    capacity: u32,
}

impl PlainMap {
    /// A map that holds `table` as [`super::Rig::with_table`] puts it there.
    pub fn with_table(count_max: u32, capacity: u32, table: &[(Digest, u32)]) -> Self {
        let entries = (0..).zip(table);
        let pages =
            entries.clone().map(|(index, (digest, count))| (*digest, (*count, index))).collect();
        let used = entries.map(|(index, (digest, _))| (index, *digest)).collect();
        Self { pages, used, count_max, capacity }
    }

    /// Does the operation and holds the core's answer against it: verdict, count, index.
    ///
    /// # Panics
    /// Where the answer is another one.
    pub fn check(&mut self, op: Op, digest: &Digest, answer: &Answer) {
        assert_eq!(answer.digest, *digest, "an answer is to its own instruction");
        let is_pinned = |count| count == self.count_max;
        let (verdict, count) = match (op, self.pages.get(digest).map(|page| page.0)) {
            (Op::Write, None) if self.used.len() as u32 == self.capacity => (Verdict::Full, 0),
            (Op::Write, None) => (Verdict::New, 1),
            (Op::Write, Some(count)) if is_pinned(count) => (Verdict::Shared, count),
            (Op::Write, Some(count)) => (Verdict::Shared, count + 1),
            (Op::Erase, Some(count)) if is_pinned(count) => (Verdict::Shared, count),
            (Op::Erase, Some(1)) => (Verdict::Erased, 0),
            (Op::Erase, Some(count)) => (Verdict::Shared, count - 1),
            (Op::Read, Some(count)) => (Verdict::Found, count),
            (Op::Erase | Op::Read, None) => (Verdict::Absent, 0),
            (Op::Nop, _) => panic!("a nop has no answer"),
        };
        assert_eq!((answer.verdict, answer.count), (verdict, count), "{op:?} of {digest:02x?}");
        match verdict {
            Verdict::New => {
                let before = self.used.insert(answer.index, *digest);
                assert_eq!(before, None, "index {} was free", answer.index);
                assert!(answer.index < self.capacity, "index {} is there", answer.index);
                self.pages.insert(*digest, (1, answer.index));
            }
            Verdict::Shared | Verdict::Found | Verdict::Erased => {
                let page = self.pages.get_mut(digest).unwrap_or_else(|| panic!("it was there"));
                assert_eq!(answer.index, page.1, "the page keeps its index");
                page.0 = count;
            }
            Verdict::Absent | Verdict::Full => {}
        }
        if verdict == Verdict::Erased {
            self.pages.remove(digest);
            self.used.remove(&answer.index);
        }
    }

    /// All pages: digest, count, index, in no order.
    pub fn pages(&self) -> impl Iterator<Item = (Digest, u32, u32)> + '_ {
        self.pages.iter().map(|(digest, (count, index))| (*digest, *count, *index))
    }

    /// Indices that nobody has.
    pub fn free(&self) -> u32 {
        self.capacity - self.used.len() as u32
    }
}
