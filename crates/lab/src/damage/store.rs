//! Stores to be damaged: made by the real engine, with an oracle of every version of every chunk.

use std::collections::BTreeSet;
use std::ops::Range;

use disk::{Loss, MemoryDisk};
use engine::{
    Codec, Compression, CreateOptions, NewVolume, OpenVolume, SnapshotRequest, Structure, Zone,
    structures,
};

use crate::damage::driver::Driver;
use crate::damage::recorded::{Recorded, records};
use crate::damage::truth::{Place, Truth, VOLUME_CHUNKS, VOLUMES, content, volume_name};
use crate::dice::Dice;
use crate::oracle::CHUNK_BYTES;

/// The last of them, a clone of the first.
const CLONE: usize = VOLUMES - 1;
/// Contents that many chunks have.
pub(crate) const FAVOURITES: u64 = 40;

/// A store, what it holds, and where everything of it lies.
pub(crate) struct Sample {
    pub(crate) disk: MemoryDisk,
    pub(crate) structures: Vec<Structure>,
    pub(crate) truth: Truth,
    /// The disk as it was at earlier moments.
    pub(crate) earlier: Vec<MemoryDisk>,
    pub(crate) zones: Vec<(Zone, u64)>,
    pub(crate) kind: Kind,
    /// What each record changed.
    records: Vec<Recorded>,
}

/// What kind of store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Closed cleanly.
    Closed,
    /// The power went after a flush: the journal has to be applied.
    Dirty,
    /// Closed after much was trimmed and collected.
    Compacted,
    /// Collected, and the power went.
    CompactedDirty,
}

impl Kind {
    /// How a table calls stores that ended so.
    pub(crate) fn end(self) -> &'static str {
        match self {
            Self::Closed | Self::Compacted => "closed",
            Self::Dirty | Self::CompactedDirty => "killed",
        }
    }

    /// The domain of a volume: in half of the stores each is in another one. What they write is
    /// partly the same, so there are frames that differ in their domains and PBNs only.
    fn domain_of(self, volume: usize) -> Option<String> {
        let keyed = matches!(self, Self::Dirty | Self::Compacted) && volume > 0;
        keyed.then(|| format!("tenant{volume}"))
    }
}

pub(crate) const KINDS: [Kind; 4] =
    [Kind::Closed, Kind::Dirty, Kind::Compacted, Kind::CompactedDirty];

struct Maker {
    dice: Dice,
    driver: Driver,
    volumes: Vec<OpenVolume>,
    truth: Truth,
    next_content: u64,
    /// Volumes that there are.
    there: usize,
}

impl Maker {
    fn open(disk: &MemoryDisk, dice: Dice) -> Result<Self, String> {
        let driver = Driver::open(Box::new(disk.clone()))?;
        let truth = Truth::default();
        Ok(Self { dice, driver, volumes: Vec::new(), truth, next_content: 1, there: CLONE })
    }

    fn find_volumes(&mut self) -> Result<(), String> {
        self.volumes.clear();
        for volume in 0..self.there {
            let found = self
                .driver
                .call(move |client| client.open_volume(&volume_name(volume), crate::opener()));
            self.volumes.push(found.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// The clone is there, and the snapshot that it is of is not: its pages are shared.
    fn make_clone(&mut self) -> Result<(), String> {
        let snapshot = SnapshotRequest {
            volumes: vec![volume_name(0)],
            name: "then".to_owned(),
            taken_unix_s: 1,
        };
        let of = format!("{}@then", volume_name(0));
        let made = self.driver.call(move |client| {
            client.ask(snapshot)?;
            client.clone_volume(&of, &volume_name(CLONE))?;
            client.delete_volume(&of)
        });
        made.map_err(|error| error.to_string())?;
        self.truth.make_clone(0, CLONE);
        self.truth.flush();
        self.there = VOLUMES;
        self.find_volumes()
    }

    fn reopen(&mut self, disk: &MemoryDisk) -> Result<(), String> {
        let driver = Driver::open(Box::new(disk.clone()));
        let old = std::mem::replace(&mut self.driver, driver?);
        drop(old);
        self.find_volumes()
    }

    fn write(&mut self, place: Place, number: u64) -> Result<(), String> {
        if !self.driver.write(&self.volumes[place.0], place.1, &content(number)).is_well() {
            return Err(format!("chunk {} could not be written", place.1));
        }
        self.truth.write(place, number);
        Ok(())
    }

    fn write_some(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            let volume = self.dice.below(self.there as u64) as usize;
            let lba = self.dice.below(VOLUME_CHUNKS);
            let number = match self.dice.below(8) {
                0 | 1 => 1 + self.dice.below(self.next_content),
                // Some are written so often that they are stored twice.
                2 => 1 + self.dice.below(FAVOURITES.min(self.next_content)),
                _ => {
                    self.next_content += 1;
                    self.next_content
                }
            };
            self.write((volume, lba), number)?;
        }
        Ok(())
    }

    fn trim_some(&mut self, longest: u64) {
        let volume = self.dice.below(self.there as u64) as usize;
        let first = self.dice.below(VOLUME_CHUNKS);
        let count = (1 + self.dice.below(longest)).min(VOLUME_CHUNKS - first);
        self.driver.trim(&self.volumes[volume], first, count);
        self.truth.trim(volume, first..first + count);
    }

    fn flush(&mut self) -> Result<(), String> {
        if !self.driver.flush().is_well() {
            return Err("a flush failed".to_owned());
        }
        self.truth.flush();
        Ok(())
    }
}

impl Sample {
    /// Makes a store of this kind.
    ///
    /// # Errors
    /// A sentence, when the engine fails on a sound disk.
    pub(crate) fn make(kind: Kind, seed: u64) -> Result<Self, String> {
        let (disk, zones) = new_disk(seed, 2)?;
        let mut maker = Maker::open(&disk, Dice::new(seed))?;
        for volume in 0..CLONE {
            let size_bytes = VOLUME_CHUNKS * CHUNK_BYTES as u64;
            let (name, domain) = (volume_name(volume), kind.domain_of(volume));
            let new =
                NewVolume { name, size_bytes, read_only: false, domain, ..NewVolume::default() };
            maker.driver.call(move |client| client.ask(new)).map_err(|error| error.to_string())?;
            maker.truth.make(volume);
        }
        maker.find_volumes()?;
        maker.write_some(2000)?;
        maker.trim_some(200);
        maker.driver.call(|client| client.close()).map_err(|error| error.to_string())?;
        maker.truth.root();
        let mut earlier = vec![copy_of(&disk)];
        maker.reopen(&disk)?;
        maker.make_clone()?;
        if matches!(kind, Kind::Compacted | Kind::CompactedDirty) {
            for _ in 0..6 {
                maker.write_some(1500)?;
                maker.trim_some(VOLUME_CHUNKS);
                maker.flush()?;
                maker.driver.idle(20);
            }
        }
        maker.flush()?;
        earlier.push(copy_of(&disk));
        maker.write_some(600)?;
        maker.trim_some(300);
        maker.driver.call(|client| client.close()).map_err(|error| error.to_string())?;
        maker.truth.flush();
        let disk = if matches!(kind, Kind::Dirty | Kind::CompactedDirty) {
            maker.reopen(&disk)?;
            for _ in 0..6 {
                maker.write_some(150)?;
                maker.trim_some(40);
                maker.flush()?;
            }
            // The last record is the one that nothing proves.
            maker.write((0, 7), 3)?;
            maker.flush()?;
            disk.crash(seed)
        } else {
            disk.restart(seed)
        };
        let structures =
            structures(Box::new(disk.restart(seed))).map_err(|error| error.to_string())?;
        let numbers = (0..).zip(&maker.volumes).map(|(number, volume)| (volume.id(), number));
        let records = records(&disk, &structures, &numbers.collect());
        Ok(Self { disk, structures, truth: maker.truth, earlier, zones, kind, records })
    }

    /// Chunks that records changed which are not what they were, if this is the store now.
    pub(crate) fn unread(&self, disk: &MemoryDisk) -> BTreeSet<Place> {
        let differs = |record: &&Recorded| {
            let Range { start, end } = record.range;
            let bytes = |of: &MemoryDisk| of.peek(Zone::Journal, start, (end - start) as usize);
            bytes(disk) != bytes(&self.disk)
        };
        self.records.iter().filter(differs).flat_map(Recorded::places).collect()
    }

    /// A copy to be damaged.
    pub(crate) fn copy(&self, seed: u64) -> MemoryDisk {
        self.disk.restart(seed)
    }
}

/// The disk as it is now.
pub(crate) fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

/// An empty store in so many data files.
pub(crate) fn new_disk(
    seed: u64,
    data_files: u16,
) -> Result<(MemoryDisk, Vec<(Zone, u64)>), String> {
    let capacity_bytes = (64 << 20) / u64::from(data_files);
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    let geometry = engine::plan(&CreateOptions {
        capacity_bytes: vec![capacity_bytes; usize::from(data_files)],
        chunk_bytes: CHUNK_BYTES as u32,
        compression,
        detection: Default::default(),
        tables_bytes: None,
        journal_bytes: None,
        uuid: [11; 16],
        bucket_seed: [13; 16],
    })
    .map_err(|error| error.to_string())?;
    let mut zones = vec![
        (Zone::Superblock, 64 << 10),
        (Zone::Journal, geometry.journal_bytes),
        (Zone::Tables, geometry.tables_bytes),
    ];
    zones.extend((0..data_files).map(|number| (Zone::Data(number), capacity_bytes)));
    let disk = MemoryDisk::new(&zones, seed);
    engine::create(Box::new(disk.clone()), &geometry, compression)
        .map_err(|error| error.to_string())?;
    Ok((disk, zones))
}
