//! `tamis stats`: what a store holds, what was saved on the way down, and what it costs.

mod accelerator;
mod caches;
mod stages;
mod tables;

use admin::{CacheShown, ListCaches};
use engine::control::GetStats;
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Counters, ReadCacheFigures, RequestError, Stats, VolumeInfo, VolumeWeight};
use serde::Serialize;

use crate::args::StatsArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::scrub_record::ScrubRecord;
use crate::size::{counted, human_bytes, human_count};
use crate::table::{Align, Table, wrapped};
use crate::weighing::weigh;

/// Between the two looks that rates are made from.
const RATE_INTERVAL: Duration = Duration::from_millis(500);

/// What `--json` prints.
#[derive(Debug, Default, Serialize)]
struct Report {
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    stats: Stats,
    /// Whether the store is being served.
    served: bool,
    /// Of the last half second, when it is.
    rates: Option<Rates>,
    /// Buckets that are served as caches.
    caches: Vec<CacheShown>,
    /// What each volume and snapshot weighs, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<NamedWeight>>,
}

/// What a volume or snapshot weighs.
#[derive(Debug, Serialize)]
struct NamedWeight {
    name: String,
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    weight: VolumeWeight,
}

/// What clients do now, by the second.
#[derive(Debug, PartialEq, Serialize)]
struct Rates {
    reads_per_second: f64,
    writes_per_second: f64,
    read_bytes_per_second: f64,
    written_bytes_per_second: f64,
    device_written_bytes_per_second: f64,
}

pub(super) fn run(args: &StatsArgs) -> Result<(), CliError> {
    let report = Store::with(&args.store, |store| {
        let weights = if args.volumes { Some(weigh_all(store)?) } else { None };
        Ok(Report { weights, ..look(store)? })
    })?;
    if args.format.json {
        output::print_json(&report)?;
    } else {
        output::print(text(&report, args.all))?;
        if let Some(lost) = lost(&report.stats, &ScrubRecord::load(&args.store)) {
            output::print_line("")?;
            output::print_problem(lost)?;
        }
        if let Some(weights) = &report.weights {
            output::print_line("")?;
            output::print_table(&table_of(weights))?;
        }
    }
    warn(args, &report.stats)
}

/// What nobody can read any more, as far as that is known. Chunks that a repair abandoned are lost
/// as long as something maps them, which a scrub finds out.
fn lost(stats: &Stats, record: &ScrubRecord) -> Option<String> {
    let given_up = stats.given_up_chunks;
    if given_up == 0 {
        return None;
    }
    match record.last.as_ref().filter(|last| last.given_up_chunks == given_up) {
        None => Some(format!(
            "a repair has abandoned {}: `tamis scrub` says what is lost with that",
            counted(given_up, "chunk")
        )),
        Some(last) => match last.lost_chunks() {
            0 => None,
            lost => Some(format!(
                "lost: {} when last scrubbed; `tamis scrub` says which",
                counted(lost, "chunk")
            )),
        },
    }
}

/// Fails when more is used than `--warn` says.
fn warn(args: &StatsArgs, stats: &Stats) -> Result<(), CliError> {
    let percents = [stats.data_used_ratio, stats.tables_used_ratio].map(|ratio| ratio * 100.0);
    let [data_percent, tables_percent] = percents.map(|percent| percent as u64);
    match args.warn {
        Some(warn) if percents.iter().any(|percent| *percent >= f64::from(warn)) => {
            Err(CliError::NearlyFull { store: args.store.clone(), data_percent, tables_percent })
        }
        _ => Ok(()),
    }
}

/// Those that are deleted meanwhile are left out.
fn weigh_all(store: &Store) -> Result<Vec<NamedWeight>, CliError> {
    let interrupt = Interrupt::listen()?;
    let mut weights = Vec::new();
    for VolumeInfo { name, .. } in store.volumes()? {
        match weigh(store, &name, &interrupt) {
            Ok(weight) => weights.push(NamedWeight { name, weight }),
            Err(error) if store.volumes()?.iter().any(|volume| volume.name == name) => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    Ok(weights)
}

fn table_of(weights: &[NamedWeight]) -> Table {
    let mut table = Table::with_heading([
        ("VOLUME", Align::Left),
        ("MAPPED", Align::Right),
        ("UNIQUE", Align::Right),
        ("SHARED", Align::Right),
        ("FREED BY DELETION", Align::Right),
        ("COMPRESSION", Align::Right),
    ]);
    for NamedWeight { name, weight } in weights {
        table.row([
            name.clone(),
            human_bytes(weight.mapped_bytes),
            human_bytes(weight.unique.frame_bytes),
            human_bytes(weight.shared.frame_bytes),
            human_bytes(weight.given_back.frame_bytes),
            format!("{:.2}x", weight.compression_ratio),
        ]);
    }
    table
}

fn look(store: &Store) -> Result<Report, CliError> {
    let first = store.ask(GetStats {})?;
    if !store.is_served() {
        return Ok(Report { stats: first, ..Report::default() });
    }
    let started = Instant::now();
    thread::sleep(RATE_INTERVAL);
    let stats = store.ask(GetStats {})?;
    let rates = Rates::between(&first, &stats, started.elapsed());
    let caches = store.ask(ListCaches {})?;
    Ok(Report { stats, served: true, rates: Some(rates), caches, weights: None })
}

impl Rates {
    fn between(first: &Stats, second: &Stats, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rate = |of: fn(&Stats) -> u64| of(second).saturating_sub(of(first)) as f64 / seconds;
        Self {
            reads_per_second: rate(|s| s.counters.reads),
            writes_per_second: rate(|s| s.counters.writes),
            read_bytes_per_second: rate(|s| s.counters.bytes_read),
            written_bytes_per_second: rate(|s| s.counters.bytes_written),
            device_written_bytes_per_second: rate(|s| s.written.device_bytes),
        }
    }
}

/// What fits one screen; with `all` what a server has counted since it opened the store as well.
fn text(report: &Report, all: bool) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if let Some(reason) = &report.stats.writing_stopped {
        // A store that was opened to be read has nothing wrong with it.
        let stopped = match *reason == RequestError::StoreReadOnly.to_string() {
            true => format!("read-only: {reason}"),
            false => format!("writing has stopped, reads go on: {reason}"),
        };
        let _ = write!(text, "{}\n\n", wrapped(&stopped));
    }
    let _ = write!(text, "{}\n{}", reduction(&report.stats), room(report));
    if let Some(rates) = &report.rates {
        let _ = write!(text, "\n{}", traffic(rates));
        if let Some(caches) = caches::table(&report.caches) {
            let _ = write!(text, "\n{caches}");
        }
        if all {
            text.push_str(&since_opened(&report.stats));
        } else {
            text.push_str("\n--all shows tables, caches, and what was written, too\n");
        }
    }
    text
}

/// What a server has counted since it opened the store.
fn since_opened(stats: &Stats) -> String {
    let mut text = String::new();
    if stats.verify {
        let _ = write!(text, "\n{}", compared(&stats.counters));
    }
    let _ = write!(text, "\n{}", tables::tables(&stats.tables));
    let _ = write!(text, "\n{}\n{}", cached(&stats.read_cache), written(stats));
    if let Some(figures) = &stats.accelerator {
        let _ = write!(text, "\n{}", accelerator::table(figures));
    }
    if let Some(table) = stages::table(stats) {
        let _ = write!(text, "\n{table}");
    }
    text
}

/// The way down: what clients see, what is left after each step.
fn reduction(stats: &Stats) -> Table {
    let chunk = human_bytes(u64::from(stats.chunk_bytes));
    let mut table = Table::plain([Align::Left, Align::Right, Align::Right, Align::Left]);
    table.row([
        "mapped by volumes".into(),
        human_bytes(stats.logical_bytes),
        String::new(),
        mapped_by(stats),
    ]);
    if stats.snapshot_bytes > 0 {
        let snapshots = counted(count_snapshots(stats) as u64, "snapshot");
        table.row([
            "by snapshots".into(),
            human_bytes(stats.snapshot_bytes),
            String::new(),
            format!("{snapshots}, each counted whole"),
        ]);
    }
    table.row([
        "after deduplication".into(),
        human_bytes(stats.unique_bytes),
        ratio(stats.dedup_ratio),
        format!("{} of {chunk}", counted(stats.unique_chunks, "unique chunk")),
    ]);
    table.row([
        "after compression".into(),
        human_bytes(stats.stored_bytes),
        ratio(stats.compression_ratio),
        stats.compression.clone(),
    ]);
    table.row([
        "reduction in all".into(),
        String::new(),
        ratio(stats.reduction_ratio),
        String::new(),
    ]);
    table
}

/// `2 volumes, 1 domain of its own`.
fn mapped_by(stats: &Stats) -> String {
    let volumes = counted((stats.volumes.len() - count_snapshots(stats)) as u64, "volume");
    match stats.domains {
        0 => volumes,
        1 => format!("{volumes}, 1 domain of its own"),
        count => format!("{volumes}, {} of their own", counted(count, "domain")),
    }
}

fn count_snapshots(stats: &Stats) -> usize {
    stats.volumes.iter().filter(|volume| volume.name.contains('@')).count()
}

/// Where the device's room and the memory go.
fn room(Report { stats, served, .. }: &Report) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, bytes: u64, note: String| {
        table.row([name.to_owned(), human_bytes(bytes), note]);
    };
    let capacity = human_bytes(stats.capacity_bytes);
    // As `--warn` counts: 80% is said when it is reached.
    let used = |ratio: f64| format!("{}% used", (ratio * 100.0) as u64);
    let data_used = used(stats.data_used_ratio);
    row("free", stats.free_bytes, format!("of {capacity} for data, {data_used}"));
    if stats.promised_bytes > 0 {
        row("reserved", stats.promised_bytes, "for volumes, at worst, beside what is free".into());
    }
    // In a small store, or a full one, what is kept explains why writes find nothing.
    if stats.kept_bytes * 10 >= stats.free_bytes {
        row("kept", stats.kept_bytes, "for collection, beside what is free".into());
    }
    let collectable = human_bytes(stats.collectable_bytes);
    let garbage = format!("overwritten or deleted; collection would reclaim {collectable}");
    row("garbage", stats.dead_bytes, garbage);
    if stats.copied_chunks > 0 {
        let chunks = counted(stats.copied_chunks, "chunk");
        row("second copies", stats.copy_bytes, format!("of {chunks} that many share"));
    }
    if stats.deletions > 0 {
        let way = match served {
            true => "on their way: room comes back in the background",
            false => "on their way: room comes back while the store is served",
        };
        table.row(["deletions".into(), human_count(stats.deletions), way.into()]);
    }
    if stats.deletions_held > 0 {
        let held = human_count(stats.deletions_held);
        let why = "deleted snapshots whose clones still use what they hold";
        table.row(["held".into(), held, why.into()]);
    }
    let mut row = |name: &str, bytes: u64, note: String| {
        table.row([name.to_owned(), human_bytes(bytes), note]);
    };
    row("tables", stats.table_bytes, used(stats.tables_used_ratio));
    row("journal", stats.journal_bytes, String::new());
    row("used", stats.device_bytes, "on the device: data, tables and journal".into());
    row("allocated", stats.allocated_bytes, "what its files and devices take there".into());
    if stats.damaged_chunks > 0 {
        let damaged_bytes = stats.damaged_chunks * u64::from(stats.chunk_bytes);
        let chunks = human_count(stats.damaged_chunks);
        row("damaged", damaged_bytes, format!("{chunks} chunks; `tamis scrub` says which"));
    }
    // That of this command would say nothing of any server's.
    if *served {
        let bound = human_bytes(stats.memory_bytes_max);
        row("memory", stats.memory_bytes, format!("of {bound} allowed"));
    }
    let compared = if stats.verify { ", and bytes are compared" } else { "" };
    let fingerprint = format!("{}{compared}", stats.fingerprint);
    table.row(["fingerprint".into(), String::new(), fingerprint]);
    table.row(["store".into(), String::new(), format!("UUID {}", stats.uuid)]);
    table
}

/// What look-ups came to since the store was opened, where bytes are compared.
fn compared(counters: &Counters) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, chunks: u64, note: &str| {
        table.row([name.to_owned(), human_count(chunks), note.to_owned()]);
    };
    row("new chunks", counters.lookups_denied, "denied by the filter or the index");
    row("new chunks", counters.lookups_absent, "not in the table, which was looked into");
    row("other bytes", counters.lookups_differ, "under the fingerprint of a stored chunk");
    row("same bytes", counters.lookups_equal, "duplicates");
    row(
        "unindexed",
        counters.chunks_unindexed,
        "new chunks without an entry in the Hash-PBN table",
    );
    let read = human_bytes(counters.comparison_bytes_read);
    let read = format!("from the device to compare: {read}");
    row("chunks read", counters.chunks_read_to_compare, &read);
    row("reads", counters.comparison_reads, "by which they came");
    table
}

/// What was read and is in memory, and what that spared since the store was opened.
fn cached(cache: &ReadCacheFigures) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let frames = format!(
        "of {}, {} chunks as they are stored",
        human_bytes(cache.bytes_max),
        human_count(cache.frames)
    );
    table.row(["read cache".into(), human_bytes(cache.bytes), frames]);
    let share = format!("{:.0}% of the chunks that were read", cache.hit_ratio * 100.0);
    table.row(["hits".into(), human_count(cache.hits + cache.hits_ahead), share]);
    if cache.ahead_read_bytes > 0 {
        let used = format!("{} of it were needed", human_bytes(cache.ahead_used_bytes));
        table.row(["read ahead".into(), human_bytes(cache.ahead_read_bytes), used]);
    }
    table
}

/// What became of what clients wrote since the store was opened, and what it cost the device.
fn written(stats: &Stats) -> Table {
    let written = &stats.written;
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, bytes: u64, note: &str| {
        table.row([name.to_owned(), human_bytes(bytes), note.to_owned()]);
    };
    row("clients wrote", written.client_bytes, "since the store was opened");
    row("duplicate", written.duplicate_bytes, "stored already");
    row("dropped", written.dropped_bytes, "zeros, or written over at once");
    if stats.counters.lookups_skipped > 0 {
        let chunks = stats.counters.lookups_skipped;
        let note = format!("{} chunks of volumes with --dedup off or auto", human_count(chunks));
        row("not looked up", chunks * u64::from(stats.chunk_bytes), &note);
    }
    let frames = match stats.counters.chunks_spared {
        0 => "to the device".to_owned(),
        chunks => {
            format!("to the device; {} chunks not compressed, like noise", human_count(chunks))
        }
    };
    row("new frames", written.new_frame_bytes, &frames);
    row("moved frames", written.moved_frame_bytes, "by collection");
    if written.copied_frame_bytes > 0 {
        row("second copies", written.copied_frame_bytes, "of chunks that many share");
    }
    row("containers", written.container_bytes, "directories and padding");
    row("tables", written.table_bytes, "");
    row("journal", written.journal_bytes, "");
    row("superblock", written.superblock_bytes, "");
    let times = match written.client_bytes {
        0 => String::new(),
        _ => format!("{} of what clients wrote", ratio(Some(written.amplification))),
    };
    row("device wrote", written.device_bytes, &times);
    table
}

fn traffic(rates: &Rates) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Right]);
    let per_second = |bytes: f64| format!("{}/s", human_bytes(bytes as u64));
    let times = |count: f64| format!("{} requests/s", human_count(count as u64));
    table.row([
        "reading".into(),
        per_second(rates.read_bytes_per_second),
        times(rates.reads_per_second),
    ]);
    table.row([
        "writing".into(),
        per_second(rates.written_bytes_per_second),
        times(rates.writes_per_second),
    ]);
    let to_device = per_second(rates.device_written_bytes_per_second);
    table.row(["to the device".into(), to_device, String::new()]);
    table
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}x"))
}

#[cfg(test)]
mod tests;
