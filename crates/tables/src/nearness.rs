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
    let mut found = [&0; SIDE_BY_SIDE];
    let mut count = 0;
    places.for_each(|place| {
        found[count] = place;
        count += 1;
        if count == SIDE_BY_SIDE {
            read_all(&found);
            count = 0;
        }
    });
    read_all(&found[..count]);
}

fn read_all(places: &[&u64]) {
    black_box(places.iter().fold(0, |near, &&word| near ^ word));
}
