//! What the bounds of a chunk's values say of a comparison.
//!
//! Bounds may be shortened, and a chunk may have nulls and NaN beside what lies between them; so
//! they say which rows cannot match, and never which do.

use serde::Deserialize;

/// Up to here a floating-point number has every whole one.
const WHOLE_MAX: u64 = 1 << 53;

/// A value that a column is compared with.
///
/// JSON has no dates: `{"date": DAYS}` counts days since 1970, `{"timestamp_us": N}` microseconds,
/// in UTC where the column is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Literal {
    Null,
    Boolean(bool),
    Integer(i64),
    Natural(u64),
    Float(f64),
    Text(String),
    Date { date: i32 },
    Timestamp { timestamp_us: i64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Operator {
    #[serde(rename = "==", alias = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = "in")]
    In,
    #[serde(rename = "not in")]
    NotIn,
}

/// What the values of a column are, as far as filters compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Boolean,
    Signed,
    Unsigned,
    Float,
    Double,
    Text,
    Date,
    Timestamp { unit_ns: i64 },
    Other,
}

/// Minimum and maximum of a chunk, as they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) meaning: Meaning,
    pub(crate) low: &'a [u8],
    pub(crate) high: &'a [u8],
}

impl Bounds<'_> {
    /// Whether a value of the chunk may compare so; what is of another type may.
    pub(crate) fn may_match(&self, operator: Operator, value: &Literal) -> bool {
        self.judge(operator, value).unwrap_or(true)
    }

    /// None: the bounds say nothing.
    fn judge(&self, operator: Operator, value: &Literal) -> Option<bool> {
        match self.meaning {
            Meaning::Text => match value {
                Literal::Text(text) => may(self.low, self.high, operator, text.as_bytes()),
                _ => None,
            },
            // NaN is in no bounds, and is unequal to everything.
            Meaning::Float | Meaning::Double if operator == Operator::NotEqual => None,
            Meaning::Double => {
                may(double(self.low)?, double(self.high)?, operator, value.double()?)
            }
            Meaning::Float => {
                // Some readers shorten the value to the column's type, some lengthen the column.
                let (low, high, value) = (float(self.low)?, float(self.high)?, value.double()?);
                let shortened = may(low, high, operator, value as f32)?;
                let lengthened = may(low.into(), high.into(), operator, value)?;
                Some(shortened || lengthened)
            }
            meaning => {
                let (low, high) = (meaning.whole(self.low)?, meaning.whole(self.high)?);
                may(low, high, operator, value.whole(meaning)?)
            }
        }
    }
}

/// None where the bounds are in no order, as NaN is.
fn may<T: PartialOrd>(low: T, high: T, operator: Operator, value: T) -> Option<bool> {
    if low.partial_cmp(&high).is_none_or(|order| order.is_gt()) {
        return None;
    }
    match operator {
        Operator::Equal => Some(low <= value && value <= high),
        Operator::NotEqual => Some(low != value || high != value),
        Operator::Less => Some(low < value),
        Operator::LessOrEqual => Some(low <= value),
        Operator::Greater => Some(high > value),
        Operator::GreaterOrEqual => Some(high >= value),
        // Readers do not agree whether a null is outside a list.
        Operator::In | Operator::NotIn => None,
    }
}

fn double(bytes: &[u8]) -> Option<f64> {
    bytes.try_into().ok().map(f64::from_le_bytes)
}

fn float(bytes: &[u8]) -> Option<f32> {
    bytes.try_into().ok().map(f32::from_le_bytes)
}

impl Meaning {
    /// A bound of what is counted in whole numbers; times as nanoseconds.
    fn whole(self, bytes: &[u8]) -> Option<i128> {
        let signed = || match bytes.len() {
            4 => bytes.try_into().ok().map(|bytes| i64::from(i32::from_le_bytes(bytes))),
            _ => bytes.try_into().ok().map(i64::from_le_bytes),
        };
        match self {
            Self::Boolean => bytes.first().map(|byte| i128::from(byte & 1)),
            Self::Signed | Self::Date => signed().map(i128::from),
            Self::Unsigned if bytes.len() == 4 => signed().map(|value| i128::from(value as u32)),
            Self::Unsigned => signed().map(|value| i128::from(value as u64)),
            Self::Timestamp { unit_ns } => Some(i128::from(signed()?) * i128::from(unit_ns)),
            Self::Float | Self::Double | Self::Text | Self::Other => None,
        }
    }
}

impl Literal {
    /// The value as [`Meaning::whole`] has the bounds of such a column.
    fn whole(&self, meaning: Meaning) -> Option<i128> {
        match (meaning, self) {
            (Meaning::Boolean, Self::Boolean(value)) => Some((*value).into()),
            (Meaning::Signed | Meaning::Unsigned, Self::Integer(value)) => Some((*value).into()),
            (Meaning::Signed | Meaning::Unsigned, Self::Natural(value)) => Some((*value).into()),
            (Meaning::Date, Self::Date { date }) => Some((*date).into()),
            (Meaning::Timestamp { .. }, Self::Timestamp { timestamp_us }) => {
                Some(i128::from(*timestamp_us) * 1_000)
            }
            _ => None,
        }
    }

    fn double(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) if value.unsigned_abs() <= WHOLE_MAX => Some(*value as f64),
            _ => None,
        }
    }
}
