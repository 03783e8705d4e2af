//! DedupCore's lookup engine in time: state machines that each do one request from beginning to
//! end, a lock for each bucket, and what dispatches requests to them (section 4.1.4).
//!
//! Each request follows these steps, and each step waits for the one before:
//!
//! ```text
//! it has come (and is hashed) -> it is dispatched, in order -> its machine is free
//!   -> the lock of its bucket -> metadata, list, write-back -> the lock is free -> it is answered
//! ```
//!
//! Times are recursions over requests in their order, since a machine does its own in order and a
//! request that waits for a lock keeps its machine. *Ordered* dispatch gives requests to machines
//! in turn and answers in order, as the prototype does. *Ready* dispatch gives each request to the
//! machine that is free first and answers as it comes.
//!
//! Of the time of a request the report says nothing. Three parameters are fitted on its losses in
//! the worst case. They say that a step along a list is cheap and both ends of a request are dear:
//! losses of 20% without filters and 4% with them, at 16% false positives, leave no other choice.

use std::collections::HashMap;

use crate::parameter::Parameter;

use super::table::{Request, Verb};

/// One entry of a list.
pub(super) static STEP: Parameter = Parameter::fitted(
    "an entry of a list",
    14.0,
    "cycles",
    "on the losses of the worst case with and without filters",
);
/// A page that is found, beside its list.
pub(super) static FOUND: Parameter = Parameter::fitted(
    "a page that is found: metadata, write-back of its entry",
    355.0,
    "cycles",
    "on four machines being too few, six enough, and where losses begin",
);
/// A new page, beside its list.
pub(super) static NEW: Parameter = Parameter::fitted(
    "a new page: metadata, allocation, write-back of entry and metadata",
    490.0,
    "cycles",
    "on the losses of the worst case with and without filters",
);
/// Requests that wait at a machine.
pub(super) static WAITING: Parameter =
    Parameter::fitted("requests waiting at a machine", 2.0, "", "chosen; hardly matters");
/// Answers that wait for their turn behind a machine.
pub(super) static ANSWERED: Parameter =
    Parameter::fitted("answers waiting behind a machine", 4.0, "", "chosen; hardly matters");

/// Who gets which request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// In turn, answered in order.
    Ordered,
    /// To the first machine that is idle, answered as it ends.
    Ready,
}

/// A lookup engine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// State machines.
    pub machines: usize,
    /// Whether buckets have filters.
    pub filters: bool,
    /// Who gets which request.
    pub dispatch: Dispatch,
}

impl Engine {
    /// Cycles that a machine is busy with a request once it has the lock.
    #[must_use]
    pub fn cycles(&self, request: &Request) -> u64 {
        let walks = request.verb != Verb::WriteNew || request.passes_filter || !self.filters;
        let steps = if walks { u64::from(request.entries) } else { 0 };
        let ends = if request.verb == Verb::WriteNew { NEW.value } else { FOUND.value };
        ends as u64 + steps * STEP.value as u64
    }
}

/// When each request is answered, in cycles, if it comes when `comes` says.
#[must_use]
pub fn answers(engine: &Engine, requests: &[Request], comes: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut state = State::new(engine.machines);
    let times = (0..).zip(requests);
    times.map(|(number, request)| state.advance(engine, request, comes(number))).collect()
}

/// What was done by each machine, in the order of its requests.
#[derive(Clone, Default)]
struct Machine {
    started: Vec<u64>,
    ended: u64,
    answered: Vec<u64>,
}

struct State {
    machines: Vec<Machine>,
    turn: usize,
    dispatched: u64,
    answered: u64,
    unlocked: HashMap<u32, u64>,
}

impl State {
    fn new(machines: usize) -> Self {
        let machines = vec![Machine::default(); machines.max(1)];
        Self { machines, turn: 0, dispatched: 0, answered: 0, unlocked: HashMap::new() }
    }

    fn advance(&mut self, engine: &Engine, request: &Request, comes: u64) -> u64 {
        let ordered = engine.dispatch == Dispatch::Ordered;
        let place = if ordered { self.turn % self.machines.len() } else { self.first_free() };
        self.turn += 1;
        let machine = &mut self.machines[place];
        // A place in the machine's queue is free when the request that had it has started.
        let room = before(&machine.started, WAITING.value);
        self.dispatched = comes.max(self.dispatched + 1).max(room);
        let blocked = if ordered { before(&machine.answered, ANSWERED.value) } else { 0 };
        let lock = self.unlocked.entry(request.bucket).or_default();
        let start = self.dispatched.max(machine.ended).max(blocked).max(*lock);
        let end = start + engine.cycles(request);
        *lock = end;
        let answer = if ordered { end.max(self.answered + 1) } else { end };
        self.answered = self.answered.max(answer);
        machine.started.push(start);
        machine.ended = end;
        machine.answered.push(answer);
        answer
    }

    fn first_free(&self) -> usize {
        let free = self.machines.iter().enumerate().min_by_key(|(_, machine)| machine.ended);
        free.map_or(0, |(place, _)| place)
    }
}

/// The time of the one that came this number before the next; 0 if there was none.
fn before(times: &[u64], places: f64) -> u64 {
    times.len().checked_sub(places as usize).map_or(0, |place| times[place])
}

#[cfg(test)]
mod tests {
    use super::{Dispatch, Engine, Request, Verb, answers};
    use crate::dedupcore::table::Table;

    fn engine(machines: usize, dispatch: Dispatch) -> Engine {
        Engine { machines, filters: true, dispatch }
    }

    #[test]
    fn requests_to_one_bucket_are_done_one_after_the_other() {
        let request = Request { verb: Verb::Erase, bucket: 3, entries: 2, passes_filter: true };
        let one = engine(1, Dispatch::Ready).cycles(&request);
        for dispatch in [Dispatch::Ordered, Dispatch::Ready] {
            let answered = answers(&engine(8, dispatch), &[request; 5], |_| 0);
            let apart = answered.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(apart.into_iter().all(|cycles| cycles == one), "{answered:?}");
        }
    }

    #[test]
    fn ordered_dispatch_answers_in_order_and_is_never_before_ready_dispatch() {
        let requests = Table::filled(100, 4_000, 5).writes(4_000, 50);
        for machines in [2, 4, 6, 8, 16] {
            let ordered = answers(&engine(machines, Dispatch::Ordered), &requests, |_| 0);
            assert!(ordered.is_sorted_by(|first, second| first < second));
            let ready = answers(&engine(machines, Dispatch::Ready), &requests, |_| 0);
            assert!(ready.iter().max() <= ordered.iter().max(), "{machines}");
        }
    }

    #[test]
    fn machines_are_busy_no_longer_than_there_is_time() {
        let requests = Table::filled(100, 0, 6).writes(2_000, 0);
        let engine = engine(4, Dispatch::Ready);
        let work: u64 = requests.iter().map(|request| engine.cycles(request)).sum();
        let last = answers(&engine, &requests, |_| 0).into_iter().max().unwrap();
        assert!(last >= work / 4 && last < work / 4 + work / 40, "{last} for {work}");
    }
}
