//! Real data through one engine store, and striped over several, each of which deduplicates for
//! itself: what CAL'17 says of devices, counted by engines.
//!
//! A folder's files follow one another in the order of their names, each from a whole chunk on; its
//! last chunk is filled with zeros. Chunks of zeros take no room anywhere and are left out.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use traces::Direction;

use crate::cidr::{device_of, found_by_law};
use crate::flash::{Request, Trace};

use super::drive::{CHUNK_BYTES, DriveError, Driven};

/// Chunks of real data.
#[derive(Clone, Debug, Default)]
pub struct Real {
    /// As tables name it.
    pub name: String,
    chunks: Vec<Box<[u8]>>,
}

/// One set of data on one number of devices.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct DeviceRun {
    /// The set.
    pub data: String,
    /// Chunks of 4 KiB that were written.
    pub chunks: u64,
    /// Engine stores that they were striped over.
    pub devices: u64,
    /// Duplicates that all of them found together, in percent of the chunks.
    pub found_percent: f64,
    /// The same by the law.
    pub law_percent: f64,
}

/// Reads at most this number of chunks of the files under a folder.
///
/// # Errors
/// [`DriveError::Read`].
pub fn read_folder(folder: &Path, name: &str, chunks_max: usize) -> Result<Real, DriveError> {
    let failed =
        |path: &Path, source| DriveError::Read { path: path.display().to_string(), source };
    let mut real = Real { name: name.to_owned(), chunks: Vec::new() };
    for path in files_under(folder).map_err(|source| failed(folder, source))? {
        let bytes = fs::read(&path).map_err(|source| failed(&path, source))?;
        for piece in bytes.chunks(CHUNK_BYTES as usize) {
            if real.chunks.len() == chunks_max {
                return Ok(real);
            }
            if piece.iter().any(|&byte| byte != 0) {
                let mut chunk = piece.to_vec();
                chunk.resize(CHUNK_BYTES as usize, 0);
                real.chunks.push(chunk.into());
            }
        }
    }
    Ok(real)
}

/// Regular files, in the order of their names; links are left out.
fn files_under(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(files_under(&entry.path())?);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Spreads the data over this number of engine stores.
///
/// # Errors
/// [`DriveError`] when an engine refuses something.
pub fn run_devices(real: &Real, devices: u64) -> Result<DeviceRun, DriveError> {
    let mut found = 0;
    for device in 0..devices {
        let driven = Driven::start(real.chunks.len() as u64, None)?;
        for (number, chunk) in (0..).zip(&real.chunks) {
            if device_of(number, devices) == device {
                driven.write(number, chunk)?;
            }
        }
        found += driven.stats()?.counters.chunks_duplicate;
    }
    let chunks = real.chunks.len() as u64;
    Ok(DeviceRun {
        data: real.name.clone(),
        chunks,
        devices,
        found_percent: 100.0 * found as f64 / chunks.max(1) as f64,
        law_percent: found_by_law(&real.trace(), devices),
    })
}

impl Real {
    /// The same with contents known by number.
    fn trace(&self) -> Trace {
        let mut numbers: HashMap<&[u8], u32> = HashMap::new();
        let requests = (0..).zip(&self.chunks).map(|(lba, chunk)| {
            let next = numbers.len() as u32;
            let content = *numbers.entry(chunk).or_insert(next);
            Request { time_ns: lba, direction: Direction::Write, lba, content }
        });
        Trace { requests: requests.collect(), ..Trace::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Real, run_devices};

    #[test]
    fn one_store_finds_every_duplicate_and_several_what_the_law_leaves() {
        let chunk = |number: u64| {
            let mut chunk = vec![1; 4096];
            chunk[..8].copy_from_slice(&(number % 700).to_le_bytes());
            chunk.into_boxed_slice()
        };
        let real = Real { name: "made".to_owned(), chunks: (0..2000).map(chunk).collect() };
        let one = run_devices(&real, 1).unwrap();
        assert!((one.found_percent - 65.0).abs() < 1e-9, "{one:?}");
        assert!((one.law_percent - one.found_percent).abs() < 1e-9, "{one:?}");
        let four = run_devices(&real, 4).unwrap();
        assert!(four.found_percent < 40.0, "{four:?}");
        assert!((four.law_percent - four.found_percent).abs() < 5.0, "{four:?}");
    }
}
