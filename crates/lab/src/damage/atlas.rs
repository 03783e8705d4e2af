//! What the structures of a store are to one another: which page says where which frame is, which
//! two are the same page below two roots, what lies in one container.

use std::collections::BTreeMap;

use disk::MemoryDisk;
use engine::{Structure, Zone};
use format::page::{Page, PageId};
use format::record::Change;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, Pba, Pbn, TreeId};
use format::{BLOCK_BYTES, map_page, pba_page};

use crate::damage::recorded::changes;

/// Where a structure begins.
type At = (Zone, u64);

/// The structures of a store, and what leads from one to another.
#[derive(Default)]
pub(crate) struct Atlas {
    pub(crate) structures: Vec<Structure>,
    /// Of pages.
    ids: BTreeMap<At, PageId>,
    /// Frames that a page or a record names.
    names: BTreeMap<At, Vec<At>>,
    /// The frame and the second copy of each chunk that is stored twice.
    twins: BTreeMap<At, At>,
}

/// What a second structure is to a first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// Nothing.
    Any,
    /// It lies in the same container.
    OneContainer,
    /// It is the same page, below the other root.
    OnePage,
    /// It is a page above or below it.
    OnePath,
    /// It is a frame that it names.
    Named,
    /// It is the other frame of its chunk.
    Twin,
    /// It is the next of its kind.
    Next,
}

impl Atlas {
    pub(crate) fn of(disk: &MemoryDisk, structures: &[Structure]) -> Self {
        let mut atlas = Self { structures: structures.to_vec(), ..Self::default() };
        let block = |block| disk.peek(Zone::Superblock, block * BLOCK_BYTES as u64, BLOCK_BYTES);
        let Some(geometry) = [0, 3].into_iter().find_map(|at| Geometry::decode(&block(at)).ok())
        else {
            return atlas;
        };
        let place = |pba: Pba| {
            let (zone, start_bytes) = geometry.container_zone(pba.container)?;
            Some((zone, start_bytes + u64::from(pba.offset_bytes)))
        };
        let (mut places, mut copies, mut maps) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for structure in structures {
            let at = (structure.zone, structure.offset_bytes);
            match structure.zone {
                Zone::Tables => {
                    let bytes = disk.peek(at.0, at.1, BLOCK_BYTES);
                    let Ok(page) = Page::from_bytes(&bytes) else { continue };
                    let id = page.id();
                    atlas.ids.insert(at, id);
                    if id.level == 0 && [TreeId::PBN_PBA, TreeId::COPIES].contains(&id.tree) {
                        let of = if id.tree == TreeId::COPIES { &mut copies } else { &mut places };
                        let found: Vec<(Pbn, At)> = placed(&page, place).collect();
                        atlas.names.insert(at, found.iter().map(|(_, at)| *at).collect());
                        of.extend(found);
                    } else if id.level == 0 && id.tree.is_map() {
                        maps.push((at, page));
                    }
                }
                Zone::Journal => {
                    let bytes = disk.peek(at.0, at.1, structure.length_bytes as usize);
                    let named = changes(&bytes).into_iter().filter_map(stored_at);
                    atlas.names.insert(at, named.filter_map(place).collect());
                }
                _ => {}
            }
        }
        for (at, page) in maps {
            let pbns = (0..map_page::SLOTS).map(|slot| map_page::get(&page, slot));
            let named = pbns.filter_map(|pbn| places.get(&pbn).copied());
            atlas.names.insert(at, named.collect());
        }
        for (pbn, copy) in copies {
            if let Some(&frame) = places.get(&pbn) {
                atlas.twins.extend([(frame, copy), (copy, frame)]);
            }
        }
        atlas
    }

    /// Structures of a kind, or of all kinds that begin so.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Structure> {
        self.structures.iter().filter(|structure| structure.kind.starts_with(kind)).collect()
    }

    /// Structures of a kind that are `bond` to the first.
    pub(crate) fn bound(&self, first: &Structure, bond: Bond, kind: &str) -> Vec<&Structure> {
        let at = (first.zone, first.offset_bytes);
        let id = self.ids.get(&at);
        let is_bound = |other: &&Structure| {
            let there = (other.zone, other.offset_bytes);
            let other_id = self.ids.get(&there);
            let pages = id.zip(other_id);
            let container = |(zone, at): At| (zone, at / u64::from(CONTAINER_BYTES));
            there != at
                && match bond {
                    Bond::Any => true,
                    Bond::OneContainer => container(at) == container(there),
                    Bond::OnePage => pages.is_some_and(|(one, other)| one.stands_for(*other)),
                    Bond::OnePath => pages.is_some_and(|(one, other)| is_path(*one, *other)),
                    Bond::Named => self.names.get(&at).is_some_and(|named| named.contains(&there)),
                    Bond::Twin => self.twins.get(&at) == Some(&there),
                    Bond::Next => there.1 > at.1,
                }
        };
        let mut bound: Vec<&Structure> =
            self.of_kind(kind).into_iter().filter(|other| is_bound(other)).collect();
        if bond == Bond::Next {
            bound.sort_by_key(|other| other.offset_bytes);
            bound.truncate(1);
        }
        bound
    }

    /// What was in `before` where the first is: in its place, or a page of that name.
    pub(crate) fn again(&self, first: &Structure, before: &Self) -> Option<Structure> {
        let at = (first.zone, first.offset_bytes);
        let id = before.ids.get(&at);
        let is_it = |other: &&Structure| {
            let there = (other.zone, other.offset_bytes);
            let other_id = self.ids.get(&there);
            other.kind == first.kind && (id.is_some() && other_id == id || there == at)
        };
        self.structures.iter().find(is_it).cloned()
    }

    /// Blocks of the pages of maps on the way to a chunk of any volume.
    pub(crate) fn maps_of(&self, lba: u64) -> impl Iterator<Item = u64> {
        let leaf = lba / map_page::SLOTS as u64;
        let leads = move |id: &PageId| {
            let leaves = (format::pointer_page::FANOUT as u64).checked_pow(u32::from(id.level));
            id.tree.is_map() && leaves.is_some_and(|leaves| leaf / leaves == id.index)
        };
        let maps = self.ids.iter().filter(move |(_, id)| leads(id));
        maps.map(|((_, at_bytes), _)| at_bytes / BLOCK_BYTES as u64)
    }

    /// Whether a page of the tables stands below one of two roots only, so that the other has
    /// another one in its place.
    pub(crate) fn has_other(&self, block: u64) -> bool {
        let at = (Zone::Tables, block * BLOCK_BYTES as u64);
        let Some(id) = self.ids.get(&at) else { return false };
        self.ids.iter().any(|(other, of)| *other != at && of.stands_for(*id))
    }
}

fn placed(page: &Page, place: impl Fn(Pba) -> Option<At>) -> impl Iterator<Item = (Pbn, At)> {
    let first = page.id().index * pba_page::SLOTS as u64;
    (0..pba_page::SLOTS).filter_map(move |slot| {
        let entry = pba_page::get(page, slot)?;
        Some((Pbn(first + slot as u64), place(entry.pba)?))
    })
}

fn stored_at(change: Change) -> Option<Pba> {
    match change {
        Change::Store { pba, .. } | Change::StoreAside { pba, .. } => Some(pba),
        Change::Move { to, .. } => Some(to),
        Change::Copy { at, .. } => Some(at),
        _ => None,
    }
}

/// Whether one page stands above the other.
fn is_path(one: PageId, other: PageId) -> bool {
    let (above, below) = if one.level > other.level { (one, other) } else { (other, one) };
    let same_tree = one.tree == other.tree || one.tree.is_map() && other.tree.is_map();
    let steps = u32::from(above.level - below.level);
    let fanout = format::pointer_page::FANOUT as u64;
    let index = fanout.checked_pow(steps).map(|pages| below.index / pages);
    same_tree && steps > 0 && index == Some(above.index)
}
