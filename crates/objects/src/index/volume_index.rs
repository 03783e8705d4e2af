//! The index over a volume: making it, opening it, and what callers ask of it.
//!
//! Locks are taken in this order: a merge, the log, memory, the handle of redb. A leader holds the
//! log from before a group is written until it is in memory, so a merge freezes both at the same
//! group.

use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use format::BLOCK_BYTES;
use format::objects::header::{BucketHeader, HEADER_COPIES_AT_BYTES};
use format::objects::log::Place;
use store::{Durability, RequestError, WriteOptions};

use crate::index::batch::Batch;
use crate::index::locks::{lock, read, write};
use crate::index::log::{Log, body_bytes_max};
use crate::index::memory::{Memory, NewValue, TableKey, table_end, table_key};
use crate::index::options::{IndexCreateOptions, IndexOptions, Shares};
use crate::index::pages::is_damage;
use crate::index::replay::replay;
use crate::index::sharing::Sharing;
use crate::index::tree::{Tree, View, Viewed};
use crate::index::{Change, Entry, Index, IndexError, Table};
use crate::volume::BucketVolume;

/// How often a read is tried again whose handle of redb another one has broken.
const TRIES_MAX: usize = 4;

/// The index of the bucket in one volume.
///
/// It has no threads: [`VolumeIndex::merge`] is called by an idle thread when
/// [`VolumeIndex::merge_is_due`], else `apply` does it itself before memory or the log are full.
///
/// ```
/// use std::sync::Arc;
/// use objects::index::{
///     Change, Index, IndexCreateOptions, IndexOptions, Table, VolumeIndex,
/// };
/// # use store::{CreateOptions, Durability, Options, Store};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// let volume = Arc::new(store.create_volume("bucket", 1 << 50)?);
/// VolumeIndex::create(volume.clone(), &IndexCreateOptions::new([7; 16]))?;
/// let index = VolumeIndex::open(volume, &IndexOptions::default())?;
/// let (key, value) = (b"key".to_vec(), b"value".to_vec());
/// let change = Change::Set { table: Table::Objects, key: key.clone(), value: value.clone() };
/// index.apply(vec![change], Durability::Acknowledged)?;
/// assert_eq!(index.get(Table::Objects, &key)?, Some(value));
/// # drop(index);
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
pub struct VolumeIndex {
    pub(in crate::index) volume: Arc<dyn BucketVolume>,
    pub(in crate::index) header: BucketHeader,
    pub(in crate::index) shares: Shares,
    pub(in crate::index) is_read_only: bool,
    pub(in crate::index) tree: Tree,
    /// Held by the thread that merges: where the log goes on behind the frozen table.
    pub(in crate::index) merging: Mutex<Option<Place>>,
    pub(in crate::index) log: Mutex<Log>,
    pub(in crate::index) memory: RwLock<Memory>,
    pub(in crate::index) sharing: Sharing,
}

impl VolumeIndex {
    /// Makes the index of a new bucket in an empty volume. A crash leaves a bucket, or none.
    ///
    /// # Errors
    /// [`IndexError::Volume`].
    pub fn create(
        volume: Arc<dyn BucketVolume>,
        options: &IndexCreateOptions,
    ) -> Result<(), IndexError> {
        let header = BucketHeader { uuid: options.uuid, ring_bytes: options.ring_bytes_allowed() };
        let shares = Shares::of(&IndexOptions::default());
        Tree::new(Arc::clone(&volume), header.uuid, shares.cache_bytes).create()?;
        let block = header.encode();
        let copies = HEADER_COPIES_AT_BYTES.map(|at_bytes| (at_bytes, &block[..]));
        Ok(volume.write_vectored_at(&copies, WriteOptions::default())?)
    }

    /// Opens the index that the volume holds, after a kill as well: the log is read into memory.
    /// Nothing is written.
    ///
    /// # Errors
    /// [`IndexError::NoBucket`], [`IndexError::Unfinished`], [`IndexError::Damaged`],
    /// [`IndexError::Volume`].
    pub fn open(volume: Arc<dyn BucketVolume>, options: &IndexOptions) -> Result<Self, IndexError> {
        let header = read_header(&*volume)?;
        let shares = Shares::of(options);
        let tree = Tree::new(Arc::clone(&volume), header.uuid, shares.cache_bytes);
        let merged = tree.merged()?;
        let mut memory = Memory::default();
        let replayed = replay(&*volume, &header, merged, |change| {
            let unknown = || IndexError::Damaged(format!("its log names table {}", change.table));
            let table = Table::from_number(change.table).ok_or_else(unknown)?;
            memory.insert(table_key(table, change.key), change.value.map(Into::into));
            Ok(())
        })?;
        let places = (merged, replayed.next);
        let log = Log::new(Arc::clone(&volume), header, places, replayed.tail);
        Ok(Self {
            volume,
            header,
            shares,
            is_read_only: options.read_only,
            tree,
            merging: Mutex::new(None),
            log: Mutex::new(log),
            memory: RwLock::new(memory),
            sharing: Sharing::default(),
        })
    }

    /// The bucket's identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.header.uuid
    }

    /// The longest batch that [`Index::apply`] takes, in bytes of its keys and values, with 8 for
    /// each change.
    #[must_use]
    pub fn batch_bytes_max(&self) -> usize {
        body_bytes_max(self.header.ring_bytes)
    }

    /// Whether a merge should be made: memory has its share, or half of the log is in use, or a
    /// merge was begun and has failed.
    #[must_use]
    pub fn merge_is_due(&self) -> bool {
        if lock(&self.log).is_half_full() {
            return true;
        }
        let memory = read(&self.memory);
        memory.frozen().is_some() || memory.active_bytes() >= self.shares.merge_due_bytes
    }

    /// Writes batches as one group and puts them into memory; where that fails, one by one, so that
    /// each has its own answer.
    fn write_group(&self, batches: Vec<Batch>) -> Vec<Result<(), IndexError>> {
        if batches.len() > 1 {
            let body: Vec<u8> = batches.iter().flat_map(|batch| &batch.body).copied().collect();
            if let Ok(log) = self.append(&body, false) {
                let answers = batches.iter().map(|_| Ok(())).collect();
                self.take_in(batches, log);
                return answers;
            }
        }
        let write_one = |batch: Batch| {
            let log = self.append(&batch.body, batch.is_release)?;
            self.take_in([batch], log);
            Ok(())
        };
        batches.into_iter().map(write_one).collect()
    }

    /// Puts what the log holds now into memory, before anybody else looks at both.
    fn take_in(&self, batches: impl IntoIterator<Item = Batch>, log: MutexGuard<'_, Log>) {
        let mut memory = write(&self.memory);
        for (key, value) in batches.into_iter().flat_map(|batch| batch.entries) {
            memory.insert(key, value);
        }
        drop((memory, log));
    }

    /// Appends a group, behind a merge where the ring is full.
    fn append(&self, body: &[u8], is_release: bool) -> Result<MutexGuard<'_, Log>, IndexError> {
        loop {
            let mut log = lock(&self.log);
            if !log.has_room(body.len()) {
                drop(log);
                self.merge()?;
                continue;
            }
            return match log.append(body, false) {
                Err(RequestError::NoSpace) if is_release => {
                    log.append(body, true)?;
                    Ok(log)
                }
                done => {
                    done?;
                    Ok(log)
                }
            };
        }
    }

    /// Entries from `from` on, up to `limit`, of one moment; and where to go on, unless all were
    /// looked at.
    fn scan_part(
        &self,
        table: Table,
        from: &TableKey,
        limit: usize,
    ) -> Result<(Vec<Entry>, Option<TableKey>), IndexError> {
        let table_end = table_end(table);
        for _ in 0..TRIES_MAX {
            // Both are of one moment, because what is merged leaves memory under its lock.
            let memory = read(&self.memory);
            let (changes, behind) = memory.changes(from, &table_end, limit);
            let view = self.tree.view()?;
            drop(memory);
            let until = behind.as_deref().unwrap_or(&table_end);
            if let Some(entries) = merged_scan(&changes, &view, (from, until), limit)? {
                return Ok((entries, behind));
            }
        }
        Err(IndexError::Damaged("its pages cannot be read".to_owned()))
    }

    /// Merges before memory is full. What gives room back goes on where that fails.
    fn bound_memory(&self, is_release: bool) -> Result<(), IndexError> {
        let is_over = || read(&self.memory).active_bytes() > self.shares.active_bytes_max;
        if !is_over() {
            return Ok(());
        }
        match self.merge_while(is_over) {
            Err(_) if is_release => Ok(()),
            done => done.map(|_| ()),
        }
    }
}

impl Index for VolumeIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        let key = table_key(table, key);
        if let Some(value) = read(&self.memory).get(&key) {
            return Ok(value.as_deref().map(<[u8]>::to_vec));
        }
        for _ in 0..TRIES_MAX {
            if let Some(value) = self.tree.view()?.get(&key)? {
                return Ok(value);
            }
        }
        Err(IndexError::Damaged("its pages cannot be read".to_owned()))
    }

    fn scan(&self, table: Table, from: &[u8], limit: usize) -> Result<Vec<Entry>, IndexError> {
        let mut next = Some(table_key(table, from));
        let mut entries = Vec::new();
        while let Some(from) = next.take_if(|_| entries.len() < limit) {
            let (found, behind) = self.scan_part(table, &from, limit - entries.len())?;
            entries.extend(found);
            next = behind;
        }
        Ok(entries)
    }

    fn apply(&self, changes: Vec<Change>, durability: Durability) -> Result<(), IndexError> {
        if self.is_read_only {
            return Err(IndexError::ReadOnly);
        }
        if !changes.is_empty() {
            let body_bytes_max = body_bytes_max(self.header.ring_bytes);
            let batch = Batch::new(changes, body_bytes_max)?;
            self.bound_memory(batch.is_release)?;
            self.sharing.write(batch, body_bytes_max, |batches| self.write_group(batches))?;
        }
        if durability == Durability::Durable {
            self.volume.flush()?;
        }
        Ok(())
    }
}

/// The entries of memory and of redb, in order; of equal keys the one of memory counts.
fn merged_scan(
    changes: &[(TableKey, NewValue)],
    view: &View<'_>,
    (from, until): (&[u8], &[u8]),
    limit: usize,
) -> Viewed<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    let mut changes = changes.iter().peekable();
    let push = |found: &mut Vec<Entry>, (key, value): &(TableKey, NewValue)| {
        if let Some(value) = value {
            found.push((key[1..].to_vec(), value.to_vec()));
        }
    };
    if limit > 0 {
        let walked = view.each(from, until, |key, value| {
            while let Some(change) = changes.next_if(|(newer, _)| &**newer < key) {
                push(&mut found, change);
            }
            match changes.next_if(|(newer, _)| &**newer == key) {
                Some(change) => push(&mut found, change),
                None => found.push((key[1..].to_vec(), value.to_vec())),
            }
            found.len() < limit
        })?;
        if walked.is_none() {
            return Ok(None);
        }
    }
    while found.len() < limit {
        let Some(change) = changes.next() else { break };
        push(&mut found, change);
    }
    found.truncate(limit);
    Ok(Some(found))
}

/// The header of the bucket, from either copy. The copies are the last that making an index writes,
/// so where one was never written, its making was cut off.
pub(in crate::index) fn read_header(volume: &dyn BucketVolume) -> Result<BucketHeader, IndexError> {
    let mut failure = String::new();
    let mut found = None;
    for at_bytes in HEADER_COPIES_AT_BYTES {
        if is_blank(volume, at_bytes) {
            return Err(IndexError::Unfinished);
        }
        match read_header_copy(volume, at_bytes)? {
            Ok(header) => found = found.or(Some(header)),
            Err(error) => failure = error,
        }
    }
    found.ok_or(IndexError::NoBucket(failure))
}

/// Whether a block was never written.
fn is_blank(volume: &dyn BucketVolume, at_bytes: u64) -> bool {
    let mut block = [0; BLOCK_BYTES];
    volume.read_at(at_bytes, &mut block).is_ok() && block.iter().all(|byte| *byte == 0)
}

/// One copy of the header, or what is wrong with it.
pub(in crate::index) fn read_header_copy(
    volume: &dyn BucketVolume,
    at_bytes: u64,
) -> Result<Result<BucketHeader, String>, IndexError> {
    let mut block = [0; BLOCK_BYTES];
    match volume.read_at(at_bytes, &mut block) {
        Ok(()) => Ok(BucketHeader::decode(&block).map_err(|error| error.to_string())),
        Err(error) if is_damage(&error) => Ok(Err(error.to_string())),
        Err(RequestError::OutOfRange { .. }) => Ok(Err("it is too small".to_owned())),
        Err(error) => Err(error.into()),
    }
}
