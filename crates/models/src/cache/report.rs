//! The study as text: tables with aligned columns.

use std::fmt::{self, Display, Formatter};

use super::plan::CACHED_PERCENT;
use super::record::{Question, Record};
use super::study::Study;
use crate::columns::aligned;

impl Display for Study {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut workloads: Vec<&str> =
            self.hot_buckets.iter().map(|row| row.workload.as_str()).collect();
        workloads.dedup();
        for workload in workloads {
            let is_its = |run: &&Record| {
                let beside = matches!(run.question, Question::Fairness | Question::Sharing);
                run.workload == workload && !beside
            };
            let runs: Vec<&Record> = self.runs.iter().filter(is_its).collect();
            if runs.is_empty() {
                continue;
            }
            sizes(f, workload, &runs)?;
            costs(f, &runs)?;
            filters_in_runs(f, &runs)?;
            indexes(f, &runs)?;
        }
        self.fairness(f)?;
        self.sharing(f)?;
        self.filters(f)?;
        self.hot(f)
    }
}

/// Hits by cache size.
fn sizes(f: &mut Formatter<'_>, workload: &str, runs: &[&Record]) -> fmt::Result {
    let runs: Vec<&&Record> = of(runs, Question::Size);
    let Some(first) = runs.first() else { return Ok(()) };
    writeln!(
        f,
        "{workload}: {} writes, {} of new chunks. Look-ups that wanted a page of the Hash-PBN \
         table and found it in memory, %, by the room of the cache\n",
        first.writes, first.new_chunks
    )?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut heading = vec!["table".to_owned(), "policy".to_owned()];
    for run in runs {
        let is_next = rows.last().is_none_or(|row| row[0] != run.design || row[1] != run.policy);
        if is_next {
            rows.push(vec![run.design.to_owned(), run.policy.to_owned()]);
        }
        if rows.len() == 1 {
            heading.push(format!("{}%", run.cached_percent));
        }
        if let Some(row) = rows.last_mut() {
            row.push(format!("{:.1}", run.hit_percent));
        }
    }
    rows.insert(0, heading);
    aligned(f, 2, &rows)
}

/// Pages read and written at the usual size, with directories and without.
fn costs(f: &mut Formatter<'_>, runs: &[&Record]) -> fmt::Result {
    writeln!(
        f,
        "The same at {CACHED_PERCENT}%. Unread: look-ups that read nothing, % of all. Pages of \
         the Hash-PBN table and, after the bar, of all tables\n"
    )?;
    let heading = [
        "table",
        "policy",
        "directories",
        "hits",
        "unread",
        "read/write",
        "written/new",
        "to come/new",
        "|",
        "read/write",
        "written/write",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let usual = runs.iter().filter(|run| run.cached_percent == CACHED_PERCENT);
    for run in usual.filter(|run| matches!(run.question, Question::Size | Question::Locality)) {
        let mut row = vec![run.design.to_owned(), run.policy.to_owned()];
        row.push(if run.locality { "brought in" } else { "" }.to_owned());
        row.extend([run.hit_percent, run.unread_percent].map(|percent| format!("{percent:.1}")));
        let hash =
            [run.hash_reads_per_write, run.hash_writes_per_new, run.hash_writes_to_come_per_new];
        row.extend(hash.map(|pages| format!("{pages:.3}")));
        row.push("|".to_owned());
        let all = [run.all_reads_per_write, run.all_writes_per_write];
        row.extend(all.map(|pages| format!("{pages:.3}")));
        rows.push(row);
    }
    aligned(f, 3, &rows)
}

fn filters_in_runs(f: &mut Formatter<'_>, runs: &[&Record]) -> fmt::Result {
    writeln!(f, "Filters at {CACHED_PERCENT}%, lru. Wrong: new chunks that wanted a page, %\n")?;
    let heading = ["table", "bits", "wrong", "unread", "read/write", "written/new"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for run in of(runs, Question::Filter) {
        let mut row = vec![run.design.to_owned(), run.filter_bits.to_string()];
        row.push(format!("{:.2}", run.filter_wrong_percent));
        row.push(format!("{:.1}", run.unread_percent));
        row.extend(
            [run.hash_reads_per_write, run.hash_writes_per_new].map(|pages| format!("{pages:.3}")),
        );
        rows.push(row);
    }
    aligned(f, 1, &rows)
}

fn indexes(f: &mut Formatter<'_>, runs: &[&Record]) -> fmt::Result {
    writeln!(
        f,
        "The index of young entries at {CACHED_PERCENT}%, lru, by its share of the cache\n"
    )?;
    let heading = ["index", "hits", "unread", "read/write", "written/new", "| read/write, all"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for run in of(runs, Question::Index) {
        let mut row = vec![format!("{}%", run.index_percent)];
        row.extend([run.hit_percent, run.unread_percent].map(|percent| format!("{percent:.1}")));
        let pages = [run.hash_reads_per_write, run.hash_writes_per_new, run.all_reads_per_write];
        row.extend(pages.map(|pages| format!("{pages:.3}")));
        rows.push(row);
    }
    aligned(f, 0, &rows)
}

impl Study {
    fn fairness(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let runs: Vec<&Record> = self.runs.iter().collect();
        let runs = of(&runs, Question::Fairness);
        let Some(first) = runs.first() else { return Ok(()) };
        writeln!(
            f,
            "{} with a neighbour on the same cache, of twice {CACHED_PERCENT}% of its own tables, \
             request by request in turn: its own hits, %\n",
            first.workload
        )?;
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut heading = vec!["table".to_owned(), "policy".to_owned()];
        let is_like_first =
            |run: &&&&Record| run.design == first.design && run.policy == first.policy;
        heading.extend(runs.iter().filter(is_like_first).map(|run| run.beside.to_owned()));
        for run in runs {
            let named = |row: &&mut Vec<String>| row[0] == run.design && row[1] == run.policy;
            let hits = format!("{:.1}", run.hit_percent);
            match rows.iter_mut().find(named) {
                Some(row) => row.push(hits),
                None => rows.push(vec![run.design.to_owned(), run.policy.to_owned(), hits]),
            }
        }
        rows.insert(0, heading);
        aligned(f, 2, &rows)
    }

    fn sharing(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let runs: Vec<&Record> = self.runs.iter().collect();
        let runs = of(&runs, Question::Sharing);
        let Some(first) = runs.first() else { return Ok(()) };
        writeln!(
            f,
            "Ways to share the room between the three tables, {}, {}: own hits in the Hash-PBN \
             table, %; pages read / 100 writes, by table and in all; pages written / 100 writes\n",
            first.design, first.policy
        )?;
        let heading = [
            "workload", "beside", "room", "sharing", "hits", "hash", "pba", "map", "read",
            "written",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for run in runs {
            let mut row = vec![run.workload.clone(), run.beside.to_owned()];
            row.push(format!("{}%", run.cached_percent));
            row.push(run.sharing.to_owned());
            row.push(format!("{:.2}", run.hit_percent));
            let pages = [
                run.hash_reads_per_write,
                run.pba_reads_per_write,
                run.map_reads_per_write,
                run.all_reads_per_write,
                run.all_writes_per_write,
            ];
            row.extend(pages.map(|pages| format!("{:.2}", 100.0 * pages)));
            rows.push(row);
        }
        aligned(f, 4, &rows)
    }

    fn filters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Filters of blocks, by trial, and formulas: fingerprints not stored, % wrong\n"
        )?;
        let heading = [
            "bits",
            "hashes",
            "measured",
            "blocked (formula)",
            "Bloom (formula)",
            "xor (formula)",
            "ribbon (formula)",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for filter in &self.filters {
            let mut row = vec![filter.bits.to_string(), filter.hashes.to_string()];
            let percents = [
                filter.measured_percent,
                filter.blocked_formula_percent,
                filter.bloom_formula_percent,
                filter.xor_formula_percent,
                filter.ribbon_formula_percent,
            ];
            row.extend(percents.map(|percent| format!("{percent:.3}")));
            rows.push(row);
        }
        aligned(f, 0, &rows)
    }

    fn hot(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Hot buckets of the plain table: % of the look-ups in the hottest\n")?;
        let heading =
            ["workload", "buckets", "1%: all", "10%: all", "1%: duplicates", "10%: duplicates"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for hot in &self.hot_buckets {
            let mut row = vec![hot.workload.clone(), hot.buckets.to_string()];
            let percents = [
                hot.hottest_1_percent,
                hot.hottest_10_percent,
                hot.duplicates_1_percent,
                hot.duplicates_10_percent,
            ];
            row.extend(percents.map(|percent| format!("{percent:.1}")));
            rows.push(row);
        }
        aligned(f, 1, &rows)
    }
}

fn of<'a, 'b>(runs: &'a [&'b Record], question: Question) -> Vec<&'a &'b Record> {
    runs.iter().filter(|run| run.question == question).collect()
}
