//! `tamis volume show`: what a volume or snapshot holds, what of it is its own, and what deleting
//! it would give back.

use engine::{Dedup, ReferenceClass, Tally, VolumeInfo, VolumeWeight};
use serde::Serialize;

use super::{Listed, by_name, with_origin};
use crate::args::VolumeShowArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};
use crate::weighing::weigh;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    listed: Listed,
    /// Snapshots of it, which go with it.
    snapshots: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "admin::json::serialize")]
    weight: Option<VolumeWeight>,
}

pub(super) fn run(args: &VolumeShowArgs) -> Result<(), CliError> {
    let of = &args.of;
    let interrupt = Interrupt::listen()?;
    let shown = Store::with(&of.store, |store| {
        let volume = store.volume(&of.store, &of.name)?;
        let all = store.volumes()?;
        let prefix = format!("{}@", of.name);
        let snapshots = all.iter().filter(|other| other.name.starts_with(&prefix)).count();
        let listed = with_origin(&volume, &by_name(&all));
        let weight = if args.quick { None } else { Some(weigh(store, &of.name, &interrupt)?) };
        Ok(Shown { listed, snapshots, weight })
    })?;
    if of.format.json {
        return output::print_json(&shown);
    }
    output::print_table(&table_of(&shown))?;
    let classes = shown.weight.iter().flat_map(|weight| &weight.references);
    let classes: Vec<&ReferenceClass> = classes.filter(|class| class.chunks > 0).collect();
    if classes.is_empty() {
        return Ok(());
    }
    output::print_line("")?;
    output::print_table(&histogram(&classes))
}

fn table_of(shown: &Shown) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, value: String, note: String| {
        table.row([name.to_owned(), value, note]);
    };
    let Listed { info, clone_of } = &shown.listed;
    row("name", info.name.clone(), clone_of.iter().map(|of| format!("clone of {of}")).collect());
    row("size", human_bytes(info.size_bytes), String::new());
    let access = if info.read_only { "read-only" } else { "read-write" };
    row("access", access.to_owned(), String::new());
    if let Some(bytes) = info.quota_bytes {
        row("quota", human_bytes(bytes), "may be mapped".to_owned());
    }
    if let Some(bytes) = info.reservation_bytes {
        let left = human_bytes(bytes.saturating_sub(info.mapped_bytes));
        row("reservation", human_bytes(bytes), format!("of which {left} are not mapped yet"));
    }
    if info.dedup != Dedup::On {
        row("dedup", info.dedup.name().to_owned(), dedup_note(info));
    }
    if let Some(with) = info.compression {
        row("codec", with.to_string(), "of what is written from now on".to_owned());
    }
    if let Some(domain) = &info.domain {
        row("domain", domain.clone(), "shares chunks inside it only".to_owned());
    }
    if shown.snapshots > 0 {
        row("snapshots", human_count(shown.snapshots as u64), "go with it".to_owned());
    }
    let Some(weight) = &shown.weight else {
        row("mapped", human_bytes(info.mapped_bytes), String::new());
        return table;
    };
    row("mapped", human_bytes(weight.mapped_bytes), chunks(weight.chunks));
    row("unique", human_bytes(weight.unique.frame_bytes), chunks(weight.unique));
    row("shared", human_bytes(weight.shared.frame_bytes), chunks(weight.shared));
    let note = match (weight.held, shown.snapshots) {
        (true, _) => "at once: several volumes came from it, and it stays until one is left",
        (false, 0) => "by its deletion",
        (false, _) => "without its snapshots, which hold more",
    };
    row("freed", human_bytes(weight.given_back.frame_bytes), note.to_owned());
    row("compression", format!("{:.2}x", weight.compression_ratio), String::new());
    if weight.lost_chunks > 0 {
        let lost = human_count(weight.lost_chunks);
        row("lost", lost, "chunks that cannot be read".to_owned());
    }
    table
}

/// What is done now, and was since the store was opened.
fn dedup_note(info: &VolumeInfo) -> String {
    let now = match (info.dedup, info.dedup_active) {
        (Dedup::Auto, true) => "all new chunks are looked up",
        (Dedup::Auto, false) => "one new chunk of eight is looked up: there are hardly duplicates",
        (Dedup::Off | Dedup::On, _) => "new chunks are not looked up",
    };
    match info.unindexed_chunks {
        0 => now.to_owned(),
        chunks => format!("{now}; {} were stored without", human_count(chunks)),
    }
}

fn chunks(tally: Tally) -> String {
    let word = if tally.chunks == 1 { "chunk" } else { "chunks" };
    format!("{} {word} in {}", human_count(tally.chunks), human_bytes(tally.frame_bytes))
}

fn histogram(classes: &[&ReferenceClass]) -> Table {
    let mut table = Table::with_heading([
        ("REFERENCES", Align::Right),
        ("CHUNKS", Align::Right),
        ("MAPPED", Align::Right),
        ("STORED", Align::Right),
    ]);
    for class in classes {
        let references = match (class.from, class.to) {
            (from, None) => format!(">{}", from - 1),
            (from, Some(to)) if from == to => from.to_string(),
            (from, Some(to)) => format!("{from}-{to}"),
        };
        let (chunks, mapped) = (human_count(class.chunks), human_count(class.mapped));
        table.row([references, chunks, mapped, human_bytes(class.frame_bytes)]);
    }
    table
}
