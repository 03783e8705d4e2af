//! Chunks as rows of sectors, and the index key that EaD makes of their codes.

use blake2::Blake2b;
use format::units::Fingerprint;
use sha2::digest::Digest;
use sha2::digest::consts::U10;

/// What a flash device protects with one code.
pub(super) const SECTOR_BYTES: usize = 512;

/// Sectors whose codes are made side by side: as many as the registers of a processor hold, and
/// none of them waits for a look-up of its own. Eight were a quarter slower, one half as fast.
const SIDE_BY_SIDE: usize = 4;

/// BLAKE2b, with a digest of ten bytes, of the codes of all sectors of a chunk; a last part of a
/// sector counts as one that ends in zeros. The code's function is given for several and for one.
pub(super) fn key<const CODE_BYTES: usize>(
    chunk: &[u8],
    several: impl Fn(&[[u8; SECTOR_BYTES]; SIDE_BY_SIDE]) -> [[u8; CODE_BYTES]; SIDE_BY_SIDE],
    one: impl Fn(&[[u8; SECTOR_BYTES]; 1]) -> [[u8; CODE_BYTES]; 1],
) -> Fingerprint {
    let mut hash = Blake2b::<U10>::new();
    let (sectors, rest) = chunk.as_chunks::<SECTOR_BYTES>();
    let (groups, single) = sectors.as_chunks::<SIDE_BY_SIDE>();
    for group in groups {
        hash.update(several(group).as_flattened());
    }
    for sector in single {
        hash.update(one(&[*sector]).as_flattened());
    }
    if !rest.is_empty() {
        let mut sector = [0; SECTOR_BYTES];
        sector[..rest.len()].copy_from_slice(rest);
        hash.update(one(&[sector]).as_flattened());
    }
    Fingerprint::padded(&hash.finalize())
}
