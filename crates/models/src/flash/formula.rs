//! The paper's own model (section 4.2): what a write takes where nothing waits.
//!
//! With Table 5 and the ratios of Table 3 it says that EaD is 1.2 to 2.0 times faster than SHA-1.
//! The paper's simulator has 3.4; so most of that must come from queues.

/// Nanoseconds of a write that is hashed: W(1 - r) + H.
#[must_use]
pub fn hashed_ns(program_ns: u64, hash_ns: u64, ratio: f64) -> f64 {
    program_ns as f64 * (1.0 - ratio) + hash_ns as f64
}

/// Nanoseconds of a write with EaD: W(1 - r) + R r.
#[must_use]
pub fn ead_ns(program_ns: u64, read_ns: u64, ratio: f64) -> f64 {
    program_ns as f64 * (1.0 - ratio) + read_ns as f64 * ratio
}

#[cfg(test)]
mod tests {
    use super::{ead_ns, hashed_ns};
    use crate::flash::latency::Latency;

    #[test]
    fn the_formula_gives_less_than_the_paper_measured() {
        let Latency { read_ns, program_ns, sha1_ns, .. } = Latency::EAD;
        let gain = |ratio| {
            let gain = hashed_ns(program_ns, sha1_ns, ratio) / ead_ns(program_ns, read_ns, ratio);
            (gain * 100.0).round() / 100.0
        };
        assert_eq!([0.333, 0.473, 0.910, 0.207].map(gain), [1.20, 1.24, 1.99, 1.17]);
    }

    #[test]
    fn comparing_pays_where_it_takes_less_than_hashing() {
        for percent in 0..=100 {
            let ratio = f64::from(percent) / 100.0;
            let is_faster = ead_ns(100_000, 3_000, ratio) < hashed_ns(100_000, 1_500, ratio);
            assert_eq!(is_faster, 3_000.0 * ratio < 1_500.0, "{percent}%");
        }
    }
}
