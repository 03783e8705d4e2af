//! Deaths of either server, promotions, and what is found afterwards.

use engine::Durability;
use format::objects::replica::{ReplicaRole, ReplicaState};
use objects::bucket::{Bucket, OpenOptions};
use objects::index::INDEX_MEMORY_BYTES_MIN;
use replication::{LinkState, PromoteError, Secondary, Standing};

use crate::failure::Broken;
use crate::objects::failures::broken;
use crate::replicas::changes::put;
use crate::replicas::content::contents;
use crate::replicas::oracle::Allowed;
use crate::replicas::plan::ReplicaSummary;
use crate::replicas::{SET, World};
use crate::script::End;

impl World {
    fn end(&mut self) -> End {
        End::of_number(self.dice.roll())
    }

    pub(super) fn replica_dies(&mut self) -> Result<(), Broken> {
        self.summary.replica_deaths += 1;
        drop(self.wire.take_secondary());
        let (other, end) = (self.other(), self.end());
        self.sides[other].die(end);
        self.sides[other].start()?;
        self.replica_lacks = true;
        self.connect_secondary()
    }

    /// The primary is gone: the replica is promoted, or it comes back.
    pub(super) fn primary_dies(&mut self) -> Result<(), Broken> {
        self.summary.primary_deaths += 1;
        self.wire.cut();
        self.acting = None;
        let (at, end) = (self.at, self.end());
        self.sides[at].die(end);
        let allowed = if self.replica_lacks { Allowed::NotDurable } else { Allowed::Nothing };
        // What was acknowledged alone is there alone: the operator waits for that server.
        let may_be_promoted = !(self.goes_on_alone && self.replica_lacks);
        if may_be_promoted && self.dice.once_in(2) && self.promote()? {
            return self.take_over(allowed);
        }
        self.sides[at].start()?;
        if self.open_primary()? {
            self.summary.returns += 1;
            if self.link() == Some(LinkState::Away) {
                // It went on without having met the replica, as it was told to.
                self.replica_lacks = true;
                return self.judge(Allowed::NotDurable, "when a primary came back alone");
            }
            return self.judge(allowed, "when a primary came back");
        }
        // It has lost what the replica has, and does not keep to give back.
        self.acting = None;
        self.sides[at].die(End::Kill(1));
        match self.promote()? {
            true => self.take_over(allowed),
            false => Err(found("neither copy can be opened")),
        }
    }

    pub(super) fn both_die(&mut self) -> Result<(), Broken> {
        self.replica_dies()?;
        self.primary_dies()
    }

    fn link(&self) -> Option<LinkState> {
        self.acting.as_ref().map(|acting| acting.mirrored.primary().link())
    }

    /// Promotes the replica; false: it says that it holds a mixture.
    fn promote(&mut self) -> Result<bool, Broken> {
        let Some(mut secondary) = self.wire.take_secondary() else { return Ok(false) };
        let promoted = secondary.promote().map(drop);
        self.wire.set_secondary(Some(secondary));
        match promoted {
            Ok(()) => {
                self.summary.promotions += 1;
                Ok(true)
            }
            Err(PromoteError::Mixture) => {
                self.summary.mixtures += 1;
                Ok(false)
            }
            Err(error) => Err(found(format!("a promotion failed: {error}"))),
        }
    }

    /// The promoted replica is judged, and the old primary's server has its replica.
    fn take_over(&mut self, allowed: Allowed) -> Result<(), Broken> {
        let old = self.at;
        self.sides[old].start()?;
        self.serve_promoted(allowed)
    }

    /// Makes the promoted copy a primary again, over the other server, which is demoted.
    fn serve_promoted(&mut self, allowed: Allowed) -> Result<(), Broken> {
        drop(self.wire.take_secondary());
        self.at = self.other();
        let (at, other) = (self.at, self.other());
        let primary = ReplicaState {
            role: ReplicaRole::Primary,
            was_in_step: false,
            may_go_on_alone: self.goes_on_alone,
            ..self.sides[at].state()?
        };
        self.sides[at].set_state(&primary)?;
        self.sides[other].set_state(&Secondary::empty_state(SET, self.sides[other].identity()?))?;
        self.connect_secondary()?;
        self.replica_lacks = true;
        if !self.open_primary()? {
            return Err(found("a promoted copy does not open"));
        }
        self.judge(allowed, "after a promotion")?;
        self.oracle.make_durable();
        Ok(())
    }

    /// The replica is promoted while the primary lives and does not hear of it.
    pub(super) fn usurp(&mut self) -> Result<(), Broken> {
        self.settle();
        if self.goes_on_alone || self.link() != Some(LinkState::InStep) {
            return Ok(());
        }
        if !self.promote()? {
            return Err(found("a replica that is in step holds a mixture"));
        }
        self.refuses("that does not know of the new one")?;
        self.wire.mend();
        self.wire.settle();
        self.refuses("that met the new one")?;
        let Some(old) = self.acting.take() else { return Ok(()) };
        if !matches!(old.mirrored.primary().standing(), Standing::Fenced(_)) {
            return Err(found("an old primary that met the new one is not fenced"));
        }
        self.summary.fenced += 1;
        drop(old);
        self.serve_promoted(Allowed::Nothing)
    }

    /// An old primary acknowledges nothing.
    fn refuses(&self, which: &str) -> Result<(), Broken> {
        let Some(acting) = &self.acting else { return Ok(()) };
        match put(&acting.bucket, b"old", b"x", Durability::Acknowledged) {
            Ok(()) => Err(found(format!("an old primary {which} acknowledges a put"))),
            Err(_) => Ok(()),
        }
    }

    /// Compares all that the primary's bucket holds.
    fn judge(&mut self, allowed: Allowed, when: &str) -> Result<(), Broken> {
        let Some(acting) = &self.acting else { return Ok(()) };
        let found = contents(&acting.bucket)?;
        self.summary.judged += 1;
        self.oracle.judge(&found, allowed, when)
    }

    /// When nothing disturbs them any more both copies hold the same.
    pub(super) fn finish(mut self) -> Result<ReplicaSummary, Broken> {
        self.settle();
        self.settle();
        let link = self.link();
        if link != Some(LinkState::InStep) {
            let ended = self.wire.ended().unwrap_or_default();
            return Err(found(format!("the copies are {link:?} when all is quiet: {ended}")));
        }
        let [one, other] = [self.sides[0].chunks()?, self.sides[1].chunks()?];
        let places = || one.keys().chain(other.keys());
        if let Some(at) = places().find(|at| one.get(*at) != other.get(*at)) {
            return Err(found(format!("the copies are in step and differ at byte {at}")));
        }
        if let Some(acting) = &self.acting {
            let held = contents(&acting.bucket)?;
            self.oracle.look(&held, Allowed::Nothing, "at the end, on the primary")?;
        }
        let options = OpenOptions { memory_bytes: INDEX_MEMORY_BYTES_MIN, read_only: true };
        let replica = Bucket::open(self.sides[self.other()].volume()?, &options)
            .map_err(|error| broken("opening the replica", &error))?;
        let held = contents(&replica)?;
        self.oracle.judge(&held, Allowed::Nothing, "at the end, on the replica")?;
        Ok(self.summary)
    }
}

fn found(what: impl Into<String>) -> Broken {
    Broken::Objects { what: what.into() }
}
