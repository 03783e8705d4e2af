//! The commands of the classic text protocol.

use super::values::{Announced, take_value};
use super::{Line, Local, Next, Step, lines};
use crate::expiry::Expiry;
use crate::layout::Layout;
use crate::limits::{KEY_BYTES_MAX, Limits};
use crate::numbers::{parse_i64, parse_u32, parse_u64};
use crate::operation::{Arithmetic, Delete, Operation, Store, StoreMode, Touch};
use crate::request::{Form, Request};
use crate::words::{Words, first_words, split_word};

const NOREPLY: &[u8] = b"noreply";
/// A length above this is no length: a signed number of 32 bits, with place for the line end.
const LENGTH_MAX: i64 = i32::MAX as i64 - 2;

/// Checks what follows the word of a `get`: how long the text of the keys is, from the end of the
/// line, and what they are touched with.
pub(super) fn check_get(
    text: &[u8],
    touch_now_s: Option<u64>,
) -> Result<(usize, Option<Expiry>), &'static [u8]> {
    let mut keys = text;
    let mut touch = None;
    if let Some(now_s) = touch_now_s {
        let (exptime, rest) = split_word(text).ok_or(lines::ERROR)?;
        let exptime = parse_i64(exptime).ok_or(lines::BAD_EXPTIME)?;
        touch = Some(Expiry::from_client(exptime, now_s));
        keys = rest;
    }
    let mut words = Words(keys).peekable();
    if words.peek().is_none() {
        return Err(if touch.is_some() { lines::END } else { lines::ERROR });
    }
    let is_valid = words.all(|key| key.len() <= KEY_BYTES_MAX);
    if is_valid { Ok((keys.len(), touch)) } else { Err(lines::BAD_FORMAT) }
}

/// `set`, `add`, `replace`, `append`, `prepend` and `cas`.
pub(super) fn store<'a>(input: &'a mut [u8], line: Line, now_s: u64, limits: &Limits) -> Next<'a> {
    let (words, count) = first_words::<7>(&input[..line.text]);
    let [command, key, flags, exptime, length, cas, _] = words;
    let is_cas = command == b"cas";
    let least = if is_cas { 6 } else { 5 };
    if count != least && count != least + 1 {
        return line.local(input, lines::ERROR);
    }
    let is_quiet = words[count - 1] == NOREPLY;
    let mode = match command {
        b"add" => StoreMode::Add,
        b"replace" => StoreMode::Replace,
        b"append" => StoreMode::Append,
        b"prepend" => StoreMode::Prepend,
        _ => StoreMode::Set,
    };
    let compare = if is_cas { parse_u64(cas) } else { None };
    let parsed = (|| {
        let flags = parse_u32(flags)?;
        let exptime = parse_i64(exptime)?;
        let length = parse_i64(length).filter(|&length| length <= LENGTH_MAX)?;
        let length = u64::try_from(length).ok()?;
        (key.len() <= KEY_BYTES_MAX && is_cas == compare.is_some())
            .then_some((flags, exptime, length))
    })();
    let Some((flags, exptime, value_bytes)) = parsed else {
        return line.local(input, if is_quiet { lines::NOTHING } else { lines::BAD_FORMAT });
    };
    let replaces = mode == StoreMode::Set && !is_cas;
    let value = Announced { bytes: value_bytes, is_quiet, replaces };
    take_value(input, line, value, limits, |head, value| {
        let head: &'a [u8] = head;
        let key = Words(head).nth(1).unwrap_or_default();
        let store = Store {
            key,
            value,
            value_bytes,
            mode,
            flags,
            expires: Expiry::from_client(exptime, now_s),
            compare,
            invalidate: false,
            vivify: None,
            new_cas: None,
            place: None,
            layout: Layout::Whole,
            value_bytes_max: limits.value_bytes_max,
        };
        Request { operation: Operation::Store(store), form: Form::Text { is_quiet } }
    })
}

/// Every command that has no value behind it and is no `get`.
pub(super) fn other<'a>(input: &'a mut [u8], line: Line, now_s: u64) -> Next<'a> {
    let (head, behind) = input.split_at_mut(line.whole);
    let head: &'a [u8] = head;
    let (words, count) = first_words::<6>(&head[..line.text]);
    let arguments = &words[1..count.min(words.len())];
    let step = match (words[0], count) {
        (b"delete", 2..=4) => delete(arguments),
        (b"incr" | b"decr", 3 | 4) => arithmetic(words[0] == b"decr", arguments),
        (b"touch", 3 | 4) => touch(arguments, now_s),
        (b"flush_all", 1..=3) => flush_all(arguments, now_s),
        (b"stats", _) => Step::Local(Local::Stats(&head[line.behind_word..line.text])),
        (b"version", _) => Step::Local(Local::Version),
        (b"quit", _) => Step::Local(Local::Close),
        (b"mn", _) => said(lines::META_NOOP),
        (b"verbosity", 2 | 3) => verbosity(arguments),
        (b"cache_memlimit", 2 | 3) => memory_limit(arguments),
        (b"shutdown", _) => said(lines::NO_SHUTDOWN),
        (b"watch", _) => said(lines::NO_WATCH),
        (b"slabs", _) => said(slabs(arguments)),
        (b"lru_crawler", 2..) => said(lines::NO_CRAWLER),
        _ if is_http(&head[..line.text]) => Step::Local(Local::Close),
        _ => said(lines::ERROR),
    };
    (step, behind)
}

fn said<'a>(line: &'static [u8]) -> Step<'a> {
    Step::Local(Local::Line(line))
}

/// A line that is not sent if the command's last word says so.
fn answered<'a>(line: &'static [u8], is_quiet: bool) -> Step<'a> {
    said(if is_quiet { lines::NOTHING } else { line })
}

fn is_quiet(arguments: &[&[u8]]) -> bool {
    arguments.last().is_some_and(|&word| word == NOREPLY)
}

/// A browser that was led here: what it sends is no command, and what it sends next may be worse.
fn is_http(line: &[u8]) -> bool {
    Words(line).last().is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// The second argument, 0, is of an age when deletions had a delay.
fn delete<'a>(arguments: &[&'a [u8]]) -> Step<'a> {
    let is_quiet = is_quiet(&arguments[1..]);
    match arguments {
        [key] | [key, b"0" | NOREPLY] | [key, b"0", NOREPLY] if key.len() <= KEY_BYTES_MAX => {
            let operation = Operation::Delete(Delete::new(key));
            Step::Request(Request { operation, form: Form::Text { is_quiet } })
        }
        [_] | [_, b"0" | NOREPLY] | [_, b"0", NOREPLY] => answered(lines::BAD_FORMAT, is_quiet),
        _ => answered(lines::BAD_DELETE, is_quiet),
    }
}

fn arithmetic<'a>(is_down: bool, arguments: &[&'a [u8]]) -> Step<'a> {
    let is_quiet = is_quiet(arguments);
    let key = arguments[0];
    if key.len() > KEY_BYTES_MAX {
        return answered(lines::BAD_FORMAT, is_quiet);
    }
    let Some(delta) = parse_u64(arguments[1]) else {
        return answered(lines::BAD_DELTA, is_quiet);
    };
    let operation = Operation::Arithmetic(Arithmetic {
        key,
        is_down,
        delta,
        compare: None,
        vivify: None,
        initial: 0,
        touch: None,
        new_cas: None,
    });
    Step::Request(Request { operation, form: Form::Text { is_quiet } })
}

fn touch<'a>(arguments: &[&'a [u8]], now_s: u64) -> Step<'a> {
    let is_quiet = is_quiet(arguments);
    let key = arguments[0];
    if key.len() > KEY_BYTES_MAX {
        return answered(lines::BAD_FORMAT, is_quiet);
    }
    let Some(exptime) = parse_i64(arguments[1]) else {
        return answered(lines::BAD_EXPTIME, is_quiet);
    };
    let expires = Expiry::from_client(exptime, now_s);
    let operation = Operation::Touch(Touch { key, expires });
    Step::Request(Request { operation, form: Form::Text { is_quiet } })
}

fn flush_all<'a>(arguments: &[&'a [u8]], now_s: u64) -> Step<'a> {
    let is_quiet = is_quiet(arguments);
    let mut at_s = None;
    if arguments.len() != usize::from(is_quiet) {
        let Some(delay) = parse_i64(arguments[0]) else {
            return answered(lines::BAD_EXPTIME, is_quiet);
        };
        if delay > 0 {
            at_s = Expiry::from_client(delay, now_s).at_s().filter(|&at_s| at_s > now_s);
        }
    }
    let operation = Operation::Flush { at_s };
    Step::Request(Request { operation, form: Form::Text { is_quiet } })
}

/// There is nothing to be more verbose about: figures are `stats`, faults the operator's.
fn verbosity<'a>(arguments: &[&[u8]]) -> Step<'a> {
    let line = if parse_u32(arguments[0]).is_some() { lines::OK } else { lines::BAD_FORMAT };
    answered(line, is_quiet(arguments))
}

/// The argument is in MiB.
fn memory_limit<'a>(arguments: &[&[u8]]) -> Step<'a> {
    let is_quiet = is_quiet(arguments);
    match parse_u32(arguments[0]) {
        None => answered(lines::ERROR, is_quiet),
        Some(0..8) => answered(lines::LIMIT_TOO_SMALL, is_quiet),
        Some(1_000_000_001..) => answered(lines::LIMIT_IN_BYTES, is_quiet),
        Some(mib) => {
            let bytes = u64::from(mib) << 20;
            Step::Local(Local::MemoryLimit { bytes, is_quiet })
        }
    }
}

/// There are no slabs; what asks for nothing to be moved gets it.
fn slabs(arguments: &[&[u8]]) -> &'static [u8] {
    match arguments {
        [b"reassign", _, _] => lines::NO_REASSIGN,
        [b"automove", mode, ..] if parse_u32(mode).is_none() => lines::BAD_FORMAT,
        [b"automove", b"0", ..] => lines::OK,
        _ => lines::ERROR,
    }
}
