//! What a model is given: each number with its unit and where it comes from. A number that was
//! chosen so that a row of a paper comes out is *fitted*, and says so wherever it is used.

/// Where a parameter comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The paper states it.
    Paper,
    /// It follows from what papers state.
    Derived,
    /// It was chosen so that rows come out.
    Fitted,
}

impl Mark {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Derived => "derived",
            Self::Fitted => "fitted",
        }
    }
}

/// One number that a model is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// Where it comes from.
    pub mark: Mark,
    /// Section of the paper, derivation, or what it was fitted on.
    pub source: &'static str,
}

impl Parameter {
    /// One that the paper states, in this section.
    #[must_use]
    pub const fn stated(
        name: &'static str,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, mark: Mark::Paper, source }
    }

    /// One that follows from what papers state.
    #[must_use]
    pub const fn derived(
        name: &'static str,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, mark: Mark::Derived, source }
    }

    /// One that was chosen so that rows come out.
    #[must_use]
    pub const fn fitted(
        name: &'static str,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, mark: Mark::Fitted, source }
    }
}
