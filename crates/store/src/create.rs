//! Making a store: sizes are planned, then files are made, then the first root is written.

use std::path::{Path, PathBuf};

use disk::{Access, IoEngine, MemoryDisk, create_sparse_store_files, create_store_files};
use engine::{Codec, Compression, Detection, Zone};
use format::superblock::Geometry;

use crate::error::CreateError;
use crate::files::{LockWait, open_files};
use crate::randomness::random_bytes;

/// Chunks of this many bytes unless others are asked for.
const CHUNK_BYTES_DEFAULT: u32 = 4096;

/// What is fixed when a store is made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// Room for data in bytes, one number for each data file; at least 64 MiB in all.
    pub capacity_bytes: Vec<u64>,
    /// Chunk size: 4096, 8192, 16384, 32768 or 65536 bytes.
    pub chunk_bytes: u32,
    /// What new frames are written with; changeable later.
    pub compression: Compression,
    /// How duplicates are found, for good.
    pub detection: Detection,
    /// Room for table pages; without it [`engine::CreateOptions::tables_bytes`] says how much.
    pub tables_bytes: Option<u64>,
    /// Length of the journal; without it 1/32 of the capacity, 16 to 256 MiB.
    pub journal_bytes: Option<u64>,
    /// Whether data files get all of their room now. Else they are sparse: they get it a step ahead
    /// of what is written ([`disk::allocation_step_bytes`]), and a write for which the file system
    /// has no more is refused for want of space until it has.
    pub preallocate: bool,
    /// Files or block devices elsewhere that hold some of the zones; the others are files in the
    /// store's directory.
    pub places: Vec<(Zone, PathBuf)>,
    /// Names the store; without it random bytes.
    pub uuid: Option<[u8; 16]>,
    /// Key of the hash that chooses a fingerprint's bucket; without it random bytes, so that nobody
    /// can aim chunks at one bucket. Tests give one, to have the same store again.
    pub bucket_seed: Option<[u8; 16]>,
}

impl CreateOptions {
    /// A store with one data file of this many bytes, which it gets at once, and 4-KiB chunks,
    /// compressed with LZ4.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes: vec![capacity_bytes],
            chunk_bytes: CHUNK_BYTES_DEFAULT,
            compression: Compression { codec: Codec::Lz4, level: 0 },
            detection: Detection::default(),
            tables_bytes: None,
            journal_bytes: None,
            preallocate: true,
            places: Vec::new(),
            uuid: None,
            bucket_seed: None,
        }
    }

    /// The sizes of everything in such a store.
    ///
    /// # Errors
    /// [`CreateError::Plan`] says which size is not possible, [`CreateError::Machine`] that the
    /// kernel has no random bytes.
    pub fn plan(&self) -> Result<Geometry, CreateError> {
        let random = |given: Option<[u8; 16]>| given.map_or_else(random_bytes, Ok);
        Ok(engine::plan(&engine::CreateOptions {
            capacity_bytes: self.capacity_bytes.clone(),
            chunk_bytes: self.chunk_bytes,
            compression: self.compression,
            detection: self.detection,
            tables_bytes: self.tables_bytes,
            journal_bytes: self.journal_bytes,
            uuid: random(self.uuid)?,
            bucket_seed: random(self.bucket_seed)?,
        })?)
    }
}

/// Makes a store at `path`, a directory that is made too. Nothing that exists is overwritten. It is
/// durable when this returns.
///
/// # Errors
/// [`CreateError`] says what stands in the way.
///
/// ```no_run
/// # fn main() -> Result<(), store::CreateError> {
/// let options = store::CreateOptions { chunk_bytes: 8192, ..store::CreateOptions::new(1 << 40) };
/// let geometry = store::create("/srv/tamis".as_ref(), &options)?;
/// assert_eq!(geometry.capacity_bytes(), 1 << 40);
/// # Ok(())
/// # }
/// ```
pub fn create(path: &Path, options: &CreateOptions) -> Result<Geometry, CreateError> {
    let geometry = options.plan()?;
    let zones: Vec<_> = geometry.zones().collect();
    let create_files = match options.preallocate {
        true => create_store_files,
        false => create_sparse_store_files,
    };
    create_files(path, &zones, &options.places, geometry.uuid)?;
    let files = open_files(path, Access::ReadWrite, IoEngine::Auto, &LockWait::default())?;
    engine::create(files.disk, &geometry, options.compression)?;
    Ok(geometry)
}

/// Makes a store on a new disk in memory, whose order of completions comes from `seed`. For tests
/// and trials: [`crate::Store::open_in_memory`] opens it.
///
/// # Errors
/// [`CreateError::Plan`].
pub fn create_in_memory(options: &CreateOptions, seed: u64) -> Result<MemoryDisk, CreateError> {
    let geometry = options.plan()?;
    let zones: Vec<_> = geometry.zones().collect();
    let disk = MemoryDisk::new(&zones, seed);
    engine::create(Box::new(disk.clone()), &geometry, options.compression)?;
    Ok(disk)
}
