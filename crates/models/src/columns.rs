//! Tables as text.

use std::fmt::{self, Formatter};

/// The first `words` columns to the left, the others to the right, and an empty line.
pub(crate) fn aligned(f: &mut Formatter<'_>, words: usize, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &match column < words {
                true => format!("{cell:<width$}  "),
                false => format!("{cell:>width$}  "),
            };
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    writeln!(f)
}
