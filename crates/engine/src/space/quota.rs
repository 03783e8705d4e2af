//! Quotas: a volume maps no more chunks than it may, at every moment and after every crash.
//!
//! A write to a volume with a quota is not acknowledged at the door. Here it is *admitted*: its
//! chunks that are not mapped yet are counted, with `M` chunks mapped and `R` reserved these must
//! fit, and they are reserved until its last group has been applied and is in the volume's own
//! count. So the quota is not exceeded, in whatever order goes on what is under way:
//!
//! * a chunk that is mapped, and of which nothing is buffered, stays mapped until this write comes,
//!   or is unmapped by what comes later: writing over it adds nothing;
//! * a chunk of which something is buffered may be unmapped by that first, and is counted as new;
//! * a write that has no space yet may be overtaken: a trim that comes later enters before it. So
//!   all its chunks are reserved, those that are mapped too: nobody else gets what a trim of them
//!   sets free.
//!
//! The second and the third count too high where nothing is unmapped, so what does not fit is
//! judged only when nothing of its volume is under way, and until then waits. So does what may fit
//! when what was cut off its volume has been given back. Others do not wait for it, nor for the
//! memory in which it waits ([`crate::space::quota_line`]).
//!
//! Writes of a volume are admitted in their order, and each that needs a look into the map may wait
//! for a page. The pages of those behind it are read meanwhile, so that together they wait about as
//! long as one of them.

use std::ops::{Range, RangeInclusive};

use format::units::{Lba, TreeId};
use mutants::mutant;
use tables::{PageError, PinSet, lba_pbn};

use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::requests::WriteRequest;
use crate::door::volume::QuotaShare;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::space::quota_line::{Pass, Until};
use crate::write::entering::take_admitted;
use crate::write::newest::Newest;

/// Leaves that are read for writes behind those that wait for theirs.
const LEAVES_AHEAD: usize = 64;

/// What is said of a write at the quota of its volume.
enum Verdict {
    Admitted(QuotaShare),
    Refused,
    Waits(Until),
    /// It would wait for what is given back only when the store is opened again.
    Closing,
}

/// Admits writes to volumes with a quota, in the order of each volume.
#[derive(Default)]
pub(crate) struct Admission {
    /// Pages for the first write that waits.
    pins: PinSet,
}

impl Admission {
    /// A write to a volume with a quota: waits for its turn, unless it was acknowledged already.
    pub(crate) fn wait_for_quota(&mut self, core: &mut Core, write: WriteRequest) {
        core.quota_line.writes.push_back(write);
        self.advance(core);
    }

    /// Writes that wait for their volume's quota enter as far as they may, those of one volume in
    /// their order.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        if core.quota_line.is_empty() {
            return false;
        }
        let mut moved = false;
        let (mut pass, mut first) = (Pass::default(), Wanted::default());
        let mut ahead = core.state.ahead_max(LEAVES_AHEAD);
        for write in std::mem::take(&mut core.quota_line.writes) {
            let until = match pass.until(&write.volume) {
                Some(until) => {
                    if until == Until::Soon {
                        want_ahead(core, &write, &mut ahead);
                    }
                    until
                }
                None => match admit_first(core, &write, &mut first) {
                    Ok(Verdict::Waits(until)) => {
                        pass.begin(&write.volume, until);
                        until
                    }
                    verdict => {
                        end_waiting(core, write, verdict);
                        moved = true;
                        continue;
                    }
                },
            };
            if let Err(write) = core.quota_line.keep(write, until) {
                end_waiting(core, write, Ok(Verdict::Refused));
                moved = true;
            }
        }
        core.hold_in(&mut self.pins, first);
        core.quota_line.let_go();
        moved
    }

    /// Fails every write that waits with `error`, and releases the pages of the first.
    pub(crate) fn fail_writes(&mut self, core: &mut Core, error: &RequestError) {
        for mut write in std::mem::take(&mut core.quota_line.writes) {
            write.fail(error);
        }
        core.quota_line.let_go();
        core.hold_in(&mut self.pins, Wanted::default());
    }
}

impl Part for Admission {
    /// What waits lies in the core; [`Self::fail_writes`] tells it.
    fn fail(&mut self, _error: &RequestError) {}

    fn is_idle(&self, core: &Core) -> bool {
        core.quota_line.is_empty()
    }

    fn check(&self, core: &Core) {
        let waits = !core.quota_line.writes.is_empty();
        assert!(waits || self.pins.is_empty(), "PinnedWhileRead: pages are held for a write");
    }
}

/// A write does not wait any more.
fn end_waiting(core: &mut Core, mut write: WriteRequest, verdict: Result<Verdict, PageError>) {
    match verdict {
        // The share ends here.
        Ok(Verdict::Admitted(_)) if write.had_to_wait && write.is_given_up() => {
            refuse_write(core, write, &RequestError::GivenUp);
        }
        Ok(Verdict::Admitted(share)) => {
            write.quota = Some(share);
            take_admitted(core, write);
        }
        Ok(Verdict::Refused | Verdict::Waits(_)) => {
            let volume = write.volume.name();
            refuse_write(core, write, &RequestError::QuotaExceeded { volume });
        }
        Ok(Verdict::Closing) => refuse_write(core, write, &RequestError::Closing),
        Err(error) => refuse_write(core, write, &lacking_page(&error)),
    }
}

fn refuse_write(core: &mut Core, mut write: WriteRequest, error: &RequestError) {
    if write.reserved {
        core.intake.lock().space.settle(write.chunks);
    }
    write.fail(error);
}

/// Judges the first write of a volume; what the first of all finds here is held for it while it
/// waits.
fn admit_first(
    core: &mut Core,
    write: &WriteRequest,
    first: &mut Wanted,
) -> Result<Verdict, PageError> {
    let mut wanted = Wanted::default();
    let verdict = admit(core, write, &mut wanted);
    core.submit_page_reads(wanted.reads);
    if matches!(verdict, Ok(Verdict::Waits(Until::Soon))) && first.pins.is_empty() {
        first.pins = wanted.pins;
    } else {
        core.state.store.release_pins(wanted.pins);
    }
    verdict
}

fn admit(core: &mut Core, write: &WriteRequest, wanted: &mut Wanted) -> Result<Verdict, PageError> {
    let volume = &write.volume;
    let entry = core.state.catalog.get(volume.id);
    let (Some(quota_bytes), Some(entry)) = (volume.quota_bytes(), entry) else {
        return Ok(Verdict::Admitted(volume.share_of_quota(0)));
    };
    // One that ends inside a chunk lets that be written: a volume of its size can be filled.
    let quota_chunks = quota_bytes.div_ceil(u64::from(core.geometry.chunk_bytes));
    let taken = entry.mapped_chunks + volume.quota_reserved();
    // Most writes are far from the quota, and need no look into the map.
    if taken + write.chunks <= quota_chunks {
        return Ok(Verdict::Admitted(volume.share_of_quota(write.chunks)));
    }
    let Some(new) = new_chunks_of(core, write, wanted)? else {
        return Ok(Verdict::Waits(Until::Soon));
    };
    if new == 0 || taken + new <= quota_chunks || mutant!(PassesQuota) {
        let share = if write.reserved { new } else { write.chunks };
        return Ok(Verdict::Admitted(volume.share_of_quota(share)));
    }
    if volume.quota_on_its_way() > 0 || core.buffer.holds_any_of(volume.id) {
        // What is under way goes on, so that this one can.
        if core.buffer.closed_groups() == 0 {
            core.buffer.close_open();
        }
        return Ok(Verdict::Waits(Until::Soon));
    }
    let is_deleting = core.volumes.deletions.next(&core.state.catalog).is_some();
    Ok(match is_deleting && core.state.count_may_fall(volume.id) {
        false => Verdict::Refused,
        true if core.is_closing => Verdict::Closing,
        true => Verdict::Waits(Until::GivenBack),
    })
}

/// Chunks that a write may map and that are not mapped now; none while pages are on their way.
fn new_chunks_of(
    core: &mut Core,
    write: &WriteRequest,
    wanted: &mut Wanted,
) -> Result<Option<u64>, PageError> {
    let tree = TreeId::volume(write.volume.id);
    let mut counted = Ok(true);
    for leaf in leaves_of(core, write) {
        match core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads) {
            Ok(here) => counted = counted.map(|all| all && here),
            Err(error) => counted = Err(error),
        }
    }
    if !counted? {
        return Ok(None);
    }
    let is_new = |lba: &Lba| {
        let buffered = core.buffer.newest(write.volume.id, *lba) != Newest::Nothing;
        buffered || lba_pbn::get(&core.state.store, tree, *lba).is_none()
    };
    Ok(Some(chunks_of(core, write).map(Lba).filter(is_new).count() as u64))
}

/// Reads the leaves of a write behind one that waits, while `left` allows as many.
fn want_ahead(core: &mut Core, write: &WriteRequest, left: &mut usize) {
    let leaves = leaves_of(core, write);
    let count = leaves.end() - leaves.start() + 1;
    let Some(rest) = left.checked_sub(count as usize) else {
        *left = 0;
        return;
    };
    *left = rest;
    let (tree, mut wanted) = (TreeId::volume(write.volume.id), Wanted::default());
    for leaf in leaves {
        // What is damaged is told when it is this one's turn.
        let _ = core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads);
    }
    core.state.store.release_pins(wanted.pins);
    core.submit_page_reads(wanted.reads);
}

fn chunks_of(core: &Core, write: &WriteRequest) -> Range<u64> {
    let first = write.offset_bytes / u64::from(core.geometry.chunk_bytes);
    first..first + write.chunks
}

/// Leaves of the map that hold a write's chunks.
fn leaves_of(core: &Core, write: &WriteRequest) -> RangeInclusive<u64> {
    let chunks = chunks_of(core, write);
    let leaf = |lba| lba_pbn::place(Lba(lba)).0;
    leaf(chunks.start)..=leaf(chunks.end.saturating_sub(1).max(chunks.start))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Admission;
    use crate::door::done::Done;
    use crate::door::error::RequestError;
    use crate::door::opens::Opener;
    use crate::door::requests::Request;
    use crate::part::Part;
    use crate::small_store::{MIB, Told, beside, store};

    #[test]
    fn a_write_within_the_quota_enters_and_one_beyond_it_waits_until_it_is_told() {
        let (mut engine, client) = store(Default::default());
        let volume = beside(&mut engine, &client, |client| {
            client.create_volume("v", 64 * MIB, false).unwrap();
            client.set_quota("v", Some(4096)).unwrap();
            client.open_volume("v", Opener::new("a test", 0)).unwrap()
        });
        let (mut admission, told) = (Admission::default(), Arc::<Told>::default());
        let mut ask = |engine: &mut crate::Engine, number: u64| {
            let buffer = client.buffer(number * 4096, 4096);
            let done = Done::new(Arc::clone(&told), number);
            client.write(&volume, number * 4096, buffer, false, done);
            engine.core.intake.take(&mut engine.requests);
            match engine.requests.pop_front() {
                Some(Request::Write(write)) => admission.wait_for_quota(&mut engine.core, write),
                _ => panic!("a write under a quota is not acknowledged at the door"),
            }
            admission.is_idle(&engine.core)
        };
        assert!(ask(&mut engine, 0), "it is in the write buffer");
        let id = engine.core.volumes.get("v").unwrap().id;
        assert!(engine.core.buffer.holds_any_of(id));
        assert!(!ask(&mut engine, 1), "what is under way might make room");
        admission.fail_writes(&mut engine.core, &RequestError::Closing);
        assert!(admission.is_idle(&engine.core));
        let told = told.take();
        assert!(told.iter().any(|told| matches!(told, (1, Err(RequestError::Closing)))));
    }
}
