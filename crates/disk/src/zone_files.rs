//! The open files of a store, by zone.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use format::units::{BLOCK_BYTES, Zone};

use crate::durable_writes;
use crate::growth::{ForeignGrowth, ZoneGrowth};

/// One zone's open file. The superblock's carries the store's lock for as long as it is open.
#[derive(Clone, Debug)]
pub(crate) struct ZoneFile {
    pub(crate) file: Arc<File>,
    pub(crate) size_bytes: u64,
    /// Whether a single write may be asked to be durable.
    pub(crate) durable_writes: bool,
}

impl ZoneFile {
    pub(crate) fn new(file: File, size_bytes: u64) -> Self {
        let durable_writes = durable_writes::is_direct(&file) && durable_writes::are_obeyed(&file);
        Self { file: Arc::new(file), size_bytes, durable_writes }
    }

    /// A file that cannot be asked keeps the length that it is known to have.
    fn look_again(&mut self) {
        if let Ok(end) = (&*self.file).seek(SeekFrom::End(0)) {
            self.size_bytes = self.size_bytes.max(end - end % BLOCK_BYTES as u64);
        }
    }
}

/// Data files that a store gets while its disk is in use, open and locked: what files prepare of a
/// [`crate::ZoneGrowth`].
#[derive(Clone, Debug, Default)]
pub(crate) struct FurtherFiles {
    /// Numbers of their zones, and the files.
    pub(crate) data: Vec<(u16, ZoneFile)>,
}

/// All zones of a store.
#[derive(Debug)]
pub(crate) struct ZoneFiles {
    superblock: ZoneFile,
    journal: ZoneFile,
    tables: ZoneFile,
    data: Vec<ZoneFile>,
}

impl ZoneFiles {
    /// Takes the files in the order superblock, journal, tables, data; `None` if any is missing.
    pub(crate) fn new(files: Vec<ZoneFile>) -> Option<Self> {
        let mut files = files.into_iter();
        let (superblock, journal, tables) = (files.next()?, files.next()?, files.next()?);
        Some(Self { superblock, journal, tables, data: files.collect() })
    }

    /// Takes further data files, and the lengths that the others have by now.
    pub(crate) fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        let further: FurtherFiles = growth.take()?.unwrap_or_default();
        for (number, file) in further.data {
            if usize::from(number) == self.data.len() {
                self.data.push(file);
            }
        }
        let fixed = [&mut self.journal, &mut self.tables];
        fixed.into_iter().chain(&mut self.data).for_each(ZoneFile::look_again);
        Ok(())
    }

    pub(crate) fn release_data_zones(&mut self, data_zones: usize) {
        self.data.truncate(data_zones);
    }

    pub(crate) fn get(&self, zone: Zone) -> Option<&ZoneFile> {
        match zone {
            Zone::Superblock => Some(&self.superblock),
            Zone::Journal => Some(&self.journal),
            Zone::Tables => Some(&self.tables),
            Zone::Data(number) => self.data.get(usize::from(number)),
        }
    }

    /// 0 when there is no such zone.
    pub(crate) fn size_bytes(&self, zone: Zone) -> u64 {
        self.get(zone).map_or(0, |file| file.size_bytes)
    }

    /// Whether a single write to the zone may be asked to be durable.
    pub(crate) fn durable_writes(&self, zone: Zone) -> bool {
        self.get(zone).is_some_and(|file| file.durable_writes)
    }

    /// The zone's descriptor, or one that no system call accepts.
    pub(crate) fn raw_fd(&self, zone: Zone) -> RawFd {
        self.get(zone).map_or(-1, |file| file.file.as_raw_fd())
    }
}
