//! A writer of footers, and a plain model of which ranges are needed.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Value, json};

/// What the columns of models are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    Signed,
    Unsigned,
    Double,
    Float,
    Text,
    Date,
    /// Milliseconds.
    Timestamp,
}

/// A value: a number, or a text of its digits.
pub(crate) type Cell = i8;

/// Groups of rows; a row has a cell, or a null, for each column.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) types: Vec<Type>,
    pub(crate) groups: Vec<Vec<Vec<Option<Cell>>>>,
    pub(crate) has_statistics: bool,
}

/// Column, operator, cells.
pub(crate) type Terms = Vec<(usize, &'static str, Vec<Cell>)>;

pub(crate) fn tables() -> impl Strategy<Value = Table> {
    let types = prop_oneof![
        Just(Type::Signed),
        Just(Type::Unsigned),
        Just(Type::Double),
        Just(Type::Float),
        Just(Type::Text),
        Just(Type::Date),
        Just(Type::Timestamp)
    ];
    let cell = prop_oneof![4 => (0..9i8).prop_map(Some), 1 => Just(None)];
    (vec(types, 1..4), any::<bool>()).prop_flat_map(move |(types, has_statistics)| {
        let row = vec(cell.clone(), types.len());
        let groups = vec(vec(row, 1..4), 0..6);
        groups.prop_map(move |groups| Table { types: types.clone(), groups, has_statistics })
    })
}

pub(crate) fn filters() -> impl Strategy<Value = Vec<Terms>> {
    let how = prop_oneof![
        Just("="),
        Just("=="),
        Just("!="),
        Just("<"),
        Just("<="),
        Just(">"),
        Just(">="),
        Just("in"),
        Just("not in")
    ];
    vec(vec((0..3usize, how, vec(0..9i8, 1..3)), 1..3), 0..3)
}

impl Table {
    /// The filter as JSON; a column that is not there is the last one.
    pub(crate) fn filter(&self, alternatives: &[Terms]) -> Value {
        let term = |(column, how, cells): &(usize, &str, Vec<Cell>)| {
            let column = self.column(*column);
            let cells: Vec<Value> =
                cells.iter().map(|cell| literal(self.types[column], *cell)).collect();
            let value = if how.ends_with("in") { json!(cells) } else { cells[0].clone() };
            json!([name(column), how, value])
        };
        alternatives.iter().map(|terms| terms.iter().map(term).collect::<Value>()).collect()
    }

    fn column(&self, column: usize) -> usize {
        column.min(self.types.len() - 1)
    }

    /// Whether a row of the group matches.
    pub(crate) fn matches(&self, group: usize, alternatives: &[Terms]) -> bool {
        let holds = |row: &[Option<Cell>], (column, how, cells): &(usize, &str, Vec<Cell>)| {
            let Some(cell) = row[self.column(*column)] else { return *how == "not in" };
            match *how {
                "=" | "==" => cell == cells[0],
                "!=" => cell != cells[0],
                "<" => cell < cells[0],
                "<=" => cell <= cells[0],
                ">" => cell > cells[0],
                ">=" => cell >= cells[0],
                "in" => cells.contains(&cell),
                _ => !cells.contains(&cell),
            }
        };
        let all = |row: &Vec<Option<Cell>>| {
            alternatives.iter().any(|terms| terms.iter().all(|term| holds(row, term)))
        };
        alternatives.is_empty() || self.groups[group].iter().any(all)
    }

    /// Whether statistics leave open that a row of the group matches.
    pub(crate) fn may_match(&self, group: usize, alternatives: &[Terms]) -> bool {
        let open = |(column, how, cells): &(usize, &str, Vec<Cell>)| {
            let column = self.column(*column);
            let values = self.groups[group].iter().filter_map(|row| row[column]);
            let (low, high) = (values.clone().min(), values.max());
            let (Some(low), Some(high), true) = (low, high, self.has_statistics) else {
                return true;
            };
            let is_floating = matches!(self.types[column], Type::Double | Type::Float);
            match *how {
                "=" | "==" => (low..=high).contains(&cells[0]),
                "!=" => is_floating || low != cells[0] || high != cells[0],
                "<" => low < cells[0],
                "<=" => low <= cells[0],
                ">" => high > cells[0],
                ">=" => high >= cells[0],
                "in" => cells.iter().any(|cell| (low..=high).contains(cell)),
                _ => true,
            }
        };
        alternatives.is_empty() || alternatives.iter().any(|terms| terms.iter().all(open))
    }

    /// Where the chunk of a column of a group lies.
    pub(crate) fn chunk(&self, group: usize, column: usize) -> Range<u64> {
        let start = 4 + 10 * (group * self.types.len() + column) as u64;
        start..start + 10
    }

    pub(crate) fn footer_start(&self) -> u64 {
        self.chunk(self.groups.len(), 0).start
    }

    pub(crate) fn footer(&self) -> Vec<u8> {
        let mut root = Writer::default();
        root.binary(4, b"schema").integer(5, self.types.len() as i64);
        let columns = self.types.iter().enumerate().map(|(at, kind)| element(at, *kind).end());
        let schema = std::iter::once(root.end()).chain(columns).collect::<Vec<_>>();
        let groups = (0..self.groups.len()).map(|group| self.group(group)).collect::<Vec<_>>();
        let orders = vec![Writer::default().structure(1, vec![0]).end(); self.types.len()];
        let mut footer = Writer::default();
        footer.integer(1, 2).list(2, &schema).list(4, &groups).list(7, &orders);
        footer.end()
    }

    fn group(&self, group: usize) -> Vec<u8> {
        let chunk = |column: usize| {
            let Range { start, end } = self.chunk(group, column);
            let mut metadata = Writer::default();
            metadata.long(7, (end - start) as i64).long(9, start as i64 + 4);
            metadata.long(11, start as i64);
            let values = self.groups[group].iter().filter_map(|row| row[column]);
            if let (Some(low), Some(high), true) =
                (values.clone().min(), values.max(), self.has_statistics)
            {
                let mut statistics = Writer::default();
                let kind = self.types[column];
                statistics.binary(5, &plain(kind, high)).binary(6, &plain(kind, low));
                metadata.structure(12, statistics.end());
            }
            let mut chunk = Writer::default();
            chunk.long(2, 0).structure(3, metadata.end());
            chunk.end()
        };
        let chunks = (0..self.types.len()).map(chunk).collect::<Vec<_>>();
        let mut group = Writer::default();
        group.list(1, &chunks).long(2, 0).long(3, self.groups.len() as i64);
        group.end()
    }
}

pub(crate) fn name(column: usize) -> String {
    format!("column {column}")
}

fn element(column: usize, kind: Type) -> Writer {
    let mut element = Writer::default();
    let physical = match kind {
        Type::Signed | Type::Timestamp => 2,
        Type::Unsigned | Type::Date => 1,
        Type::Float => 4,
        Type::Double => 5,
        Type::Text => 6,
    };
    element.integer(1, physical).integer(3, 1).binary(4, name(column).as_bytes());
    let mut logical = Writer::default();
    match kind {
        Type::Unsigned => {
            // 32 bits, without a sign.
            logical.structure(10, vec![0x13, 32, 0x12, 0]);
        }
        Type::Text => {
            element.integer(6, 0);
        }
        Type::Date => {
            logical.structure(6, vec![0]);
        }
        Type::Timestamp => {
            // In UTC, in milliseconds.
            logical.structure(8, vec![0x11, 0x1c, 0x1c, 0, 0, 0]);
        }
        Type::Signed | Type::Float | Type::Double => return element,
    }
    if kind != Type::Text {
        element.structure(10, logical.end());
    }
    element
}

/// A cell as the statistics of its column have it.
fn plain(kind: Type, cell: Cell) -> Vec<u8> {
    match kind {
        Type::Signed => i64::from(cell).to_le_bytes().to_vec(),
        Type::Timestamp => (i64::from(cell) * 1000).to_le_bytes().to_vec(),
        Type::Unsigned => (unsigned(cell) as u32).to_le_bytes().to_vec(),
        Type::Date => i32::from(cell).to_le_bytes().to_vec(),
        Type::Float => f32::from(cell).to_le_bytes().to_vec(),
        Type::Double => f64::from(cell).to_le_bytes().to_vec(),
        Type::Text => cell.to_string().into_bytes(),
    }
}

/// Across the middle of 32 bits, where signed numbers would be in another order.
fn unsigned(cell: Cell) -> i64 {
    (1 << 31) - 4 + i64::from(cell)
}

fn literal(kind: Type, cell: Cell) -> Value {
    match kind {
        Type::Signed => json!(cell),
        Type::Unsigned => json!(unsigned(cell)),
        Type::Float | Type::Double => json!(f64::from(cell)),
        Type::Text => json!(cell.to_string()),
        Type::Date => json!({ "date": cell }),
        Type::Timestamp => json!({ "timestamp_us": i64::from(cell) * 1_000_000 }),
    }
}

/// Writes a structure of Thrift's compact protocol.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    last: u8,
}

impl Writer {
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push(((id - self.last) << 4) | kind);
        self.last = id;
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(crate) fn integer(&mut self, id: u8, value: i64) -> &mut Self {
        self.field(id, 5);
        self.varint(((value << 1) ^ (value >> 63)) as u64);
        self
    }

    pub(crate) fn long(&mut self, id: u8, value: i64) -> &mut Self {
        self.field(id, 6);
        self.varint(((value << 1) ^ (value >> 63)) as u64);
        self
    }

    pub(crate) fn binary(&mut self, id: u8, value: &[u8]) -> &mut Self {
        self.field(id, 8);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    pub(crate) fn structure(&mut self, id: u8, value: Vec<u8>) -> &mut Self {
        self.field(id, 12);
        self.bytes.extend(value);
        self
    }

    /// Of structures.
    pub(crate) fn list(&mut self, id: u8, values: &[Vec<u8>]) -> &mut Self {
        self.field(id, 9);
        self.bytes.push(0xfc);
        self.varint(values.len() as u64);
        self.bytes.extend(values.iter().flatten());
        self
    }

    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.bytes.push(0);
        std::mem::take(&mut self.bytes)
    }
}
