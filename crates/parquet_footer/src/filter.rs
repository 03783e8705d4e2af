//! Filters as pyarrow has them: lists of `[column, operator, value]` that all hold, or a list of
//! such lists of which one does.

use serde::Deserialize;

use crate::statistics::{Bounds, Literal, Operator};

/// Most values of a filter: each is compared with the bounds of each row group.
const VALUES_MAX: usize = 1_000;

/// Which rows are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    columns: Vec<String>,
    /// One of these holds, all terms of it; none at all: every row is asked for.
    alternatives: Vec<Vec<Term>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    /// Its place in [`Filter::columns`].
    column: usize,
    operator: Operator,
    values: Vec<Literal>,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is not written as one.
    #[error("a filter is a list of [column, operator, value] in JSON, or a list of such lists")]
    NotAFilter,
    /// It has too many values.
    #[error("a filter has at most {VALUES_MAX} values")]
    TooLong,
}

#[derive(Deserialize)]
struct Triple(String, Operator, Operand);

#[derive(Deserialize)]
#[serde(untagged)]
enum Operand {
    Many(Vec<Literal>),
    One(Literal),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Alternatives {
    All(Vec<Triple>),
    Any(Vec<Vec<Triple>>),
}

impl Filter {
    /// Reads a filter as JSON.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let read = serde_json::from_str(text).map_err(|_| FilterError::NotAFilter)?;
        let alternatives = match read {
            Alternatives::All(terms) => vec![terms],
            Alternatives::Any(alternatives) => alternatives,
        };
        let mut filter = Self::default();
        for terms in alternatives {
            let terms = terms.into_iter().map(|triple| filter.term(triple));
            let terms = terms.collect::<Result<Vec<_>, _>>()?;
            filter.alternatives.push(terms);
        }
        let terms = filter.alternatives.iter().flatten();
        if terms.map(|term| 1 + term.values.len()).sum::<usize>() > VALUES_MAX {
            return Err(FilterError::TooLong);
        }
        Ok(filter)
    }

    /// The columns that it names, each once.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether the bounds of a row group's columns, each at its place in [`Filter::columns`], leave
    /// open that a row matches.
    pub(crate) fn may_match(&self, bounds: &[Option<Bounds<'_>>]) -> bool {
        let may = |term: &Term| bounds[term.column].is_none_or(|bounds| term.may_match(bounds));
        self.alternatives.is_empty() || self.alternatives.iter().any(|terms| terms.iter().all(may))
    }

    fn term(&mut self, Triple(name, operator, operand): Triple) -> Result<Term, FilterError> {
        let values = match (operator, operand) {
            (Operator::In | Operator::NotIn, Operand::Many(values)) => values,
            (Operator::In | Operator::NotIn, _) | (_, Operand::Many(_)) => {
                return Err(FilterError::NotAFilter);
            }
            (_, Operand::One(value)) => vec![value],
        };
        let known = self.columns.iter().position(|column| *column == name);
        let column = known.unwrap_or_else(|| {
            self.columns.push(name);
            self.columns.len() - 1
        });
        Ok(Term { column, operator, values })
    }
}

impl Term {
    fn may_match(&self, bounds: Bounds<'_>) -> bool {
        match self.operator {
            Operator::In => {
                self.values.iter().any(|value| bounds.may_match(Operator::Equal, value))
            }
            operator => self.values.iter().all(|value| bounds.may_match(operator, value)),
        }
    }
}
