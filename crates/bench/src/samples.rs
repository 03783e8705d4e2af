//! The same thing measured several times: its median and its range.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Measurements of one thing, in the order in which they were made.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// One more.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle one, or the mean of the two in the middle; 0 when there are none.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        let upper = sorted.get(middle).copied().unwrap_or_default();
        match middle.checked_sub(1).and_then(|lower| sorted.get(lower)) {
            Some(lower) if sorted.len().is_multiple_of(2) => f64::midpoint(*lower, upper),
            _ => upper,
        }
    }

    /// Each divided by the one of the same round in `other`.
    pub(crate) fn over(&self, other: &Samples) -> Samples {
        self.each_with(other, |mine, theirs| mine / theirs)
    }

    /// Each with the one of the same round in `other`.
    pub(crate) fn plus(&self, other: &Samples) -> Samples {
        self.each_with(other, |mine, theirs| mine + theirs)
    }

    /// Each divided by the same.
    pub(crate) fn over_number(&self, divisor: f64) -> Samples {
        Samples(self.0.iter().map(|value| value / divisor).collect())
    }

    fn each_with(&self, other: &Samples, both: impl Fn(f64, f64) -> f64) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(mine, theirs)| both(*mine, *theirs)).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl Display for Samples {
    /// `median (min to max)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return write!(f, "-");
        };
        let digits = if *max >= 100.0 { 0 } else { 2 };
        write!(f, "{:.digits$} ({min:.digits$} to {max:.digits$})", self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    fn samples(values: &[f64]) -> Samples {
        Samples(values.to_vec())
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(samples(&[9.0, 1.0, 5.0]).median(), 5.0);
        assert_eq!(samples(&[9.0, 1.0, 5.0, 7.0]).median(), 6.0);
        assert_eq!(samples(&[3.0]).median(), 3.0);
        assert_eq!(samples(&[]).median(), 0.0);
    }

    #[test]
    fn the_range_is_shown() {
        assert_eq!(samples(&[0.5, 0.25, 0.75]).to_string(), "0.50 (0.25 to 0.75)");
        assert_eq!(samples(&[512.0, 99.6, 700.0]).to_string(), "512 (100 to 700)");
        assert_eq!(samples(&[]).to_string(), "-");
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let ratio = samples(&[1.0, 10.0, 4.0]).over(&samples(&[2.0, 10.0, 1.0]));
        assert_eq!(ratio.0, [0.5, 1.0, 4.0]);
    }
}
