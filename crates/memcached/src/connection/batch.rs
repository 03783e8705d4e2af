//! A batch: the requests that wait together.

use std::ops::Range;

use super::large::Storing;
use super::{Connection, State};
use crate::answers::Answers;
use crate::base64;
use crate::cache::Cache;
use crate::limits::Limits;
use crate::parser::{Local, Parser, Refusal, Step};
use crate::request::Request;
use crate::stats::{self, Wanted};

/// Why a batch has no further request.
#[derive(Clone, Copy)]
enum End<'a> {
    /// It has as many as it may.
    Full,
    /// The next request is not whole.
    More { bytes: usize },
    /// A value in parts follows.
    Large(Request<'a>),
    /// A value follows that is dropped, behind this line.
    Swallow { bytes: u64, line: &'static [u8] },
    /// Something for the connection follows.
    Local(Local<'a>),
}

impl<'a> End<'a> {
    fn large(&self) -> Option<Request<'a>> {
        match self {
            End::Large(request) => Some(*request),
            _ => None,
        }
    }
}

impl<C: Cache> Connection<C> {
    /// Takes what waits, has it answered, and does what ends the batch. `false` if that would wait
    /// and may not: then nothing has happened.
    pub(super) fn run_batch(&mut self, cache: &mut C, now_s: u64, may_wait: bool) -> bool {
        let mut requests = recycled(std::mem::take(&mut self.spare));
        let available = self.input.unused_bytes();
        let before = self.parser;
        let unused = self.input.unused();
        let front = unused.as_ptr() as usize;
        let (end, left) = collect(&mut self.parser, unused, &self.limits, now_s, &mut requests);
        let large = end.large();
        if !may_wait && (large.is_some() || cache.would_wait(&requests, now_s)) {
            let keys = decoded_keys(requests.iter().chain(&large), front);
            self.spare = recycled(requests);
            self.put_back(before, &keys);
            return false;
        }
        if !requests.is_empty() {
            let mut answers = Answers::new(
                &requests,
                now_s,
                &mut self.output,
                &mut self.counts,
                &mut self.get_failed,
            );
            cache.run(&requests, now_s, &mut answers);
            answers.assert_complete();
        }
        self.spare = recycled(requests);
        self.wanted_bytes = 1;
        let (mut stats, storing) = (None, large.as_ref().map(Storing::new));
        match end {
            End::Full | End::Large(_) => {}
            End::More { bytes } => self.wanted_bytes = bytes,
            End::Swallow { bytes, line } => {
                self.output.bytes.extend_from_slice(line);
                self.state = State::Swallowing { left_bytes: bytes };
            }
            End::Local(Local::Line(line)) => self.output.bytes.extend_from_slice(line),
            End::Local(Local::Version) => {
                let line = ["VERSION ", &self.version, "\r\n"].concat();
                self.output.bytes.extend_from_slice(line.as_bytes());
            }
            End::Local(Local::MemoryLimit { bytes, is_quiet }) => {
                let line = line_of_limit(cache.limit_bytes(bytes));
                self.output.bytes.extend_from_slice(if is_quiet { b"" } else { line });
            }
            End::Local(Local::Stats(words)) => stats = Some(Wanted::of(words)),
            End::Local(Local::Close) => self.state = State::Closing,
            End::Local(Local::CloseWith(line)) => {
                self.output.bytes.extend_from_slice(line);
                self.state = State::Closing;
            }
        }
        self.input.take(available - left);
        if let Some(wanted) = stats {
            self.answer_stats(wanted, cache, now_s);
        }
        if let Some(storing) = storing {
            self.begin_storing(storing, cache, now_s);
        }
        true
    }

    /// Has requests read again, whose keys stood in base64.
    fn put_back(&mut self, parser: Parser, keys: &[Range<usize>]) {
        self.parser = parser;
        for key in keys {
            let unused = self.input.unused();
            base64::encode_in_place(&mut unused[key.start..], key.len());
        }
    }

    fn answer_stats(&mut self, wanted: Wanted, cache: &mut C, now_s: u64) {
        self.pass_counts(cache);
        if wanted == Wanted::Reset {
            cache.reset_counts();
        }
        let figures = cache.figures(now_s);
        stats::write(wanted, &figures, now_s, &mut self.output.bytes);
    }
}

/// Reads requests until something ends the batch, and says how much input is left.
fn collect<'a>(
    parser: &mut Parser,
    mut input: &'a mut [u8],
    limits: &Limits,
    now_s: u64,
    requests: &mut Vec<Request<'a>>,
) -> (End<'a>, usize) {
    while requests.len() < limits.batch_operations_max {
        let (step, behind) = parser.next(input, now_s, limits);
        let left = behind.len();
        let end = match step {
            Step::Request(request) => {
                requests.push(request);
                input = behind;
                if left == 0 {
                    return (End::Full, 0);
                }
                continue;
            }
            Step::More { bytes } => End::More { bytes },
            Step::Large(request) => End::Large(request),
            Step::Swallow { bytes, refusal: Refusal::Line(line) } => End::Swallow { bytes, line },
            Step::Swallow { bytes, refusal: Refusal::Request(request) } => {
                requests.push(request);
                End::Swallow { bytes, line: b"" }
            }
            Step::Local(local) => End::Local(local),
        };
        return (end, left);
    }
    (End::Full, input.len())
}

/// What is said of a new limit of memory.
fn line_of_limit(is_taken: bool) -> &'static [u8] {
    match is_taken {
        true => b"OK\r\n",
        false => b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
    }
}

/// Where the keys are that stood in base64, from `front` on.
fn decoded_keys<'a>(
    requests: impl Iterator<Item = &'a Request<'a>>,
    front: usize,
) -> Vec<Range<usize>> {
    let keys = requests.filter(|request| request.is_base64()).filter_map(|it| it.operation.key());
    keys.map(|key| {
        let start = key.as_ptr() as usize - front;
        start..start + key.len()
    })
    .collect()
}

/// The memory of a batch, for another one: an empty list, whatever its requests borrow.
fn recycled<'a>(mut requests: Vec<Request<'_>>) -> Vec<Request<'a>> {
    requests.clear();
    requests.into_iter().map_while(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::recycled;
    use crate::operation::{Get, Operation};
    use crate::request::{Form, Request};

    #[test]
    fn a_recycled_list_keeps_its_memory() {
        let key = vec![b'a'; 3];
        let mut requests = Vec::with_capacity(50);
        let operation = Operation::Get(Get::new(&key));
        requests.push(Request { operation, form: Form::Text { is_quiet: false } });
        let place = requests.as_ptr() as usize;
        let again: Vec<Request<'static>> = recycled(requests);
        assert_eq!((again.len(), again.capacity(), again.as_ptr() as usize), (0, 50, place));
    }
}
