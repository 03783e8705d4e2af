//! Explaining an address: one LBA is walked through the tables as a read is, and on to its bucket.
//!
//! ```text
//! LBA -> map -> PBN -> PBN-PBA -> PBA -> frame -> fingerprint -> Hash-PBN -> PBN
//! ```
//!
//! One question at a time, each taken up again at every step until its pages are here. The frame is
//! read like a client's, with its container pinned; when it has come all is looked up again, and if
//! the chunk has another place by then, or the LBA names another chunk, that one is read. So what
//! is said at the end was true in one moment.

pub(crate) mod explaining;
pub(crate) mod explanation;

use disk::AlignedBuf;
use format::frame;
use format::pba_page::PbaEntry;
use format::superblock::Geometry;
use format::units::{Codec, Fingerprint, FrameCheck, Lba, Pba, Pbn, TreeId};
use reduce::expand_frame;
use tables::{PageError, PageOnWay, PageStore, lba_pbn, pbn_pba, second_copies};

use crate::control::{Asked, Explain};
use crate::core::Core;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::explain::explaining::{Explaining, Question};
use crate::explain::explanation::{
    Address, ExplainedChunk, ExplainedCopy, ExplainedFrame, ExplainedPage, ExplainedPlace,
    Explanation,
};
use crate::geometry::fingerprinters;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::write::newest::Newest;
use crate::zone_name;

/// What the Hash-PBN table has of a fingerprint.
struct Bucket {
    number: Option<u64>,
    pages: Vec<ExplainedPage>,
    named_pbn: Option<u64>,
}

impl Explaining {
    pub(crate) fn accept(&mut self, asked: Asked<Explain>) {
        let Asked { verb: Explain { volume, address }, done } = asked;
        self.questions.push_back(Question::new(volume, address, done));
    }

    /// The frame that the first question waited for has come; None when the device did not give it.
    pub(crate) fn frame_read(&mut self, core: &mut Core, pba: Pba, buf: Option<AlignedBuf>) {
        let found = core.frame_found(pba, buf);
        // The store was fenced meanwhile, and the question answered.
        let Some(question) = self.questions.front_mut() else { return };
        assert!(question.reading, "OneReadEach: a frame came that no question waited for");
        question.reading = false;
        question.frame = Some(found);
    }

    /// Moves the first question on.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        let Some(question) = self.questions.front_mut() else { return false };
        if question.reading {
            return false;
        }
        let outcome = match question.explain(core) {
            Ok(None) => return false,
            Ok(Some(explanation)) => Ok(explanation),
            Err(error) => Err(error),
        };
        if let Some(question) = self.questions.pop_front() {
            core.state.store.release_pins(question.pins);
            question.done.finish(outcome);
        }
        true
    }
}

impl Part for Explaining {
    fn fail(&mut self, error: &RequestError) {
        self.questions.drain(..).for_each(|question| question.done.fail(error.clone()));
    }

    fn is_idle(&self, _core: &Core) -> bool {
        self.questions.is_empty()
    }

    fn check(&self, _core: &Core) {
        let later_reads = self.questions.iter().skip(1).any(|question| question.reading);
        assert!(!later_reads, "OnePending: only the first question waits for a frame");
    }
}

impl Question {
    /// The explanation; None while something that it needs is on its way.
    fn explain(&mut self, core: &mut Core) -> Result<Option<Explanation>, RequestError> {
        let volume = core.volumes.get(&self.volume)?;
        let (id, name, size_bytes) = (volume.id, volume.name(), volume.size_bytes());
        let chunk_bytes = core.geometry.chunk_bytes;
        let lba = match self.address {
            Address::Lba(lba) => lba,
            Address::OffsetBytes(bytes) => bytes / u64::from(chunk_bytes),
        };
        let offset_bytes = lba.saturating_mul(u64::from(chunk_bytes));
        if offset_bytes >= size_bytes {
            let length_bytes = u64::from(chunk_bytes);
            return Err(RequestError::OutOfRange { offset_bytes, length_bytes, size_bytes });
        }
        let tree = TreeId::volume(id);
        let mut wanted = Wanted::default();
        let walked = self.explain_chunk(core, tree, Lba(lba), &mut wanted);
        core.hold_in(&mut self.pins, wanted);
        let Some(chunk) = walked.map_err(|error| lacking_page(&error))? else { return Ok(None) };
        Ok(Some(Explanation {
            volume: name,
            lba,
            offset_bytes,
            chunk_bytes,
            buffered: !matches!(core.buffer.newest(id, Lba(lba)), Newest::Nothing),
            map: way_to(&core.state.store, tree, lba_pbn::place(Lba(lba)).0),
            chunk,
        }))
    }

    /// The chunk of an LBA; the outer None while something is on its way.
    fn explain_chunk(
        &mut self,
        core: &mut Core,
        tree: TreeId,
        lba: Lba,
        wanted: &mut Wanted,
    ) -> Result<Option<Option<ExplainedChunk>>, PageError> {
        let leaf = lba_pbn::place(lba).0;
        if !core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
            return Ok(None);
        }
        let pbn = lba_pbn::get(&core.state.store, tree, lba);
        if pbn.is_none() {
            return Ok(Some(None));
        }
        if !core.state.want_pba(pbn, wanted)? {
            return Ok(None);
        }
        let entry = pbn_pba::get(&core.state.store, pbn);
        let place = match entry.filter(|entry| core.geometry.has_place(entry.pba)) {
            None => None,
            Some(entry) => match self.explain_place(core, pbn, entry, wanted)? {
                None => return Ok(None),
                place => place,
            },
        };
        let pages = way_to(&core.state.store, TreeId::PBN_PBA, pbn_pba::place(pbn).0);
        Ok(Some(Some(ExplainedChunk { pbn: pbn.0, pages, place })))
    }

    fn explain_place(
        &mut self,
        core: &mut Core,
        pbn: Pbn,
        entry: PbaEntry,
        wanted: &mut Wanted,
    ) -> Result<Option<ExplainedPlace>, PageError> {
        let PbaEntry { pba, references, aside } = entry;
        // Where its page is damaged there is just no copy.
        if !core.state.want_copy(pbn, wanted).unwrap_or(true) {
            return Ok(None);
        }
        let found = self.frame.take().filter(|found| found.pba == pba);
        let found = found.or_else(|| core.find_frame(pba, Purpose::Explain));
        self.reading = found.is_none();
        let Some(found) = found else { return Ok(None) };
        let plain = found
            .bytes
            .as_deref()
            .and_then(|frame| plain_of(&core.geometry, frame, pbn, pba.check));
        let in_memory = found.in_memory;
        self.frame = Some(found);
        let frame = match plain {
            None => None,
            Some((codec, fingerprint)) => {
                let stored_bytes = pba.length_bytes - format::frame::FRAME_HEADER_BYTES as u32;
                match explain_bucket(core, &fingerprint, wanted)? {
                    None => return Ok(None),
                    Some(Bucket { number, pages, named_pbn }) => Some(ExplainedFrame {
                        codec: codec.name().to_owned(),
                        stored_bytes,
                        ratio: f64::from(core.geometry.chunk_bytes) / f64::from(stored_bytes),
                        fingerprint: fingerprint.to_string(),
                        bucket: number,
                        pages,
                        named_pbn,
                        unindexed: (aside || core.verifies()) && named_pbn != Some(pbn.0),
                    }),
                }
            }
        };
        let (zone, zone_offset_bytes) = place_in_zone(&core.geometry, pba);
        let copy = second_copies::get(&core.state.store, pbn);
        Ok(Some(ExplainedPlace {
            references,
            container: pba.container.0,
            offset_bytes: pba.offset_bytes,
            length_bytes: pba.length_bytes,
            zone,
            zone_offset_bytes,
            in_memory,
            second_copy: copy.map(|copy| explained_copy(&core.geometry, copy)),
            frame,
        }))
    }
}

fn explained_copy(geometry: &Geometry, copy: Pba) -> ExplainedCopy {
    let (zone, zone_offset_bytes) = place_in_zone(geometry, copy);
    let Pba { container, offset_bytes, length_bytes, .. } = copy;
    let container = container.0;
    ExplainedCopy { container, offset_bytes, length_bytes, zone, zone_offset_bytes }
}

fn place_in_zone(geometry: &Geometry, pba: Pba) -> (String, u64) {
    match geometry.container_zone(pba.container) {
        Some((zone, start_bytes)) => (zone_name(zone), start_bytes + u64::from(pba.offset_bytes)),
        None => (String::new(), 0),
    }
}

/// Codec and fingerprint of a frame that is sound and the one that is meant.
fn plain_of(
    geometry: &Geometry,
    frame: &[u8],
    pbn: Pbn,
    check: FrameCheck,
) -> Option<(Codec, Fingerprint)> {
    if !check.allows(frame::check_of(frame)) {
        return None;
    }
    let mut plain = vec![0; geometry.chunk_bytes as usize];
    let header = expand_frame(frame, &mut plain).ok().filter(|header| header.pbn == pbn)?;
    let by = fingerprinters(geometry).of(header.domain);
    Some((header.codec, by.one(&plain)?))
}

/// Where the Hash-PBN table has a fingerprint, and what for; None while pages are on their way.
fn explain_bucket(
    core: &mut Core,
    fingerprint: &Fingerprint,
    wanted: &mut Wanted,
) -> Result<Option<Bucket>, PageError> {
    let (hash, store) = (&core.state.hash, &mut core.state.store);
    if !hash.want_lookup(store, &mut wanted.pins, fingerprint, &mut wanted.reads)? {
        return Ok(None);
    }
    let named_pbn = hash.lookup(store, fingerprint).map(|pbn| pbn.0);
    let place = hash.place_of(store, fingerprint);
    let number = hash.bucket_of(fingerprint);
    let pages = place.map_or_else(Vec::new, |(tree, leaf)| way_to(store, tree, leaf));
    Ok(Some(Bucket { number, pages, named_pbn }))
}

fn way_to(store: &PageStore, tree: TreeId, leaf: u64) -> Vec<ExplainedPage> {
    let shown = |PageOnWay { id, block, dirty }| ExplainedPage {
        table: id.tree.to_string(),
        level: id.level,
        index: id.index,
        block,
        dirty,
    };
    store.way_to(tree, leaf).into_iter().map(shown).collect()
}
