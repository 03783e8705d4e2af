//! Writes whole trees to blocks that no root names; pages that are right already stay. What
//! versions of a volume have in common is written once, so that they share it as they did.

use std::collections::BTreeMap;

use disk::{AlignedBuf, IoError};
use format::BLOCK_BYTES;
use format::detection::Detection;
use format::domain::DomainId;
use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{
    BlockPtr, Fingerprint, PageId, TreeId, TreeRoot, VolumeId, Zone, block_offset_bytes,
};
use reduce::Fingerprinters;

use crate::devices::Devices;
use crate::repair::damage_reads::DamageReads;
use crate::repair::error::RepairError;
use crate::repair::tree_image::Blocks;

/// Pages written as one.
const RUN_PAGES: usize = 256;

/// Gives pages their blocks, and writes them in runs.
pub(crate) struct PageWriter {
    used: Blocks,
    blocks: u64,
    next_block: u64,
    generation: u64,
    run_block: u64,
    run: Vec<u8>,
    pub(crate) pages_written: u64,
    /// The versions whose maps are being written: the first of their line.
    line: VolumeId,
    /// Pages of maps by line, level, index and content. Memory: about 80 bytes for each.
    of_lines: BTreeMap<(VolumeId, u8, u64, Fingerprint), BlockPtr>,
}

impl PageWriter {
    /// A writer for blocks that are not `used`.
    pub(crate) fn new(used: Blocks, blocks: u64, generation: u64) -> Self {
        Self {
            used,
            blocks,
            next_block: 1,
            generation,
            run_block: 0,
            run: Vec::new(),
            pages_written: 0,
            line: VolumeId(0),
            of_lines: BTreeMap::new(),
        }
    }

    /// The maps that come next are those of versions of this line.
    pub(crate) fn begin_line(&mut self, first: VolumeId) {
        self.line = first;
    }

    /// Writes a page, or names the one on disk if that is the same.
    pub(crate) fn put(
        &mut self,
        devices: &mut Devices,
        mut page: Page,
        old: Option<&(BlockPtr, Page)>,
    ) -> Result<BlockPtr, RepairError> {
        if let Some((pointer, _)) = old.filter(|(_, old)| old.payload() == page.payload()) {
            return Ok(*pointer);
        }
        let shared = self.shared_as(&page);
        if let Some(pointer) = shared.as_ref().and_then(|shared| self.of_lines.get(shared)) {
            return Ok(*pointer);
        }
        let blocks = self.blocks;
        let block = self.take_block().ok_or(RepairError::NoRoom { blocks })?;
        let crc = page.seal(self.generation);
        let continues = self.run_block + (self.run.len() / BLOCK_BYTES) as u64 == block;
        if !continues || self.run.len() >= RUN_PAGES * BLOCK_BYTES {
            self.write_run(devices)?;
            self.run_block = block;
        }
        self.run.extend_from_slice(page.as_bytes());
        self.pages_written += 1;
        let pointer = BlockPtr::new(block, crc);
        self.of_lines.extend(shared.map(|shared| (shared, pointer)));
        Ok(pointer)
    }

    /// The next block that no root names; none where there is none left.
    pub(crate) fn take_block(&mut self) -> Option<u64> {
        let block = (self.next_block..self.blocks).find(|&block| !self.used.contains(block))?;
        self.next_block = block + 1;
        Some(block)
    }

    /// By what another version may name this page as its own; none if it is of no map.
    fn shared_as(&self, page: &Page) -> Option<(VolumeId, u8, u64, Fingerprint)> {
        let PageId { tree, level, index } = page.id();
        let blake3 = Fingerprinters::new(&Detection::default()).of(DomainId::default());
        let content = if tree.is_map() { blake3.one(page.payload()) } else { None };
        content.map(|content| (self.line, level, index, content))
    }

    fn write_run(&mut self, devices: &mut Devices) -> Result<(), IoError> {
        if self.run.is_empty() {
            return Ok(());
        }
        let mut buf = AlignedBuf::new_stale(self.run.len());
        buf.copy_from_slice(&self.run);
        self.run.clear();
        devices.write_now(Zone::Tables, block_offset_bytes(self.run_block), buf.into())
    }

    /// Writes what is left and makes all of it durable.
    pub(crate) fn finish(&mut self, devices: &mut Devices) -> Result<(), IoError> {
        self.write_run(devices)?;
        devices.sync_now(Zone::Tables)
    }

    /// Writes the inner pages above leaves, which come in ascending order.
    pub(crate) fn put_inner(
        &mut self,
        reads: &mut DamageReads,
        tree: TreeId,
        leaves: Vec<(u64, BlockPtr)>,
        mut old: impl FnMut(&mut DamageReads, PageId) -> Option<(BlockPtr, Page)>,
    ) -> Result<TreeRoot, RepairError> {
        let Some(&(last, _)) = leaves.last() else { return Ok(TreeRoot::default()) };
        let mut depth = 0;
        let (mut below, mut last) = (leaves, last);
        while depth == 0 || last > 0 {
            depth += 1;
            last /= FANOUT as u64;
            let mut level: Vec<(u64, BlockPtr)> = Vec::new();
            let parent = |child: &(u64, BlockPtr)| child.0 / FANOUT as u64;
            for children in below.chunk_by(|one, other| parent(one) == parent(other)) {
                let Some(index) = children.first().map(parent) else { continue };
                let id = PageId { tree, level: depth, index };
                let mut page = Page::empty(id);
                for (child, pointer) in children {
                    pointer_page::set(&mut page, (child % FANOUT as u64) as usize, *pointer);
                }
                let old = old(reads, id);
                level.push((index, self.put(&mut reads.devices, page, old.as_ref())?));
            }
            below = level;
        }
        let pointer = below.first().map_or(BlockPtr::NONE, |(_, pointer)| *pointer);
        Ok(TreeRoot { pointer, depth })
    }
}
