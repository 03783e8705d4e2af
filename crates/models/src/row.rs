//! One row of the reproduction: what a paper says, what ours gives, and whether the two agree.
//!
//! A row of kind *unknown* has no value on either side, and one of kind *physical* none of ours
//! that claims to be the authors': constructors see to that, so no page can print otherwise.

use crate::kind::Kind;
use crate::parameter::Parameter;

/// Whose figure it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Deduplication for slow SSDs, IEEE CAL 2017, as the talk tells it.
    Cal,
    /// HPCA 2019, as the talk and FIDR tell it.
    Cidr,
    /// MICRO 2019.
    Fidr,
    /// Semester project, ETH Zurich 2023.
    DedupCore,
    /// FPL 2020.
    Multes,
    /// TPDS 2021.
    Ead,
}

impl Paper {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 6] =
        [Self::Cal, Self::Cidr, Self::Fidr, Self::DedupCore, Self::Multes, Self::Ead];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cal => "CAL'17",
            Self::Cidr => "CIDR",
            Self::Fidr => "FIDR",
            Self::DedupCore => "DedupCore",
            Self::Multes => "Multes++",
            Self::Ead => "EaD",
        }
    }
}

/// How far ours may be from the paper's.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Tolerance {
    /// Equal when rounded to this number of decimals.
    Decimals(usize),
    /// Within this number of hundredths of the paper's value.
    Percent(f64),
    /// Within this much, in the row's own unit.
    Points(f64),
    /// Not below the paper's value.
    AtLeast,
    /// Not above the paper's value.
    AtMost,
}

/// What ours rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// Arithmetic over what papers state.
    ClosedForm,
    /// What the real engine counted.
    Engine,
    /// A model whose fitted parameters, these, were chosen on this row among others.
    FittedOn(Vec<&'static Parameter>),
    /// A model with these fitted parameters, or none; none was chosen on this row.
    Predicted(Vec<&'static Parameter>),
}

/// Whether ours and the paper's agree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Outside it; the row says what the paper leaves out.
    Apart,
    /// Stands beside the authors' measurement and claims nothing.
    Beside,
    /// The paper does not say.
    Open,
}

impl Verdict {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Apart => "**apart**",
            Self::Beside => "beside",
            Self::Open => "",
        }
    }
}

/// What a paper says and ours gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its number in the list of targets; a letter behind it where that has several values.
    pub id: &'static str,
    /// Whose it is.
    pub paper: Paper,
    /// Where it is said.
    pub section: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Of both values; `true` where they are statements that hold (1) or do not (0).
    pub unit: &'static str,
    /// The paper's.
    pub stated: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
    /// How they may be compared.
    pub kind: Kind,
    /// How far apart they may be.
    pub tolerance: Option<Tolerance>,
    /// What ours rests on.
    pub basis: Basis,
    /// What the paper leaves out, where ours is apart; else what a reader should know.
    pub note: &'static str,
}

/// The unit of statements.
const STATEMENT: &str = "true";

impl Row {
    /// A value that follows from what is given: equal to `decimals` of it.
    #[must_use]
    pub fn exact(
        (paper, id, section): (Paper, &'static str, &'static str),
        what: &'static str,
        unit: &'static str,
        (stated, decimals): (f64, usize),
        ours: f64,
    ) -> Self {
        Self {
            stated: Some(stated),
            ours: Some(ours),
            kind: Kind::Exact,
            tolerance: Some(Tolerance::Decimals(decimals)),
            ..Self::bare((paper, id, section), what, unit)
        }
    }

    /// A statement of the paper, such as an order, that has to hold in ours.
    #[must_use]
    pub fn statement(
        place: (Paper, &'static str, &'static str),
        what: &'static str,
        holds: bool,
    ) -> Self {
        Self::exact(place, what, STATEMENT, (1.0, 0), f64::from(u8::from(holds)))
    }

    /// A value that comes out of a model.
    #[must_use]
    pub fn modelled(
        place: (Paper, &'static str, &'static str),
        what: &'static str,
        unit: &'static str,
        (stated, tolerance): (f64, Tolerance),
        ours: f64,
    ) -> Self {
        Self {
            stated: Some(stated),
            ours: Some(ours),
            kind: Kind::Modelled,
            tolerance: Some(tolerance),
            basis: Basis::Predicted(Vec::new()),
            ..Self::bare(place, what, unit)
        }
    }

    /// What the authors measured on hardware or data that this project does not have; none is ours.
    #[must_use]
    pub fn physical(
        place: (Paper, &'static str, &'static str),
        what: &'static str,
        unit: &'static str,
        stated: f64,
    ) -> Self {
        Self { stated: Some(stated), kind: Kind::Physical, ..Self::bare(place, what, unit) }
    }

    /// What the paper shows but its text does not say: a bar, a curve.
    #[must_use]
    pub fn unknown(place: (Paper, &'static str, &'static str), what: &'static str) -> Self {
        Self { kind: Kind::Unknown, ..Self::bare(place, what, "") }
    }

    fn bare(
        (paper, id, section): (Paper, &'static str, &'static str),
        what: &'static str,
        unit: &'static str,
    ) -> Self {
        Self {
            id,
            paper,
            section,
            what,
            unit,
            stated: None,
            ours: None,
            kind: Kind::Unknown,
            tolerance: None,
            basis: Basis::ClosedForm,
            note: "",
        }
    }

    /// The same, resting on parameters that were fitted on it.
    #[must_use]
    pub fn fitted_on(self, parameters: &[&'static Parameter]) -> Self {
        Self { basis: Basis::FittedOn(parameters.to_vec()), ..self }
    }

    /// The same, resting on parameters that were fitted on other rows.
    #[must_use]
    pub fn predicted_with(self, parameters: &[&'static Parameter]) -> Self {
        Self { basis: Basis::Predicted(parameters.to_vec()), ..self }
    }

    /// The same, resting on what papers state and nothing else.
    #[must_use]
    pub fn closed_form(self) -> Self {
        Self { basis: Basis::ClosedForm, ..self }
    }

    /// The same with something that a reader should know.
    #[must_use]
    pub fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// Whether the unit says that the values are statements.
    #[must_use]
    pub fn is_statement(&self) -> bool {
        self.unit == STATEMENT
    }

    /// Whether the two agree.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (Some(stated), Some(ours), Some(tolerance)) = (self.stated, self.ours, self.tolerance)
        else {
            return if self.stated.is_some() { Verdict::Beside } else { Verdict::Open };
        };
        let agrees = match tolerance {
            Tolerance::Decimals(decimals) => {
                format!("{stated:.decimals$}") == format!("{ours:.decimals$}")
            }
            Tolerance::Percent(percent) => (ours - stated).abs() <= stated.abs() * percent / 100.0,
            Tolerance::Points(points) => (ours - stated).abs() <= points,
            Tolerance::AtLeast => ours >= stated,
            Tolerance::AtMost => ours <= stated,
        };
        if agrees { Verdict::Agrees } else { Verdict::Apart }
    }
}

#[cfg(test)]
mod tests {
    use super::{Paper, Row, Tolerance, Verdict};

    const PLACE: (Paper, &str, &str) = (Paper::Fidr, "B0", "1");

    #[test]
    fn a_verdict_follows_from_the_tolerance() {
        let of =
            |tolerance, ours| Row::modelled(PLACE, "", "GB/s", (100.0, tolerance), ours).verdict();
        assert_eq!(of(Tolerance::Percent(5.0), 104.9), Verdict::Agrees);
        assert_eq!(of(Tolerance::Percent(5.0), 94.9), Verdict::Apart);
        assert_eq!(of(Tolerance::Points(3.0), 103.1), Verdict::Apart);
        assert_eq!(of(Tolerance::AtMost, 100.1), Verdict::Apart);
        assert_eq!(of(Tolerance::AtLeast, 100.1), Verdict::Agrees);
        assert_eq!(Row::exact(PLACE, "", "", (9.5, 1), 9.54).verdict(), Verdict::Agrees);
        assert_eq!(Row::exact(PLACE, "", "", (9.5, 2), 9.54).verdict(), Verdict::Apart);
        assert_eq!(Row::statement(PLACE, "", false).verdict(), Verdict::Apart);
    }

    #[test]
    fn what_authors_measured_and_what_nobody_says_claims_nothing() {
        let physical = Row::physical(PLACE, "", "us", 700.0);
        assert_eq!((physical.verdict(), physical.ours), (Verdict::Beside, None));
        let unknown = Row::unknown(PLACE, "");
        assert_eq!(unknown.verdict(), Verdict::Open);
        assert_eq!((unknown.stated, unknown.ours), (None, None));
    }
}
