//! A small table of figures for people: left column words, the others numbers.

/// Rows of cells, printed in columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds one row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
    }

    /// Prints all rows, each column as wide as its widest cell.
    pub(crate) fn print(&self) {
        println!("{}", self.text());
    }

    fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// How far `found` lies from `expected`, in percent.
pub(crate) fn percent_off(found: u64, expected: u64) -> f64 {
    let (found, expected) = (found as f64, expected.max(1) as f64);
    (found - expected) / expected * 100.0
}

#[cfg(test)]
mod tests {
    use super::{Table, percent_off};

    #[test]
    fn columns_line_up() {
        let mut table = Table::default();
        table.row(["what", "bytes"]);
        table.row(["a", "7"]);
        assert_eq!(table.text(), "what  bytes\na         7");
    }

    #[test]
    fn percents_have_a_sign() {
        assert!((percent_off(92, 100) + 8.0).abs() < 1e-9);
    }
}
