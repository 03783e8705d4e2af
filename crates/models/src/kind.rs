//! How a figure of a paper and one of ours may be compared: the four kinds of
//! `docs/reproduction.md`.

use serde::Serialize;

/// How a figure of the paper and one of ours may be compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It follows from what is given, and has to be equal.
    Exact,
    /// It comes out of a model; ours is to be near.
    Modelled,
    /// It was measured on hardware or data that this project does not have.
    Physical,
    /// The paper does not say.
    Unknown,
}

impl Kind {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Modelled => "modelled",
            Self::Physical => "physical",
            Self::Unknown => "unknown",
        }
    }
}
