//! A session's volumes: made, resized, renamed, deleted, set; and what the oracle notes of it.

use std::sync::Arc;

use engine::{Compression, Dedup, DeleteRequest, NewVolume, Reply, VolumeKind, control};

use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Entry, Register, Value};
use crate::range::Range;
use crate::session::waiting::Waiting;
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::opening::strange;
use crate::workload::SECTORS;

impl Session<'_> {
    pub(crate) fn create(
        &mut self,
        volume: u32,
        sectors: u64,
        read_only: bool,
    ) -> Result<(), Broken> {
        let (name, size_bytes) = (format!("v{volume}"), sectors * SECTOR_BYTES);
        let domain = self.shape.domain_of(volume);
        let (quota, of) = (None, domain.clone());
        let (name_of, dedup, before) = (name.clone(), Dedup::On, self.oracle.written());
        let kind = self.shape.kind_of(volume);
        let named = name_of;
        let entry = Entry {
            name: named,
            size_bytes,
            read_only,
            quota,
            reserved: None,
            dedup,
            codec: None,
            domain: of,
            kind,
        };
        self.oracle.write(Register::Volume(volume), Value::Volume(entry));
        let waits = domain.is_some() || kind != VolumeKind::Block;
        let new = NewVolume { name: name.clone(), size_bytes, read_only, domain, kind };
        let request = new;
        // The first of a domain, or of the buckets, is there when the geometry has been written;
        // and where room is short any may wait for some, and has its name then.
        let is_there = match waits || self.shape.tight {
            true => self.change_now(request, before)?,
            false => self.change(request, before)?,
        };
        if is_there { self.open_volume(volume, name) } else { Ok(()) }
    }

    pub(crate) fn open_volume(&mut self, volume: u32, name: String) -> Result<(), Broken> {
        let done = self.done(Waiting::Plain, None);
        let tag = done.tag;
        self.opening.client.administer(control::Open { name, opener: crate::opener() }, done);
        match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Volume(handle) => {
                self.opening.volumes.insert(volume, Arc::new(handle));
                Ok(())
            }
            other => Err(strange("a volume", &other)),
        }
    }

    pub(crate) fn resize(&mut self, volume: u32, sectors: u64) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        if entry.reserves_more_than(sectors / SECTORS) {
            return Ok(());
        }
        let (old_sectors, before) = (entry.size_bytes / SECTOR_BYTES, self.oracle.written());
        if sectors < old_sectors {
            let tail = Range { volume, first: sectors, count: old_sectors - sectors };
            self.note(tail, None);
        }
        let size_bytes = sectors * SECTOR_BYTES;
        let name = entry.name.clone();
        self.oracle.write(Register::Volume(volume), Value::Volume(Entry { size_bytes, ..entry }));
        let request =
            control::ResizeVolume { name, size_bytes, may_shrink: true, even_if_open: true };
        // Where room is short, what is left of a chunk at the new end may wait for some.
        let outcome = match self.shape.tight {
            true => self.change_now(request, before),
            false => self.change(request, before),
        };
        outcome.map(drop)
    }

    /// A volume may map so many chunks, or any number.
    pub(crate) fn set_quota(&mut self, volume: u32, chunks: u64) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        if chunks > 0 && entry.reserves_more_than(chunks) {
            return Ok(());
        }
        let (quota, before) = ((chunks > 0).then_some(chunks), self.oracle.written());
        let name = entry.name.clone();
        self.oracle.write(Register::Volume(volume), Value::Volume(Entry { quota, ..entry }));
        let quota_bytes = quota.map(|chunks| chunks * CHUNK_BYTES as u64);
        self.change_now(control::SetQuota { name, quota_bytes }, before).map(drop)
    }

    /// Room for so many chunks of a volume is its own, or for as many as it may map; refused where
    /// it is not there.
    pub(crate) fn set_reservation(&mut self, volume: u32, chunks: u64) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        let most = (entry.size_bytes / CHUNK_BYTES as u64).min(entry.quota.unwrap_or(u64::MAX));
        let reserved = Some(chunks.min(most)).filter(|&chunks| chunks > 0);
        let (name, before) = (entry.name.clone(), self.oracle.written());
        self.oracle.write(Register::Volume(volume), Value::Volume(Entry { reserved, ..entry }));
        let reservation_bytes = reserved.map(|chunks| chunks * CHUNK_BYTES as u64);
        self.change_now(control::SetReservation { name, reservation_bytes }, before).map(drop)
    }

    /// Whether duplicates are looked for in a volume. The first in which not all are found is there
    /// when the geometry has been written.
    pub(crate) fn set_dedup(&mut self, volume: u32, dedup: Dedup) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        let (name, before) = (entry.name.clone(), self.oracle.written());
        self.oracle.write(Register::Volume(volume), Value::Volume(Entry { dedup, ..entry }));
        self.change_now(control::SetDedup { name, dedup }, before).map(drop)
    }

    /// From now on new chunks of a volume are compressed so. The first codec of a volume is there
    /// when the geometry has been written.
    pub(crate) fn set_codec(
        &mut self,
        volume: u32,
        codec: Option<Compression>,
    ) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        let (name, before) = (entry.name.clone(), self.oracle.written());
        self.oracle.write(Register::Volume(volume), Value::Volume(Entry { codec, ..entry }));
        let request = control::SetVolumeCompression { name, compression: codec };
        self.change_now(request, before).map(drop)
    }

    /// From now on new chunks are compressed so.
    pub(crate) fn set_compression(&mut self, compression: Compression) -> Result<(), Broken> {
        let before = self.oracle.written();
        self.oracle.write(Register::Compression, Value::Compression(compression));
        self.change(control::SetCompression { compression }, before).map(drop)
    }

    /// Whether the quota of a volume lets these sectors be written; none if it has none. It lets
    /// nothing be written anywhere, in the middle of a chunk as well.
    pub(crate) fn quota_allows(&self, range: Range) -> Option<bool> {
        let Range { volume, first, count } = range;
        let quota = self.oracle.volume(volume)?.quota?;
        let mapped = |lba| *self.oracle.now(Register::Chunk(volume, lba)) != Value::Nothing;
        let lbas = first / SECTORS..(first + count).div_ceil(SECTORS);
        let new = lbas.filter(|lba| count > 0 && !mapped(*lba)).count() as u64;
        Some(new == 0 || self.oracle.mapped(volume) + new <= quota)
    }

    pub(crate) fn rename(&mut self, volume: u32, number: u32) -> Result<(), Broken> {
        let Some(entry) = self.changeable(volume) else { return Ok(()) };
        let (new_name, before) = (format!("v{volume}r{number}"), self.oracle.written());
        for (slot, snapshot) in self.oracle.snapshots_of(&entry.name) {
            let own = snapshot.name.split_at(entry.name.len()).1;
            let name = format!("{new_name}{own}");
            self.oracle.write(Register::Volume(slot), Value::Volume(Entry { name, ..snapshot }));
        }
        let name = entry.name.clone();
        let renamed = Entry { name: new_name.clone(), ..entry };
        self.oracle.write(Register::Volume(volume), Value::Volume(renamed));
        self.oracle.join_from(before);
        self.change(control::RenameVolume { name, new_name }, before).map(drop)
    }

    pub(crate) fn delete(&mut self, volume: u32) -> Result<(), Broken> {
        let Some(entry) = self.oracle.volume(volume).cloned() else { return Ok(()) };
        // What is still being read of it would be refused.
        self.wait_for_all()?;
        let before = self.oracle.written();
        for (slot, _) in self.oracle.snapshots_of(&entry.name) {
            self.opening.volumes.remove(&slot);
            self.oracle.write(Register::Volume(slot), Value::Nothing);
        }
        self.opening.volumes.remove(&volume);
        self.oracle.write(Register::Volume(volume), Value::Nothing);
        self.oracle.join_from(before);
        let request = DeleteRequest { with_snapshots: true, ..DeleteRequest::of(&entry.name) };
        let request = DeleteRequest { even_if_open: true, ..request };
        self.change(request, before).map(drop)
    }
}
