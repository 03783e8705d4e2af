//! What a replay measured, for people.

use std::fmt::Write;
use std::time::Duration;

use engine::TableFigures;

use super::figures::{ComparedFigures, Run};
use crate::progress::human_duration;
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// All of one run.
pub(super) fn run_text(source: &str, run: &Run) -> String {
    let mut text = format!("{source}\n\n{}\n{}", summary(run), tables(run));
    let skipped = skipped_words(run);
    if !skipped.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{skipped}");
    }
    text
}

/// One line for each chunk size.
pub(super) fn runs_text(source: &str, runs: &[Run]) -> String {
    let mut table = Table::with_heading([
        ("CHUNKS", Align::Right),
        ("DUPLICATE", Align::Right),
        ("LOST", Align::Right),
        ("READ BACK", Align::Right),
        ("NEW", Align::Right),
        ("AMPLIFICATION", Align::Right),
        ("TO THE FIRST", Align::Right),
        ("TO THE DEVICE", Align::Right),
        ("SPEED", Align::Right),
    ]);
    let Some(first) = runs.first() else { return String::new() };
    for run in runs {
        let rmw = &run.read_modify_write;
        let first_amplification = first.read_modify_write.amplification.max(1e-9);
        table.row([
            human_bytes(u64::from(run.chunk_bytes)),
            percent(run.saved_share()),
            percent((first.saved_share() - run.saved_share()).max(0.0)),
            human_bytes(rmw.read_back_bytes),
            human_bytes(rmw.unique_bytes),
            format!("{:.2}x", rmw.amplification),
            format!("{:.1}x", rmw.amplification / first_amplification),
            human_bytes(run.written.device_bytes),
            speed(run),
        ]);
    }
    format!(
        "{source}\n\n{table}\n\
         duplicate is the part of what was written that the store did not keep again,\n\
         zeros and what was written over at once included; amplification is what was read\n\
         back and what was new by what was written, before compression\n"
    )
}

impl Run {
    /// Part of what was written that was not stored anew.
    fn saved_share(&self) -> f64 {
        let written = self.written.client_bytes.max(1) as f64;
        (1.0 - self.read_modify_write.unique_bytes as f64 / written).max(0.0)
    }
}

fn summary(run: &Run) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, figure: String, note: String| {
        table.row([name.to_owned(), figure, note]);
    };
    row("written", human_bytes(run.written_bytes), format!("{} writes", human_count(run.writes)));
    let saved = run.saved_percent.map_or_else(String::new, |percent| format!("{percent}% saved"));
    row("stored", human_bytes(run.stored_bytes), saved);
    if run.reads > 0 {
        row("read", human_bytes(run.read_bytes), format!("{} reads", human_count(run.reads)));
    }
    let took = human_duration(Duration::from_secs_f64(run.seconds));
    let chunks = human_count(run.chunks_per_second as u64);
    row("took", took, format!("{}, {chunks} chunks/s", speed(run)));
    row(
        "processor time",
        us(run.core_ns_per_chunk),
        format!(
            "a chunk on the core's thread; workers {}, this thread {}",
            us(run.workers_ns_per_chunk),
            us(run.client_ns_per_chunk)
        ),
    );
    duplicates(run, &mut row);
    let cached = percent(run.cached_share);
    row("tables", human_bytes(run.table_bytes), format!("room in the cache for {cached} of them"));
    let per = &run.per_unique_chunk;
    row(
        "a new chunk costs",
        human_bytes(per.table_bytes_written as u64),
        format!(
            "of tables on the device, {:.3} page reads, {:.3} page writes and {:.3} to come, {} of \
             journal",
            per.page_reads,
            per.page_writes,
            per.pages_yet_to_write,
            human_bytes(per.journal_bytes_written as u64)
        ),
    );
    if let Some(bytes) = run.resident_bytes {
        row("memory", human_bytes(bytes), "of this process".to_owned());
    }
    table
}

fn duplicates(run: &Run, row: &mut impl FnMut(&str, String, String)) {
    let found = &run.duplicates;
    let mut note = match found.share_of_source {
        Some(share) => format!("of the chunks looked up; {} of the source", percent(share)),
        None => "of the chunks looked up".to_owned(),
    };
    if found.chunks_zero + found.chunks_absorbed > 0 {
        let [zero, absorbed] = [found.chunks_zero, found.chunks_absorbed].map(human_count);
        let _ = write!(note, "; {zero} zeros, {absorbed} written over at once");
    }
    row("duplicate", percent(found.share), note);
    let stored = match found.store_is_new {
        true => "different chunks are stored",
        false => "different chunks are stored, those of other volumes too",
    };
    let judged = match found.unique_written {
        Some(written) => format!("{stored}; {} are in the source", human_count(written)),
        None => format!("{stored}; how many are in the source is not known"),
    };
    row("unique", human_count(found.unique_stored), judged);
    for (name, compared) in [("compared", Some(&run.compared)), ("verified", run.verified.as_ref())]
    {
        if let Some(ComparedFigures { right_bytes, wrong_bytes, .. }) = compared
            && right_bytes + wrong_bytes > 0
        {
            let wrong = human_bytes(*wrong_bytes);
            row(name, human_bytes(*right_bytes), format!("came back as written, {wrong} did not"));
        }
    }
}

fn tables(run: &Run) -> Table {
    let mut table = Table::with_heading([
        ("TABLE", Align::Left),
        ("LOOKUPS", Align::Right),
        ("HITS", Align::Right),
        ("PAGES READ", Align::Right),
        ("ABOVE", Align::Right),
        ("WRITTEN", Align::Right),
    ]);
    let tables = &run.tables;
    for (name, figures) in [
        ("Hash-PBN", &tables.hash_pbn),
        ("PBN-PBA", &tables.pbn_pba),
        ("maps", &tables.maps),
        ("others", &tables.others),
    ] {
        let TableFigures { lookups, leaf_reads, inner_reads, page_writes, hit_ratio, .. } = figures;
        let hits = if *lookups == 0 { String::new() } else { percent(*hit_ratio) };
        let [lookups, leaf_reads, inner_reads, page_writes] =
            [lookups, leaf_reads, inner_reads, page_writes].map(|count| human_count(*count));
        table.row([name.to_owned(), lookups, hits, leaf_reads, inner_reads, page_writes]);
    }
    table
}

fn skipped_words(run: &Run) -> String {
    let skipped = &run.skipped;
    let mut text = String::new();
    let mut line = |count: u64, words: String| {
        if count > 0 {
            let _ = writeln!(text, "{} {words}", human_count(count));
        }
    };
    let first = match (&skipped.first_bad_line, &skipped.first_bad_reason) {
        (Some(line), Some(reason)) => format!("; the first is line {line}: {reason}"),
        _ => String::new(),
    };
    line(skipped.bad_lines, format!("lines are no requests{first}"));
    line(skipped.tar_lines, "lines are of tar".to_owned());
    line(skipped.beyond, "requests lie beyond 1 PiB".to_owned());
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn us(ns: f64) -> String {
    format!("{:.2} us", ns / 1000.0)
}

fn speed(run: &Run) -> String {
    format!("{}/s", human_bytes(run.bytes_per_second as u64))
}
