//! What the oracle leaves open: effects of requests that failed with the disk may be there or not.
//!
//! A chunk with such an effect holds, sector by sector, something that it has held since the last
//! crash; until a write of all of it is answered well, from which on it holds what was written.

use crate::oracle::{CHUNK_BYTES, Oracle, Register, Value};

const SECTOR_BYTES: usize = 512;

/// What a request changes: one effect for each register, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changed {
    pub(crate) registers: Vec<Register>,
    /// Effects before the first.
    pub(crate) before: usize,
    /// Whether nothing of what the registers held is left.
    pub(crate) whole: bool,
}

impl Changed {
    /// Number and register of each effect.
    fn effects(&self) -> impl Iterator<Item = (usize, Register)> {
        (self.before + 1..).zip(self.registers.iter().copied())
    }
}

impl Oracle {
    /// A request failed that was to have these effects.
    pub(crate) fn doubt(&mut self, changed: &Changed) {
        for (number, register) in changed.effects() {
            let newest = self.doubted.entry(register).or_default();
            *newest = number.max(*newest);
        }
    }

    /// A request failed that was to have all effects after the first `before`.
    pub(crate) fn doubt_from(&mut self, before: usize) {
        for register in self.changed_after(before) {
            self.doubted.insert(register, self.written());
        }
    }

    /// Whether a failed request leaves open what some chunk of a volume holds.
    pub(crate) fn has_doubts(&self, slot: u32) -> bool {
        let mut chunks = self
            .doubted
            .keys()
            .filter(|register| matches!(register, Register::Chunk(of, _) if *of == slot));
        chunks.any(|register| self.firm_from(*register).is_none())
    }

    /// A request was answered well that had these effects.
    pub(crate) fn note_answered(&mut self, changed: &Changed) {
        for (number, register) in changed.effects().filter(|_| changed.whole) {
            let newest = self.sure.entry(register).or_default();
            *newest = number.max(*newest);
        }
    }

    /// From how many effects on a register holds what they say; none if it may hold anything that
    /// it ever has.
    pub(crate) fn firm_from(&self, register: Register) -> Option<usize> {
        let Some(doubted) = self.doubted.get(&register) else { return Some(0) };
        self.sure.get(&register).copied().filter(|sure| sure > doubted)
    }

    /// Whether a chunk may read so, from byte `start` of it on, when it is asked for after the
    /// first `since` effects.
    pub(crate) fn may_read(
        &self,
        register: Register,
        since: usize,
        start: usize,
        read: &[u8],
    ) -> bool {
        if self.firm_from(register).is_some_and(|firm| firm <= since) {
            return self.since(register, since).any(|value| value.reads_as(start, read));
        }
        is_made_of(self.since(register, 0), start, read)
    }

    /// Whether a chunk may be a hole when that is asked for after the first `since` effects.
    pub(crate) fn may_be_nothing(&self, register: Register, since: usize) -> bool {
        let is_firm = self.firm_from(register).is_some_and(|firm| firm <= since);
        let since = if is_firm { since } else { 0 };
        self.since(register, since).any(|value| *value == Value::Nothing)
    }

    /// Whether a value is one that a register can have before effect `end`, if each may be there or
    /// not: that of a chunk sector by sector.
    pub(crate) fn ever_made_of(&self, register: Register, end: usize, value: &Value) -> bool {
        let earlier = self.versions_of(register).iter().filter(|(number, _)| *number < end);
        let mut values =
            std::iter::once(self.base_of(register)).chain(earlier.map(|(_, value)| value));
        match (register, value) {
            (Register::Chunk(..), Value::Chunk(bytes)) => is_made_of(values, 0, bytes),
            (Register::Chunk(..), _) => is_made_of(values, 0, &[0; CHUNK_BYTES]),
            _ => values.any(|held| held == value),
        }
    }
}

impl Value {
    /// Whether a chunk of this value reads so, from byte `start` of it on.
    fn reads_as(&self, start: usize, read: &[u8]) -> bool {
        match self {
            Self::Chunk(chunk) => &chunk[start..start + read.len()] == read,
            _ => read.iter().all(|&byte| byte == 0),
        }
    }
}

/// Whether each sector read is that of some value.
fn is_made_of<'a>(values: impl Iterator<Item = &'a Value>, start: usize, read: &[u8]) -> bool {
    let values: Vec<&Value> = values.collect();
    let sectors = (start..).step_by(SECTOR_BYTES).zip(read.chunks(SECTOR_BYTES));
    sectors.into_iter().all(|(at, sector)| values.iter().any(|value| value.reads_as(at, sector)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Entry, Found};

    const CHUNK: Register = Register::Chunk(0, 0);

    /// A chunk whose sectors hold these bytes, in turn.
    fn chunk(sectors: [u8; 2]) -> Vec<u8> {
        (0..CHUNK_BYTES).map(|at| sectors[at / SECTOR_BYTES % 2]).collect()
    }

    fn volume() -> Value {
        Value::Volume(Entry {
            name: "v0".to_owned(),
            size_bytes: CHUNK_BYTES as u64,
            read_only: false,
            quota: None,
            reserved: None,
            dedup: engine::Dedup::On,
            codec: None,
            domain: None,
            kind: Default::default(),
        })
    }

    /// A volume of one chunk of ones, in which a write failed that was to make some of them twos,
    /// and then one that was to make the rest threes.
    fn doubtful() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.write(Register::Volume(0), volume());
        for sectors in [[1, 1], [1, 2], [3, 2]] {
            oracle.write(CHUNK, Value::of_chunk(&chunk(sectors)));
        }
        oracle.doubt(&Changed { registers: vec![CHUNK, CHUNK], before: 2, whole: false });
        oracle
    }

    /// The same, and all of it written again.
    fn written_again() -> Oracle {
        let mut oracle = doubtful();
        oracle.write(CHUNK, Value::of_chunk(&chunk([4, 4])));
        oracle.note_answered(&Changed { registers: vec![CHUNK], before: 4, whole: true });
        oracle
    }

    fn explains(oracle: &Oracle, flushed: usize, sectors: [u8; 2]) -> bool {
        let mut found = Found::default();
        let compression = oracle.now(Register::Compression).clone();
        found.values.insert(Register::Compression, compression);
        found.values.insert(Register::Volume(0), volume());
        found.values.insert(CHUNK, Value::of_chunk(&chunk(sectors)));
        oracle.explain(flushed, &found).is_ok()
    }

    #[test]
    fn what_failed_is_there_or_not_sector_by_sector() {
        let oracle = doubtful();
        for sectors in [[1, 1], [1, 2], [3, 1], [3, 2], [0, 1]] {
            assert!(oracle.may_read(CHUNK, 4, 0, &chunk(sectors)), "{sectors:?}");
            assert!(explains(&oracle, 4, sectors), "{sectors:?}");
        }
        for sectors in [[2, 1], [9, 1], [1, 3]] {
            assert!(!oracle.may_read(CHUNK, 4, 0, &chunk(sectors)), "{sectors:?}");
            assert!(!explains(&oracle, 0, sectors), "{sectors:?}");
        }
    }

    #[test]
    fn a_whole_write_that_was_answered_ends_the_doubt() {
        let oracle = written_again();
        assert!(!oracle.may_read(CHUNK, 5, 0, &chunk([1, 1])));
        assert!(oracle.may_read(CHUNK, 4, 0, &chunk([1, 1])), "it was asked for before");
        assert!(!explains(&oracle, 5, [1, 1]));
        assert!(explains(&oracle, 4, [1, 1]) && explains(&oracle, 5, [4, 4]));
    }
}
