//! What a store must hold: every effect in order, and which prefixes explain what is found.
//!
//! An *effect* gives one chunk of one volume new bytes; a request is a row of effects. Since the
//! last crash all effects are kept, per chunk as versions. After a crash each chunk's bytes allow
//! some prefix lengths; the store is right if one length, not below the flushed one, is allowed by
//! every chunk.

use std::collections::BTreeMap;

use crate::failure::Failure;

/// Bytes of a chunk in the lab.
pub(crate) const CHUNK_BYTES: usize = 4096;

/// A chunk of one of the volumes: volume number and LBA.
pub(crate) type Place = (usize, u64);

/// One chunk's new bytes.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// Where.
    pub(crate) place: Place,
    /// What it reads as afterwards.
    pub(crate) bytes: Vec<u8>,
}

/// Versions of every chunk since the last crash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Bytes of every chunk at the last crash; absent is zeros.
    base: BTreeMap<Place, Vec<u8>>,
    /// Versions since: number of the effect (from 1 on) and bytes.
    versions: BTreeMap<Place, Vec<(usize, Vec<u8>)>>,
    written: usize,
    flushed: usize,
}

impl Oracle {
    /// Effects since the last crash.
    #[must_use]
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Adds an effect.
    pub(crate) fn write(&mut self, effect: Effect) {
        self.written += 1;
        self.versions.entry(effect.place).or_default().push((self.written, effect.bytes));
    }

    /// The first `written` effects are flushed.
    pub(crate) fn flushed(&mut self, written: usize) {
        self.flushed = self.flushed.max(written);
    }

    /// What a chunk reads as now.
    #[must_use]
    pub(crate) fn read(&self, place: Place) -> Vec<u8> {
        let newest = self.versions.get(&place).and_then(|versions| versions.last());
        newest.map(|(_, bytes)| bytes.clone()).unwrap_or_else(|| self.base_of(place))
    }

    fn base_of(&self, place: Place) -> Vec<u8> {
        self.base.get(&place).cloned().unwrap_or_else(|| vec![0; CHUNK_BYTES])
    }

    /// Chunks that were ever written.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let mut places: Vec<Place> =
            self.base.keys().chain(self.versions.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter()
    }

    /// Takes what a store holds after a crash as the new beginning.
    ///
    /// # Errors
    /// [`Failure::NotAPrefix`] when no prefix explains it.
    pub(crate) fn settle(
        &mut self,
        crash: u64,
        volume_name: impl Fn(usize) -> String,
        mut found: impl FnMut(Place) -> Result<Vec<u8>, Failure>,
    ) -> Result<(), Failure> {
        let mut allowed = vec![true; self.written + 1];
        allowed[..self.flushed].fill(false);
        let mut base = BTreeMap::new();
        for place in self.places() {
            let bytes = found(place)?;
            self.rule_out(place, &bytes, &mut allowed);
            if !allowed.iter().any(|&allowed| allowed) {
                return Err(Failure::NotAPrefix {
                    crash,
                    written: self.written,
                    flushed: self.flushed,
                    lba: place.1,
                    volume: volume_name(place.0),
                });
            }
            base.insert(place, bytes);
        }
        *self = Self { base, ..Self::default() };
        Ok(())
    }

    /// Forbids the prefix lengths at which a chunk would read as something else.
    fn rule_out(&self, place: Place, bytes: &[u8], allowed: &mut [bool]) {
        let mut start = 0;
        let mut fits = self.base_of(place) == bytes;
        let versions = self.versions.get(&place).map_or(&[][..], Vec::as_slice);
        for (number, version) in versions {
            if !fits {
                allowed[start..*number].fill(false);
            }
            (start, fits) = (*number, version == bytes);
        }
        if !fits {
            allowed[start..].fill(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(byte: u8) -> Vec<u8> {
        vec![byte; CHUNK_BYTES]
    }

    fn settle(oracle: &mut Oracle, found: &[(Place, u8)]) -> Result<(), Failure> {
        let found: BTreeMap<Place, u8> = found.iter().copied().collect();
        let name = |volume: usize| format!("v{volume}");
        oracle.settle(1, name, |place| Ok(chunk(found.get(&place).copied().unwrap_or(0))))
    }

    fn three_writes() -> Oracle {
        let mut oracle = Oracle::default();
        for (lba, byte) in [(0, 1), (1, 2), (0, 3)] {
            oracle.write(Effect { place: (0, lba), bytes: chunk(byte) });
        }
        oracle
    }

    #[test]
    fn every_prefix_is_right() {
        for found in [&[][..], &[((0, 0), 1)], &[((0, 0), 1), ((0, 1), 2)]] {
            settle(&mut three_writes(), found).unwrap();
        }
        settle(&mut three_writes(), &[((0, 0), 3), ((0, 1), 2)]).unwrap();
    }

    #[test]
    fn a_hole_in_the_order_is_wrong() {
        assert!(settle(&mut three_writes(), &[((0, 1), 2)]).is_err());
        assert!(settle(&mut three_writes(), &[((0, 0), 3)]).is_err());
    }

    #[test]
    fn what_was_flushed_must_be_there() {
        let mut oracle = three_writes();
        oracle.flushed(2);
        assert!(settle(&mut oracle, &[((0, 0), 1)]).is_err());
        let mut oracle = three_writes();
        oracle.flushed(2);
        settle(&mut oracle, &[((0, 0), 1), ((0, 1), 2)]).unwrap();
    }
}
