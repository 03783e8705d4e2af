//! Tables for people: columns aligned, words to the left and figures to the right.

use std::fmt;

use format::shown::Escaped;

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
    /// Columns that tell rows apart, the first ones.
    keys: usize,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";
/// As many as every terminal has.
const COLUMNS_MAX: usize = 80;
/// What is longer is a path, or a long name.
const NAME_COLUMNS: usize = 40;
/// A note in less room than that is not broken.
const NOTE_COLUMNS_MIN: usize = 20;

impl Table {
    /// A table of columns with headings.
    pub(crate) fn with_heading<const N: usize>(columns: [(&str, Align); N]) -> Self {
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let aligns = columns.iter().map(|(_, align)| *align).collect();
        Self { aligns, heading: true, keys: 1, rows: vec![names] }
    }

    /// A table of columns without headings.
    pub(crate) fn plain<const N: usize>(aligns: [Align; N]) -> Self {
        Self { aligns: aligns.to_vec(), heading: false, keys: 1, rows: Vec::new() }
    }

    /// The same table; its first `keys` columns identify a row.
    pub(crate) fn with_keys(self, keys: usize) -> Self {
        Self { keys, ..self }
    }

    /// Adds a row, a cell for each column; missing ones are empty. What does not show itself is
    /// escaped here, so that columns are as wide as they look.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.iter().map(|cell| Escaped::line(cell).to_string()).collect());
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
        let (first, mut others) = self.blocks(&widths);
        self.write_block(f, &widths, &first)?;
        others.try_for_each(|block| {
            writeln!(f)?;
            self.write_block(f, &widths, &block)
        })
    }
}

impl Table {
    /// The columns that are shown side by side, blocks below each other: as many as 80 columns have
    /// room for, and in each block those that tell the rows apart. What has long names in it, or no
    /// heading, is not divided.
    fn blocks(&self, widths: &[usize]) -> (Vec<usize>, std::vec::IntoIter<Vec<usize>>) {
        let width_of = |block: &[usize]| {
            let wide = block.iter().map(|column| widths.get(*column).copied().unwrap_or(0));
            wide.map(|width| if width == 0 { 0 } else { width + GAP.len() }).sum::<usize>()
        };
        let all: Vec<usize> = (0..widths.len()).collect();
        let is_named = widths.iter().any(|width| *width > NAME_COLUMNS);
        if !self.heading || is_named || width_of(&all) <= COLUMNS_MAX + GAP.len() {
            return (all, Vec::new().into_iter());
        }
        let keys: Vec<usize> = (0..self.keys).collect();
        let mut blocks = vec![keys.clone()];
        for column in self.keys..widths.len() {
            let Some(block) = blocks.last_mut() else { break };
            block.push(column);
            if width_of(block) > COLUMNS_MAX + GAP.len() && block.len() > self.keys + 1 {
                block.pop();
                blocks.push(keys.iter().copied().chain([column]).collect());
            }
        }
        let first = blocks.remove(0);
        (first, blocks.into_iter())
    }

    fn write_block(
        &self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        block: &[usize],
    ) -> fmt::Result {
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for &column in block {
                let cell = row.get(column).map_or("", String::as_str);
                let width = widths.get(column).copied().unwrap_or(0);
                match self.aligns.get(column) {
                    Some(Align::Right) => line.push_str(&format!("{cell:>width$}")),
                    _ => line.push_str(&format!("{cell:<width$}")),
                }
                line.push_str(GAP);
            }
            let line = line.trim_end();
            match f.alternate() && self.heading && at == 0 {
                true => writeln!(f, "{}", bold(line))?,
                false => writeln!(f, "{}", self.with_short_notes(line, widths))?,
            }
        }
        Ok(())
    }

    /// A line of a table without a heading; a note at its end that is too long goes on below.
    fn with_short_notes(&self, line: &str, widths: &[usize]) -> String {
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
        let room = COLUMNS_MAX.saturating_sub(before);
        let is_note = !self.heading && self.aligns.last() == Some(&Align::Left);
        if !is_note || line.chars().count() <= COLUMNS_MAX || room < NOTE_COLUMNS_MIN {
            return line.to_owned();
        }
        let (start, note): (String, String) =
            (line.chars().take(before).collect(), line.chars().skip(before).collect());
        let indent = " ".repeat(before);
        format!("{start}{}", broken(&note, room).replace('\n', &format!("\n{indent}")))
    }
}

/// `text` as headings are at a terminal.
fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

/// `text` in lines of 80 columns, broken between words.
pub(crate) fn wrapped(text: &str) -> String {
    broken(text, COLUMNS_MAX)
}

/// `text` in lines of this many columns.
fn broken(text: &str, columns_max: usize) -> String {
    let mut lines = String::new();
    let mut columns = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if columns > 0 {
            let fits = columns + 1 + length <= columns_max;
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
    fn what_is_too_wide_goes_on_below() {
        let columns = [("KEY", Align::Left), ("A", Align::Right), ("B", Align::Right)];
        let mut table = Table::with_heading(columns);
        table.row(["k".into(), "1".repeat(38), "2".repeat(38)]);
        let (ones, twos) = ("1".repeat(38), "2".repeat(38));
        let wide = |of: &str| format!("{of:>38}");
        assert_eq!(
            table.to_string(),
            format!("KEY  {}\nk    {ones}\n\nKEY  {}\nk    {twos}\n", wide("A"), wide("B"))
        );
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["name".into(), "word ".repeat(20).trim_end().to_owned()]);
        let told = table.to_string();
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(told.lines().all(|line| line.len() <= 80), "{told}");
        assert!(told.lines().nth(1).is_some_and(|line| line.starts_with("      word")), "{told}");
    }

    #[test]
    fn letters_are_counted_and_not_bytes() {
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["\u{e9}\u{e9}".into(), "x".into()]);
        table.row(["ab".into(), "y".into()]);
        assert_eq!(table.to_string(), "\u{e9}\u{e9}  x\nab  y\n");
    }

    #[test]
    fn no_cell_commands_a_terminal_or_begins_a_row() {
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["a\u{1b}[2J\nroot".into(), "x".into()]);
        assert_eq!(table.to_string(), "a\\u{1b}[2J\\nroot  x\n");
    }

    #[test]
    fn no_line_ends_in_blanks() {
        let mut table = Table::plain([Align::Left, Align::Left]);
        table.row(["a".into(), String::new()]);
        table.row(["b".into(), "note".into()]);
        assert_eq!(table.to_string(), "a\nb  note\n");
    }
}
