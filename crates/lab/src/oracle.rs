//! What a store must hold: every effect in order, and which prefixes explain what is found.
//!
//! The store is a set of registers: each chunk of each volume, each volume's entry (there or not,
//! name, size), the compression. An *effect* gives one register a new value; a request is a row of
//! effects, in the order in which a crash may cut it. Since the last crash all effects are kept,
//! per register as versions. After a crash each register's value allows some prefix lengths; the
//! store is right if one length, not below the flushed one, is allowed by every register.
//!
//! What a request that failed was to change may be there or not (`doubt.rs`).
//!
//! Chunks of a volume that is not found, or beyond its end, cannot be looked at and rule nothing
//! out: the volume's own entry does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use engine::{Codec, Compression, Dedup, VolumeKind};

use crate::failure::Broken;

/// Bytes of a chunk in the lab.
pub(crate) const CHUNK_BYTES: usize = 4096;

/// What has a value of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Register {
    Compression,
    Volume(u32),
    Chunk(u32, u64),
}

/// A volume as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
    pub(crate) read_only: bool,
    /// Chunks that it may map.
    pub(crate) quota: Option<u64>,
    /// Chunks of which the room is its own.
    pub(crate) reserved: Option<u64>,
    /// Whether duplicates are looked for.
    pub(crate) dedup: Dedup,
    /// What new chunks are compressed with, if not with what the store's are.
    pub(crate) codec: Option<Compression>,
    /// Where its chunks are shared.
    pub(crate) domain: Option<String>,
    pub(crate) kind: VolumeKind,
}

impl Entry {
    /// Whether a volume of so many chunks would be less than what is reserved for it.
    pub(crate) fn reserves_more_than(&self, chunks: u64) -> bool {
        self.reserved.is_some_and(|reserved| reserved > chunks)
    }

    pub(crate) fn is_snapshot(&self) -> bool {
        self.name.contains('@')
    }
}

/// What a register can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No volume, or a chunk of zeros.
    Nothing,
    Chunk(Arc<[u8]>),
    Volume(Entry),
    Compression(Compression),
}

impl Value {
    /// A chunk's value: zeros are nothing.
    pub(crate) fn of_chunk(bytes: &[u8]) -> Self {
        if bytes.iter().all(|&byte| byte == 0) { Self::Nothing } else { Self::Chunk(bytes.into()) }
    }
}

/// A store as it is found after a crash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) values: BTreeMap<Register, Value>,
    /// Chunks whose reads fail.
    pub(crate) unreadable: BTreeSet<Register>,
}

impl Found {
    pub(crate) fn volume(&self, slot: u32) -> Option<&Entry> {
        match self.values.get(&Register::Volume(slot)) {
            Some(Value::Volume(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The value of a register, None when it cannot be looked at.
    fn value(&self, register: Register) -> Option<&Value> {
        if let Register::Chunk(slot, lba) = register {
            let size_bytes = self.volume(slot)?.size_bytes;
            if lba >= size_bytes.div_ceil(CHUNK_BYTES as u64) {
                return None;
            }
        }
        Some(self.values.get(&register).unwrap_or(&Value::Nothing))
    }
}

/// Versions of every register since the last crash.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    /// Values at the last crash; absent is nothing.
    base: BTreeMap<Register, Value>,
    /// Versions since: number of the effect (from 1 on) and value.
    versions: BTreeMap<Register, Vec<(usize, Value)>>,
    written: usize,
    /// Lengths that no prefix has: they lie inside of what is one record.
    indivisible: Vec<Range<usize>>,
    /// Containers of each data file that an answered growth has promised.
    pub(crate) grown: Vec<u32>,
    /// Data zones, a bit each, that an answered removal has taken out.
    pub(crate) zones_gone: u64,
    /// A volume may have been deleted and its chunks not be let go yet.
    deleting: bool,
    /// A frame may not have been read that was to be compared: its duplicate is stored unindexed,
    /// and stays so.
    pub(crate) has_asides: bool,
    /// The newest effect of each register that a request had which failed with the disk: it may
    /// have been done or not.
    pub(crate) doubted: BTreeMap<Register, usize>,
    /// The newest effect that was a whole value, and answered well.
    pub(crate) sure: BTreeMap<Register, usize>,
}

impl Default for Oracle {
    fn default() -> Self {
        let compression = Value::Compression(Compression { codec: Codec::Lz4, level: 0 });
        Self {
            base: [(Register::Compression, compression)].into(),
            versions: BTreeMap::new(),
            written: 0,
            indivisible: Vec::new(),
            grown: Vec::new(),
            zones_gone: 0,
            deleting: false,
            has_asides: false,
            doubted: BTreeMap::new(),
            sure: BTreeMap::new(),
        }
    }
}

impl Oracle {
    /// Effects since the last crash.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Adds an effect.
    pub(crate) fn write(&mut self, register: Register, value: Value) {
        self.written += 1;
        self.deleting |= matches!((register, &value), (Register::Volume(_), Value::Nothing));
        self.versions.entry(register).or_default().push((self.written, value));
    }

    /// All effects after the first `before` are one: a crash keeps all of them or none.
    pub(crate) fn join_from(&mut self, before: usize) {
        if before + 1 < self.written {
            self.indivisible.push(before + 1..self.written);
        }
    }

    /// Registers that the effects after the first `before` changed.
    pub(crate) fn changed_after(&self, before: usize) -> Vec<Register> {
        let newest = |versions: &[(usize, Value)]| versions.last().map_or(0, |newest| newest.0);
        let changed = self.versions.iter().filter(|(_, versions)| newest(versions) > before);
        changed.map(|(register, _)| *register).collect()
    }

    /// Chunks of a volume that hold something.
    pub(crate) fn mapped(&self, slot: u32) -> u64 {
        let holds = |lba: &u64| *self.now(Register::Chunk(slot, *lba)) != Value::Nothing;
        self.chunks(slot, 0..u64::MAX).iter().filter(|lba| holds(lba)).count() as u64
    }

    /// Makes the chunks of a volume those of another, one effect for each that differs.
    pub(crate) fn copy_chunks(&mut self, from: u32, to: u32) {
        let mut lbas = self.chunks(from, 0..u64::MAX);
        lbas.append(&mut self.chunks(to, 0..u64::MAX));
        lbas.sort_unstable();
        lbas.dedup();
        for lba in lbas {
            let value = self.now(Register::Chunk(from, lba)).clone();
            if *self.now(Register::Chunk(to, lba)) != value {
                self.write(Register::Chunk(to, lba), value);
            }
        }
    }

    /// Snapshots of a volume, by its name, as they are now.
    pub(crate) fn snapshots_of(&self, name: &str) -> Vec<(u32, Entry)> {
        let prefix = format!("{name}@");
        let slots = self.base.keys().chain(self.versions.keys());
        let mut slots: Vec<u32> = slots
            .filter_map(|register| match register {
                Register::Volume(slot) => Some(*slot),
                _ => None,
            })
            .collect();
        slots.sort_unstable();
        slots.dedup();
        let entries = slots.into_iter().filter_map(|slot| Some((slot, self.volume(slot)?.clone())));
        entries.filter(|(_, entry)| entry.name.starts_with(&prefix)).collect()
    }

    /// Takes back all effects after the first `written`.
    pub(crate) fn withdraw_to(&mut self, written: usize) {
        for versions in self.versions.values_mut() {
            while versions.pop_if(|(number, _)| *number > written).is_some() {}
        }
        self.written = self.written.min(written);
        self.indivisible.retain(|lengths| lengths.end <= written);
    }

    /// What a register holds now.
    pub(crate) fn now(&self, register: Register) -> &Value {
        self.at(register, self.written)
    }

    /// What a register held after the first `written` effects.
    pub(crate) fn at(&self, register: Register, written: usize) -> &Value {
        let versions = self.versions_of(register);
        let newest = versions.iter().rev().find(|(number, _)| *number <= written);
        newest.map_or_else(|| self.base_of(register), |(_, value)| value)
    }

    /// What a register held after the first `since` effects, and all that it has held later.
    pub(crate) fn since(&self, register: Register, since: usize) -> impl Iterator<Item = &Value> {
        let later = self.versions_of(register).iter().filter(move |(number, _)| *number > since);
        std::iter::once(self.at(register, since)).chain(later.map(|(_, value)| value))
    }

    /// Whether a register ever held a value since the last crash, the one at that crash included.
    pub(crate) fn ever_held(&self, register: Register, value: &Value) -> bool {
        self.since(register, 0).any(|held| held == value)
    }

    pub(crate) fn versions_of(&self, register: Register) -> &[(usize, Value)] {
        self.versions.get(&register).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn base_of(&self, register: Register) -> &Value {
        self.base.get(&register).unwrap_or(&Value::Nothing)
    }

    /// Whether a register was ever given a value.
    pub(crate) fn knows(&self, register: Register) -> bool {
        self.base.contains_key(&register) || self.versions.contains_key(&register)
    }

    /// A volume's entry now.
    pub(crate) fn volume(&self, slot: u32) -> Option<&Entry> {
        match self.now(Register::Volume(slot)) {
            Value::Volume(entry) => Some(entry),
            _ => None,
        }
    }

    /// Chunks of a volume in a range that were ever written, in order.
    pub(crate) fn chunks(&self, slot: u32, range: Range<u64>) -> Vec<u64> {
        let range = Register::Chunk(slot, range.start)..Register::Chunk(slot, range.end);
        let keys = self.base.range(range.clone()).map(|(register, _)| *register);
        let keys = keys.chain(self.versions.range(range).map(|(register, _)| *register));
        let mut lbas: Vec<u64> = keys
            .filter_map(|register| match register {
                Register::Chunk(_, lba) => Some(lba),
                _ => None,
            })
            .collect();
        lbas.sort_unstable();
        lbas.dedup();
        lbas
    }

    /// Whether deleted volumes may still hold chunks.
    pub(crate) fn deleting(&self) -> bool {
        self.deleting
    }

    /// A repair has given a volume up: nobody knows any more what it was.
    pub(crate) fn give_up(&mut self, volume: u32) {
        let is_of = |register: &Register| match *register {
            Register::Volume(slot) | Register::Chunk(slot, _) => slot == volume,
            Register::Compression => false,
        };
        self.base.retain(|register, _| !is_of(register));
        self.versions.retain(|register, _| !is_of(register));
        self.deleting = true;
    }

    /// Deleted volumes have let their chunks go.
    pub(crate) fn deletions_ended(&mut self) {
        self.deleting = false;
    }

    /// Whether some prefix explains what is found.
    ///
    /// # Errors
    /// [`Broken::NotAPrefix`] when none does that holds the first `flushed` effects.
    pub(crate) fn explain(&self, flushed: usize, found: &Found) -> Result<(), Broken> {
        let registers = self.base.keys().chain(self.versions.keys()).chain(found.values.keys());
        let mut registers: Vec<Register> = registers.copied().collect();
        // Entries first: they say what can be looked at, and rule out most.
        registers.sort_unstable();
        registers.dedup();
        registers.retain(|register| !found.unreadable.contains(register));
        let values: Vec<(Register, &Value)> = registers
            .into_iter()
            .filter_map(|register| Some((register, found.value(register)?)))
            .collect();
        // How many registers forbid each length, as differences between neighbours.
        let mut forbidding = vec![0_i64; self.written + 2];
        let mut forbid = |lengths: Range<usize>| {
            forbidding[lengths.start] += 1;
            forbidding[lengths.end] -= 1;
        };
        self.indivisible.iter().cloned().for_each(&mut forbid);
        values.iter().for_each(|&(register, value)| self.forbid(register, value, &mut forbid));
        let mut forbid = 0;
        let allows = forbidding[..=self.written].iter().enumerate().any(|(length, change)| {
            forbid += change;
            forbid == 0 && length >= flushed
        });
        if allows { Ok(()) } else { Err(self.not_a_prefix(flushed, &values)) }
    }

    /// No prefix explains these values: the register that left none.
    fn not_a_prefix(&self, flushed: usize, values: &[(Register, &Value)]) -> Broken {
        let mut allowed = vec![true; self.written + 1];
        allowed[..flushed].fill(false);
        self.indivisible.iter().cloned().for_each(|lengths| allowed[lengths].fill(false));
        let last = values.iter().find(|(register, value)| {
            self.forbid(*register, value, |lengths| allowed[lengths].fill(false));
            !allowed.iter().any(|&allowed| allowed)
        });
        Broken::NotAPrefix {
            written: self.written,
            flushed,
            register: last.map_or_else(String::new, |(register, _)| format!("{register:?}")),
            known: last.is_some_and(|(register, value)| self.ever_held(*register, value)),
        }
    }

    /// Different contents of those of these registers that have held one thing only after the first
    /// `since` effects, counted in each domain.
    pub(crate) fn contents(&self, registers: &BTreeSet<Register>, since: usize) -> u64 {
        let mut contents: Vec<_> = registers
            .iter()
            .filter(|register| self.firm_from(**register).is_some())
            .filter(|register| self.since(**register, since).count() == 1)
            .filter_map(|&register| match (register, self.now(register)) {
                (Register::Chunk(slot, _), Value::Chunk(bytes)) => {
                    Some((self.volume(slot)?.domain.as_ref(), bytes))
                }
                _ => None,
            })
            .collect();
        contents.sort_unstable();
        contents.dedup();
        contents.len() as u64
    }

    /// Takes what was found as the new beginning.
    pub(crate) fn settle(&mut self, found: Found) {
        let grown = std::mem::take(&mut self.grown);
        let (deleting, has_asides, zones_gone) = (self.deleting, self.has_asides, self.zones_gone);
        *self = Self {
            base: found.values,
            versions: BTreeMap::new(),
            grown,
            zones_gone,
            deleting,
            has_asides,
            ..Self::default()
        };
        self.base.retain(|_, value| *value != Value::Nothing);
    }

    /// Names the prefix lengths at which a register would hold something else.
    fn forbid(&self, register: Register, value: &Value, mut name: impl FnMut(Range<usize>)) {
        let firm = self.firm_from(register);
        let doubtful = 0..firm.unwrap_or(self.written + 1);
        if !doubtful.is_empty() && !self.ever_made_of(register, doubtful.end, value) {
            name(doubtful);
        }
        let Some(mut start) = firm else { return };
        let mut fits = self.at(register, start) == value;
        let later = self.versions_of(register).iter().filter(|(number, _)| Some(*number) > firm);
        for (number, version) in later {
            if !fits {
                name(start..*number);
            }
            (start, fits) = (*number, version == value);
        }
        if !fits {
            name(start..self.written + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(byte: u8) -> Value {
        Value::of_chunk(&[byte; CHUNK_BYTES])
    }

    fn volume(size_chunks: u64) -> Value {
        let size_bytes = size_chunks * CHUNK_BYTES as u64;
        let name = "v0".to_owned();
        Value::Volume(Entry {
            name,
            size_bytes,
            read_only: false,
            quota: None,
            reserved: None,
            dedup: Dedup::On,
            codec: None,
            domain: None,
            kind: VolumeKind::Block,
        })
    }

    fn found(chunks: &[(u64, u8)]) -> Found {
        let mut found = Found::default();
        let compression = Compression { codec: Codec::Lz4, level: 0 };
        found.values.insert(Register::Compression, Value::Compression(compression));
        found.values.insert(Register::Volume(0), volume(2));
        for &(lba, byte) in chunks {
            found.values.insert(Register::Chunk(0, lba), chunk(byte));
        }
        found
    }

    /// A volume of two chunks, then three writes.
    fn three_writes() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.write(Register::Volume(0), volume(2));
        for (lba, byte) in [(0, 1), (1, 2), (0, 3)] {
            oracle.write(Register::Chunk(0, lba), chunk(byte));
        }
        oracle
    }

    #[test]
    fn every_prefix_is_right() {
        for chunks in [&[][..], &[(0, 1)], &[(0, 1), (1, 2)], &[(0, 3), (1, 2)]] {
            three_writes().explain(0, &found(chunks)).unwrap();
        }
    }

    #[test]
    fn a_hole_in_the_order_is_wrong() {
        assert!(three_writes().explain(0, &found(&[(1, 2)])).is_err());
        assert!(three_writes().explain(0, &found(&[(0, 3)])).is_err());
        assert!(three_writes().explain(0, &found(&[(0, 9)])).is_err());
    }

    #[test]
    fn what_was_flushed_must_be_there() {
        assert!(three_writes().explain(3, &found(&[(0, 1)])).is_err());
        three_writes().explain(3, &found(&[(0, 1), (1, 2)])).unwrap();
    }

    #[test]
    fn volumes_are_points_of_the_order() {
        let mut nothing = found(&[]);
        nothing.values.remove(&Register::Volume(0));
        three_writes().explain(0, &nothing).unwrap();
        assert!(three_writes().explain(1, &nothing).is_err());
        let mut small = found(&[(0, 3)]);
        small.values.insert(Register::Volume(0), volume(1));
        assert!(three_writes().explain(0, &small).is_err(), "it was never so small");
        let mut oracle = three_writes();
        oracle.write(Register::Chunk(0, 1), Value::Nothing);
        assert!(oracle.explain(0, &small).is_err());
        oracle.write(Register::Volume(0), volume(1));
        oracle.explain(0, &small).unwrap();
    }

    #[test]
    fn what_is_withdrawn_was_never_written() {
        let mut oracle = three_writes();
        oracle.withdraw_to(3);
        oracle.explain(3, &found(&[(0, 1), (1, 2)])).unwrap();
        assert!(oracle.explain(0, &found(&[(0, 3), (1, 2)])).is_err());
    }

    #[test]
    fn what_is_one_record_is_there_as_a_whole_or_not_at_all() {
        let mut oracle = three_writes();
        oracle.explain(0, &found(&[(0, 1), (1, 2)])).unwrap();
        oracle.join_from(1);
        assert!(oracle.explain(0, &found(&[(0, 1), (1, 2)])).is_err());
        oracle.explain(0, &found(&[])).unwrap();
        oracle.explain(0, &found(&[(0, 3), (1, 2)])).unwrap();
    }

    #[test]
    fn settled_is_the_new_beginning() {
        let mut oracle = three_writes();
        oracle.settle(found(&[(0, 1)]));
        assert_eq!(oracle.written(), 0);
        assert_eq!(oracle.now(Register::Chunk(0, 0)), &chunk(1));
        assert_eq!(oracle.chunks(0, 0..9), [0]);
    }
}
