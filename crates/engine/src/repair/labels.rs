//! Geometry and roots found again in zone tables, when the superblock has lost them.
//!
//! A label ([`format::label`]) is a root and the geometry, written when that root was durable. The
//! newest whole one is what the newest slot held, or the root before it, if the store was killed
//! right behind a checkpoint; both give the same state, the older by a longer journal. No label
//! that is older counts beside it, but that of the generation before: what others lead to may have
//! been written over since.
//!
//! Pages are never searched for by what they look like: stale ones are everywhere.

use format::BLOCK_BYTES;
use format::label::Label;
use format::mark::Mark;
use format::root::Root;
use format::superblock::{GEOMETRY_BLOCKS, Geometry, ROOT_BLOCKS};
use format::units::{UUID_BYTES, Zone};

use crate::check::problem::Problem;
use crate::repair::damage_reads::DamageReads;

/// Read at once.
const PIECE_BYTES: u64 = 4 << 20;

/// The labels of a store, looked for when they are first needed: that reads all of zone tables.
#[derive(Default)]
pub(crate) struct Labels(Option<Vec<Label>>);

impl Labels {
    /// Whether they were needed.
    pub(crate) fn are_needed(&self) -> bool {
        self.0.is_some()
    }

    /// The geometry in the newest label of the store that zone tables is marked for, and the
    /// blocks of the superblock to which it is to be written.
    pub(crate) fn geometry(&mut self, reads: &mut DamageReads) -> Option<(Geometry, Vec<u64>)> {
        let uuid = Mark::decode(&reads.block(Zone::Tables, 0)).ok()?.uuid;
        let newest = self.whole(reads, uuid).first()?;
        Some((newest.geometry.clone(), GEOMETRY_BLOCKS.to_vec()))
    }

    /// The roots in the newest label and in that of the generation before, newest first.
    pub(crate) fn roots(
        &mut self,
        reads: &mut DamageReads,
        geometry: &Geometry,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<Root>> {
        let labels = self.whole(reads, geometry.uuid);
        let newest = labels.first()?.root.generation;
        let roots = labels.iter().map(|label| &label.root);
        let roots = roots.filter(|root| root.generation + 1 >= newest).cloned().collect();
        problems.extend(ROOT_BLOCKS.map(|block| Problem::RootSlot { block }));
        Some(roots)
    }

    fn whole(&mut self, reads: &mut DamageReads, uuid: [u8; UUID_BYTES]) -> &[Label] {
        self.0.get_or_insert_with(|| whole_labels(reads, uuid))
    }
}

/// All whole labels in zone tables, newest first, one of each generation.
fn whole_labels(reads: &mut DamageReads, uuid: [u8; UUID_BYTES]) -> Vec<Label> {
    let size_bytes = reads.devices.size_bytes(Zone::Tables);
    let mut labels = Vec::new();
    for at_bytes in (0..size_bytes).step_by(PIECE_BYTES as usize) {
        let length_bytes = PIECE_BYTES.min(size_bytes - at_bytes) as usize;
        let piece = reads.read(Zone::Tables, at_bytes, length_bytes);
        let blocks = (at_bytes / BLOCK_BYTES as u64..).zip(piece.chunks_exact(BLOCK_BYTES));
        labels.extend(blocks.filter_map(|(block, bytes)| {
            Label::decode(bytes, uuid).ok().filter(|label| label.root.label == block)
        }));
    }
    labels.sort_by_key(|label| std::cmp::Reverse(label.root.generation));
    labels.dedup_by_key(|label| label.root.generation);
    labels
}

/// That the label of the older root, in this block, is not there: the last checkpoint made it
/// durable. Nothing says yet that the label of the newest is.
pub(crate) fn damage(
    reads: &mut DamageReads,
    uuid: [u8; UUID_BYTES],
    block: u64,
) -> Option<Problem> {
    if block == 0 {
        return None;
    }
    let label = Label::decode(&reads.block(Zone::Tables, block), uuid);
    (!label.is_ok_and(|label| label.root.label == block)).then_some(Problem::Label { block })
}
