//! What Tamis is held to, and what a run came to: the ratios that issue 7 (Speed) asks for.
//!
//! Who measures says which of its figures are held to what ([`Wanted`]); a page begins with all of
//! them. A figure whose rivals took no part is not among them. What counts is the median as the
//! page shows it, with two digits: more would only be noise.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::samples::Samples;

/// A figure, and what it is held to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Wanted {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) measured: Samples,
    /// What a server that does nothing came to in the same rounds, where that says something.
    pub(crate) nothing: Samples,
    pub(crate) reached: bool,
}

/// How large a figure is wanted.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    /// What was `measured` of `what`, held to `bound`.
    pub(crate) fn new(what: impl Into<String>, bound: Bound, measured: Samples) -> Self {
        let reached = !measured.is_empty() && bound.holds(measured.median());
        Self { what: what.into(), bound, measured, nothing: Samples::default(), reached }
    }

    /// The same, beside what a server that does `nothing` came to.
    pub(crate) fn beside(self, nothing: Samples) -> Self {
        Self { nothing, ..self }
    }
}

impl Bound {
    fn holds(self, median: f64) -> bool {
        let shown = (median * 100.0).round() / 100.0;
        match self {
            Self::AtLeast(least) => shown >= least,
            Self::AtMost(most) => shown <= most,
        }
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::AtMost(most) => write!(f, "at most {most}"),
        }
    }
}

impl Display for Wanted {
    /// A line of the table that [`table`] writes.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what, bound, measured, nothing, reached } = self;
        let verdict = if *reached { "reached" } else { "**missed**" };
        write!(f, "| {what} | {bound} | {measured} | {verdict} |")?;
        if nothing.is_empty() { write!(f, " |") } else { write!(f, " {nothing} |") }
    }
}

/// All of them as Markdown; nothing if there are none.
pub(crate) fn table(f: &mut Formatter<'_>, wanted: &[Wanted]) -> fmt::Result {
    if wanted.is_empty() {
        return Ok(());
    }
    let heads = "| | wanted | measured | | a server that does nothing |\n|---|---|---|---|---|";
    writeln!(f, "\n## What is wanted\n\n{heads}")?;
    wanted.iter().try_for_each(|one| writeln!(f, "{one}"))
}

#[cfg(test)]
mod tests {
    use super::{Bound, Wanted};
    use crate::samples::Samples;

    fn reached(bound: Bound, values: &[f64]) -> bool {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        Wanted::new("speed", bound, samples).reached
    }

    #[test]
    fn the_median_counts_as_it_is_shown() {
        assert!(reached(Bound::AtLeast(2.0), &[1.0, 1.996, 9.0]));
        assert!(!reached(Bound::AtLeast(2.0), &[1.0, 1.99, 9.0]));
        assert!(reached(Bound::AtMost(0.25), &[0.253]));
        assert!(!reached(Bound::AtMost(0.25), &[0.26]));
        assert!(!reached(Bound::AtMost(0.25), &[]), "what was not measured is not reached");
    }
}
