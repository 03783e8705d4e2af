//! The primary's side of a link: which records there are, which the peer has, who may answer.
//!
//! It does no I/O: [`crate::Mirrored`] numbers changes here and does them, the owner of the
//! connection asks [`Primary::next_message`] and hands over what comes.

use std::collections::VecDeque;

use format::objects::replica::{ReplicaRole, ReplicaState};
use format::replication::{Change, Message, PROTOCOL_VERSION, Position};
use mutants::mutant;

use crate::meeting::{Held, Meeting, meet};
use crate::ring::Ring;

/// Records may be ahead of the peer by one part in this many of the ring.
const RING_TO_AHEAD: u64 = 2;

/// How far the link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// There is no connection.
    Away,
    /// The peer has not said what it holds.
    Greeting,
    /// The peer gives back what was lost here, up to this record.
    TakingBack(u64),
    /// The copies have met, and no record may be sent before the sequence of this opening begins.
    Met,
    /// All is compared.
    Comparing,
    /// What the peer has is what was here.
    InStep,
}

/// Who may change the bucket and answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Both copies together.
    InStep,
    /// This one, alone.
    Alone,
    /// Nobody until the peer is in step.
    Waits,
    /// Another copy was promoted.
    Fenced(String),
}

/// What a message asks of the volume's holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// A record that was lost here is to be done again.
    TakeBack(u64, Change),
    /// The sequence of this opening is to begin, unless it has.
    BeginLife,
    /// A range is to be sent.
    Fill {
        at_bytes: u64,
        length_bytes: u32,
    },
    /// That it is fenced is to be written.
    Fenced,
    /// The peer is in step; that it was once is to be durable before [`Primary::in_step`].
    EnterStep,
}

/// How far a comparison is.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    cursor_bytes: u64,
    /// The last comparison that was sent.
    asked: u64,
    /// The record that says that all is equal.
    ends: Option<u64>,
}

/// One of them.
#[derive(Debug)]
pub struct Primary {
    bucket: String,
    state: ReplicaState,
    opened_at: Position,
    opened_begun: u64,
    life: u64,
    has_begun: bool,
    is_unknown: bool,
    ring: Ring,
    ahead_bytes_max: u64,
    link: LinkState,
    comparison: Comparison,
    outbox: VecDeque<Message>,
    /// The next record to be sent.
    next: u64,
    received: u64,
    /// The peer is compared, or was when it was cut: what it was sent is no copy yet.
    is_mixed: bool,
    durable: u64,
    flush_wanted: u64,
    flush_sent: u64,
    refusal: Option<String>,
    /// Since when the peer is not in step, by the clock of the answers that wait.
    away_since: Option<u64>,
}

impl Primary {
    /// That of a bucket whose volume says `state`; `life` is a random number.
    ///
    /// # Panics
    /// When the state is another role's.
    #[must_use]
    pub fn new(bucket: &str, state: ReplicaState, life: u64, ring_bytes_max: u64) -> Self {
        let is_one = matches!(state.role, ReplicaRole::Primary | ReplicaRole::Fenced);
        assert!(is_one, "a primary was made one");
        let sequence = state.position.sequence;
        Self {
            bucket: bucket.to_owned(),
            opened_at: state.position,
            opened_begun: state.begun,
            life,
            has_begun: false,
            is_unknown: false,
            ring: Ring::new(sequence, ring_bytes_max),
            ahead_bytes_max: ring_bytes_max / RING_TO_AHEAD,
            link: LinkState::Away,
            comparison: Comparison::default(),
            outbox: VecDeque::new(),
            next: sequence + 1,
            received: sequence,
            is_mixed: false,
            durable: 0,
            flush_wanted: 0,
            flush_sent: 0,
            refusal: None,
            away_since: None,
            state,
        }
    }

    /// What the volume's block says, or will say next.
    #[must_use]
    pub fn state(&self) -> &ReplicaState {
        &self.state
    }

    /// Lets this copy go on alone while the peer is away, or no longer; the next record writes it.
    pub fn set_may_go_on_alone(&mut self, may_go_on_alone: bool) {
        self.state.may_go_on_alone = may_go_on_alone;
    }

    /// How far the link is.
    #[must_use]
    pub fn link(&self) -> LinkState {
        self.link
    }

    /// Bytes of the volume that were compared.
    #[must_use]
    pub fn compared_bytes(&self) -> u64 {
        self.comparison.cursor_bytes
    }

    /// The last record that the peer said it has.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Why the peer did not take records, when it was asked last.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether a bucket may be opened on the volume.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Who may change the bucket.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let ReplicaState { may_go_on_alone, was_in_step, .. } = self.state;
        match self.link {
            _ if self.state.role == ReplicaRole::Fenced => {
                Standing::Fenced(self.state.peer.clone())
            }
            LinkState::InStep => Standing::InStep,
            _ if may_go_on_alone || !was_in_step => Standing::Alone,
            _ => Standing::Waits,
        }
    }

    /// Whether records go to the peer.
    fn sends(&self) -> bool {
        matches!(self.link, LinkState::InStep | LinkState::Comparing)
    }

    /// Whether records are so far ahead of the peer that they wait.
    pub(crate) fn is_congested(&self) -> bool {
        self.sends() && self.ring.bytes_behind(self.received) > self.ahead_bytes_max
    }

    /// Since when an answer that waits since `since` counts as waiting: for a peer that was away
    /// before, since then.
    pub(crate) fn waits_since(&self, since: u64) -> u64 {
        match self.standing() {
            Standing::Waits => self.away_since.unwrap_or(since),
            Standing::InStep | Standing::Alone | Standing::Fenced(_) => since,
        }
    }

    /// A connection is there, at `now`.
    pub fn connected(&mut self, now: u64) {
        self.cut(now);
        self.link = LinkState::Greeting;
        let (set, position) = (self.state.set, self.state.position);
        let (version, bucket) = (PROTOCOL_VERSION, self.bucket.clone());
        self.outbox.push_back(Message::Hello { version, set, position, bucket });
    }

    /// The connection has ended, or is closed.
    pub fn cut(&mut self, now: u64) {
        self.link = LinkState::Away;
        self.away_since.get_or_insert(now);
        self.comparison = Comparison::default();
        self.outbox.clear();
        self.flush_sent = 0;
    }

    /// What is to be sent next.
    pub fn next_message(&mut self) -> Option<Message> {
        if let Some(message) = self.outbox.pop_front() {
            return Some(message);
        }
        if !self.sends() {
            return None;
        }
        if self.next <= self.ring.last() {
            let Some(change) = self.ring.get(self.next).cloned() else {
                // It was dropped while no answer waited for the peer: they meet again.
                self.link = LinkState::Away;
                return None;
            };
            let sequence = self.next;
            self.next += 1;
            return Some(Message::Record { sequence, change });
        }
        if self.flush_sent < self.flush_wanted {
            self.flush_sent = self.flush_wanted;
            return Some(Message::Flush { sequence: self.ring.last() });
        }
        None
    }

    /// Whether [`Primary::next_message`] has something now.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let has_records = self.next <= self.ring.last() || self.flush_sent < self.flush_wanted;
        !self.outbox.is_empty() || (self.sends() && has_records)
    }

    /// Takes what the peer said.
    ///
    /// # Errors
    /// A sentence where it says what no peer does, or refuses: the connection is to be ended.
    pub(crate) fn take(&mut self, message: Message) -> Result<Asked, String> {
        match (message, self.link) {
            (Message::Refused { epoch, reason }, _) => {
                if epoch > self.state.position.epoch {
                    self.fence(&reason);
                    return Ok(Asked::Fenced);
                }
                self.refusal = Some(reason.clone());
                Err(reason)
            }
            (Message::Welcome { position, is_consistent }, LinkState::Greeting) => {
                self.refusal = None;
                self.met(&position, is_consistent)
            }
            (Message::Record { sequence, change }, LinkState::TakingBack(up_to)) => {
                let is_next = sequence == self.state.position.sequence + 1 && sequence <= up_to;
                if !is_next {
                    return Err(format!(
                        "the peer gives back record {sequence}, which is not next"
                    ));
                }
                Ok(Asked::TakeBack(sequence, change))
            }
            (Message::Given { .. }, LinkState::TakingBack(up_to)) => {
                if self.state.position.sequence == up_to {
                    let opened_at = self.opened_at;
                    return self.met(&opened_at, true);
                }
                let reason = "the peer has changes that this server has lost, and does not keep \
                              them to give back: promote the peer"
                    .to_owned();
                self.refusal = Some(reason.clone());
                Err(reason)
            }
            (Message::Received { sequence }, LinkState::InStep | LinkState::Comparing) => {
                self.take_received(sequence)
            }
            (Message::Durable { sequence }, LinkState::InStep | LinkState::Comparing) => {
                self.durable = self.durable.max(sequence);
                Ok(Asked::Nothing)
            }
            (Message::Differs { at_bytes, length_bytes }, LinkState::Comparing) => {
                Ok(Asked::Fill { at_bytes, length_bytes })
            }
            // An answer to what was compared before the connection was in step.
            (message, link) => Err(format!("the peer says {} {link:?}", kind_of(&message))),
        }
    }

    fn met(&mut self, secondary: &Position, is_consistent: bool) -> Result<Asked, String> {
        let now = self.has_begun.then_some(self.state.position);
        let (opened_at, begun) = (self.opened_at, self.opened_begun);
        let held = Held { opened_at, begun, now, is_unknown: self.is_unknown };
        match meet(&held, &self.ring, secondary, is_consistent) {
            Meeting::TakeBack { behind, up_to } => {
                self.link = LinkState::TakingBack(up_to);
                self.outbox.push_back(Message::Want { sequence: behind });
                return Ok(Asked::Nothing);
            }
            Meeting::CatchUp { behind } => {
                self.next = behind + 1;
                self.received = behind;
                self.is_mixed = false;
                self.comparison.ends = Some(0);
            }
            Meeting::Compare => {
                self.next = self.ring.last() + 1;
                self.received = self.ring.last();
                self.is_mixed = true;
                self.comparison = Comparison::default();
            }
        }
        self.link = LinkState::Met;
        Ok(Asked::BeginLife)
    }

    /// A record that came back is about to be done: the state to be written before it.
    pub(crate) fn takes_back(&mut self) -> ReplicaState {
        self.state.begun = self.state.position.sequence + 1;
        self.state.clone()
    }

    /// A record that came back has been done again.
    pub(crate) fn took_back(&mut self, sequence: u64) {
        assert!(!self.has_begun, "nothing is taken back into a new sequence");
        self.state.position.sequence = sequence;
        self.state.begun = sequence;
        self.opened_at = self.state.position;
        self.opened_begun = sequence;
        self.ring.restart(sequence);
    }

    /// The sequence of this opening; its state is to be durable before [`Primary::begun`].
    pub(crate) fn begin_life(&mut self) -> Option<&ReplicaState> {
        if self.has_begun {
            return None;
        }
        self.state.position.life = self.life;
        self.state.begun = self.state.position.sequence;
        self.has_begun = true;
        Some(&self.state)
    }

    /// Whether the copies have met and all is to be compared.
    pub(crate) fn is_to_compare(&self) -> bool {
        self.link == LinkState::Met && self.comparison.ends.is_none()
    }

    /// The sequence of this opening has begun: records go to the peer, if it is there.
    pub(crate) fn begun(&mut self, now: u64) {
        if self.link != LinkState::Met {
            return;
        }
        let compares = self.comparison.ends.take().is_none();
        let position = self.state.position.at(self.next - 1);
        self.outbox.push_back(Message::Begin { position, compares });
        self.is_unknown &= !compares;
        self.away_since.get_or_insert(now);
        self.link = LinkState::Comparing;
        // Who only catches up is in step at once: an answer waits for a record behind all others.
        self.comparison.ends = (!compares).then_some(0);
    }

    /// The peer will be in step: the state to be made durable before, unless it is.
    pub(crate) fn enter_step(&mut self) -> Option<ReplicaState> {
        let is_first = !std::mem::replace(&mut self.state.was_in_step, true);
        is_first.then(|| self.state.clone())
    }

    /// What the peer has is what was here.
    pub(crate) fn in_step(&mut self) {
        if self.link == LinkState::Comparing {
            self.link = LinkState::InStep;
            self.is_mixed = false;
            self.away_since = None;
            self.state.went_on_alone = false;
        }
    }

    /// Whether the peer is in step but for [`Primary::in_step`].
    pub(crate) fn is_equal(&self) -> bool {
        let has_all = self.comparison.ends.is_some_and(|end| self.received >= end);
        self.link == LinkState::Comparing && has_all
    }

    fn take_received(&mut self, sequence: u64) -> Result<Asked, String> {
        if sequence >= self.next {
            return Err(format!("the peer says it has record {sequence}, which was not sent"));
        }
        self.received = self.received.max(sequence);
        Ok(if self.is_equal() { Asked::EnterStep } else { Asked::Nothing })
    }

    /// Another copy was promoted, as `reason` says.
    pub(crate) fn fence(&mut self, reason: &str) {
        self.state.role = ReplicaRole::Fenced;
        let end = reason.floor_char_boundary(format::objects::replica::PEER_BYTES_MAX);
        self.state.peer = reason[..end].to_owned();
        self.link = LinkState::Away;
    }

    /// The next record is about to be done: the state to be written before it.
    pub(crate) fn begin_record(&mut self) -> ReplicaState {
        assert!(self.has_begun, "a record belongs to a sequence that has begun");
        self.state.begun = self.state.position.sequence + 1;
        if self.state.was_in_step && self.link != LinkState::InStep {
            self.state.went_on_alone = true;
        }
        self.state.clone()
    }

    /// It was not done, and left nothing.
    pub(crate) fn abort_record(&mut self) {
        self.state.begun = self.state.position.sequence;
    }

    /// It was done, and goes to the peer: the state to be written behind it.
    pub(crate) fn end_record(&mut self, change: Change) -> (u64, ReplicaState) {
        // What the peer has not been sent yet stays: else all would be compared again.
        let unsent = if self.sends() { self.next } else { u64::MAX };
        self.ring.push_keeping(change, unsent);
        let sequence = self.ring.last();
        self.state.position.sequence = sequence;
        self.state.begun = sequence;
        (sequence, self.state.clone())
    }

    /// Nobody knows what the volume holds: all is compared when the copies meet next.
    pub(crate) fn is_in_doubt(&mut self) {
        self.is_unknown = true;
        self.link = LinkState::Away;
    }

    /// Whether the peer has this record, and is a copy.
    pub(crate) fn has_received(&self, sequence: u64) -> bool {
        !self.is_mixed && self.received >= sequence
    }

    /// Asks the peer to make durable what there is; the number of the last record.
    pub(crate) fn want_flush(&mut self) -> u64 {
        self.flush_wanted = self.ring.last().max(self.flush_wanted);
        self.ring.last()
    }

    /// Whether the peer has made this record durable.
    pub(crate) fn is_durable(&self, sequence: u64) -> bool {
        self.durable >= sequence
    }

    /// Where the comparison goes on; none: nothing is to be compared, or not now. The next range
    /// waits until the one before is answered, and sent if it differs: memory has one only.
    pub(crate) fn compares_at(&self) -> Option<u64> {
        let is_due = self.link == LinkState::Comparing && self.comparison.ends.is_none();
        let is_answered = self.received >= self.comparison.asked || mutant!(EndsBeforeFilled);
        let goes_on = is_due && is_answered && !self.is_congested();
        goes_on.then_some(self.comparison.cursor_bytes)
    }

    /// The comparison has come to this place; `asked` is the record by which it was asked.
    pub(crate) fn compared(&mut self, up_to_bytes: u64, asked: Option<u64>) {
        self.comparison.cursor_bytes = up_to_bytes;
        self.comparison.asked = asked.unwrap_or(self.comparison.asked);
    }

    /// The record of this number says that all is equal.
    pub(crate) fn ends_with(&mut self, sequence: u64) {
        self.comparison.ends = Some(sequence);
    }
}

fn kind_of(message: &Message) -> &'static str {
    match message {
        Message::Hello { .. } => "hello",
        Message::Welcome { .. } => "welcome",
        Message::Refused { .. } => "no",
        Message::Want { .. } => "what it wants",
        Message::Given { .. } => "what it gave",
        Message::Begin { .. } => "that records follow",
        Message::Record { .. } => "a record",
        Message::Flush { .. } => "flush",
        Message::Received { .. } => "received",
        Message::Durable { .. } => "durable",
        Message::Differs { .. } => "that a range differs",
    }
}
