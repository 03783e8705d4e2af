//! Dispatch: the loop hands each request to the part that carries it out, in the order in which
//! doors have queued them.

use crate::control::{Asked, Verb};
use crate::copy_range::accept_copy;
use crate::door::error::RequestError;
use crate::door::requests::Request;
use crate::engine::Engine;
use crate::evacuate::leaving::list_zones;
use crate::grow::enlarging::{Then, Wish};
use crate::space::reserve::accept_reserve;
use crate::stats::stages::CoreStage;
use crate::volumes::administer::{accept_change, list_volumes, wait_for_versions};
use crate::volumes::codecs::accept_codec;
use crate::volumes::dedup_switch::accept_dedup;
use crate::volumes::queued::queue_of;
use crate::volumes::reservations::accept_reservation;
use crate::volumes::take_versions::roll_back;
use crate::write::entering::take_admitted;
use crate::write::trim::accept_unmap;

impl Engine {
    /// Takes what doors have queued, in order.
    pub(crate) fn take_requests(&mut self) -> bool {
        self.core.published.is_waited_for |= self.core.intake.take(&mut self.requests);
        let moved = !self.requests.is_empty();
        while let Some(request) = self.requests.pop_front() {
            self.take_request(request);
        }
        moved
    }

    fn take_request(&mut self, request: Request) {
        if let Some(error) = self.refusal(&request) {
            return request.fail(error);
        }
        match request {
            Request::Write(write) if write.is_under_a_quota() => {
                self.admission.wait_for_quota(&mut self.core, write)
            }
            Request::Write(write) => take_admitted(&mut self.core, write),
            Request::Read(read) => {
                let begun = self.core.stages.now();
                self.accept_read(read);
                self.core.stages.within(CoreStage::Reads, begun);
            }
            Request::Unmap(unmap) => accept_unmap(&mut self.core, unmap),
            Request::Reserve(reserve) => accept_reserve(&mut self.core, reserve),
            Request::Copy(copy) => accept_copy(&mut self.core, copy),
            Request::Flush { done } => self.core.accept_flush(done),
            Request::Extents(extents) => self.accept_extents(extents),
            Request::Control(verb) => self.accept_verb(*verb),
        }
    }

    /// Why a request that changes something cannot be taken, if so. A write that was acknowledged
    /// at the door is taken in any case, to be read from the write buffer: nobody was told that it
    /// failed.
    fn refusal(&self, request: &Request) -> Option<RequestError> {
        let may = match request {
            Request::Read(_) | Request::Extents(_) => true,
            Request::Write(write) => write.is_acknowledged(),
            Request::Control(verb) => !verb.changes(),
            _ => false,
        };
        if may { None } else { self.core.stopped.clone() }
    }

    /// Carries out or queues what was asked in the control language.
    pub(crate) fn accept_verb(&mut self, verb: Verb) {
        if !self.core.has_room_for_versions(verb.versions_made()) {
            return wait_for_versions(&mut self.core, verb);
        }
        match verb {
            Verb::Open(Asked { verb, done }) => {
                done.finish(self.core.volumes.open(&verb.name, verb.opener));
            }
            Verb::ListOpens(Asked { verb, done }) => {
                done.finish(self.core.volumes.get(&verb.name).map(|volume| volume.opens.list()));
            }
            Verb::CloseOpens(Asked { verb, done }) => {
                let volume = self.core.volumes.get(&verb.name);
                done.finish(volume.map(|volume| volume.opens.close(verb.ending)));
            }
            Verb::ListVolumes(Asked { verb, done }) => {
                done.reply(list_volumes(&self.core, verb.after.as_deref(), verb.most));
            }
            Verb::GetCompression(asked) => asked.done.reply(self.core.state.compression),
            Verb::GetStats(asked) => asked.done.reply(self.stats()),
            Verb::GetGeometry(asked) => asked.done.reply(self.core.geometry.clone()),
            Verb::Grow(asked) => self.core.superblock.wishes.push_back(Wish::Growth(asked)),
            Verb::Explain(asked) => self.explaining.accept(asked),
            Verb::DifferenceRequest(asked) => self.walks.accept_difference(&self.core, asked),
            Verb::WeightRequest(asked) => self.walks.accept_weight(&self.core, asked),
            Verb::ScrubRequest(Asked { verb, done }) => self.scrub.accept(verb, done),
            Verb::CollectRequest(Asked { verb, done }) => {
                self.collection.accept(&self.core, verb, done)
            }
            Verb::ListZones(asked) => asked.done.reply(list_zones(&self.core)),
            Verb::EvacuateZone(asked) => self.collection.accept_evacuation(&self.core, asked),
            Verb::KeepZone(asked) => self.evacuation.accept_keep(&mut self.core, asked),
            Verb::RetireZone(asked) => self.evacuation.accept(&self.core, asked),
            Verb::Close(asked) => self.begin_close(asked.done),
            Verb::Rollback(Asked { verb, done }) => {
                let (requests, reads) = (&self.requests, &self.reads);
                let asks = |of| requests.iter().any(|request| request.is_to(of));
                let is_asked = |of| asks(of) || reads.have_clients_of(of);
                let queued = roll_back(&mut self.core, &verb, is_asked);
                queue_of(&mut self.core, queued, done);
            }
            Verb::SetDedup(Asked { verb, done }) => accept_dedup(&mut self.core, verb, done),
            Verb::SetVolumeCompression(Asked { verb, done }) => {
                accept_codec(&mut self.core, verb, done)
            }
            Verb::SetReservation(asked) => accept_reservation(&mut self.core, asked),
            verb => accept_change(&mut self.core, verb),
        }
    }

    /// Goes on with what another geometry had to come before.
    pub(crate) fn go_on(&mut self, then: Then) {
        match then {
            // A request before it may have taken the room that it found.
            Then::Make(verb, done) => self.accept_verb(Verb::NewVolume(Asked { verb, done })),
            Then::LeaveAside(verb, done) => accept_dedup(&mut self.core, verb, done),
            Then::HaveCodec(verb, done) => accept_codec(&mut self.core, verb, done),
            Then::Reserve(asked) => accept_reservation(&mut self.core, asked),
            // The group looks for the mark itself.
            Then::GoOn => {}
        }
    }
}
