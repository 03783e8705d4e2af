//! The table of DedupCore's prototype: 32,768 buckets with a list and a Bloom filter each, filled
//! at random, and the requests of its experiments (section 5.1).

use crate::dice::Dice;

const BUCKETS: u64 = 32_768;
const ENTRIES_MEAN: u64 = 8;
const FILTER_BITS: u64 = 32;
const FILTER_FUNCTIONS: u32 = 3;

/// What a request wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To write a page that is there.
    WriteOld,
    /// To write a page that is not there.
    WriteNew,
    /// To erase a page.
    Erase,
}

/// One request, with what it meets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it wants.
    pub verb: Verb,
    /// Which bucket its page belongs to.
    pub bucket: u32,
    /// Entries of the list up to its own, or all of them.
    pub entries: u32,
    /// Whether the filter says that the page may be there.
    pub passes_filter: bool,
}

/// The buckets.
#[derive(Clone, Debug)]
pub struct Table {
    lengths: Vec<u32>,
    filters: Vec<u32>,
    /// The bucket of each page.
    pages: Vec<u32>,
    dice: Dice,
}

impl Table {
    /// Pages at random, in percent of what the prototype holds, less a number of pages.
    #[must_use]
    pub fn filled(percent: u64, free: u64, seed: u64) -> Self {
        let buckets = BUCKETS as usize;
        let mut table = Self {
            lengths: vec![0; buckets],
            filters: vec![0; buckets],
            pages: Vec::new(),
            dice: Dice::new(seed),
        };
        let pages = (BUCKETS * ENTRIES_MEAN * percent / 100).saturating_sub(free);
        for _ in 0..pages {
            table.insert_new();
        }
        table
    }

    /// A number of writes, each of a new page with this chance, in percent.
    pub fn writes(&mut self, count: u64, new_percent: u64) -> Vec<Request> {
        let mut write = |_| match self.dice.below(100) < new_percent {
            true => self.insert_new(),
            false => self.find_old(Verb::WriteOld),
        };
        (0..count).map(&mut write).collect()
    }

    /// A number of erases of pages that nobody else refers to.
    pub fn erases(&mut self, count: u64) -> Vec<Request> {
        (0..count).map(|_| self.find_old(Verb::Erase)).collect()
    }

    fn insert_new(&mut self) -> Request {
        let bucket = self.dice.below(BUCKETS) as u32;
        let place = bucket as usize;
        let bits =
            (0..FILTER_FUNCTIONS).fold(0, |bits, _| bits | 1 << self.dice.below(FILTER_BITS));
        let passes_filter = self.filters[place] & bits == bits;
        let request =
            Request { verb: Verb::WriteNew, bucket, entries: self.lengths[place], passes_filter };
        self.filters[place] |= bits;
        self.lengths[place] += 1;
        self.pages.push(bucket);
        request
    }

    fn find_old(&mut self, verb: Verb) -> Request {
        let page = self.dice.below(self.pages.len() as u64) as usize;
        let bucket = self.pages[page];
        let length = &mut self.lengths[bucket as usize];
        let entries = self.dice.below(u64::from(*length)) as u32 + 1;
        if verb == Verb::Erase {
            *length -= 1;
            self.pages.swap_remove(page);
        }
        Request { verb, bucket, entries, passes_filter: true }
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, Verb};
    use crate::dedupcore::bloom_false_percent_poisson;

    #[test]
    fn filters_take_as_many_new_pages_for_known_as_the_formula_says() {
        let mut table = Table::filled(100, 16_384, 1);
        let writes = table.writes(16_384, 100);
        let passed = writes.iter().filter(|request| request.passes_filter).count();
        let percent = 100.0 * passed as f64 / writes.len() as f64;
        assert!((percent - bloom_false_percent_poisson(8.0)).abs() < 1.5, "{percent}");
    }

    #[test]
    fn what_is_old_is_found_and_what_is_erased_is_gone() {
        let mut table = Table::filled(1, 0, 2);
        let pages = table.pages.len() as u64;
        let erases = table.erases(pages);
        assert!(erases.iter().all(|request| request.verb == Verb::Erase && request.entries > 0));
        assert!(table.lengths.iter().all(|&length| length == 0) && table.pages.is_empty());
    }
}
