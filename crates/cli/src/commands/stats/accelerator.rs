//! What the accelerator of a served store did.

use engine::AcceleratorFigures;

use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// How guesses came out, and how busy the device was.
pub(super) fn table(figures: &AcceleratorFigures) -> Table {
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    table.row(["accelerator".into(), String::new(), figures.device.clone()]);
    let full = format!("batches, {} full on average", percent(figures.batch_fill_ratio));
    table.row(["submitted".into(), human_count(figures.submissions), full]);
    let right = "of chunks taken for what they are, new or duplicate".to_owned();
    table.row(["predicted".into(), percent(figures.predicted_ratio), right]);
    let vain = format!("duplicates, {}", human_bytes(figures.in_vain_bytes));
    table.row(["compressed in vain".into(), human_count(figures.compressed_in_vain), vain]);
    let twice = "new chunks, taken for duplicates".to_owned();
    table.row(["submitted twice".into(), human_count(figures.sent_twice), twice]);
    let compressing = percent(figures.compress_busy_ratio);
    let busy = format!("of the units that hash, {compressing} of those that compress");
    table.row(["utilisation".into(), percent(figures.hash_busy_ratio), busy]);
    table
}

fn percent(ratio: f64) -> String {
    format!("{:.0}%", 100.0 * ratio)
}

#[cfg(test)]
mod tests {
    use engine::AcceleratorFigures;

    use super::table;

    #[test]
    fn an_accelerator_takes_six_lines() {
        let figures = AcceleratorFigures {
            device: "emulated:batch=64,queue=8,hash=4,compress=2".to_owned(),
            submissions: 1200,
            batch_fill_ratio: 0.9,
            predicted_ratio: 0.876,
            compressed_in_vain: 5,
            in_vain_bytes: 5 << 12,
            sent_twice: 7,
            hash_busy_ratio: 0.25,
            compress_busy_ratio: 0.5,
            ..AcceleratorFigures::default()
        };
        let text = table(&figures).to_string();
        for said in ["compress=2", "90% full", "88%", "20 KiB", "7", "25%", "50% of those"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert_eq!(text.lines().count(), 6, "{text}");
    }
}
