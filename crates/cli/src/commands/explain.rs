//! `tamis explain`: one address, from the volume's map to the bytes on disk and back to its bucket.

use admin::json::Json;
use engine::control::Explain;
use std::iter;
use std::path::Path;

use engine::{
    Address, ExplainedChunk, ExplainedCopy, ExplainedFrame, ExplainedPage, ExplainedPlace,
    Explanation, RequestError,
};

use crate::args::ExplainArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::output;
use crate::size::{human_bytes, human_count};
use crate::store;
use crate::table::{Align, Table};

const UNINDEXED: &str = "this chunk is unindexed (stored without an entry in the Hash-PBN table)";

pub(super) fn run(args: &ExplainArgs) -> Result<(), CliError> {
    let (volume, address) = (args.volume.clone(), args.address());
    let asked = |store: &Store| store.ask(Explain { volume, address });
    let mut explanation =
        Store::with(&args.store, asked).map_err(|error| beyond_the_end(args, error))?;
    name_files(&mut explanation, &args.store);
    if args.format.json {
        output::print_json(&Json(&explanation))?;
    } else {
        output::print_table(&table_of(&explanation))?;
        // Longer than all else, so that it does not stand in the table.
        if let Some(frame) = frame_of(&explanation) {
            output::print_line(format_args!("fingerprint  {}", frame.fingerprint))?;
        }
    }
    match explanation.is_sound() {
        true => Ok(()),
        false => Err(CliError::ChunkDamaged { volume: explanation.volume, lba: explanation.lba }),
    }
}

/// The same error; of an address beyond the volume's end, in what was asked for.
fn beyond_the_end(args: &ExplainArgs, error: CliError) -> CliError {
    match error {
        CliError::Request(RequestError::OutOfRange { length_bytes, size_bytes, .. }) => {
            let asked = match args.address() {
                Address::Lba(lba) => format!("chunk {lba}"),
                Address::OffsetBytes(bytes) => format!("byte {bytes}"),
            };
            let (volume, chunk_bytes) = (args.volume.clone(), length_bytes.max(1));
            CliError::NoChunk { volume, size_bytes, chunk_bytes, asked }
        }
        other => other,
    }
}

/// Zones are called as their files are, for a reader of the files.
fn name_files(explanation: &mut Explanation, path: &Path) {
    let Some(place) = explanation.chunk.as_mut().and_then(|chunk| chunk.place.as_mut()) else {
        return;
    };
    let copy = place.second_copy.as_mut().map(|copy| &mut copy.zone);
    for zone in iter::once(&mut place.zone).chain(copy) {
        *zone = store::zone_file_name(path, zone);
    }
}

fn frame_of(explained: &Explanation) -> Option<&ExplainedFrame> {
    explained.chunk.as_ref()?.place.as_ref()?.frame.as_ref()
}

fn table_of(explained: &Explanation) -> Table {
    let mut table = Table::plain([Align::Left, Align::Left, Align::Left]);
    let Explanation { volume, lba, offset_bytes, chunk_bytes, .. } = explained;
    let chunk = human_bytes(u64::from(*chunk_bytes));
    let bytes = human_count(*offset_bytes);
    row(&mut table, "LBA", &lba.to_string(), &format!("{chunk} at byte {bytes} of {volume}"));
    if explained.buffered {
        row(&mut table, "write buffer", "newer", "what follows is what it will replace");
    }
    pages(&mut table, "map", &explained.map);
    match &explained.chunk {
        None => row(&mut table, "PBN", "none", "nothing is stored: it reads as zeros"),
        Some(chunk) => chunk_rows(&mut table, chunk),
    }
    table
}

fn chunk_rows(table: &mut Table, chunk: &ExplainedChunk) {
    row(table, "PBN", &chunk.pbn.to_string(), "");
    pages(table, "PBN-PBA", &chunk.pages);
    let Some(place) = &chunk.place else {
        return row(table, "PBA", "none", "the chunk is lost, until the LBA is written again");
    };
    let references = if place.references == 1 { "LBA names it" } else { "LBAs name it" };
    row(table, "references", &human_count(u64::from(place.references)), references);
    place_rows(table, place);
    match &place.frame {
        Some(frame) => frame_rows(table, chunk.pbn, frame),
        None => row(table, "frame", "damaged", "`tamis scrub` says what else is"),
    }
}

fn place_rows(table: &mut Table, place: &ExplainedPlace) {
    let ExplainedPlace { container, offset_bytes, length_bytes, .. } = place;
    let zone_bytes = human_count(place.zone_offset_bytes);
    let memory = if place.in_memory { ", still in memory" } else { "" };
    row(
        table,
        "PBA",
        &format!("container {container}"),
        &format!(
            "{length_bytes} bytes at {offset_bytes}: byte {zone_bytes} of {}{memory}",
            place.zone
        ),
    );
    if let Some(copy) = &place.second_copy {
        let ExplainedCopy { container, offset_bytes, length_bytes, zone, .. } = copy;
        let zone_bytes = human_count(copy.zone_offset_bytes);
        row(
            table,
            "second copy",
            &format!("container {container}"),
            &format!("{length_bytes} bytes at {offset_bytes}: byte {zone_bytes} of {zone}"),
        );
    }
}

fn frame_rows(table: &mut Table, pbn: u64, frame: &ExplainedFrame) {
    let ExplainedFrame { codec, stored_bytes, ratio, .. } = frame;
    row(table, "frame", "sound", &format!("{codec}, {stored_bytes} bytes, {ratio:.2}x"));
    let names = match frame.named_pbn {
        Some(named) if named == pbn => "names this PBN".to_owned(),
        Some(named) if frame.unindexed => format!("names PBN {named}: {UNINDEXED}"),
        None if frame.unindexed => format!("names nothing: {UNINDEXED}"),
        Some(named) => format!("names PBN {named}: the tables disagree"),
        None => "does not have the fingerprint: the tables disagree".to_owned(),
    };
    let bucket = frame.bucket.map_or_else(|| "none yet".to_owned(), |number| number.to_string());
    row(table, "bucket", &bucket, &names);
    pages(table, "Hash-PBN", &frame.pages);
}

fn pages(table: &mut Table, name: &str, pages: &[ExplainedPage]) {
    for ExplainedPage { level, index, block, dirty, .. } in pages {
        let block = match (block, dirty) {
            (None, _) => "not on disk yet".to_owned(),
            (Some(block), false) => format!("block {block}"),
            (Some(block), true) => format!("block {block}, changed in memory since"),
        };
        row(table, name, &format!("level {level} page {index}"), &block);
    }
}

fn row(table: &mut Table, name: &str, value: &str, note: &str) {
    table.row([name.to_owned(), value.to_owned(), note.to_owned()]);
}
