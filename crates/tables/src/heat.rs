//! Heat: how concentrated the accesses to one table are, counted in bounded memory while they
//! happen.
//!
//! Two samples, since neither does alone:
//!
//! - **Few pages, every 7th of their accesses.** Which pages are counted follows from their
//!   numbers, one in a power of two (Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC
//!   construction with SHARDS", FAST 2015). So the shares among them are those among all, however
//!   many there are. A sample of accesses would not do: where each page is met once at most, all
//!   look alike.
//! - **Few accesses, whatever their page**: every 61st, the youngest 4,096 of them. A page that is
//!   hot by itself is nearly never one of the first sample, and cannot be missed here.
//!
//! Primes, so that no rhythm of a client's, which likes powers of two, hides its pages. Most
//! accesses cost two additions.
//!
//! Both forget: counts are halved now and then, and the second sample is a window. Nothing is by
//! chance and nothing depends on the order of a map: the same accesses give the same figures.

use std::hash::BuildHasherDefault;

use hashbrown::HashMap;

use crate::page_hasher::PageHasher;

/// Pages that are counted at most: some forty are the hottest hundredth of them, so that a share is
/// off by a few points.
const PAGES_MAX: usize = 4096;
/// One access of so many is counted if its page is.
const COUNTED_STEP: u64 = 7;
/// Counted accesses after which all counts are halved, where all pages are counted; twice as many
/// where half of them are, and so on.
const ACCESSES_MAX: u64 = 16 * PAGES_MAX as u64;
/// One access of so many is remembered.
const REMEMBERED_STEP: u64 = 61;
/// Accesses that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// A page that is met less often among those is not hot by itself.
const HOT_MIN: usize = 8;

/// A page that is hot by itself.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HotPage {
    /// As its counter numbers it.
    pub page: u64,
    /// Part of the accesses that went to it, 0 to 1.
    pub ratio: f64,
}

/// The accesses to one table.
#[derive(Default)]
pub struct Heat {
    counts: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    /// One page in two to the power of this is counted.
    scale: u32,
    /// Counted accesses since the counts were halved, those of pages that are not among them.
    young: u64,
    /// Accesses since the last that was counted.
    since_counted: u64,
    /// Every 61st access, in a ring.
    remembered: Vec<u64>,
    oldest: usize,
    /// Accesses since the last that was remembered.
    since_remembered: u64,
}

impl Heat {
    /// Counts `accesses` to a page, one after the other.
    pub fn count(&mut self, page: u64, accesses: u64) {
        self.since_counted += accesses;
        if self.since_counted >= COUNTED_STEP {
            let counted = self.since_counted / COUNTED_STEP;
            self.since_counted %= COUNTED_STEP;
            self.count_all(page, counted);
        }
        self.since_remembered += accesses;
        while self.since_remembered >= REMEMBERED_STEP {
            self.since_remembered -= REMEMBERED_STEP;
            self.remember(page);
        }
    }

    fn count_all(&mut self, page: u64, accesses: u64) {
        if self.is_counted(page) {
            let count = self.counts.entry(page).or_default();
            *count = count.saturating_add(u32::try_from(accesses).unwrap_or(u32::MAX));
            if self.counts.len() > PAGES_MAX {
                self.count_fewer();
            }
        }
        self.young += accesses;
        if self.young > ACCESSES_MAX << self.scale {
            self.halve();
        }
    }

    /// Pages that were accessed lately, by what is known of those that are counted.
    #[must_use]
    pub fn pages(&self) -> u64 {
        (self.counts.len() as u64) << self.scale
    }

    /// Part of the accesses, 0 to 1, that went to the hottest `percent` of the pages that were
    /// accessed lately; 0 when there were none. At least one page counts as hottest.
    #[must_use]
    pub fn share_of_hottest(&self, percent: u64) -> f64 {
        let hottest = (self.pages() * percent).div_ceil(100);
        // Of a few pages all are counted. Of many the hot ones may be among those that are not.
        let hot = if self.scale == 0 { Vec::new() } else { self.hot_pages() };
        let hot = &hot[..hot.len().min(hottest as usize)];
        let share: f64 = hot.iter().map(|page| page.ratio).sum();
        let is_hot = |page: u64| hot.iter().any(|hot| hot.page == page);
        let others = self.counts.iter().filter(|(page, _)| !is_hot(**page));
        let mut counts: Vec<u32> = others.map(|(_, &count)| count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let left = ((hottest - hot.len() as u64) >> self.scale) as usize;
        let sum = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>() as f64;
        let of_others = sum(&counts[..left.min(counts.len())]) / sum(&counts).max(1.0);
        share + (1.0 - share) * of_others
    }

    /// The hottest pages, hottest first, as far as they are hot by themselves.
    #[must_use]
    pub fn hottest(&self, pages_max: usize) -> Vec<HotPage> {
        let mut hot = self.hot_pages();
        hot.truncate(pages_max);
        hot
    }

    fn hot_pages(&self) -> Vec<HotPage> {
        let mut sorted = self.remembered.clone();
        sorted.sort_unstable();
        let runs = sorted.chunk_by(|one, other| one == other).filter(|run| run.len() >= HOT_MIN);
        let all = self.remembered.len() as f64;
        let ratio = |run: &[u64]| run.len() as f64 / all;
        let mut hot: Vec<HotPage> =
            runs.map(|run| HotPage { page: run[0], ratio: ratio(run) }).collect();
        // A stable sort: of equals the one with the lower number is first.
        hot.sort_by(|one, other| other.ratio.total_cmp(&one.ratio));
        hot
    }

    fn is_counted(&self, page: u64) -> bool {
        mixed(page) & ((1 << self.scale) - 1) == 0
    }

    /// Leaves half of the pages out from now on.
    fn count_fewer(&mut self) {
        self.scale += 1;
        let mask = (1 << self.scale) - 1;
        self.counts.retain(|&page, _| mixed(page) & mask == 0);
    }

    /// What was long ago counts less. Where few pages are left, more are counted from now on.
    fn halve(&mut self) {
        self.counts.retain(|_, count| {
            *count /= 2;
            *count > 0
        });
        self.young = 0;
        if self.counts.len() < PAGES_MAX / 4 {
            self.scale = self.scale.saturating_sub(1);
        }
    }

    fn remember(&mut self, page: u64) {
        if self.remembered.len() < REMEMBERED_MAX {
            self.remembered.push(page);
        } else {
            self.remembered[self.oldest] = page;
            self.oldest = (self.oldest + 1) % REMEMBERED_MAX;
        }
    }
}

/// Spreads the numbers of pages, neighbours too, over all bits.
fn mixed(page: u64) -> u64 {
    let page = (page ^ page >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    let page = (page ^ page >> 27).wrapping_mul(0x81da_def4_bc2d_d44d);
    page ^ page >> 33
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::vec;
    use proptest::proptest;

    use super::{COUNTED_STEP, Heat, PAGES_MAX, REMEMBERED_MAX, REMEMBERED_STEP, mixed};

    /// Part of the accesses that went to the hottest of the pages: a plain count of all.
    fn counted(accesses: &[(u64, u64)], percent: usize) -> f64 {
        let mut counts = BTreeMap::<u64, u64>::new();
        accesses.iter().for_each(|&(page, count)| *counts.entry(page).or_default() += count);
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hottest = (counts.len() * percent).div_ceil(100);
        counts[..hottest].iter().sum::<u64>() as f64 / counts.iter().sum::<u64>().max(1) as f64
    }

    /// Each `step`th of them.
    fn thinned(accesses: &[(u64, u64)], step: u64) -> Vec<(u64, u64)> {
        let each = accesses.iter().flat_map(|&(page, count)| (0..count).map(move |_| page));
        each.skip(step as usize - 1).step_by(step as usize).map(|page| (page, 1)).collect()
    }

    fn heat_of(accesses: &[(u64, u64)]) -> Heat {
        let mut heat = Heat::default();
        accesses.iter().for_each(|&(page, count)| heat.count(page, count));
        heat
    }

    fn assert_near(found: f64, expected: f64, off: f64, what: &str) {
        assert!((found - expected).abs() <= off, "{what}: {found}, counted {expected}");
    }

    proptest! {
        /// As long as all pages are counted, the figures are those of a plain count of every 7th.
        #[test]
        fn few_pages_are_counted_exactly(
            accesses in vec((0..900_u64, 1..60_u64), 0..3_000),
            percent in 1..100_usize,
        ) {
            let heat = heat_of(&accesses);
            let found = heat.share_of_hottest(percent as u64);
            let expected = counted(&thinned(&accesses, COUNTED_STEP), percent);
            assert_near(found, expected, 1e-9, "share");
        }

        /// Whatever comes, memory is bounded, and what is reported is part of what there was.
        #[test]
        fn no_accesses_break_it(
            accesses in vec((0..u64::MAX, 0..100_000_u64), 0..3_000),
            percent in 0..101_u64,
        ) {
            let heat = heat_of(&accesses);
            assert!(heat.counts.len() <= PAGES_MAX && heat.remembered.len() <= REMEMBERED_MAX);
            assert!((0.0..=1.0).contains(&heat.share_of_hottest(percent)));
            let hottest = heat.hottest(usize::MAX);
            assert!(hottest.iter().map(|page| page.ratio).sum::<f64>() < 1.0 + 1e-9);
            assert!(hottest.windows(2).all(|pair| pair[0].ratio >= pair[1].ratio));
        }
    }

    /// Pages by chance: `hot` of `pages`, evenly, gets `percent` of the accesses.
    fn skewed(accesses: u64, pages: u64, hot: u64, percent: u64) -> Vec<(u64, u64)> {
        let page = |number: u64| {
            let die = mixed(number.wrapping_mul(3) + 1);
            let place = mixed(number.wrapping_mul(5) + 2);
            if die % 100 < percent { place % hot } else { place % pages }
        };
        (0..accesses).map(|number| (page(number), 1)).collect()
    }

    #[test]
    fn of_many_pages_the_shares_are_nearly_those_of_a_plain_count() {
        for (hot, percent) in [(1, 0), (500, 50), (5_000, 80), (20, 60), (3, 40), (1, 20)] {
            let accesses = skewed(1_000_000, 50_000, hot, percent);
            let heat = heat_of(&accesses);
            let accesses = thinned(&accesses, COUNTED_STEP);
            let pages: BTreeSet<u64> = accesses.iter().map(|(page, _)| *page).collect();
            let pages = pages.len() as f64;
            assert_near(heat.pages() as f64, pages, pages / 10.0, "pages");
            for hottest in [1, 10] {
                let found = heat.share_of_hottest(hottest as u64);
                let expected = counted(&accesses, hottest);
                let what = format!("{hottest}% where {hot} get {percent}%");
                assert_near(found, expected, 0.1, &what);
            }
        }
    }

    #[test]
    fn a_page_that_is_hot_by_itself_is_named() {
        let mut accesses = skewed(1_000_000, 100_000, 1, 0);
        for (number, access) in accesses.iter_mut().enumerate() {
            match number % 97 {
                0..10 => access.0 = 4_711,
                10..13 => access.0 = 815,
                _ => {}
            }
        }
        let heat = heat_of(&accesses);
        let hottest = heat.hottest(5);
        assert_eq!(hottest.iter().map(|hot| hot.page).collect::<Vec<_>>(), [4_711, 815]);
        assert_near(hottest[0].ratio, 10.0 / 97.0, 0.015, "hottest");
        assert_near(hottest[1].ratio, 3.0 / 97.0, 0.01, "second");
        assert_eq!(heat.hottest(1).len(), 1);
        assert_near(heat.share_of_hottest(1), 13.0 / 97.0 + 0.01, 0.03, "share");
    }

    #[test]
    fn every_61st_access_is_remembered_however_they_are_counted() {
        let pages: Vec<u64> = (0..10_000).map(|number| mixed(number) % 50).collect();
        let accesses: Vec<(u64, u64)> = pages.into_iter().map(|page| (page, page % 7)).collect();
        let expected = thinned(&accesses, REMEMBERED_STEP);
        let expected: Vec<u64> = expected.into_iter().map(|(page, _)| page).collect();
        assert_eq!(heat_of(&accesses).remembered, expected);
    }

    #[test]
    fn what_was_hot_is_forgotten() {
        let mut heat = heat_of(&skewed(1_000_000, 300, 1, 90));
        assert!(heat.hottest(1)[0].ratio > 0.85 && heat.share_of_hottest(1) > 0.85);
        for (page, _) in skewed(5_000_000, 300, 1, 0) {
            heat.count(page + 1_000, 1);
        }
        assert!(heat.hottest(9).iter().all(|hot| hot.page >= 1_000 && hot.ratio < 0.02));
        assert!(heat.share_of_hottest(1) < 0.03 && heat.pages() <= 301);
    }

    #[test]
    fn when_many_pages_were_accessed_and_few_are_all_of_them_count_again() {
        let mut heat = heat_of(&skewed(500_000, 100_000, 1, 0));
        assert!(heat.scale > 3);
        for _ in 0..400 {
            skewed(100_000, 200, 1, 0).into_iter().for_each(|(page, _)| heat.count(page, 1));
        }
        assert_near(heat.pages() as f64, 200.0, 20.0, "pages");
    }
}
