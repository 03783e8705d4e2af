//! Where frames go: the open containers, those being written out, and the space of all.
//!
//! There is one open container for each stream: what collection moves has lived long and will
//! mostly live on, what clients write is young and much of it dies soon. Kept apart, containers
//! become either emptier or fuller than when mixed, and both save moves.
//!
//! Frames are appended byte by byte to the stream's container; when the next does not fit, it is
//! sealed with its directory and a free one is opened. Both are changes of their own in the same
//! journal record as the frames, so recovery knows the containers without looking for them.
//! A sealed container stays readable in memory until its last write has ended.
//!
//! Frames that come in large batches stay where they were made until their segment is full, and a
//! worker packs it ([`crate::placement::packing`]).

pub(crate) mod carried;
pub(crate) mod carrying;
pub(crate) mod packing;
pub(crate) mod quarantine;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use containers::{
    ContainerWrite, NewFrame, OpenContainer, Sealed, SealedImage, SharedBytes, Space, WriteBytes,
    usable_bytes_per_container,
};
use format::BLOCK_BYTES;
use format::directory::{DIRECTORY_ENTRY_BYTES, DirectoryEntry};
use format::record::Change;
use format::root::{STREAMS, Stream};
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Fingerprint, Pba, Pbn, Zone};
use mutants::mutant;
use reduce::{ChunkBuf, Workers};

use crate::devices::{Devices, Place, Purpose};
use crate::placement::packing::{Packing, lays};

/// Room that clients leave to collection, or a full store could not be compacted: for one victim,
/// should all of it live again, with paddings ([`crate::collect::room`] says what for).
pub(crate) const RESERVED_BYTES: u64 = CONTAINER_BYTES as u64 / 8 * 9;

/// Sealed containers whose writes may be on their way at once.
const SEALED_IN_MEMORY_MAX: usize = 4;

/// Room in containers that a frame of so many bytes takes, padding aside.
pub(crate) fn room_of(frame_bytes: u64) -> u64 {
    frame_bytes + DIRECTORY_ENTRY_BYTES as u64
}

/// Length of these frames, one after the other.
fn bytes_of(frames: &[NewFrame]) -> usize {
    frames.iter().map(|frame| frame.length_bytes as usize).sum()
}

/// A frame to be placed.
pub(crate) struct Placed<'a> {
    pub(crate) frame: &'a [u8],
    pub(crate) pbn: Pbn,
    pub(crate) fingerprint: Fingerprint,
}

/// The container being collected, and room that it may still take in vain.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct VictimRoom {
    pub(crate) id: ContainerId,
    pub(crate) at_risk_bytes: u64,
}

/// The write side of the containers.
pub(crate) struct Placement {
    pub(crate) space: Space,
    /// By stream.
    open: [Option<OpenContainer>; STREAMS],
    /// Sealed containers whose writes have not all ended.
    sealed: Vec<SealedImage>,
    /// Memory for the next container's directory.
    list: Vec<DirectoryEntry>,
    /// Writes to be issued.
    ready: Vec<(Stream, ContainerWrite)>,
    pub(crate) packing: Packing,
    chunk_bytes: u32,
    unsynced_zones: BTreeSet<u16>,
    /// The container being collected.
    pub(crate) victim: Option<VictimRoom>,
    /// The data zone that leaves, and the container before which none is left in it that can be
    /// collected.
    pub(crate) leaving: Option<(u16, u32)>,
    pub(crate) unsynced_bytes: u64,
    /// Frames were placed since the data zones were last synced that no record carries.
    loose: bool,
    next_sequence: u32,
    uuid: [u8; 16],
}

impl Placement {
    pub(crate) fn new(
        space: Space,
        open: [Option<OpenContainer>; STREAMS],
        next_sequence: u32,
        geometry: &Geometry,
    ) -> Self {
        Self {
            space,
            open,
            sealed: Vec::new(),
            list: Vec::new(),
            ready: Vec::new(),
            packing: Packing::default(),
            chunk_bytes: geometry.chunk_bytes,
            unsynced_zones: BTreeSet::new(),
            victim: None,
            leaving: None,
            unsynced_bytes: 0,
            loose: false,
            next_sequence,
            uuid: geometry.uuid,
        }
    }

    /// Worst-case bytes of frames and directory entries that surely fit into the open container.
    pub(crate) fn open_room_bytes(&self, stream: Stream) -> u64 {
        let Some(open) = &self.open[stream as usize] else { return 0 };
        // Counted as padded already: a flush may come at any moment.
        let frames_bytes = u64::from(open.fill_bytes()).next_multiple_of(BLOCK_BYTES as u64);
        let taken = frames_bytes + (open.entries().len() * DIRECTORY_ENTRY_BYTES) as u64;
        self.usable_bytes().saturating_sub(taken)
    }

    /// Worst-case bytes that surely fit into an empty container.
    pub(crate) fn usable_bytes(&self) -> u64 {
        usable_bytes_per_container(self.chunk_bytes)
    }

    /// Whether frames of clients of `bytes` (directory entries included) surely find room.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let free_bytes = self.space.free_containers() * self.usable_bytes();
        self.open_room_bytes(Stream::Clients) + free_bytes >= bytes
    }

    /// Worst-case bytes that clients may be promised: collection's room is not theirs, nor what it
    /// has at risk now.
    pub(crate) fn room_to_promise_bytes(&self) -> u64 {
        let at_risk_bytes = self.victim.map_or(0, |victim| victim.at_risk_bytes);
        let reserved = || self.reserved_containers(at_risk_bytes);
        let kept = if mutant!(PromisesReserve) { 0 } else { reserved() };
        let free = self.space.free_containers().saturating_sub(kept);
        self.open_room_bytes(Stream::Clients) + free * self.usable_bytes()
    }

    /// The same with the containers that become free without anything being moved.
    pub(crate) fn coming_room_bytes(&self) -> u64 {
        let coming = self.space.coming_containers();
        let containers = coming.saturating_sub(self.reserved_containers(0));
        self.open_room_bytes(Stream::Clients) + containers * self.usable_bytes()
    }

    /// Worst-case bytes that collection finds beside what clients were promised.
    pub(crate) fn room_beside_bytes(&self, promised_bytes: u64) -> u64 {
        let beyond_bytes = promised_bytes.saturating_sub(self.open_room_bytes(Stream::Clients));
        let promised = beyond_bytes.div_ceil(self.usable_bytes());
        let free = self.space.free_containers().saturating_sub(promised);
        self.open_room_bytes(Stream::Collection) + free * self.usable_bytes()
    }

    /// Room that is not for clients: the containers that only collection may open, and the rest of
    /// its open one.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let reserved_bytes = self.reserved_containers(0) * u64::from(CONTAINER_BYTES);
        reserved_bytes + self.open_room_bytes(Stream::Collection)
    }

    /// Whether a container is free that collection will not need.
    pub(crate) fn has_spare_container(&self) -> bool {
        self.space.free_containers() > self.reserved_containers(0)
    }

    /// The data zone that leaves, if one does.
    pub(crate) fn leaving_zone(&self) -> Option<u16> {
        self.leaving.map(|(zone, _)| zone)
    }

    /// The open container of a stream.
    pub(crate) fn open_id(&self, stream: Stream) -> Option<ContainerId> {
        self.open[stream as usize].as_ref().map(OpenContainer::id)
    }

    /// Containers that only collection may open: what it needs beside the rest of its open one.
    pub(crate) fn reserved_containers(&self, at_risk_bytes: u64) -> u64 {
        let open_bytes = self.open_room_bytes(Stream::Collection);
        let reserved_bytes = RESERVED_BYTES + at_risk_bytes;
        reserved_bytes.saturating_sub(open_bytes).div_ceil(self.usable_bytes())
    }

    /// Places a frame; `changes` gets the sealing and opening it caused. None when no container is
    /// free, which reservations rule out.
    pub(crate) fn place(
        &mut self,
        stream: Stream,
        placed: &Placed<'_>,
        changes: &mut Vec<Change>,
    ) -> Option<Pba> {
        self.loose = true;
        if let Some(open) = &mut self.open[stream as usize]
            && let Ok(pba) = open.append(placed.frame, placed.pbn, placed.fingerprint)
        {
            return Some(pba);
        }
        self.roll(stream, changes)?;
        self.open[stream as usize]
            .as_mut()?
            .append(placed.frame, placed.pbn, placed.fingerprint)
            .ok()
    }

    /// Places the `new` frames of clients, which lie one after the other at the start of `bytes`;
    /// `changes` gets them, and what they caused, in order. None as for [`Self::place`].
    pub(crate) fn place_all(
        &mut self,
        bytes: &Arc<ChunkBuf>,
        new: &[NewFrame],
        changes: &mut Vec<Change>,
    ) -> Option<()> {
        self.loose = true;
        if lays(bytes_of(new), bytes.bytes().len()) {
            let bytes = Arc::clone(bytes) as SharedBytes;
            self.append_all(new, changes, |open, from, new, pbas| {
                open.lay_batch(&bytes, from, new, pbas)
            })
        } else {
            self.copy_all(bytes.bytes(), new, changes)
        }
    }

    fn copy_all(
        &mut self,
        bytes: &[u8],
        new: &[NewFrame],
        changes: &mut Vec<Change>,
    ) -> Option<()> {
        self.append_all(new, changes, |open, from, new, pbas| {
            open.append_batch(&bytes[from..], new, pbas)
        })
    }

    /// Appends the frames by `append`, which takes as many as fit of those that lie from so many
    /// bytes on.
    fn append_all(
        &mut self,
        mut new: &[NewFrame],
        changes: &mut Vec<Change>,
        append: impl Fn(&mut OpenContainer, usize, &[NewFrame], &mut Vec<Pba>) -> usize,
    ) -> Option<()> {
        let mut pbas = Vec::with_capacity(new.len());
        let mut from = 0;
        while !new.is_empty() {
            pbas.clear();
            let taken = match &mut self.open[Stream::Clients as usize] {
                Some(open) => append(open, from, new, &mut pbas),
                None => 0,
            };
            let (placed, rest) = new.split_at(taken);
            for (NewFrame { pbn, fingerprint, length_bytes, .. }, pba) in placed.iter().zip(&pbas) {
                changes.push(Change::Store { pbn: *pbn, fingerprint: *fingerprint, pba: *pba });
                from += *length_bytes as usize;
            }
            new = rest;
            if !new.is_empty() {
                self.roll(Stream::Clients, changes)?;
            }
        }
        Some(())
    }

    /// Places frames as [`Self::place_all`] does, the open container having room for them, and has
    /// `changes` carry them: a record of those is durable without any write to the container.
    pub(crate) fn place_carried(
        &mut self,
        bytes: &ChunkBuf,
        new: &[NewFrame],
        changes: &mut Vec<Change>,
    ) -> Option<()> {
        let open = self.open[Stream::Clients as usize].as_ref()?;
        let (container, offset_bytes) = (open.id(), open.fill_bytes());
        let bytes = bytes.bytes().get(..bytes_of(new))?;
        changes.push(Change::Carry { container, offset_bytes, bytes: bytes.to_vec() });
        self.copy_all(bytes, new, changes)
    }

    /// Whether the data zones have to be synced for all records to be durable.
    pub(crate) fn has_loose_frames(&self) -> bool {
        self.loose
    }

    /// How many of these containers are open.
    pub(crate) fn open_in(&self, ids: &Range<u32>) -> usize {
        self.open.iter().flatten().filter(|open| ids.contains(&open.id().0)).count()
    }

    /// Seals those of these containers that are open, and opens others; there are so many free.
    pub(crate) fn open_elsewhere(&mut self, ids: &Range<u32>, changes: &mut Vec<Change>) {
        for stream in Stream::ALL {
            if self.open_id(stream).is_some_and(|id| ids.contains(&id.0)) {
                let opened = self.roll(stream, changes);
                assert!(opened.is_some(), "a free container is kept for each that is left");
            }
        }
    }

    fn roll(&mut self, stream: Stream, changes: &mut Vec<Change>) -> Option<()> {
        self.loose = true;
        let id = self.space.allocate()?;
        if let Some(full) = self.open[stream as usize].take() {
            let (id, sequence) = (full.id(), full.sequence());
            let Sealed { writes, used_bytes, image, list } = full.seal(self.uuid);
            self.ready.extend(writes.into_iter().map(|write| (stream, write)));
            self.space.seal(id, sequence, used_bytes);
            changes.push(Change::SealContainer { id, used_bytes });
            self.sealed.push(image);
            self.list = list;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        changes.push(Change::OpenContainer { id, sequence, stream });
        let list = std::mem::take(&mut self.list);
        self.open[stream as usize] = Some(OpenContainer::new(id, sequence, list));
        Some(())
    }

    /// Issues what is ready: whole segments, and with `flush` the padded tails too. Returns the
    /// bytes of each stream.
    pub(crate) fn issue(
        &mut self,
        flush: bool,
        geometry: &Geometry,
        devices: &mut Devices,
        workers: &Workers,
    ) -> [u64; STREAMS] {
        for (stream, open) in Stream::ALL.into_iter().zip(&mut self.open) {
            let writes = open.iter_mut().flat_map(|open| open.take_writes(flush));
            self.ready.extend(writes.map(|write| (stream, write)));
        }
        let mut bytes = [0; STREAMS];
        let mut ready = std::mem::take(&mut self.ready);
        for (stream, write) in ready.drain(..) {
            let Some((zone, start_bytes)) = geometry.container_zone(write.container) else {
                continue;
            };
            if let Zone::Data(number) = zone
                && !mutant!(SkipsDataSync)
            {
                self.unsynced_zones.insert(number);
            }
            bytes[stream as usize] += write.bytes.length_bytes() as u64;
            let offset_bytes = start_bytes + u64::from(write.offset_bytes);
            let place = (write.container, write.offset_bytes);
            match write.bytes {
                WriteBytes::Unpacked(segment) if self.packing.has_room() => {
                    self.packing.begin(place, segment, (zone, offset_bytes), devices, workers);
                }
                here => {
                    let purpose = Purpose::Container(write.container);
                    devices.write(zone, offset_bytes, here.packed(), purpose);
                    self.note_packed(place);
                }
            }
        }
        self.ready = ready;
        self.unsynced_bytes += bytes.iter().sum::<u64>();
        bytes
    }

    /// A worker has packed the segment whose write has this tag.
    pub(crate) fn packed(&mut self, tag: u64, devices: &mut Devices) {
        if let Some(place) = self.packing.end(tag, devices) {
            self.note_packed(place);
        }
    }

    fn note_packed(&mut self, (id, offset_bytes): Place) {
        if let Some(open) = self.open.iter_mut().flatten().find(|open| open.id() == id) {
            open.packed(offset_bytes);
        } else if let Some(image) = self.sealed.iter_mut().find(|image| image.id() == id) {
            image.packed(offset_bytes);
        }
    }

    /// A write of this container has ended; a sealed one whose last it was leaves memory.
    pub(crate) fn write_ended(&mut self, id: ContainerId) {
        if let Some(open) = self.open.iter_mut().flatten().find(|open| open.id() == id) {
            return open.write_done();
        }
        let ended = |image: &mut SealedImage| image.id() == id && image.write_done();
        if let Some(at) = self.sealed.iter_mut().position(ended) {
            self.sealed.swap_remove(at);
        }
    }

    /// The sequence number of the next container to be opened.
    pub(crate) fn next_sequence(&self) -> u32 {
        self.next_sequence
    }

    /// Whether the device is so far behind that no more frames should be placed.
    pub(crate) fn is_behind(&self) -> bool {
        self.sealed.len() >= SEALED_IN_MEMORY_MAX
    }

    /// Data zones written since they were last asked for. The caller syncs them, and has
    /// issued all frames before.
    pub(crate) fn take_unsynced_zones(&mut self) -> BTreeSet<u16> {
        self.unsynced_bytes = 0;
        self.loose = false;
        std::mem::take(&mut self.unsynced_zones)
    }

    /// A frame's bytes while its container is in memory.
    pub(crate) fn read(&self, pba: Pba) -> Option<Cow<'_, [u8]>> {
        let open = self.open.iter().flatten().find_map(|open| open.read(pba));
        open.or_else(|| self.sealed.iter().find_map(|image| image.read(pba)))
    }

    /// What of the open container `id` has been handed to the device, and what it holds.
    pub(crate) fn open_container(&self, id: ContainerId) -> Option<(u32, &[DirectoryEntry])> {
        let open = self.open.iter().flatten().find(|open| open.id() == id)?;
        Some((open.handed_bytes(), open.entries()))
    }

    /// Whether a container's bytes are not all on disk yet.
    pub(crate) fn is_in_memory(&self, id: ContainerId) -> bool {
        self.open.iter().flatten().any(|open| open.id() == id)
            || self.sealed.iter().any(|image| image.id() == id)
    }
}
