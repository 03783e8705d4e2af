//! Which lines of the RTL the co-simulation runs: what Verilator counted, by module.
//!
//! A *block* is what runs or does not run together: a branch, or what stands outside of branches.
//! All instances of a module count as one. A line has run if every block of it has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// A block in its file: first line, column, kind of branch.
type Place = (u32, u32, String);

/// What is known of one block.
#[derive(Debug, Default)]
struct Block {
    lines: BTreeSet<u32>,
    runs: u64,
}

/// The blocks of each file.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    files: BTreeMap<String, BTreeMap<Place, Block>>,
}

impl Coverage {
    /// Adds what one simulation counted; lines that are no counts are passed over.
    pub(super) fn add(&mut self, counts: &str) {
        for line in counts.lines() {
            let Some((fields, runs)) =
                line.strip_prefix("C '").and_then(|rest| rest.rsplit_once("' "))
            else {
                continue;
            };
            let fields: BTreeMap<&str, &str> =
                fields.split('\u{1}').filter_map(|field| field.split_once('\u{2}')).collect();
            let text = |key: &str| fields.get(key).copied().unwrap_or_default();
            let number = |key: &str| text(key).parse().unwrap_or_default();
            let place = (number("l"), number("n"), text("o").to_owned());
            let blocks = self.files.entry(module_of(text("f"))).or_default();
            let block = blocks.entry(place).or_default();
            block.lines.extend(lines_of(text("S")));
            block.lines.insert(number("l"));
            block.runs += runs.parse::<u64>().unwrap_or_default();
        }
    }

    /// A row a module and one for all.
    pub(super) fn table(&self) -> String {
        let mut table = "| module | blocks | ran | lines | ran | lines that did not |\n".to_owned();
        table += "|---|---|---|---|---|---|\n";
        let mut sums = [0; 4];
        for (module, blocks) in &self.files {
            let lines: BTreeSet<u32> =
                blocks.values().flat_map(|block| &block.lines).copied().collect();
            let missed = blocks.values().filter(|block| block.runs == 0);
            let missed_lines: BTreeSet<u32> =
                missed.clone().flat_map(|block| &block.lines).copied().collect();
            let counts = [
                blocks.len(),
                blocks.len() - missed.count(),
                lines.len(),
                lines.len() - missed_lines.len(),
            ];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            let named: Vec<String> = missed_lines.iter().map(u32::to_string).collect();
            write_row(&mut table, &format!("`{module}`"), counts, &named.join(", "));
        }
        write_row(&mut table, "all", sums, "");
        table
    }
}

fn write_row(table: &mut String, name: &str, counts: [usize; 4], missed: &str) {
    let [blocks, blocks_ran, lines, lines_ran] = counts;
    let share = |ran: usize, all: usize| 100.0 * ran as f64 / all.max(1) as f64;
    let (of_blocks, of_lines) = (share(blocks_ran, blocks), share(lines_ran, lines));
    // Writing to a string does not fail.
    let _ = writeln!(
        table,
        "| {name} | {blocks} | {of_blocks:.1} % | {lines} | {of_lines:.1} % | {missed} |"
    );
}

/// A file has one module, of its name.
fn module_of(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// `3-5,9` as numbers.
fn lines_of(text: &str) -> Vec<u32> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::Coverage;

    #[test]
    fn counts_of_instances_and_runs_are_added_and_lines_that_did_not_run_are_named() {
        let point = |line: u32, lines: &str, kind: &str, hier: &str, runs: u32| {
            format!(
                "C '\u{1}f\u{2}../rtl/a/fifo.sv\u{1}l\u{2}{line}\u{1}n\u{2}3\u{1}o\u{2}{kind}\
                 \u{1}S\u{2}{lines}\u{1}h\u{2}{hier}' {runs}\n"
            )
        };
        let mut coverage = Coverage::default();
        coverage.add("# SystemC::Coverage-3\n");
        coverage.add(&(point(3, "3-5", "block", "top.a", 0) + &point(7, "7,9", "if", "top.a", 0)));
        coverage.add(&point(3, "3-5", "block", "top.b", 2));
        let table = coverage.table();
        assert!(table.contains("| `fifo` | 2 | 50.0 % | 5 | 60.0 % | 7, 9 |"), "{table}");
        assert!(table.contains("| all | 2 | 50.0 % | 5 | 60.0 % |  |"), "{table}");
    }
}
