//! Containers that were sealed, and whose directories did not outlive a crash.
//!
//! Nothing was synced since, so that any sector may be as it was before: the records that seal and
//! all frames are there, and the directories are not. An opening believes those records, and from
//! then on the containers count as sealed: so it writes the directories again. Chance hardly comes
//! on it, because a directory mostly goes to the disk in one write with the last frames.

use disk::{Loss, MemoryDisk};
use engine::{Structure, Zone, structures};

use crate::damage::driver::{ChunkRead, Driver};
use crate::damage::store::new_disk;
use crate::failure::Broken;
use crate::simulation::aside::check;
use crate::simulation::going_back::chunk_of;

const VOLUME: &str = "v";
/// Chunks that fill two containers and a half; none can be compressed.
const CHUNKS: u64 = 2_500;

/// Makes the store, loses the directories, opens it and reads and checks all of it.
///
/// # Errors
/// [`Broken::Inconsistent`] when a directory is not there afterwards, [`Broken::WrongBytes`] when a
/// chunk is another one, [`Broken::Machine`] when the situation did not come about.
pub fn lose_directories() -> Result<(), Broken> {
    let disk = store_without_directories().map_err(Broken::Machine)?;
    let mut driver = Driver::open(Box::new(disk.clone())).map_err(Broken::Machine)?;
    let Some(volume) = driver.volume(VOLUME) else {
        return Err(Broken::Machine("the volume is lost".to_owned()));
    };
    // What was not in a group yet went with the power.
    let is_kept = |lba: &u64| driver.read(&volume, *lba) == ChunkRead::Bytes(chunk_of(*lba));
    let kept = (0..CHUNKS).take_while(is_kept).count() as u64;
    let is_zeros = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    for lba in kept..CHUNKS {
        match driver.read(&volume, lba) {
            ChunkRead::Bytes(bytes) if kept > CHUNKS / 2 && is_zeros(&bytes) => {}
            _ => return Err(Broken::WrongBytes { volume: VOLUME.to_owned(), lba }),
        }
    }
    drop(volume);
    driver.close().map_err(|error| Broken::Machine(error.to_string()))?;
    check(&disk)
}

/// What the power leaves of a store behind some writes and no flush.
fn store_without_directories() -> Result<MemoryDisk, String> {
    let (disk, _) = new_disk(1, 1)?;
    let mut driver = Driver::open(Box::new(disk.clone()))?;
    let size_bytes = CHUNKS * chunk_of(0).len() as u64;
    let volume = driver.new_volume(VOLUME, size_bytes)?;
    // What is made durable because time has passed is so by now.
    if !driver.flush().is_well() {
        return Err("a flush failed".to_owned());
    }
    driver.write_each(&volume, 0..CHUNKS, chunk_of)?;
    driver.idle(2);
    let left = disk.left_by_power_loss(0, Loss::None);
    let durable = disk.left_by_power_loss(0, Loss::All);
    let all = structures(Box::new(left.restart(1))).map_err(|error| error.to_string())?;
    let is_directory = |structure: &&Structure| {
        matches!(structure.zone, Zone::Data(_))
            && ["directory", "footer"].contains(&&structure.kind[..])
    };
    let mut lost = 0;
    for directory in all.iter().filter(is_directory) {
        let (zone, start) = (directory.zone, directory.offset_bytes);
        let before = durable.peek(zone, start, directory.length_bytes as usize);
        if before == left.peek(zone, start, before.len()) {
            return Err("a directory is durable".to_owned());
        }
        for (at, byte_before) in (start..).zip(before) {
            left.corrupt(zone, at, |byte| *byte = byte_before);
        }
        lost += 1;
    }
    if lost < 4 {
        return Err(format!("{lost} directories and footers were lost"));
    }
    Ok(left.restart(1))
}
