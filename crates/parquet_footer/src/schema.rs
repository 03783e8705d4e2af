//! The schema: a tree of elements in the order of a walk from the root down, whose leaves are the
//! columns of row groups.
//!
//! Source: the format's `parquet.thrift`, `SchemaElement`, `LogicalType` and `ColumnOrder`.

use std::collections::BTreeMap;

use segments::thrift::{Reader, Unread, kind};

use crate::error::FooterError;
use crate::statistics::Meaning;

/// Most elements; a table of 10,000 columns has as many.
const ELEMENTS_MAX: u64 = 1 << 16;
/// Longest dotted path that is looked at.
const PATH_BYTES_MAX: usize = 4 << 10;
const DEPTH_MAX: usize = 64;

/// A column of row groups.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// It is asked for.
    pub(crate) is_sent: bool,
    /// Which column of the filter it is; its statistics mean something.
    pub(crate) judged: Option<usize>,
    pub(crate) meaning: Meaning,
}

/// An element as it is written.
#[derive(Default)]
struct Element<'a> {
    name: &'a [u8],
    physical: Option<i64>,
    converted: Option<i64>,
    logical: Option<Logical>,
    is_repeated: bool,
    children: Option<u64>,
}

/// What a leaf's values are said to be, as far as filters know it.
#[derive(Clone, Copy)]
enum Logical {
    Text,
    Date,
    Timestamp { unit_ns: i64 },
    Integer { is_signed: bool },
    Other,
}

/// A group whose children are being read.
struct Open {
    left: u64,
    path_bytes: usize,
    is_sent: bool,
}

/// Names that are looked for, and those that were found.
struct Names<'a> {
    places: BTreeMap<&'a [u8], usize>,
    is_found: Vec<bool>,
}

impl<'a> Names<'a> {
    fn of(names: &'a [String]) -> Self {
        let places = names.iter().enumerate().map(|(at, name)| (name.as_bytes(), at));
        Self { places: places.collect(), is_found: vec![false; names.len()] }
    }

    fn find(&mut self, path: &[u8]) -> Option<usize> {
        let place = *self.places.get(path)?;
        self.is_found[place] = true;
        Some(place)
    }

    fn check(&self) -> Result<(), FooterError> {
        let missing = self.places.iter().find(|(_, place)| !self.is_found[**place]);
        let name = missing.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        name.map_or(Ok(()), |name| Err(FooterError::NoColumn { name }))
    }
}

/// The leaves of the schema, from the value of its field on: those of `columns`, all where those
/// are none, are sent, and those of `filtered` judged.
pub(crate) fn leaves(
    reader: &mut Reader<'_>,
    columns: &[String],
    filtered: &[String],
) -> Result<Vec<Leaf>, FooterError> {
    let (count, kind) = reader.list()?;
    if kind != kind::STRUCT || count == 0 {
        return Err(FooterError::Damaged);
    }
    if count > ELEMENTS_MAX {
        return Err(FooterError::TooLarge);
    }
    let (mut sent, mut judged) = (Names::of(columns), Names::of(filtered));
    let left = element(reader)?.children.unwrap_or(0);
    let mut open = vec![Open { left, path_bytes: 0, is_sent: columns.is_empty() }];
    let (mut path, mut leaves) = (Vec::new(), Vec::new());
    for _ in 1..count {
        while open.last().is_some_and(|group| group.left == 0) {
            open.pop();
        }
        let depth = open.len();
        let group = open.last_mut().ok_or(FooterError::Damaged)?;
        group.left -= 1;
        path.truncate(group.path_bytes);
        let element = element(reader)?;
        if path.len() + element.name.len() >= PATH_BYTES_MAX || depth > DEPTH_MAX {
            return Err(FooterError::TooLarge);
        }
        if depth > 1 {
            path.push(b'.');
        }
        path.extend_from_slice(element.name);
        let is_sent = sent.find(&path).is_some() || group.is_sent;
        // Statistics of a repeated or nested leaf are about values, not about rows.
        let judged = judged.find(&path).filter(|_| depth == 1 && !element.is_repeated);
        match element.children {
            Some(left) => open.push(Open { left, path_bytes: path.len(), is_sent }),
            None => leaves.push(Leaf { is_sent, judged, meaning: element.meaning() }),
        }
    }
    if open.iter().any(|group| group.left > 0) {
        return Err(FooterError::Damaged);
    }
    sent.check()?;
    judged.check()?;
    Ok(leaves)
}

/// Of each leaf, whether minimum and maximum follow the order of its type.
pub(crate) fn orders(reader: &mut Reader<'_>) -> Result<Vec<bool>, FooterError> {
    let (count, kind) = reader.list()?;
    if kind != kind::STRUCT || count > ELEMENTS_MAX {
        return Err(FooterError::Damaged);
    }
    let mut orders = Vec::new();
    for _ in 0..count {
        let mut is_of_type = false;
        reader.fields(|reader, field| {
            is_of_type = field.id == 1;
            reader.skip(field.kind)
        })?;
        orders.push(is_of_type);
    }
    Ok(orders)
}

/// Without an order, minimum and maximum mean nothing.
pub(crate) fn forget_unordered(leaves: &mut [Leaf], orders: &[bool]) {
    for (at, leaf) in leaves.iter_mut().enumerate() {
        if orders.get(at) != Some(&true) {
            leaf.judged = None;
        }
    }
}

fn element<'a>(reader: &mut Reader<'a>) -> Result<Element<'a>, Unread> {
    let mut found = Element::default();
    reader.fields(|reader, field| {
        match (field.id, field.kind) {
            (1, kind::I32) => found.physical = Some(reader.integer()?),
            (3, kind::I32) => found.is_repeated = reader.integer()? == 2,
            (4, kind::BINARY) => found.name = reader.binary()?,
            (5, kind::I32) => {
                let children = u64::try_from(reader.integer()?).map_err(|_| Unread::Wrong)?;
                found.children = Some(children);
            }
            (6, kind::I32) => found.converted = Some(reader.integer()?),
            (10, kind::STRUCT) => found.logical = Some(logical(reader)?),
            (_, kind) => reader.skip(kind)?,
        }
        Ok::<_, Unread>(())
    })?;
    Ok(found)
}

fn logical(reader: &mut Reader<'_>) -> Result<Logical, Unread> {
    let mut found = Logical::Other;
    reader.fields(|reader, field| {
        match (field.id, field.kind) {
            (8, kind::STRUCT) => found = timestamp(reader)?,
            (10, kind::STRUCT) => found = integer(reader)?,
            (id, kind) => {
                reader.skip(kind)?;
                found = match id {
                    1 => Logical::Text,
                    6 => Logical::Date,
                    _ => Logical::Other,
                };
            }
        }
        Ok::<_, Unread>(())
    })?;
    Ok(found)
}

fn timestamp(reader: &mut Reader<'_>) -> Result<Logical, Unread> {
    let mut found = Logical::Other;
    reader.fields(|reader, field| match (field.id, field.kind) {
        (2, kind::STRUCT) => reader.fields(|reader, unit| {
            found = match unit.id {
                1 => Logical::Timestamp { unit_ns: 1_000_000 },
                2 => Logical::Timestamp { unit_ns: 1_000 },
                3 => Logical::Timestamp { unit_ns: 1 },
                _ => Logical::Other,
            };
            reader.skip(unit.kind)
        }),
        (_, kind) => reader.skip(kind),
    })?;
    Ok(found)
}

fn integer(reader: &mut Reader<'_>) -> Result<Logical, Unread> {
    let mut found = Logical::Other;
    reader.fields(|reader, field| {
        match (field.id, field.kind) {
            (2, kind::TRUE) => found = Logical::Integer { is_signed: true },
            (2, kind::FALSE) => found = Logical::Integer { is_signed: false },
            _ => (),
        }
        reader.skip(field.kind)
    })?;
    Ok(found)
}

impl Element<'_> {
    fn meaning(&self) -> Meaning {
        let is_plain = self.logical.is_none() && self.converted.is_none();
        match self.physical {
            Some(0) => Meaning::Boolean,
            Some(1 | 2) if is_plain => Meaning::Signed,
            Some(4) => Meaning::Float,
            Some(5) => Meaning::Double,
            Some(1 | 2) => match self.said() {
                Logical::Integer { is_signed: true } => Meaning::Signed,
                Logical::Integer { is_signed: false } => Meaning::Unsigned,
                Logical::Date => Meaning::Date,
                Logical::Timestamp { unit_ns } => Meaning::Timestamp { unit_ns },
                _ => Meaning::Other,
            },
            Some(6) if matches!(self.said(), Logical::Text) => Meaning::Text,
            _ => Meaning::Other,
        }
    }

    /// The logical type; where there is none the older converted type.
    fn said(&self) -> Logical {
        let converted = match self.converted {
            Some(0) => Logical::Text,
            Some(6) => Logical::Date,
            Some(9) => Logical::Timestamp { unit_ns: 1_000_000 },
            Some(10) => Logical::Timestamp { unit_ns: 1_000 },
            Some(11..=14) => Logical::Integer { is_signed: false },
            Some(15..=18) => Logical::Integer { is_signed: true },
            _ => Logical::Other,
        };
        self.logical.unwrap_or(converted)
    }
}
