//! The open files of a store, by zone.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use format::units::Zone;

/// One zone's open file. The superblock's carries the store's lock for as long as it is open.
#[derive(Debug)]
pub(crate) struct ZoneFile {
    pub(crate) file: File,
    pub(crate) size_bytes: u64,
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

    /// The zone's descriptor, or one that no system call accepts.
    pub(crate) fn raw_fd(&self, zone: Zone) -> RawFd {
        self.get(zone).map_or(-1, |file| file.file.as_raw_fd())
    }
}
