//! Memory that is not in a near cache is waited for side by side.
//!
//! A processor goes on while it waits for what it reads, as far as it can see: a few hundred
//! instructions. Where to read takes more of them than to read. So all places are found first and
//! read afterwards, one behind the other, and a dozen reads are under way at a time (measured in
//! measurements/032).

use std::hint::black_box;

/// Places that are found before they are read.
const SIDE_BY_SIDE: usize = 256;

/// Reads all of these, so that who wants them next finds them near.
pub(crate) fn bring_near<'a>(places: impl Iterator<Item = &'a u64>) {
    let mut places = places.fuse();
    loop {
        let mut found = [&0; SIDE_BY_SIDE];
        let count = found.iter_mut().zip(&mut places).map(|(at, place)| *at = place).count();
        black_box(found[..count].iter().fold(0, |near, &&word| near ^ word));
        if count < SIDE_BY_SIDE {
            return;
        }
    }
}
