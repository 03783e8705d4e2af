//! What a store that is damaged was told to hold, and what reading all of it comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use engine::OpenVolume;

use crate::damage::driver::{ChunkRead, Driver};
use crate::dice::Dice;
use crate::oracle::CHUNK_BYTES;

/// Number of a volume, and a chunk in it.
pub(crate) type Place = (usize, u64);

/// Chunks of a volume.
pub(crate) const VOLUME_CHUNKS: u64 = 2500;
pub(crate) const VOLUMES: usize = 4;
/// How many chunks are read at once, as long as all of them can be.
const CHUNKS_AT_ONCE: u64 = 50;
const _: () = assert!(VOLUME_CHUNKS.is_multiple_of(CHUNKS_AT_ONCE));

/// How many bytes of content `number` are random; the rest is zeros.
fn random_bytes(number: u64) -> usize {
    match number {
        0 => 0,
        _ if number.is_multiple_of(4) => CHUNK_BYTES,
        _ => CHUNK_BYTES / 2,
    }
}

/// Bytes of content `number`; 0 is zeros.
pub(crate) fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut dice = Dice::new(number);
    for word in bytes[..random_bytes(number)].chunks_exact_mut(8) {
        word.copy_from_slice(&dice.roll().to_le_bytes());
    }
    bytes
}

/// Whether a chunk is content `number`.
pub(crate) fn is_content(number: u64, chunk: &[u8]) -> bool {
    let (random, zeros) = chunk.split_at(random_bytes(number));
    let mut dice = Dice::new(number);
    random.chunks(8).all(|word| word == dice.roll().to_le_bytes())
        && zeros.iter().all(|&byte| byte == 0)
}

/// Name of a volume.
pub(crate) fn volume_name(volume: usize) -> String {
    format!("v{volume}")
}

/// Every version of every chunk, in the order in which they came: each makes one effect.
///
/// A store holds the first so many effects, one number for all chunks: the *cut*.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    /// Number of the effect and content, newest last; absent: zeros always.
    versions: BTreeMap<Place, Vec<(u64, u64)>>,
    /// The effect that made each volume.
    made: BTreeMap<usize, u64>,
    /// Effects there were.
    written: u64,
    /// Of those, the ones that a flush or a close was answered for.
    flushed: u64,
    /// The same of the one before it: a durable record says so.
    proven: u64,
    /// The ones that both roots hold.
    rooted: u64,
    /// What writes and trims that failed were to leave, and after which effect they came.
    doubted: BTreeMap<Place, (u64, Vec<u64>)>,
}

/// From which effects on a store may hold them or not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// What was flushed is there.
    Flushed,
    /// But for what only the last flush wrote.
    Proven,
    /// But for what is younger than the older root: records are lost.
    Rooted,
    /// Any moment at all: a root came back from one.
    Nothing,
}

/// What reading a whole store came to.
#[derive(Default)]
pub(crate) struct Reading {
    /// Chunks whose reads are errors.
    pub(crate) failed: BTreeSet<Place>,
    /// What the first of them said.
    pub(crate) error: String,
    /// Whether effects are missing.
    pub(crate) is_older: bool,
    /// What must not be, in sentences.
    pub(crate) wrong: Vec<String>,
    /// The first and the last cut that explain all that can be read.
    cuts: Option<(u64, u64)>,
    /// Content of each chunk that says something of the cut.
    held: Vec<(Place, u64)>,
    /// Volumes that are there.
    there: BTreeSet<usize>,
}

impl Truth {
    /// A chunk was written.
    pub(crate) fn write(&mut self, place: Place, number: u64) {
        self.written += 1;
        self.versions.entry(place).or_default().push((self.written, number));
    }

    /// Chunks of a volume were trimmed, from the first one on.
    pub(crate) fn trim(&mut self, volume: usize, lbas: Range<u64>) {
        for (_, versions) in self.versions.range_mut((volume, lbas.start)..(volume, lbas.end)) {
            self.written += 1;
            versions.push((self.written, 0));
        }
    }

    /// A write or a trim failed that was to leave this content.
    pub(crate) fn doubt(&mut self, place: Place, number: u64) {
        let (since, numbers) = self.doubted.entry(place).or_default();
        *since = self.written;
        numbers.push(number);
    }

    /// A volume was made.
    pub(crate) fn make(&mut self, volume: usize) {
        self.written += 1;
        self.made.insert(volume, self.written);
    }

    /// A volume was made of what another one holds.
    pub(crate) fn make_clone(&mut self, of: usize, volume: usize) {
        self.make(volume);
        let newest = |(place, versions): (&Place, &Vec<(u64, u64)>)| {
            Some(((volume, place.1), vec![(self.written, versions.last()?.1)]))
        };
        let cloned: Vec<_> = self.versions.range((of, 0)..(of + 1, 0)).filter_map(newest).collect();
        self.versions.extend(cloned);
    }

    /// All that was written is durable.
    pub(crate) fn flush(&mut self) {
        if self.written > self.flushed {
            (self.proven, self.flushed) = (self.flushed, self.written);
        }
        let versions = &self.versions;
        let newest =
            |place: &Place| versions.get(place).and_then(|all| all.last()).map_or(0, |of| of.0);
        self.doubted.retain(|place, (since, _)| newest(place) <= *since);
    }

    /// The store was closed for the first time: no root that there is from now on is older.
    pub(crate) fn root(&mut self) {
        self.flush();
        self.rooted = self.written;
    }

    fn floor(&self, floor: Floor) -> u64 {
        match floor {
            Floor::Flushed => self.flushed,
            Floor::Proven => self.proven,
            Floor::Rooted => self.rooted,
            Floor::Nothing => 0,
        }
    }

    /// The content of a chunk after the first `cut` effects.
    fn at(&self, place: Place, cut: u64) -> u64 {
        let versions = self.versions.get(&place).map_or(&[][..], Vec::as_slice);
        versions.iter().rev().find(|(effect, _)| *effect <= cut).map_or(0, |(_, number)| *number)
    }

    /// Whether a chunk may hold nothing.
    pub(crate) fn may_be_hole(&self, place: Place, floor: Floor) -> bool {
        let first = self.floor(floor);
        let versions = self.versions.get(&place).map_or(&[][..], Vec::as_slice);
        let is_hole = |(effect, number): &(u64, u64)| *effect > first && *number == 0;
        self.at(place, first) == 0
            || versions.iter().any(is_hole)
            || self.doubted.contains_key(&place)
    }

    /// Chunks that do not hold what was flushed last, nor anything later, and those of volumes that
    /// are not there.
    pub(crate) fn older(&self, reading: &Reading) -> BTreeSet<Place> {
        let is_later = |place: &Place, number: u64| {
            let versions = self.versions.get(place).map_or(&[][..], Vec::as_slice);
            versions.iter().any(|(effect, of)| *effect > self.flushed && *of == number)
        };
        let is_older = |(place, number): &&(Place, u64)| {
            self.at(*place, self.flushed) != *number
                && !is_later(place, *number)
                && !self.doubted.contains_key(place)
        };
        let read = reading.held.iter().filter(is_older).map(|(place, _)| *place);
        let is_gone = |volume: &usize| {
            self.made.get(volume).is_some_and(|made| *made <= self.flushed)
                && !reading.there.contains(volume)
        };
        let of_gone = self.versions.keys().filter(|place| is_gone(&place.0)).copied();
        read.chain(of_gone.filter(|place| self.at(*place, self.flushed) != 0)).collect()
    }

    /// Whether nothing durable says that what a chunk holds was flushed.
    pub(crate) fn is_unproven(&self, place: &Place) -> bool {
        let versions = self.versions.get(place).map_or(&[][..], Vec::as_slice);
        versions.iter().any(|(effect, _)| (self.proven + 1..=self.flushed).contains(effect))
    }

    /// Reads every chunk: one cut, not below the floor, must explain all of them.
    pub(crate) fn read_all(&self, driver: &mut Driver, floor: Floor) -> Reading {
        let mut reading = Reading::default();
        for volume in 0..VOLUMES {
            if let Some(handle) = driver.volume(&volume_name(volume)) {
                reading.there.insert(volume);
                if !self.read_volume(driver, volume, &handle, &mut reading) {
                    return reading;
                }
            }
        }
        self.explain(self.floor(floor), &mut reading);
        reading
    }

    /// Reads a volume; false if a read hangs.
    fn read_volume(
        &self,
        driver: &mut Driver,
        volume: usize,
        handle: &OpenVolume,
        reading: &mut Reading,
    ) -> bool {
        for first in (0..VOLUME_CHUNKS).step_by(CHUNKS_AT_ONCE as usize) {
            let places = (first..first + CHUNKS_AT_ONCE).map(|lba| (volume, lba));
            let read = driver.read_chunks(handle, first, CHUNKS_AT_ONCE);
            if let ChunkRead::Bytes(bytes) = read {
                for (place, chunk) in places.zip(bytes.chunks(CHUNK_BYTES)) {
                    self.look_at(place, chunk, reading);
                }
                continue;
            }
            for place in places {
                match driver.read(handle, place.1) {
                    ChunkRead::Hangs => {
                        reading.wrong.push(format!("the read of {place:?} hangs"));
                        return false;
                    }
                    ChunkRead::Failed(error) => {
                        if reading.failed.is_empty() {
                            reading.error = error;
                        }
                        reading.failed.insert(place);
                    }
                    ChunkRead::Bytes(chunk) => self.look_at(place, &chunk, reading),
                }
            }
        }
        true
    }

    fn look_at(&self, place: Place, chunk: &[u8], reading: &mut Reading) {
        let versions = self.versions.get(&place).map_or(&[][..], Vec::as_slice);
        let numbers = versions.iter().rev().map(|(_, number)| *number).chain([0]);
        let is_held = |number: &u64| is_content(*number, chunk);
        if let Some(number) = numbers.into_iter().find(is_held) {
            reading.held.push((place, number));
        } else if !self.doubted.get(&place).is_some_and(|(_, of)| of.iter().any(is_held)) {
            reading.wrong.push(format!("wrong bytes in chunk {} of v{}", place.1, place.0));
        }
    }

    /// Finds the cuts that explain what was read.
    fn explain(&self, floor: u64, reading: &mut Reading) {
        // How much forbids each cut, as differences between neighbours.
        let mut forbidding = vec![0_i64; self.written as usize + 2];
        let mut forbid = |cuts: Range<u64>| {
            forbidding[cuts.start as usize] += 1;
            forbidding[cuts.end as usize] -= 1;
        };
        self.forbid_volumes(&reading.there, &mut forbid);
        reading.held.iter().for_each(|held| self.forbid(*held, &mut forbid));
        let mut forbid = 0;
        let allows = |(cut, change): (u64, &i64)| {
            forbid += change;
            (forbid == 0 && (floor..=self.written).contains(&cut)).then_some(cut)
        };
        let allowed: Vec<u64> = (0..).zip(&forbidding).filter_map(allows).collect();
        reading.cuts = allowed.first().copied().zip(allowed.last().copied());
        match reading.cuts {
            Some((_, last)) => reading.is_older = last < self.written,
            None => reading.wrong.push(self.not_a_prefix(floor, reading)),
        }
    }

    /// What rules out the last cut.
    fn not_a_prefix(&self, floor: u64, reading: &Reading) -> String {
        let mut allowed = vec![true; self.written as usize + 1];
        allowed[..floor as usize].fill(false);
        let forbid = |allowed: &mut Vec<bool>, cuts: Range<u64>| {
            allowed[cuts.start as usize..cuts.end as usize].fill(false);
        };
        self.forbid_volumes(&reading.there, |cuts| forbid(&mut allowed, cuts));
        let why = match allowed.contains(&true) {
            false => format!("of the volumes v{:?} alone are there", reading.there),
            true => {
                let last = reading.held.iter().find(|held| {
                    self.forbid(**held, |cuts| forbid(&mut allowed, cuts));
                    !allowed.contains(&true)
                });
                last.map_or_else(String::new, |(place, number)| {
                    format!("old bytes in chunk {} of v{} ({number})", place.1, place.0)
                })
            }
        };
        let (written, flushed) = (self.written, self.flushed);
        format!("no cut from {floor} on of {written} effects, {flushed} flushed: {why}")
    }

    /// Names the cuts at which other volumes would be there.
    fn forbid_volumes(&self, there: &BTreeSet<usize>, mut name: impl FnMut(Range<u64>)) {
        for (volume, made) in &self.made {
            match there.contains(volume) {
                true => name(0..*made),
                false => name(*made..self.written + 1),
            }
        }
    }

    /// Names the cuts at which a chunk would hold something else.
    fn forbid(&self, (place, number): (Place, u64), mut name: impl FnMut(Range<u64>)) {
        if self.doubted.get(&place).is_some_and(|(_, numbers)| numbers.contains(&number)) {
            return;
        }
        let (mut start, mut held) = (0, 0);
        for &(effect, next) in self.versions.get(&place).map_or(&[][..], Vec::as_slice) {
            if held != number {
                name(start..effect);
            }
            (start, held) = (effect, next);
        }
        if held != number {
            name(start..self.written + 1);
        }
    }

    /// The store goes on from what was read: what it does not hold never comes back. Of a chunk
    /// that cannot be read nobody knows at which of several cuts it is.
    pub(crate) fn settle(&mut self, reading: &Reading) {
        let Some((first, last)) = reading.cuts else { return };
        for (place, versions) in &mut self.versions {
            versions.retain(|(effect, _)| *effect <= last);
            if reading.failed.contains(place) {
                let earlier = versions.iter().rev().find(|(effect, _)| *effect <= first);
                let between = versions.iter().filter(|(effect, _)| *effect > first);
                let numbers: Vec<u64> = between.map(|(_, number)| *number).collect();
                if !numbers.is_empty() {
                    let (_, doubted) = self.doubted.entry(*place).or_insert((last, Vec::new()));
                    doubted.extend(numbers);
                    doubted.push(earlier.map_or(0, |(_, number)| *number));
                }
            }
        }
        self.made.retain(|_, made| *made <= last);
        self.written = last;
        (self.flushed, self.proven) = (last, last);
        self.rooted = self.rooted.min(last);
    }
}
