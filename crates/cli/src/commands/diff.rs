//! `tamis diff`: where two versions differ, on a store that is closed and on one that is being
//! served alike.

use engine::ChangedRange;
use serde::Serialize;

use crate::args::DiffArgs;
use crate::control::Store;
use crate::difference::Difference;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    from: &'a str,
    to: &'a str,
    from_size_bytes: u64,
    to_size_bytes: u64,
    chunk_bytes: u32,
    /// Of the ranges, those that hold other data in the second.
    written_bytes: u64,
    /// Those that hold nothing there.
    unmapped_bytes: u64,
    #[serde(serialize_with = "admin::json::serialize")]
    ranges: &'a [ChangedRange],
}

pub(super) fn run(args: &DiffArgs) -> Result<(), CliError> {
    let interrupt = Interrupt::listen()?;
    let found = Store::with(&args.store, |store| {
        for name in [&args.from, &args.to] {
            store.volume(&args.store, name)?;
        }
        Difference::between(&args.from, &args.to, &interrupt, |step| store.ask(step))
    })?;
    let [from_size_bytes, to_size_bytes] = found.sizes_bytes;
    let report = Report {
        from: &args.from,
        to: &args.to,
        from_size_bytes,
        to_size_bytes,
        chunk_bytes: found.chunk_bytes,
        written_bytes: found.bytes(false),
        unmapped_bytes: found.bytes(true),
        ranges: &found.ranges,
    };
    if args.format.json {
        return output::print_json(&report);
    }
    if !found.ranges.is_empty() {
        output::print_table(&table_of(&found.ranges))?;
    }
    output::print_line(sentence(&report))
}

fn table_of(ranges: &[ChangedRange]) -> Table {
    let mut table = Table::with_heading([
        ("OFFSET", Align::Right),
        ("LENGTH", Align::Right),
        ("CHANGE", Align::Left),
    ]);
    for range in ranges {
        let change = if range.unmapped { "unmapped" } else { "written" };
        let (offset, length) = (range.offset_bytes.to_string(), range.length_bytes.to_string());
        table.row([offset, length, change.to_owned()]);
    }
    table
}

fn sentence(report: &Report<'_>) -> String {
    let Report { from, to, from_size_bytes, to_size_bytes, .. } = report;
    let sizes = match from_size_bytes == to_size_bytes {
        true => String::new(),
        false => {
            format!("; {} became {}", human_bytes(*from_size_bytes), human_bytes(*to_size_bytes))
        }
    };
    match report.ranges.len() {
        0 => format!("{from} and {to} hold the same{sizes}"),
        count => format!(
            "{} {} from {from} to {to}: {} written, {} unmapped{sizes}",
            human_count(count as u64),
            if count == 1 { "range differs" } else { "ranges differ" },
            human_bytes(report.written_bytes),
            human_bytes(report.unmapped_bytes),
        ),
    }
}
