//! Tables for people: columns aligned, words to the left and figures to the right.

use std::fmt;

use crate::output::bold;

/// Which side of its column a cell keeps to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under an optional heading; its `Display` is the finished text, with `{:#}` the heading is
/// bold.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    heading: bool,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";
/// As many as every terminal has.
const COLUMNS_MAX: usize = 80;

impl Table {
    /// A table of columns with headings.
    pub(crate) fn with_heading<const N: usize>(columns: [(&str, Align); N]) -> Self {
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let aligns = columns.iter().map(|(_, align)| *align).collect();
        Self { aligns, heading: true, rows: vec![names] }
    }

    /// A table of columns without headings.
    pub(crate) fn plain<const N: usize>(aligns: [Align; N]) -> Self {
        Self { aligns: aligns.to_vec(), heading: false, rows: Vec::new() }
    }

    /// Adds a row, a cell for each column; missing ones are empty.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Whether there is nothing but a heading.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == usize::from(self.heading)
    }

    fn widths(&self) -> Vec<usize> {
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.aligns.len()).map(width_of).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, align), width) in row.iter().zip(&self.aligns).zip(&widths) {
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}")),
                    Align::Right => line.push_str(&format!("{cell:>width$}")),
                }
                line.push_str(GAP);
            }
            match f.alternate() && self.heading && at == 0 {
                true => writeln!(f, "{}", bold(line.trim_end()))?,
                false => writeln!(f, "{}", line.trim_end())?,
            }
        }
        Ok(())
    }
}

/// `text` in lines of 80 columns, broken between words.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut columns = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if columns > 0 {
            let fits = columns + 1 + length <= COLUMNS_MAX;
            lines.push(if fits { ' ' } else { '\n' });
            columns = if fits { columns + 1 } else { 0 };
        }
        lines.push_str(word);
        columns += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Align, Table, wrapped};

    #[test]
    fn text_is_broken_between_words() {
        let text = "words ".repeat(30);
        let told = wrapped(text.trim_end());
        assert_eq!(told.split_whitespace().count(), 30);
        assert!(told.lines().all(|line| line.len() <= 80 && !line.ends_with(' ')), "{told}");
        assert_eq!(told.lines().count(), 3);
        assert_eq!(wrapped(&"x".repeat(100)), "x".repeat(100));
    }

    #[test]
    fn words_keep_left_and_figures_keep_right() {
        let mut table = Table::with_heading([("VOLUME", Align::Left), ("SIZE", Align::Right)]);
        assert!(table.is_empty());
        table.row(["a".into(), "1 GiB".into()]);
        table.row(["longer-name".into(), "100 GiB".into()]);
        assert!(!table.is_empty());
        let styled = format!("{table:#}");
        assert!(styled.starts_with("\x1b[1mVOLUME          SIZE\x1b[0m\na "), "{styled}");
        assert_eq!(
            table.to_string(),
            "VOLUME          SIZE\n\
             a              1 GiB\n\
             longer-name  100 GiB\n"
        );
    }

    #[test]
    fn letters_are_counted_and_not_bytes() {
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["\u{e9}\u{e9}".into(), "x".into()]);
        table.row(["ab".into(), "y".into()]);
        assert_eq!(table.to_string(), "\u{e9}\u{e9}  x\nab  y\n");
    }

    #[test]
    fn no_line_ends_in_blanks() {
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["a".into(), String::new()]);
        table.row(["b".into(), "note".into()]);
        assert_eq!(table.to_string(), "a\nb  note\n");
    }
}
