//! What the paper has, beside which ours is put, and where it disagrees with itself.
//!
//! A cell that the paper leaves open is never filled: its kind is unknown, and so it stays.

use super::strategy::Strategy;

/// How many times as long a write takes as with EaD, on average over the four traces (section
/// 4.4). For BLAKE2, and for no deduplication, the simulator has no figure.
pub(super) fn gain(strategy: Strategy) -> Option<f64> {
    match strategy {
        Strategy::Sha1 => Some(3.4),
        Strategy::Sha256 => Some(6.7),
        Strategy::Sampling => Some(4.1),
        Strategy::None | Strategy::Blake2 | Strategy::Ead => None,
    }
}

/// The four cases, in percent of the writes (Table 4), in the order of Table 2's data sets.
pub(super) const CASES: [[f64; 4]; 4] = [
    [47.29, 3.62, 0.08, 49.01],
    [7.36, 0.002, 0.018, 92.62],
    [60.82, 3.08, 0.06, 36.04],
    [24.78, 0.40, 0.0, 74.82],
];

/// The best prefetch distances (section 4.3), in the same order. They were measured on a real SSD.
pub(super) const BEST_DISTANCES: [u64; 4] = [5, 2, 5, 5];

/// Where the paper disagrees with itself, or with what it cites.
pub const INCONSISTENCIES: [&str; 7] = [
    "Section 4.4 has four gains (3.4, 6.7, 4527.7, 4.1) for three baselines; 4527.7 fits nothing: \
     taken as damaged text, and compared with nothing.",
    "The paper's formula gives a gain of 1.20, 1.24, 1.99 and 1.17 over SHA-1 on its four traces; \
     its simulator has 3.4 on average. The rest must be waiting, and it does not say how requests \
     come.",
    "\"An average of 2.5\" (abstract, section 4.2) is not the mean of 2.8, 2.6, 4.2 and 2.7, which \
     is 3.1; of what it is the average is not said.",
    "\"The 8-byte BCH-based ECC code word by default\" (section 4.2) is 104 bytes everywhere else.",
    "Figure 15 is cited where Figure 11 is meant (section 4.2).",
    "SHA-1 of 4 KiB takes 40 us at 500 MHz and more than 50 us at 300 MHz in real controllers \
     (section 2.1); Table 5 has 14.3 us, at 1.4 GHz. The gains are stated as lower bounds.",
    "Table 5 has no SHA-256, no erase, no channel and no queue. SHA-256 is twice SHA-1 here, as \
     section 4.2 measured; an erase is assumed; the others are left out.",
];
