//! The judge of a crash: is what survived exactly a prefix of what was written?
//!
//! The client's own log is the witness. It says, in one order of ticks, when each write was sent
//! and when it was acknowledged, and the same of each flush. Any content that can only come from
//! one write proves that the prefix reaches at least to the moment when that write was sent; an
//! answered flush proves it for the moment when the flush was sent. Call the latest such moment the
//! evidence. Then every write acknowledged before the evidence must be there: at each place stands
//! the last of those, or a later one (a write in flight may or may not have made it). For one
//! connection that waits for each answer this is the literal prefix; for several it is the prefix
//! up to what was truly concurrent. The writer never has two writes in flight on one place, so the
//! order there is plain.
//!
//! Contents that several writes share (duplicates, zeros) prove nothing by themselves but must
//! still be explained by a write that is late enough.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;

/// One chunk of one volume.
pub(crate) type Place = (String, u64);

/// What a chunk holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(crate) enum Content {
    /// Nothing: never written, trimmed or written as zeros.
    Zero,
    /// One of a few patterns that many writes write.
    Shared(u64),
    /// What only the write of this number wrote.
    Unique(u64),
    /// Nothing that was ever written.
    Damaged,
}

/// What the chunks of all volumes hold; a place that is not named holds zeros.
pub(crate) type State = BTreeMap<Place, Content>;

/// One chunk of one write request.
#[derive(Clone, Debug)]
struct Write {
    number: u64,
    content: Content,
    sent: usize,
    answered: Option<usize>,
}

/// What a client did between two crashes.
#[derive(Debug, Default)]
pub(crate) struct History {
    before: State,
    places: BTreeMap<Place, Vec<Write>>,
    /// Where to find the chunks of a request that is not yet answered.
    open: BTreeMap<u64, Vec<Place>>,
    /// Requests whose answer promised that they survive (FUA).
    durable: BTreeSet<u64>,
    flushes: BTreeMap<u64, usize>,
    flushed: usize,
    ticks: usize,
    answered: usize,
}

/// What a crash cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Verdict {
    /// Requests answered before the crash.
    pub(crate) answered: usize,
    /// The moment up to which everything is proven to be there, of all ticks of the log.
    pub(crate) evidence: usize,
    pub(crate) ticks: usize,
}

impl History {
    /// A history that begins on what was there `before`.
    pub(crate) fn after(before: State) -> History {
        History { before, ..History::default() }
    }

    /// Takes one line of the client's log:
    /// `W number volume first-chunk content...` a write is sent; `A number` it is answered;
    /// `D number` its answer promised that it survives; `F number`, `G number` the same of a flush.
    pub(crate) fn log(&mut self, line: &str) -> Result<(), Failure> {
        self.ticks += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let known = match words.as_slice() {
            ["W", number, volume, first, contents @ ..] => {
                self.sent(number, volume, first, contents)
            }
            ["A", number] => number.parse().ok().and_then(|number| self.answer(number)),
            ["D", number] => number.parse().ok().map(|number| {
                self.durable.insert(number);
            }),
            ["F", number] => number.parse().ok().map(|number| {
                self.flushes.insert(number, self.ticks);
            }),
            ["G", number] => number.parse().ok().and_then(|number| {
                self.flushed = self.flushed.max(self.flushes.remove(&number)?);
                Some(())
            }),
            _ => None,
        };
        known.ok_or_else(|| Failure::unmet("a line of the writer's log", line))
    }

    fn sent(&mut self, number: &str, volume: &str, first: &str, contents: &[&str]) -> Option<()> {
        let (number, first): (u64, u64) = (number.parse().ok()?, first.parse().ok()?);
        let mut places = Vec::new();
        for (chunk, word) in (first..).zip(contents) {
            let content = read_content(word)?;
            let place = (volume.to_owned(), chunk);
            let write = Write { number, content, sent: self.ticks, answered: None };
            self.places.entry(place.clone()).or_default().push(write);
            places.push(place);
        }
        self.open.insert(number, places);
        Some(())
    }

    fn answer(&mut self, number: u64) -> Option<()> {
        let tick = self.ticks;
        for place in self.open.remove(&number)? {
            let writes = self.places.get_mut(&place)?;
            writes.iter_mut().rfind(|write| write.number == number)?.answered = Some(tick);
        }
        self.answered += 1;
        Some(())
    }

    /// Is `found` a state that the store may have after a crash at the end of this history.
    pub(crate) fn judge(&self, found: &State) -> Result<Verdict, Failure> {
        let evidence = self.evidence(found);
        let mut places: BTreeSet<&Place> = found.keys().chain(self.before.keys()).collect();
        places.extend(self.places.keys());
        for place in places {
            self.judge_place(place, content_at(found, place), evidence)?;
        }
        Ok(Verdict { answered: self.answered, evidence, ticks: self.ticks })
    }

    /// The latest moment to which the prefix is proven to reach.
    fn evidence(&self, found: &State) -> usize {
        let proven = found.iter().filter_map(|(place, content)| {
            let Content::Unique(number) = content else { return None };
            let writes = self.places.get(place)?;
            writes.iter().find(|write| write.number == *number).map(|write| write.sent)
        });
        proven.max().unwrap_or(0).max(self.flushed)
    }

    fn judge_place(&self, place: &Place, found: Content, evidence: usize) -> Result<(), Failure> {
        let writes = self.places.get(place).map_or(&[][..], Vec::as_slice);
        let must = writes.iter().rposition(|write| self.must_be_there(write, evidence));
        let later = match must {
            Some(must) => writes.get(must..).unwrap_or(&[]),
            None => writes,
        };
        let unchanged = must.is_none() && content_at(&self.before, place) == found;
        if unchanged || later.iter().any(|write| write.content == found) {
            return Ok(());
        }
        let expected = match must.and_then(|must| writes.get(must)) {
            Some(write) => format!("write {} ({:?}) or a later one", write.number, write.content),
            None => format!("{:?} or any write since", content_at(&self.before, place)),
        };
        let at = format!("{expected} in chunk {} of volume {}", place.1, place.0);
        Err(Failure::unmet(at, format!("{found:?}")))
    }

    fn must_be_there(&self, write: &Write, evidence: usize) -> bool {
        let promised = self.durable.contains(&write.number);
        write.answered.is_some_and(|answered| promised || answered < evidence)
    }
}

/// Reads a content as the scripts print it: `z`, `s7`, `u1234`, `bad`.
pub(crate) fn read_content(word: &str) -> Option<Content> {
    match word.split_at_checked(1)? {
        ("z", "") => Some(Content::Zero),
        ("s", number) => number.parse().ok().map(Content::Shared),
        ("u", number) => number.parse().ok().map(Content::Unique),
        _ if word == "bad" => Some(Content::Damaged),
        _ => None,
    }
}

fn content_at(state: &State, place: &Place) -> Content {
    state.get(place).copied().unwrap_or(Content::Zero)
}

#[cfg(test)]
mod tests {
    use super::{Content, History, State, read_content};

    fn state(chunks: &[(u64, &str)]) -> State {
        let content = |word: &str| read_content(word).unwrap();
        chunks.iter().map(|(chunk, word)| (("a".to_owned(), *chunk), content(word))).collect()
    }

    fn history(before: State, log: &str) -> History {
        let mut history = History::after(before);
        for line in log.lines() {
            history.log(line.trim()).unwrap();
        }
        history
    }

    const THREE_IN_ORDER: &str = "W 1 a 0 u1\nA 1\nW 2 a 1 u2\nA 2\nW 3 a 2 u3\nA 3";

    #[test]
    fn every_prefix_is_accepted_and_nothing_else() {
        let history = history(State::new(), THREE_IN_ORDER);
        assert!(history.judge(&state(&[])).is_ok());
        assert!(history.judge(&state(&[(0, "u1")])).is_ok());
        assert!(history.judge(&state(&[(0, "u1"), (1, "u2")])).is_ok());
        assert!(history.judge(&state(&[(0, "u1"), (1, "u2"), (2, "u3")])).is_ok());
        assert!(history.judge(&state(&[(1, "u2")])).is_err());
        assert!(history.judge(&state(&[(0, "u1"), (2, "u3")])).is_err());
        assert!(history.judge(&state(&[(0, "bad")])).is_err());
        assert!(history.judge(&state(&[(1, "u1")])).is_err());
    }

    #[test]
    fn what_was_flushed_must_be_there() {
        let history = history(State::new(), "W 1 a 0 u1\nA 1\nF 1\nG 1\nW 2 a 0 u2\nA 2");
        assert!(history.judge(&state(&[(0, "u1")])).is_ok());
        assert!(history.judge(&state(&[(0, "u2")])).is_ok());
        assert!(history.judge(&state(&[])).is_err());
    }

    #[test]
    fn an_unanswered_flush_promises_nothing() {
        let history = history(State::new(), "W 1 a 0 u1\nA 1\nF 1");
        assert!(history.judge(&state(&[])).is_ok());
    }

    #[test]
    fn a_promise_of_one_write_holds_for_it() {
        let history = history(State::new(), "W 1 a 0 u1\nD 1\nA 1");
        assert!(history.judge(&state(&[(0, "u1")])).is_ok());
        assert!(history.judge(&state(&[])).is_err());
    }

    #[test]
    fn writes_in_flight_together_may_survive_in_any_way() {
        let history = history(State::new(), "W 1 a 0 u1\nW 2 a 1 u2\nA 1\nA 2");
        assert!(history.judge(&state(&[(1, "u2")])).is_ok());
        assert!(history.judge(&state(&[(0, "u1")])).is_ok());
    }

    #[test]
    fn an_old_content_may_not_come_back() {
        let log = "W 1 a 0 u1\nA 1\nW 2 a 0 s7\nA 2\nW 3 a 1 u3\nA 3";
        let history = history(State::new(), log);
        assert!(history.judge(&state(&[(0, "s7"), (1, "u3")])).is_ok());
        assert!(history.judge(&state(&[(0, "u1"), (1, "u3")])).is_err());
        assert!(history.judge(&state(&[(1, "u3")])).is_err());
    }

    #[test]
    fn zeros_must_be_explained_by_a_trim_that_is_late_enough() {
        let log = "W 1 a 0 z\nA 1\nW 2 a 0 u2\nA 2\nW 3 a 1 u3\nA 3";
        let history = history(State::new(), log);
        assert!(history.judge(&state(&[(1, "u3")])).is_err());
        assert!(history.judge(&state(&[])).is_ok());
    }

    #[test]
    fn what_was_there_before_must_stay_where_nothing_was_written() {
        let before = state(&[(5, "u9"), (6, "s1")]);
        let history = history(before, "W 10 a 0 u10\nA 10");
        assert!(history.judge(&state(&[(5, "u9"), (6, "s1"), (0, "u10")])).is_ok());
        assert!(history.judge(&state(&[(5, "u9"), (0, "u10")])).is_err());
    }

    #[test]
    fn a_request_of_many_chunks_is_one_moment() {
        let history = history(State::new(), "W 1 a 0 u1 s2 z\nA 1\nF 1\nG 1");
        assert!(history.judge(&state(&[(0, "u1"), (1, "s2")])).is_ok());
        assert!(history.judge(&state(&[(0, "u1")])).is_err());
    }

    #[test]
    fn a_log_that_makes_no_sense_is_refused() {
        let mut history = History::default();
        assert!(history.log("A 7").is_err());
        assert!(history.log("W 1 a x u1").is_err());
        assert_eq!(read_content("u"), None);
        assert_eq!(read_content("bad"), Some(Content::Damaged));
    }
}
