//! A store that has to go back, and of whose tables only maps and volumes are left.
//!
//! The journal is damaged near its beginning, so a repair takes the store back to its last root.
//! There a map names chunks that died since, whose containers were collected. Their frames are
//! still where they were, and since all that says where (Hash-PBN table, PBN-PBA table, container
//! table) is damaged as well, the repair goes by the PBN in frames and directories. That is right
//! only if nothing stored since has been given such a PBN: this is what a freed PBN waits for a
//! checkpoint for, and nothing less shows it (a journal that is whole says what its PBNs mean).

use disk::MemoryDisk;
use engine::{OpenVolume, Zone, structures};

use crate::damage::driver::{ChunkRead, Driver};
use crate::damage::store::new_disk;
use crate::damage::truth::content;
use crate::failure::Broken;

const VOLUME: &str = "v";
/// Chunks that are under the root, die and are collected: two containers and a half.
const DYING: u64 = 2_500;
/// Chunks that are stored after that: what fills the open container, a sealed one, and some more.
const LATER: u64 = 2_200;
/// Bytes of a block that are damaged, from its first on.
const DAMAGED_BYTES: u64 = 64;

/// A chunk that is written to one address only, and does not shrink.
pub(crate) fn chunk_of(lba: u64) -> Vec<u8> {
    content(4 * (1 + lba))
}

/// Makes the store, damages it, repairs it, and reads all of it.
///
/// # Errors
/// [`Broken::WrongBytes`] when a chunk reads as another one, [`Broken::Machine`] when the situation
/// did not come about.
pub fn go_back() -> Result<(), Broken> {
    let disk = damaged_store().map_err(Broken::Machine)?;
    let repaired = engine::repair(Box::new(disk.clone()), &mut |_| {});
    repaired.map_err(|error| Broken::Machine(error.to_string()))?;
    let mut driver = Driver::open(Box::new(disk)).map_err(Broken::Machine)?;
    let volume = open_volume(&mut driver).map_err(Broken::Machine)?;
    let mut came_back = 0;
    for lba in 0..DYING + LATER {
        let ChunkRead::Bytes(bytes) = driver.read(&volume, lba) else { continue };
        if bytes == chunk_of(lba) {
            came_back += u64::from(lba < DYING);
        } else if bytes.iter().any(|&byte| byte != 0) {
            return Err(Broken::WrongBytes { volume: VOLUME.to_owned(), lba });
        }
    }
    if came_back < DYING / 2 {
        return Err(Broken::Machine(format!("{came_back} of {DYING} chunks came back")));
    }
    Ok(())
}

fn damaged_store() -> Result<MemoryDisk, String> {
    let (disk, _) = new_disk(1, 1)?;
    let mut driver = Driver::open(Box::new(disk.clone()))?;
    let size_bytes = (DYING + LATER) * chunk_of(0).len() as u64;
    let volume = driver.new_volume(VOLUME, size_bytes)?;
    driver.write_each(&volume, 0..DYING, chunk_of)?;
    driver.close().map_err(|error| error.to_string())?;

    let mut driver = Driver::open(Box::new(disk.clone()))?;
    let volume = open_volume(&mut driver)?;
    driver.trim(&volume, 0, DYING);
    driver.idle(20);
    driver.write_each(&volume, DYING..DYING + LATER, chunk_of)?;
    if !driver.flush().is_well() {
        return Err("a flush failed".to_owned());
    }
    let stats = driver.call(|client| client.stats()).map_err(|error| error.to_string())?;
    let (collected, checkpoints) =
        (stats.counters.containers_collected, stats.counters.checkpoints);
    if collected == 0 || checkpoints > 0 {
        return Err(format!("{collected} containers collected, {checkpoints} checkpoints"));
    }
    let left = disk.crash(1);
    damage(&left)?;
    Ok(left.restart(1))
}

fn open_volume(driver: &mut Driver) -> Result<OpenVolume, String> {
    driver
        .call(|client| client.open_volume(VOLUME, crate::opener()))
        .map_err(|error| error.to_string())
}

/// Damages all records but the last, which proves that they were there, and all tables but the
/// maps and the catalog.
fn damage(disk: &MemoryDisk) -> Result<(), String> {
    let all = structures(Box::new(disk.restart(1))).map_err(|error| error.to_string())?;
    let records = all.iter().filter(|structure| structure.zone == Zone::Journal);
    let last = records.map(|record| record.offset_bytes).max();
    for structure in &all {
        let is_hit = match structure.zone {
            Zone::Journal => Some(structure.offset_bytes) != last,
            Zone::Tables => {
                !["map", "volume catalog"].iter().any(|of| structure.kind.starts_with(of))
            }
            _ => false,
        };
        let start = structure.offset_bytes;
        for at in (start..start + DAMAGED_BYTES).filter(|_| is_hit) {
            disk.corrupt(structure.zone, at, |byte| *byte = 0xa5);
        }
    }
    Ok(())
}
