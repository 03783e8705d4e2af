//! What a workload asks beside its reads and writes, with chances of their own: snapshots, clones,
//! quotas, collection on request.

use super::{Believed, SECTORS, Workload};
use crate::script::{Request, Verb};
use engine::{Codec, Compression, Dedup};

/// Sectors that doors answer at most.
const DOOR_SECTORS: u64 = 64;

impl Workload<'_> {
    /// Now and then something is asked of snapshots and clones besides.
    pub(super) fn version_request(&mut self) -> Option<Request> {
        if !self.versions.once_in(6) {
            return None;
        }
        let verb = self.version_verb()?;
        let steps = self.versions.below(12) as u32;
        Some(Request { verb, steps })
    }

    /// Now and then a volume gets a quota or loses it, or a container is collected on request: in
    /// one seed of three, for a write at a quota is waited for, and less is under way then.
    pub(super) fn extra_request(&mut self) -> Option<Request> {
        if !self.extras.once_in(8) {
            return None;
        }
        let steps = self.extras.below(12) as u32;
        let verb = if self.extras.once_in(3) {
            let at = self.extras.below(self.volumes.len().max(1) as u64) as usize;
            let volume = self.volumes.get(at).filter(|volume| !volume.read_only)?.number;
            let none = self.extras.once_in(2);
            let chunks = if none { 0 } else { 1 + self.extras.below(300) };
            Verb::Quota { volume, chunks }
        } else {
            Verb::Collect { recompress: self.extras.once_in(2) }
        };
        Some(Request { verb, steps })
    }

    /// Now and then duplicates are looked for in a volume no more, again, or as long as there are
    /// some: in one seed of five, for what is stored then is not counted to the chunk.
    pub(super) fn dedup_request(&mut self) -> Option<Request> {
        if !self.dedups.once_in(12) {
            return None;
        }
        let at = self.dedups.below(self.volumes.len().max(1) as u64) as usize;
        let volume = self.volumes.get(at)?.number;
        let dedup = match self.dedups.below(3) {
            0 => Dedup::On,
            1 => Dedup::Off,
            _ => Dedup::Auto,
        };
        Some(Request { verb: Verb::Dedup { volume, dedup }, steps: self.dedups.below(12) as u32 })
    }

    /// Now and then a volume gets a codec of its own, or follows the store again; in a tight store
    /// it gets room of its own, or loses it.
    pub(super) fn codec_request(&mut self) -> Option<Request> {
        if !self.shape.has_codecs() || !self.dedups.once_in(10) {
            return None;
        }
        let at = self.dedups.below(self.volumes.len().max(1) as u64) as usize;
        let volume = self.volumes.get(at)?.number;
        if self.shape.tight && self.dedups.once_in(2) {
            let chunks = self.dedups.below(4) * self.dedups.below(100);
            let verb = Verb::Promise { volume, chunks };
            return Some(Request { verb, steps: self.dedups.below(12) as u32 });
        }
        let compression = match self.dedups.below(4) {
            0 => None,
            1 => Some(Compression { codec: Codec::Raw, level: 0 }),
            2 => Some(Compression { codec: Codec::Lz4, level: 0 }),
            _ => Some(Compression { codec: Codec::Zstd, level: 1 }),
        };
        let verb = Verb::Codec { volume, compression };
        Some(Request { verb, steps: self.dedups.below(12) as u32 })
    }

    /// Now and then a volume maps what another one does, or what it does itself elsewhere; and the
    /// next request may be to what is still being copied.
    pub(super) fn copy_requests(&mut self) -> Vec<Request> {
        if !self.copies.once_in(5) {
            return Vec::new();
        }
        let Some((from, to)) = self.copied_from().zip(self.copied_to()) else { return Vec::new() };
        let chunks = match self.copies.below(16) {
            0 => 3000,
            1..4 => 200,
            _ => 24,
        };
        let count = SECTORS * (1 + self.copies.below(chunks));
        let [from_first, to_first] = [&from, &to].map(|volume| self.copied_place(volume));
        let (from, to, durable) = (from.number, to.number, self.copies.once_in(8));
        let verb = Verb::Copy { from, from_first, to, to_first, count, durable };
        let steps = if self.copies.once_in(2) { 0 } else { self.copies.below(12) as u32 };
        let mut requests = vec![Request { verb, steps }];
        let first = to_first + self.copies.below(count.min(24 * SECTORS));
        let verb = match self.copies.below(4) {
            0 => Verb::Read { volume: to, first, count: 1 + self.copies.below(40) },
            1 => {
                let (count, content) = (1 + self.copies.below(4), self.copies.roll() % (1 << 32));
                Verb::Write { volume: to, first, count, content, durable: false }
            }
            _ => return requests,
        };
        requests.push(Request { verb, steps: self.copies.below(6) as u32 });
        requests
    }

    /// Any volume, clone or snapshot.
    fn copied_from(&mut self) -> Option<Believed> {
        let snapshots =
            self.snapshots.iter().map(|(number, of)| Believed { number: *number, ..of.clone() });
        let all: Vec<Believed> =
            self.volumes.iter().chain(&self.clones).cloned().chain(snapshots).collect();
        let at = self.copies.below(all.len().max(1) as u64) as usize;
        all.get(at).cloned()
    }

    /// One that may be written; now and then one that may not.
    fn copied_to(&mut self) -> Option<Believed> {
        if self.copies.once_in(30) {
            return self.copied_from();
        }
        let volumes = self.volumes.iter().filter(|volume| !volume.read_only);
        let all: Vec<&Believed> = volumes.chain(&self.clones).collect();
        let at = self.copies.below(all.len().max(1) as u64) as usize;
        all.get(at).map(|&volume| volume.clone())
    }

    /// Where others write, too: the first sector of a chunk.
    fn copied_place(&mut self, of: &Believed) -> u64 {
        let chunks = of.sectors / SECTORS;
        let is_sparse = of.sectors > 1 << 24;
        let leaf = if is_sparse { self.copies.below(200) * 677 * 3 } else { 0 };
        let hot = if self.copies.once_in(2) { 40 } else { 600 };
        (leaf + self.copies.below(hot)).min(chunks.saturating_sub(1)) * SECTORS
    }

    fn version_verb(&mut self) -> Option<Verb> {
        let snapshots_max = if self.shape.tight { 2 } else { 6 };
        match self.versions.below(16) {
            0..6 if self.snapshots.len() < snapshots_max => {
                let volume = self.changing()?;
                let snapshot = self.next_volume;
                self.next_volume += 1;
                self.snapshots.push((snapshot, volume.clone()));
                let other = self.changing().filter(|other| other.number != volume.number);
                let Some(other) = other.filter(|_| self.versions.once_in(4)) else {
                    return Some(Verb::Snapshot { volume: volume.number, snapshot });
                };
                let second = self.next_volume;
                self.next_volume += 1;
                self.snapshots.push((second, other.clone()));
                let (first, second) = ([volume.number, snapshot], [other.number, second]);
                Some(Verb::Snapshots { first, second })
            }
            6..8 if self.clones.len() < 2 => {
                let (snapshot, of) = self.a_snapshot()?;
                let number = self.next_volume;
                self.next_volume += 1;
                self.clones.push(Believed { number, ..of });
                Some(Verb::Clone { snapshot, volume: number })
            }
            8 => Some(Verb::Rollback { snapshot: self.a_snapshot()?.0 }),
            9..11 => {
                let at = self.versions.below(self.snapshots.len().max(1) as u64) as usize;
                let gone = self.snapshots.get(at)?.0;
                self.snapshots.swap_remove(at);
                Some(Verb::Delete { volume: gone })
            }
            11 if self.versions.once_in(2) => {
                self.clones.pop().map(|gone| Verb::Delete { volume: gone.number })
            }
            12 => {
                let volume = self.changing()?;
                let (number, count) = (volume.number, volume.sectors);
                Some(Verb::Trim { volume: number, first: 0, count, durable: false })
            }
            13 => {
                let (volume, of) = self.a_snapshot()?;
                Some(self.held_read(Believed { number: volume, ..of }))
            }
            14 => self.clone_verb(),
            15 if self.versions.once_in(2) => {
                let (from, of) = self.a_snapshot()?;
                let to = if self.versions.once_in(2) { of.number } else { self.a_snapshot()?.0 };
                Some(Verb::Difference { from, to })
            }
            _ => {
                let clone = self.clones.last()?.clone();
                let first = self.versions.below(600.min(clone.sectors / SECTORS).max(1)) * SECTORS;
                let count = (SECTORS * 12).min(clone.sectors - first);
                let content = self.versions.roll() % (1 << 32);
                Some(Verb::Write { volume: clone.number, first, count, content, durable: false })
            }
        }
    }

    /// A read of so little, and in so few places, that doors come to answer it.
    fn held_read(&mut self, of: Believed) -> Verb {
        let first = (self.versions.below(8) * 8 * SECTORS).min(of.sectors - 1);
        let count = (1 + self.versions.below(DOOR_SECTORS)).min(of.sectors - first);
        Verb::Read { volume: of.number, first, count }
    }

    /// What is asked of a clone as of any volume.
    fn clone_verb(&mut self) -> Option<Verb> {
        let at = self.versions.below(self.clones.len().max(1) as u64) as usize;
        let clone = self.clones.get(at)?.clone();
        let Believed { number: volume, sectors, .. } = clone;
        let first = self.versions.below(600 * SECTORS).min(sectors - 1);
        let count = (1 + self.versions.below(100)).min(sectors - first);
        let durable = false;
        Some(match self.versions.below(10) {
            0..4 => self.held_read(clone),
            4..6 => {
                let (count, content) = (count.min(20), self.versions.roll() % (1 << 32));
                Verb::Write { volume, first, count, content, durable }
            }
            6 => Verb::Extents { volume, first, count: sectors - first },
            7 => Verb::Trim { volume, first, count, durable },
            8 => {
                let sectors = SECTORS * (1 + self.versions.below(4000)) + self.versions.below(2);
                self.clones[at].sectors = sectors;
                Verb::Resize { volume, sectors }
            }
            _ => {
                self.renames += 1;
                Verb::Rename { volume, number: self.renames }
            }
        })
    }

    /// A volume that may be written; now and then one that may not.
    pub(super) fn written(&mut self) -> Believed {
        if !self.dice.once_in(40) {
            return self.writable();
        }
        let refused = self.volumes.iter().filter(|volume| volume.read_only).cloned();
        let snapshots =
            self.snapshots.iter().map(|(number, of)| Believed { number: *number, ..of.clone() });
        let refused: Vec<Believed> = refused.chain(snapshots).collect();
        let at = self.dice.below(refused.len().max(1) as u64) as usize;
        refused.get(at).cloned().unwrap_or_else(|| self.writable())
    }

    /// A volume or clone that may be written.
    fn changing(&mut self) -> Option<Believed> {
        let volumes = self.volumes.iter().filter(|volume| !volume.read_only);
        let all: Vec<&Believed> = volumes.chain(&self.clones).collect();
        let at = self.versions.below(all.len().max(1) as u64) as usize;
        all.get(at).map(|&volume| volume.clone())
    }

    fn a_snapshot(&mut self) -> Option<(u32, Believed)> {
        let at = self.versions.below(self.snapshots.len().max(1) as u64) as usize;
        self.snapshots.get(at).cloned()
    }
}
