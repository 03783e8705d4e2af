//! Containers in the accounts of a repair: which frames are there, and what directories still tell.
//!
//! Every container in use is read whole, once. A chunk counts as stored if its frame passes its
//! check, carries its PBN and is the one that the tables mean. A chunk whose place is unknown is
//! looked for in the directories (or, where one is damaged, in the frames themselves): its
//! fingerprint must be the one that the Hash-PBN table has for it, or, when that is lost as well,
//! the container that was opened last has it, since a PBN is given out again only after its
//! container was collected, and after a checkpoint: so a repair that has to go back to its root
//! meets no chunk that was stored later under a PBN that the root still knows. Nor does it meet the
//! second copy of a chunk that is no more: collection forgets no chunk that has one, but lets the
//! copy take its place. Earlier frames of a PBN may well be there still, in a container that was
//! kept because another frame in it is damaged, or that is free and of which nobody knows that: so
//! the container that was opened last has the chunk also if the frame there is damaged, and the
//! chunk is lost then.
//!
//! A frame does not say of which store it is, and the device may have held another one. So frames
//! of a container that neither tables, root nor a directory of this store know count by their
//! fingerprint alone.
//!
//! Where a frame is damaged and its second copy is not, the copy is the chunk's frame from now on.
//! If the page that should say where the copy is cannot be had, any frame of that PBN with the
//! chunk's fingerprint is as good.

use std::collections::{BTreeMap, BTreeSet};

use containers::directory_of;
use format::container_page::{ContainerEntry, ContainerState};
use format::directory::{DirectoryEntry, Footer, decode_footer};
use format::frame;
use format::superblock::Geometry;
use format::units::{ContainerId, Fingerprint, FrameCheck, Pba, Pbn, uuid_prefix};

use crate::check::problem::{CheckProgress, Problem};
use crate::open::frame_walk::{entries_by_scan, entry_of};
use crate::open::recovery::fingerprint_at;
use crate::repair::damage_reads::DamageReads;
use crate::repair::ledger::{Ledger, Place};

/// Where a chunk of unknown place may be.
struct Candidate {
    sequence: u32,
    is_sound: bool,
    pba: Pba,
    fingerprint: Fingerprint,
}

/// What reading the containers came to.
#[derive(Default)]
pub(crate) struct FrameAccounts {
    pub(crate) problems: Vec<Problem>,
    /// Containers whose directories have to be written.
    pub(crate) without_directory: BTreeSet<ContainerId>,
    /// Chunks whose place was unknown and was found.
    pub(crate) found_again: BTreeSet<Pbn>,
    pub(crate) frames_verified: u64,
    /// Chunks whose frames are damaged, and what is known of their fingerprints.
    damaged: Vec<(Pbn, Option<Fingerprint>)>,
    candidates: BTreeMap<Pbn, Candidate>,
    /// Further frames of chunks that may have second copies, and what they are frames of.
    twins: BTreeMap<(Pbn, Fingerprint), Pba>,
}

/// A container as read.
struct Image<'a> {
    id: ContainerId,
    bytes: &'a [u8],
    geometry: &'a Geometry,
    /// Its directory, or what stands for it.
    entries: Vec<DirectoryEntry>,
    /// Whether what stands in `entries` is known to have been stored by this store.
    is_ours: bool,
}

impl FrameAccounts {
    /// Reads all containers and settles where every chunk is.
    pub(crate) fn read(
        ledger: &mut Ledger,
        reads: &mut DamageReads,
        geometry: &Geometry,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Self {
        let mut accounts = Self::default();
        let mut stored = stored_chunks(ledger);
        stored.sort_unstable_by_key(|(pba, _)| (pba.container, pba.offset_bytes));
        let searching = ledger.places.contains(&Place::Unknown) || ledger.has_lost_copies();
        let total = geometry.containers_total();
        let mut rest = &stored[..];
        for id in (0..total as u32).map(ContainerId) {
            progress(CheckProgress { stage: "containers", done: u64::from(id.0), total });
            let count = rest.partition_point(|(pba, _)| pba.container <= id);
            let (chunks, after) = rest.split_at(count);
            rest = after;
            if !geometry.has_container(id) {
                chunks.iter().for_each(|(pba, pbn)| accounts.misplace(ledger, *pbn, pba));
                continue;
            }
            let entry = ledger.containers[id.0 as usize];
            let is_free = entry.is_some_and(|entry| entry.state == ContainerState::Free);
            if !(is_free && chunks.is_empty()) {
                let bytes = reads.container(geometry, id);
                accounts.read_container(ledger, geometry, id, &bytes, chunks, searching);
            }
        }
        rest.iter().for_each(|(pba, pbn)| accounts.misplace(ledger, *pbn, pba));
        accounts.settle_unknown(ledger);
        accounts.take_copies(ledger, reads, geometry);
        accounts
    }

    /// A chunk is placed where nothing can be.
    fn misplace(&mut self, ledger: &mut Ledger, pbn: Pbn, pba: &Pba) {
        let (container, offset_bytes) = (pba.container.0, pba.offset_bytes);
        let problem = Problem::FrameMisplaced { pbn: pbn.0, container, offset_bytes };
        self.lose(ledger, pbn, problem);
    }

    fn read_container(
        &mut self,
        ledger: &mut Ledger,
        geometry: &Geometry,
        id: ContainerId,
        bytes: &[u8],
        chunks: &[(Pba, Pbn)],
        searching: bool,
    ) {
        let (known, open) = (ledger.containers[id.0 as usize], ledger.open_container(id));
        let recorded = known.map(|entry| entry.sequence).or(open.map(|open| open.sequence));
        let sequence = recorded.unwrap_or_else(|| footer_sequence(id, geometry, bytes));
        let is_open =
            open.is_some() || known.is_some_and(|entry| entry.state == ContainerState::Open);
        let directory = directory_of(id, sequence, geometry.uuid, bytes).ok().filter(|_| !is_open);
        let was_sealed = known.is_none_or(|entry| entry.state == ContainerState::Sealed);
        if directory.is_none() {
            self.without_directory.insert(id);
            if was_sealed && !is_open && known.is_some() {
                self.problems.push(Problem::Directory { container: id.0 });
            }
        }
        let filled_bytes = match (known, open) {
            (_, Some(open)) => open.fill_bytes,
            (Some(entry), None) => entry.used_bytes,
            (None, None) => u32::MAX,
        };
        let is_ours = recorded.is_some() || directory.is_some();
        let entries = match directory {
            Some(entries) => entries,
            None if searching => {
                let filled = bytes.get(..filled_bytes as usize).unwrap_or(bytes);
                entries_by_scan(id, filled, geometry).entries
            }
            None => Vec::new(),
        };
        ledger.containers[id.0 as usize].get_or_insert(ContainerEntry {
            state: ContainerState::Sealed,
            sequence,
            ..ContainerEntry::default()
        });
        let image = Image { id, bytes, geometry, entries, is_ours };
        self.verify(ledger, &image, chunks);
        if searching {
            self.search(ledger, &image, sequence);
        }
    }

    /// Checks the frames of chunks that the tables place here, and their fingerprints.
    fn verify(&mut self, ledger: &mut Ledger, image: &Image<'_>, chunks: &[(Pba, Pbn)]) {
        let listed: BTreeMap<(u32, u32, Pbn), Fingerprint> = image
            .entries
            .iter()
            .map(|entry| ((entry.offset_bytes, entry.length_bytes, entry.pbn), entry.fingerprint))
            .collect();
        for &(pba, pbn) in chunks {
            self.frames_verified += 1;
            let container = image.id.0;
            if !image.has_frame(pba, pbn) {
                self.lose(ledger, pbn, Problem::DamagedFrame { pbn: pbn.0, container });
                continue;
            }
            let told = listed.get(&(pba.offset_bytes, pba.length_bytes, pbn)).copied();
            if told.is_none() && !self.without_directory.contains(&image.id) {
                self.problems.push(Problem::DirectoryLacks { container, pbn: pbn.0 });
                self.without_directory.insert(image.id);
            }
            // Where young entries are lost, older ones may have been taken back by them.
            let is_sure = told.is_some() || !ledger.fingerprints_lost;
            let known = ledger.fingerprints[pbn.0 as usize].filter(|_| is_sure);
            if known.is_some() && (told.is_none() || told == known) {
                continue;
            }
            // Nobody or two say what it is: the chunk itself does.
            let actual = if known.is_none() && told.is_some() { told } else { image.expand(pba) };
            if told.is_some() && told != actual {
                self.problems.push(Problem::WrongFingerprint { pbn: pbn.0, container });
                self.without_directory.insert(image.id);
            }
            match actual {
                Some(_) => ledger.fingerprints[pbn.0 as usize] = actual,
                None => self.lose(ledger, pbn, Problem::DamagedFrame { pbn: pbn.0, container }),
            }
        }
    }

    fn search(&mut self, ledger: &Ledger, image: &Image<'_>, sequence: u32) {
        let may_lack = image.is_ours && (ledger.fingerprints_lost || ledger.has_asides);
        for entry in &image.entries {
            let DirectoryEntry { fingerprint, pbn, .. } = *entry;
            let at = pbn.0 as usize;
            let expected = ledger.fingerprints.get(at).copied().flatten();
            let pba = image.with_check(entry.place(image.id));
            let is_sound = image.has_frame(pba, pbn);
            if is_sound
                && ledger.may_have_copy(pbn)
                && ledger.places.get(at) != Some(&Place::At(pba))
            {
                self.twins.insert((pbn, fingerprint), pba);
            }
            let is_wanted = ledger.places.get(at) == Some(&Place::Unknown)
                && expected.map_or(may_lack, |expected| is_sound && expected == fingerprint);
            let is_newer = (self.candidates.get(&pbn))
                .is_none_or(|best| (best.sequence, best.is_sound) <= (sequence, is_sound));
            if is_wanted && is_newer {
                self.candidates.insert(pbn, Candidate { sequence, is_sound, pba, fingerprint });
            }
        }
    }

    fn lose(&mut self, ledger: &mut Ledger, pbn: Pbn, problem: Problem) {
        self.problems.push(problem);
        ledger.places[pbn.0 as usize] = Place::Vacant;
        self.damaged.push((pbn, ledger.fingerprints[pbn.0 as usize].take()));
    }

    /// Where the second copy of a damaged chunk is sound, it is the chunk's frame.
    fn take_copies(&mut self, ledger: &mut Ledger, reads: &mut DamageReads, geometry: &Geometry) {
        for (pbn, expected) in std::mem::take(&mut self.damaged) {
            let known = ledger.copies.get(&pbn);
            let twin = || self.twins.get(&(pbn, expected?));
            let Some(&copy) = known.or_else(twin) else { continue };
            let found = fingerprint_at(&mut reads.devices, geometry, pbn, copy).ok().flatten();
            if found.is_some() && (expected.is_none() || found == expected) {
                ledger.places[pbn.0 as usize] = Place::At(copy);
                ledger.fingerprints[pbn.0 as usize] = found;
                // Until a repair nobody knows of it.
                self.found_again.extend(known.is_none().then_some(pbn));
            }
        }
    }

    fn settle_unknown(&mut self, ledger: &mut Ledger) {
        for (pbn, candidate) in std::mem::take(&mut self.candidates) {
            if !candidate.is_sound {
                let container = candidate.pba.container.0;
                self.lose(ledger, pbn, Problem::DamagedFrame { pbn: pbn.0, container });
                continue;
            }
            ledger.places[pbn.0 as usize] = Place::At(candidate.pba);
            ledger.fingerprints[pbn.0 as usize] = Some(candidate.fingerprint);
            self.found_again.insert(pbn);
        }
        for (place, fingerprint) in ledger.places.iter_mut().zip(&mut ledger.fingerprints) {
            if *place == Place::Unknown {
                (*place, *fingerprint) = (Place::Vacant, None);
            }
        }
    }
}

impl Image<'_> {
    fn frame(&self, pba: Pba) -> Option<&[u8]> {
        self.bytes.get(pba.range())
    }

    fn has_frame(&self, pba: Pba, pbn: Pbn) -> bool {
        self.frame(pba).is_some_and(|frame| frame::is_meant(frame, pbn, pba.check))
    }

    /// The place with the check of the frame that is there.
    fn with_check(&self, place: Pba) -> Pba {
        let check = self.frame(place).map_or(FrameCheck::UNKNOWN, frame::check_of);
        Pba { check, ..place }
    }

    /// The fingerprint of the chunk whose frame is there.
    fn expand(&self, pba: Pba) -> Option<Fingerprint> {
        let (header, _) = frame::decode(self.frame(pba)?).ok()?;
        entry_of(header, pba, self.bytes, self.geometry).map(|entry| entry.fingerprint)
    }
}

/// The sequence in the directory of a container of which nothing else is known; 0 if that is none
/// of this store's.
fn footer_sequence(id: ContainerId, geometry: &Geometry, bytes: &[u8]) -> u32 {
    let is_ours = |footer: &Footer| {
        footer.container == id && footer.uuid_prefix == uuid_prefix(geometry.uuid)
    };
    decode_footer(bytes).ok().filter(is_ours).map_or(0, |footer| footer.sequence)
}

/// Every chunk whose place is known.
pub(crate) fn stored_chunks(ledger: &Ledger) -> Vec<(Pba, Pbn)> {
    let placed = (0..).map(Pbn).zip(&ledger.places).filter_map(|(pbn, place)| match place {
        Place::At(pba) => Some((*pba, pbn)),
        _ => None,
    });
    placed.collect()
}
