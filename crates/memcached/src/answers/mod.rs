//! Where a cache says what became of each request, and how that is written.
//!
//! One answer a request, in the order of the requests: the cursor asserts it. What a request's
//! client wants to see of it (a line, `VALUE`, two letters with flags, or nothing) is in the
//! request's form, and no cache knows of it.

mod meta;
mod parts;
mod text;
mod told;

use crate::answer::{Answer, Fault};
use crate::hit::Hit;
use crate::operation::Operation;
use crate::output::Output;
use crate::request::{Form, Request};
use crate::stats::Counts;
use crate::values::ValueReader;
use told::{Told, from_memory, get_of, no_part};

/// Takes the answers of one batch.
#[derive(Debug)]
pub struct Answers<'a, R> {
    requests: &'a [Request<'a>],
    next: usize,
    now_s: u64,
    output: &'a mut Output<R>,
    counts: &'a mut Counts,
    /// A key of a `get` could not be read, and its other keys are passed over.
    get_failed: &'a mut bool,
}

impl<'a, R: ValueReader> Answers<'a, R> {
    pub(crate) fn new(
        requests: &'a [Request<'a>],
        now_s: u64,
        output: &'a mut Output<R>,
        counts: &'a mut Counts,
        get_failed: &'a mut bool,
    ) -> Self {
        Answers { requests, next: 0, now_s, output, counts, get_failed }
    }

    pub(crate) fn assert_complete(&self) {
        assert!(self.next == self.requests.len(), "every request of a batch is answered");
    }

    fn take(&mut self) -> Request<'a> {
        let request = self.requests.get(self.next).copied();
        self.next += 1;
        #[expect(clippy::expect_used, reason = "a cache that answers twice is broken")]
        request.expect("a request is answered once")
    }

    /// Answers the next request, where no value belongs to it.
    ///
    /// # Panics
    /// If all requests have been answered, or the answer is no answer to the operation.
    pub fn answer(&mut self, answer: Answer) {
        let request = self.take();
        self.counts.count(&request.operation, &answer);
        let out = &mut self.output.bytes;
        match request.form {
            Form::Text { is_quiet: true } => {}
            Form::Text { is_quiet: false } => text::answer(&answer, out),
            Form::Value { is_last, .. } => {
                assert!(answer == Answer::NotFound, "a read finds a value or nothing");
                self.end_get(is_last);
            }
            Form::Meta { .. } => meta::answer(&request, &answer, self.now_s, out),
            Form::Inspect { is_base64 } => {
                text::inspected(&request.operation, &answer, is_base64, self.now_s, out);
            }
            Form::TooLarge { is_quiet, .. } => {
                self.counts.store_too_large += 1;
                if !is_quiet {
                    text::fault(&Fault::TooLarge, out);
                }
            }
        }
    }

    /// Answers a read from a value that is in memory: with all of it, or with the part that the
    /// client wants.
    ///
    /// # Panics
    /// As [`Answers::answer`] does.
    pub fn hit(&mut self, hit: &Hit, value: &[u8]) {
        let request = self.take();
        let whole_bytes = value.len() as u64;
        let Some(told) = self.look(&request, hit, whole_bytes, from_memory(value)) else { return };
        let from = told.found.offset as usize;
        if self.begin_value(&request, hit, &told) {
            let part = &value[from..from + told.found.bytes as usize];
            self.output.bytes.extend_from_slice(part);
            self.output.bytes.extend_from_slice(b"\r\n");
        }
        self.end_value(&request);
    }

    /// Answers a read with a value of `value_bytes` that `fill` writes where it is sent from. If it
    /// cannot, the client hears the fault.
    ///
    /// # Panics
    /// As [`Answers::answer`] does.
    pub fn hit_with(
        &mut self,
        hit: &Hit,
        value_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) {
        if self.requests.get(self.next).is_some_and(|request| wants_part(&request.operation)) {
            let mut value = vec![0; value_bytes];
            return match fill(&mut value) {
                Ok(()) => self.hit(hit, &value),
                Err(fault) => self.fail(&fault),
            };
        }
        let request = self.take();
        let start = self.output.bytes.len();
        let Some(told) = self.look(&request, hit, value_bytes as u64, no_part) else { return };
        if self.begin_value(&request, hit, &told) {
            let from = self.output.bytes.len();
            self.output.bytes.resize(from + value_bytes, 0);
            if let Err(fault) = fill(&mut self.output.bytes[from..]) {
                self.output.bytes.truncate(start);
                return self.failed(&request, &fault);
            }
            self.output.bytes.extend_from_slice(b"\r\n");
        }
        self.end_value(&request);
    }

    /// Answers a read with a long value, which is read when it is sent. A client that wants a part
    /// of it hears that it cannot have it: [`Answers::hit_at`] gives parts.
    ///
    /// # Panics
    /// As [`Answers::answer`] does.
    pub fn hit_streamed(&mut self, hit: &Hit, value_bytes: u64, reader: R) {
        let request = self.take();
        if wants_part(&request.operation) {
            let Err(fault) = no_part(0, &mut []) else { return };
            return self.failed(&request, &fault);
        }
        let Some(told) = self.look(&request, hit, value_bytes, no_part) else { return };
        self.push_streamed(&request, hit, &told, reader);
        self.end_value(&request);
    }

    /// Answers a read that does not want the value ([`crate::Get::wants_value`]). What is asked of
    /// the directory of an array is not known here: [`Answers::hit_at`] reads it.
    ///
    /// # Panics
    /// If it wants the value, or as [`Answers::answer`] does.
    pub fn hit_without_value(&mut self, hit: &Hit, value_bytes: u64) {
        let request = self.take();
        let Some(told) = self.look(&request, hit, value_bytes, no_part) else { return };
        let wants = self.begin_value(&request, hit, &told);
        assert!(!wants || *self.get_failed, "a read that wants a value gets it");
        self.end_value(&request);
    }

    /// Answers the next request with a fault.
    ///
    /// # Panics
    /// If all requests have been answered.
    pub fn fail(&mut self, fault: &Fault) {
        let request = self.take();
        self.failed(&request, fault);
    }

    fn failed(&mut self, request: &Request<'a>, fault: &Fault) {
        self.counts.count_fault(fault);
        match request.form {
            Form::Value { is_last, .. } => {
                if !*self.get_failed {
                    text::fault(fault, &mut self.output.bytes);
                }
                *self.get_failed = !is_last;
            }
            Form::Text { is_quiet: true } | Form::TooLarge { is_quiet: true, .. } => {}
            _ => text::fault(fault, &mut self.output.bytes),
        }
    }

    /// Writes what stands before the value, and says whether the value is to follow.
    fn begin_value(&mut self, request: &Request<'a>, hit: &Hit, told: &Told) -> bool {
        let get = get_of(request);
        self.counts.count_hit(&get);
        match request.form {
            Form::Value { .. } if *self.get_failed => false,
            Form::Value { has_cas, .. } => {
                let bytes = told.found.bytes;
                text::value_head(get.key, &hit.item, bytes, has_cas, &mut self.output.bytes);
                true
            }
            _ => {
                meta::value_head(request, hit, told, self.now_s, &mut self.output.bytes);
                get.wants_value
            }
        }
    }

    fn end_value(&mut self, request: &Request<'a>) {
        if let Form::Value { is_last, .. } = request.form {
            self.end_get(is_last);
        }
    }

    fn end_get(&mut self, is_last: bool) {
        if is_last && !std::mem::take(self.get_failed) {
            self.output.bytes.extend_from_slice(b"END\r\n");
        }
    }
}

/// Whether a read wants something of a value for which its bytes are looked at.
fn wants_part(operation: &Operation<'_>) -> bool {
    matches!(operation, Operation::Get(get) if get.part.is_some() || get.wants_count)
}
