//! One line of the study: what was run, and what it cost, as people and programs read it.

use serde::Serialize;

use super::run::{Figures, Setup};

/// Which question a run belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Cache size, policy and design.
    Size,
    /// Bits of the filter.
    Filter,
    /// Directories brought in or not.
    Locality,
    /// How much of the cache the index of young entries takes.
    Index,
    /// A second stream on the same cache.
    Fairness,
    /// How the three tables share the cache.
    Sharing,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Size, Self::Filter, Self::Locality, Self::Index, Self::Fairness, Self::Sharing];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Filter => "filter",
            Self::Locality => "locality",
            Self::Index => "index",
            Self::Fairness => "fairness",
            Self::Sharing => "sharing",
        }
    }
}

/// A run and its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// What it is to answer.
    pub question: Question,
    /// Which requests.
    pub workload: String,
    /// How the Hash-PBN table is built.
    pub design: &'static str,
    /// Of the cache.
    pub policy: &'static str,
    /// How the three tables share the cache.
    pub sharing: &'static str,
    /// Room of the cache by all pages of plain tables.
    pub cached_percent: f64,
    /// The same in pages.
    pub cache_pages: u64,
    /// Of the filter, for an entry.
    pub filter_bits: u64,
    /// Room of the index of young entries, by that of the cache.
    pub index_percent: u64,
    /// Whether directories are brought in.
    pub locality: bool,
    /// What runs beside it.
    pub beside: &'static str,
    /// Writes in all.
    pub writes: u64,
    /// New chunks in all.
    pub new_chunks: u64,
    /// Of the look-ups that wanted a page, those that found it in memory.
    pub hit_percent: f64,
    /// Of all look-ups, those that read nothing.
    pub unread_percent: f64,
    /// Of the look-ups of new chunks, those that wanted a page.
    pub filter_wrong_percent: f64,
    /// Pages of the Hash-PBN table read for each write.
    pub hash_reads_per_write: f64,
    /// Pages of the Hash-PBN table written for each new chunk.
    pub hash_writes_per_new: f64,
    /// Those that were still to be written at the end.
    pub hash_writes_to_come_per_new: f64,
    /// Pages of the PBN-PBA table read for each write.
    pub pba_reads_per_write: f64,
    /// Pages of the LBA-PBN map read for each write.
    pub map_reads_per_write: f64,
    /// Pages of all tables read for each write.
    pub all_reads_per_write: f64,
    /// Pages of all tables written for each write.
    pub all_writes_per_write: f64,
}

impl Record {
    pub(super) fn new(
        question: Question,
        workload: &str,
        beside: &'static str,
        setup: &Setup,
        figures: &Figures,
    ) -> Self {
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let percent = |part, whole| 100.0 * ratio(part, whole);
        let Figures { writes, new_chunks, lookups, hits, missed, .. } = *figures;
        Self {
            question,
            workload: workload.to_owned(),
            design: setup.design.name(),
            policy: setup.policy.name(),
            sharing: setup.sharing.name(),
            cached_percent: setup.cached_percent,
            cache_pages: figures.cache_pages,
            filter_bits: setup.filter_bits,
            index_percent: setup.index_percent,
            locality: setup.locality,
            beside,
            writes,
            new_chunks,
            hit_percent: percent(hits, hits + missed),
            unread_percent: percent(lookups - missed, lookups),
            filter_wrong_percent: percent(figures.filter_wrong, figures.lookups_new),
            hash_reads_per_write: ratio(figures.hash_reads, writes),
            hash_writes_per_new: ratio(figures.hash_writes, new_chunks),
            hash_writes_to_come_per_new: ratio(figures.hash_writes_to_come, new_chunks),
            pba_reads_per_write: ratio(figures.pba_reads, writes),
            map_reads_per_write: ratio(figures.map_reads, writes),
            all_reads_per_write: ratio(figures.all_reads, writes),
            all_writes_per_write: ratio(figures.all_writes, writes),
        }
    }

    /// The heading of the CSV form.
    pub const CSV_HEADING: &'static str = "question,workload,design,policy,sharing,\
        cached_percent,cache_pages,filter_bits,index_percent,locality,beside,writes,new_chunks,\
        hit_percent,unread_percent,filter_wrong_percent,hash_reads_per_write,hash_writes_per_new,\
        hash_writes_to_come_per_new,pba_reads_per_write,map_reads_per_write,all_reads_per_write,\
        all_writes_per_write";

    /// One line of CSV. No name has a comma in it; that of a trace loses them.
    #[must_use]
    pub fn csv(&self) -> String {
        let what = format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            self.question.name(),
            self.workload.replace(',', ""),
            self.design,
            self.policy,
            self.sharing,
            self.cached_percent,
            self.cache_pages,
            self.filter_bits,
            self.index_percent,
            self.locality,
            self.beside,
            self.writes,
            self.new_chunks,
        );
        let figures = [
            self.hit_percent,
            self.unread_percent,
            self.filter_wrong_percent,
            self.hash_reads_per_write,
            self.hash_writes_per_new,
            self.hash_writes_to_come_per_new,
            self.pba_reads_per_write,
            self.map_reads_per_write,
            self.all_reads_per_write,
            self.all_writes_per_write,
        ];
        figures.iter().fold(what, |line, figure| format!("{line},{figure:.5}"))
    }
}
