//! A value that comes in parts: begun, gone on with, ended.

use super::large::Storing;
use super::{Connection, State};
use crate::answer::{Answer, Fault};
use crate::answers::Answers;
use crate::cache::Cache;
use crate::values::ValueWriter;

impl<C: Cache> Connection<C> {
    pub(super) fn begin_storing(
        &mut self,
        mut storing: Storing<C::Writer>,
        cache: &mut C,
        now_s: u64,
    ) {
        match cache.begin_store(&storing.store(), now_s) {
            Ok(writer) => {
                storing.writer = Some(writer);
                self.state = State::Storing(storing);
            }
            Err(fault) => self.drop_value(&storing, &fault, now_s),
        }
    }

    /// Gives the cache what has come of the value, and ends it if that is all.
    pub(super) fn go_on_storing(
        &mut self,
        mut storing: Storing<C::Writer>,
        cache: &mut C,
        now_s: u64,
    ) {
        let unused = self.input.unused();
        let length = storing.left_bytes.min(unused.len() as u64) as usize;
        let Some(writer) = &mut storing.writer else {
            panic!("a value in parts has a writer");
        };
        if length > 0 {
            let written = writer.write(&unused[..length]);
            storing.left_bytes -= length as u64;
            self.input.take(length);
            if let Err(fault) = written {
                return self.drop_value(&storing, &fault, now_s);
            }
        }
        let is_whole = storing.left_bytes == 0;
        self.wanted_bytes = if is_whole { 2 } else { 1 };
        if !is_whole || self.input.unused_bytes() < 2 {
            self.state = State::Storing(storing);
            return;
        }
        self.wanted_bytes = 1;
        let has_end = self.input.unused().starts_with(b"\r\n");
        self.input.take(2);
        if !has_end {
            if !storing.is_quiet() {
                self.say(b"CLIENT_ERROR bad data chunk\r\n");
            }
            return;
        }
        let outcome = match storing.writer.take() {
            Some(writer) => cache.finish_store(writer, &storing.store(), now_s),
            None => panic!("a value in parts has a writer"),
        };
        self.answer_storing(&storing, outcome, now_s);
    }

    /// Tells the fault, and drops the rest of the value.
    fn drop_value(&mut self, storing: &Storing<C::Writer>, fault: &Fault, now_s: u64) {
        self.answer_storing(storing, Err(fault.clone()), now_s);
        self.state = State::Swallowing { left_bytes: storing.left_bytes + 2 };
        self.wanted_bytes = 1;
    }

    fn answer_storing(
        &mut self,
        storing: &Storing<C::Writer>,
        outcome: Result<Answer, Fault>,
        now_s: u64,
    ) {
        let requests = [storing.request()];
        let mut answers = Answers::new(
            &requests,
            now_s,
            &mut self.output,
            &mut self.counts,
            &mut self.get_failed,
        );
        match outcome {
            Ok(answer) => answers.answer(answer),
            Err(fault) => answers.fail(&fault),
        }
    }
}
