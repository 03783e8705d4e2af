//! From bytes to requests, one after the other, out of the front of the input.
//!
//! A line is looked at once it is whole, and what is read from it borrows from the input: nothing
//! is copied. A key in base64 is decoded where it stands, once nothing can make the request be read
//! again. What the parser answers does not depend on the pieces in which bytes arrive.
//!
//! ```text
//!            line whole?  --no--> More            (too long: CloseWith an error)
//!   Ready ------> command ------> Request | Local | Large (a value in parts) | Swallow
//!     ^   \-----> get  ---------> InGet: one Request a key, so that a line of many keys
//!     |__________________________________|  needs no list of them
//! ```

mod flags;
mod lines;
mod meta;
mod text;
mod values;

use memchr::memchr;

use crate::expiry::Expiry;
use crate::limits::Limits;
use crate::operation::{Get, Operation};
use crate::request::{Form, Request};
use crate::words::{split_word, starts_with_word_of_get};

/// What the front of the input is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// The request is not whole: it has at least `bytes` bytes, counted from the front.
    More { bytes: usize },
    /// Something for the cache.
    Request(Request<'a>),
    /// A value in parts: its bytes follow, and a line end.
    Large(Request<'a>),
    /// The next `bytes` bytes are dropped. Before that, the refusal is carried out.
    Swallow { bytes: u64, refusal: Refusal<'a> },
    /// Something for the connection.
    Local(Local<'a>),
}

/// What is done about a value that is dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal<'a> {
    /// What it was to replace is removed.
    Request(Request<'a>),
    /// This line is sent, which has its end; it may be empty.
    Line(&'static [u8]),
}

/// What is answered without the cache's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local<'a> {
    /// This line, with its end; it may be empty.
    Line(&'static [u8]),
    /// The version.
    Version,
    /// How much the items may take is to change.
    MemoryLimit { bytes: u64, is_quiet: bool },
    /// Figures; the words behind the command.
    Stats(&'a [u8]),
    /// The connection ends, without an answer.
    Close,
    /// The connection ends behind this line.
    CloseWith(&'static [u8]),
}

/// A step, and the input behind what it has taken.
type Next<'a> = (Step<'a>, &'a mut [u8]);

/// Where the line at the front of the input ends.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its length without its end, in bytes.
    text: usize,
    /// Its length with its end, in bytes.
    whole: usize,
    /// Where what follows the command's word begins.
    behind_word: usize,
}

impl Line {
    /// A step for the connection, which takes the line.
    fn local<'a>(&self, input: &'a mut [u8], line: &'static [u8]) -> Next<'a> {
        (Step::Local(Local::Line(line)), &mut input[self.whole..])
    }
}

/// What is left of a `get` whose keys are read one by one.
#[derive(Clone, Copy, Debug)]
struct InGet {
    /// Its keys, in bytes of the input's front.
    keys: usize,
    /// The same with the line's end.
    whole: usize,
    has_cas: bool,
    touch: Option<Expiry>,
}

/// Reads requests. A copy goes back to where the input was when it was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parser {
    /// The length of the front that has no line end, in bytes.
    scanned: usize,
    in_get: Option<InGet>,
}

impl Parser {
    /// The next step, and the input behind what it has taken. [`Step::More`] takes nothing.
    pub(crate) fn next<'a>(
        &mut self,
        input: &'a mut [u8],
        now_s: u64,
        limits: &Limits,
    ) -> Next<'a> {
        if let Some(get) = self.in_get {
            return self.next_key(get, input);
        }
        let found = memchr(b'\n', &input[self.scanned..]).map(|found| self.scanned + found);
        let length = found.unwrap_or(input.len());
        if length > limits.line_bytes_max {
            let is_get = starts_with_word_of_get(input);
            if !is_get || length > limits.get_line_bytes_max {
                return (Step::Local(Local::CloseWith(lines::LINE_TOO_LONG)), input);
            }
        }
        let Some(end) = found else {
            self.scanned = input.len();
            return (Step::More { bytes: input.len() + 1 }, input);
        };
        // A line whose value is still missing is looked at again from its front.
        self.scanned = 0;
        let text = if end > 1 && input[end - 1] == b'\r' { end - 1 } else { end };
        let Some((word, rest)) = split_word(&input[..text]) else {
            let line = Line { text, whole: end + 1, behind_word: text };
            return line.local(input, lines::ERROR);
        };
        let line = Line { text, whole: end + 1, behind_word: text - rest.len() };
        match word {
            b"get" | b"bget" => self.begin_get(input, line, false, None),
            b"gets" => self.begin_get(input, line, true, None),
            b"gat" => self.begin_get(input, line, false, Some(now_s)),
            b"gats" => self.begin_get(input, line, true, Some(now_s)),
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
                text::store(input, line, now_s, limits)
            }
            b"mg" | b"ms" | b"md" | b"ma" | b"me" => meta::command(input, line, now_s, limits),
            _ => text::other(input, line, now_s),
        }
    }

    /// Checks the line of a `get`, so that it is refused before any of its keys is answered. With
    /// `touch_now_s` it begins with an expiry.
    fn begin_get<'a>(
        &mut self,
        input: &'a mut [u8],
        line: Line,
        has_cas: bool,
        touch_now_s: Option<u64>,
    ) -> Next<'a> {
        match text::check_get(&input[line.behind_word..line.text], touch_now_s) {
            Err(refusal) => line.local(input, refusal),
            Ok((keys, touch)) => {
                let whole = keys + (line.whole - line.text);
                let get = InGet { keys, whole, has_cas, touch };
                self.next_key(get, &mut input[line.text - keys..])
            }
        }
    }

    /// The next key of a `get`. The line was checked: there is one.
    fn next_key<'a>(&mut self, get: InGet, input: &'a mut [u8]) -> Next<'a> {
        let keys = &input[..get.keys];
        let start = keys.iter().position(|&byte| byte != b' ').unwrap_or(get.keys);
        let length = keys[start..].iter().position(|&byte| byte == b' ');
        let end = length.map_or(get.keys, |length| start + length);
        let is_last = keys[end..].iter().all(|&byte| byte == b' ');
        let taken = if is_last { get.whole } else { end };
        self.in_get =
            (!is_last).then_some(InGet { keys: get.keys - end, whole: get.whole - end, ..get });
        let (head, behind) = input.split_at_mut(taken);
        let head: &'a [u8] = head;
        let operation = Get { touch: get.touch, ..Get::new(&head[start..end]) };
        let form = Form::Value { has_cas: get.has_cas, is_last };
        (Step::Request(Request { operation: Operation::Get(operation), form }), behind)
    }
}
