//! Which bytes of a value answer a read: all of them, a range, or elements.

use super::told::{Told, get_of};
use super::{Answers, meta};
use crate::answer::Fault;
use crate::elements::{Found, Missing};
use crate::hit::Hit;
use crate::request::Request;
use crate::values::{ValueReader, ValueSource};

/// A longer part is read when it is sent, in bytes.
const WHOLE_BYTES_MAX: u64 = 64 << 10;

impl<'a, R: ValueReader> Answers<'a, R> {
    /// Answers a read from a value of `value_bytes` of which any part can be read. What the client
    /// wants of it, all or a part ([`crate::Get::part`]), is read now, or when it is sent if it is
    /// long.
    ///
    /// # Panics
    /// As [`Answers::answer`] does.
    pub fn hit_at(
        &mut self,
        hit: &Hit,
        value_bytes: u64,
        mut source: impl ValueSource<Reader = R>,
    ) {
        let request = self.take();
        let read = |offset, out: &mut [u8]| source.read_at(offset, out);
        let Some(told) = self.look(&request, hit, value_bytes, read) else { return };
        let Found { offset, bytes, .. } = told.found;
        let start = self.output.bytes.len();
        if !get_of(&request).wants_value {
            self.begin_value(&request, hit, &told);
        } else if bytes > WHOLE_BYTES_MAX {
            match source.into_reader(offset, bytes) {
                Err(fault) => return self.failed(&request, &fault),
                Ok(reader) => self.push_streamed(&request, hit, &told, reader),
            }
        } else if self.begin_value(&request, hit, &told) {
            let from = self.output.bytes.len();
            self.output.bytes.resize(from + bytes as usize, 0);
            if let Err(fault) = source.read_at(offset, &mut self.output.bytes[from..]) {
                self.output.bytes.truncate(start);
                return self.failed(&request, &fault);
            }
            self.output.bytes.extend_from_slice(b"\r\n");
        }
        self.end_value(&request);
    }

    /// Finds what a read wants of a value. Where there is no such part, the request is answered.
    pub(super) fn look(
        &mut self,
        request: &Request<'a>,
        hit: &Hit,
        value_bytes: u64,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Option<Told> {
        let get = get_of(request);
        let code: &[u8] = match Told::of(&get, hit, value_bytes, read) {
            Ok(told) => return Some(told),
            Err(Missing::Fault(fault)) => {
                self.failed(request, &fault);
                return None;
            }
            Err(Missing::Range) => b"NR",
            Err(Missing::Array) => b"NA",
        };
        self.counts.count_hit(&get);
        meta::missing(request, code, hit, value_bytes, self.now_s, &mut self.output.bytes);
        None
    }

    pub(super) fn push_streamed(
        &mut self,
        request: &Request<'a>,
        hit: &Hit,
        told: &Told,
        reader: R,
    ) {
        if self.begin_value(request, hit, told) {
            self.output.push_stream(reader, told.found.bytes);
            self.output.bytes.extend_from_slice(b"\r\n");
        }
    }
}
