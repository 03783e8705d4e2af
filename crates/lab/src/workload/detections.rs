//! How the store of a seed finds duplicates, and among whom.

use engine::{Detection, FingerprintKind};

use crate::dice::mixed;

/// Sixteen seeds are of stores that believe BLAKE3, and sixteen of stores that compare bytes: most
/// with a fingerprint that twins share (`twin_of`).
pub(super) fn detection_of(seed: u64) -> Detection {
    match (seed / 16 % 2, mixed(seed, 10) % 4) {
        (0, _) => Detection::default(),
        (_, 0) => Detection { kind: FingerprintKind::Blake3, verify: true, ..Default::default() },
        _ => Detection { kind: FingerprintKind::Md5, verify: true, ..Default::default() },
    }
}

/// In one seed of three volumes are in two domains or three, the default one included.
pub(super) fn domains_of(seed: u64) -> u32 {
    match mixed(seed, 11) % 6 {
        few @ 1..3 => few as u32,
        _ => 0,
    }
}
