//! Whether zones hold what this store wrote: asked before anything of them is believed, and before
//! anything is written to them.
//!
//! A zone may be a link to a device, and devices change their names at a restart. Tables name what
//! stands in a data zone, and would go on doing so over another disk: reads would find damage
//! everywhere, writes would destroy that disk, and a repair would abandon every chunk. So an
//! opening, a check and a repair look at some sealed containers of each data zone, as the root has
//! them and the records behind it that are known to be durable: their directories were durable
//! before, and a footer says of which store it is, and of which container. Those that later records
//! seal may have none yet: they are evidence as far as they have one.
//!
//! 1. One footer that is this store's, of its container: the zone is ours. What is wrong with the
//!    others is damage.
//! 2. None, and one of another store, or of a container in another zone: the zone is not ours.
//! 3. No footers at all where there should be [`PLACES_MIN`], and no whole frame in the beginning
//!    of these containers either, nor of those that are open: the zone is not ours. Rot of single
//!    places is no reason to refuse, and a place that the device does not give says nothing.
//! 4. Where footers decide nothing, the mark does that the zone was given before anything else was
//!    written to it. Ours may be gone for the first frames of the first container; then something
//!    begins there that a frame might, also if a crash left a part of it only. Another's mark, and
//!    in a store whose zones were marked a zone that begins with anything else: not ours. A blank
//!    device in place of a zone that nothing was written to harms nobody.
//!
//! Zone tables keeps its mark, so that another store's is known before its pages are believed.
//!
//! What this does not find: an older copy of the right data device; two stores that are copies of
//! each other over one device (they have one UUID); zones of stores that were made without marks,
//! as far as they have no sealed container.

use std::collections::BTreeMap;

use disk::ZoneName;
use format::directory::decode_footer;
use format::frame::{self, FRAME_BYTES_MAX, SECTOR_BYTES};
use format::mark::Mark;
use format::root::Root;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, TreeId, Zone, uuid_prefix};
use format::{BLOCK_BYTES, container_page};

use crate::check::problem::Problem;
use crate::devices::Devices;
use crate::holds::Holds;
use crate::marks::{Marked, marked};
use crate::open::container_lives::{Lives, Should, Used, is_used};
use crate::open::loading::Loading;
use crate::open::open_error::OpenError;
use crate::open::recovery::Scanned;
use crate::repair::damage_reads::DamageReads;
use crate::repair::journal_image::each_record;
use crate::repair::ledger::Pages;
use crate::repair::survey::Survey;

/// Sealed containers of a zone that are looked at.
const SAMPLES: usize = 8;

/// So many places must have nothing of this store before a zone counts as another's: a sealed
/// container has two, its end and its beginning, an open one has its beginning.
pub(crate) const PLACES_MIN: usize = 3;

/// So much of the beginning of a zone is looked at where it has lost its mark.
const BEGIN_BYTES: usize = 1 << 20;

/// A zone that is not this store's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignZone {
    pub(crate) zone: Zone,
    pub(crate) holds: Holds,
}

impl From<ForeignZone> for OpenError {
    fn from(ForeignZone { zone, holds }: ForeignZone) -> Self {
        Self::ForeignZone { zone, holds }
    }
}

impl From<ForeignZone> for Problem {
    fn from(ForeignZone { zone, holds }: ForeignZone) -> Self {
        Self::ForeignZone { zone: ZoneName(zone).to_string(), holds }
    }
}

impl Loading {
    /// Refuses a store with another one's zones, the root's tables being loaded, and the journal
    /// known but not applied.
    pub(crate) fn refuse_foreign_zones(
        &mut self,
        geometry: &Geometry,
        root: &Root,
        scanned: &Scanned,
    ) -> Result<(), OpenError> {
        let instead = match scanned.any {
            true => None,
            false => self.holds_instead_of_journal(geometry, root.journal, scanned.behind),
        };
        if let Some(holds) = instead {
            return Err(ForeignZone { zone: Zone::Journal, holds }.into());
        }
        let mut used = self.state.containers.iter().filter_map(is_used).collect();
        scanned.lives.apply(scanned.settled.durable_sequence, &mut used);
        let foreign = foreign_data(&mut self.devices, geometry, &used);
        foreign.into_iter().next().map_or(Ok(()), |zone| Err(zone.into()))
    }
}

/// Refuses a store with another one's tables, before they are read.
pub(crate) fn refuse_foreign_tables(
    devices: &mut Devices,
    geometry: &Geometry,
) -> Result<(), OpenError> {
    foreign_tables(devices, geometry).map_or(Ok(()), |zone| Err(zone.into()))
}

fn foreign_tables(devices: &mut Devices, geometry: &Geometry) -> Option<ForeignZone> {
    let zone = Zone::Tables;
    match marked(devices, geometry, zone) {
        Marked::Other(holds) => Some(ForeignZone { zone, holds }),
        Marked::Ours | Marked::No | Marked::Unread => None,
    }
}

impl Survey {
    /// Zones that are not this store's.
    pub(crate) fn foreign_zones(&self, reads: &mut DamageReads) -> Vec<ForeignZone> {
        let tables = foreign_tables(&mut reads.devices, &self.geometry);
        let instead = self.holds_instead_of_journal(reads);
        let journal = instead.map(|holds| ForeignZone { zone: Zone::Journal, holds });
        let mut used = Used::new();
        Pages { reads, survey: self }.each_leaf(TreeId::CONTAINERS, |leaf, page| {
            let first = leaf.saturating_mul(container_page::SLOTS as u64);
            for slot in 0..container_page::SLOTS {
                let id = u32::try_from(first.saturating_add(slot as u64)).map(ContainerId);
                let entry = page.and_then(|page| container_page::get(page, slot).ok());
                used.extend(id.ok().zip(entry).and_then(is_used));
            }
        });
        let (geometry, mut lives) = (&self.geometry, Lives::default());
        each_record(reads, geometry, self.base.root.journal, |_, record, _| {
            lives.note(&record);
            true
        });
        lives.apply(self.base.journal.settled.durable_sequence, &mut used);
        let data = foreign_data(&mut reads.devices, geometry, &used);
        tables.into_iter().chain(journal).chain(data).collect()
    }
}

/// Data zones that are not this store's.
fn foreign_data(devices: &mut Devices, geometry: &Geometry, used: &Used) -> Vec<ForeignZone> {
    let used: Vec<_> = used.iter().map(|(&id, &should)| (id, should)).collect();
    let zone_of = |id| geometry.container_zone(id).map(|(zone, _)| zone);
    let by_zone: BTreeMap<_, _> = used
        .chunk_by(|one, other| zone_of(one.0) == zone_of(other.0))
        .filter_map(|here| Some((zone_of(here.first()?.0)?, here)))
        .collect();
    let there = (0..geometry.data.len() as u16).filter(|&number| geometry.has_data_zone(number));
    let judged = there.map(Zone::Data).filter_map(|zone| {
        let here = by_zone.get(&zone).copied().unwrap_or_default();
        let holds = judge(devices, geometry, zone, here)?;
        Some(ForeignZone { zone, holds })
    });
    judged.collect()
}

/// What stands in a zone, if that is not this store's.
fn judge(
    devices: &mut Devices,
    geometry: &Geometry,
    zone: Zone,
    used: &[(ContainerId, Should)],
) -> Option<Holds> {
    let ids = |wanted: Should| -> Vec<_> {
        used.iter().filter(|(_, should)| *should == wanted).map(|(id, _)| *id).collect()
    };
    let (mut other, mut without) = (None, Vec::new());
    for should in [Should::End, Should::PerhapsEnd] {
        for id in spread(&ids(should)) {
            match owner(devices, geometry, zone, id)? {
                Owner::Ours => return None,
                Owner::Other(holds) => other = other.or(Some(holds)),
                Owner::Nobody if should == Should::End => without.push(id),
                Owner::Nobody | Owner::Unread => {}
            }
        }
    }
    if other.is_some() {
        return other;
    }
    let open = ids(Should::Begin);
    let places = 2 * without.len() + open.len();
    let mut beginnings = without.iter().chain(&open);
    match marked(devices, geometry, zone) {
        Marked::Other(holds) => Some(holds),
        Marked::Ours => None,
        Marked::No | Marked::Unread
            if places >= PLACES_MIN
                && !beginnings.any(|&id| begins_with_frame(devices, geometry, id)) =>
        {
            Some(Holds::Nothing)
        }
        Marked::No if geometry.marked && !begins_as_ours(devices, geometry, zone, used) => {
            Some(Holds::Nothing)
        }
        Marked::No | Marked::Unread => None,
    }
}

/// Whether a zone that was marked, and is so no more, begins with what may be of this store: its
/// first sector, which is written whole or not at all, holds that of the mark or of a frame. Rot of
/// it alone leaves the rest as it was.
fn begins_as_ours(
    devices: &mut Devices,
    geometry: &Geometry,
    zone: Zone,
    used: &[(ContainerId, Should)],
) -> bool {
    let Ok(begin) = devices.read_below(zone, 0, BEGIN_BYTES) else { return true };
    let sector = begin.get(..SECTOR_BYTES as usize).unwrap_or_default();
    let mark = Mark { uuid: geometry.uuid, zone }.encode();
    if mark.starts_with(sector) || frame::may_begin(sector) {
        return true;
    }
    let blocks = begin.chunks(BLOCK_BYTES).filter(|block| block.iter().any(|&byte| byte != 0));
    match blocks.count() {
        0 => used.is_empty(),
        1..PLACES_MIN => true,
        _ => (0..begin.len()).any(|at| is_frame(&begin, at)),
    }
}

/// Some of these, the first and the last among them.
fn spread(all: &[ContainerId]) -> impl Iterator<Item = ContainerId> {
    let count = all.len().min(SAMPLES);
    let last = all.len().saturating_sub(1);
    let gaps = count.saturating_sub(1).max(1);
    (0..count).filter_map(move |number| all.get(number * last / gaps).copied())
}

/// Whose directory a container ends with.
enum Owner {
    Ours,
    Other(Holds),
    Nobody,
    /// The device did not give it.
    Unread,
}

fn owner(devices: &mut Devices, geometry: &Geometry, zone: Zone, id: ContainerId) -> Option<Owner> {
    let (_, start_bytes) = geometry.container_zone(id)?;
    let at_bytes = start_bytes + u64::from(CONTAINER_BYTES) - BLOCK_BYTES as u64;
    let Ok(end) = devices.read_now(zone, at_bytes, BLOCK_BYTES) else { return Some(Owner::Unread) };
    let Ok(footer) = decode_footer(&end) else { return Some(Owner::Nobody) };
    if footer.uuid_prefix != uuid_prefix(geometry.uuid) {
        return Some(Owner::Other(Holds::OtherStore));
    }
    if footer.container == id {
        return Some(Owner::Ours);
    }
    // One that went astray within its zone says nothing of the device.
    let written_to = geometry.container_zone(footer.container).map(|(zone, _)| zone);
    Some(match written_to.filter(|other| *other != zone) {
        Some(other) => Owner::Other(Holds::OtherZone(ZoneName(other).to_string())),
        None => Owner::Nobody,
    })
}

/// Whether a whole frame begins at one of the first blocks of a container; true where the device
/// does not give them. After a cut, frames go on at the next block, so the first may hold none.
fn begins_with_frame(devices: &mut Devices, geometry: &Geometry, id: ContainerId) -> bool {
    let Some((zone, start_bytes)) = geometry.container_zone(id) else { return true };
    let length_bytes = (2 * FRAME_BYTES_MAX).next_multiple_of(BLOCK_BYTES);
    let Ok(bytes) = devices.read_now(zone, start_bytes, length_bytes) else { return true };
    (0..length_bytes).step_by(BLOCK_BYTES).any(|at| is_frame(&bytes, at))
}

fn is_frame(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).is_some_and(|rest| frame::may_begin(rest) && frame::begins_whole(rest))
}
