//! Answers of the meta commands: two letters, and flags in the order of the client's own.

use super::text::{NOT_A_NUMBER, push_key, push_left};
use super::told::Told;
use crate::answer::Answer;
use crate::hit::Hit;
use crate::layout::Layout;
use crate::numbers::{digits_of, push_u64};
use crate::operation::Operation;
use crate::request::{Form, Request};
use crate::words::Words;

/// What the flags of an answer are about.
#[derive(Clone, Copy, Debug, Default)]
struct Facts<'a> {
    key: &'a [u8],
    is_base64: bool,
    /// Of an answer with an item.
    hit: Option<&'a Hit>,
    /// `s`
    value_bytes: Option<u64>,
    /// `c`, where there is no item.
    cas: Option<u64>,
    /// `a`
    layout: Layout,
    /// `n`
    count: Option<u64>,
    now_s: u64,
}

fn parts<'a>(request: &Request<'a>) -> (&'a [u8], bool, bool) {
    match request.form {
        Form::Meta { flags, is_quiet, is_base64 } => (flags, is_quiet, is_base64),
        form => panic!("a meta command has a meta form, and not {form:?}"),
    }
}

/// The line before the value of `mg`, or its only line.
pub(super) fn value_head(
    request: &Request<'_>,
    hit: &Hit,
    told: &Told,
    now_s: u64,
    out: &mut Vec<u8>,
) {
    match request.operation {
        Operation::Get(get) if get.wants_value => {
            out.extend_from_slice(b"VA ");
            push_u64(out, told.found.bytes);
        }
        _ => out.extend_from_slice(b"HD"),
    }
    let facts = Facts { layout: told.found.layout, count: told.count, now_s, ..Facts::default() };
    push_read(request, hit, told.value_bytes, facts, out);
}

/// The line of a read of which the value has no such part.
pub(super) fn missing(
    request: &Request<'_>,
    code: &[u8],
    hit: &Hit,
    value_bytes: u64,
    now_s: u64,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(code);
    let facts = Facts { layout: hit.item.layout, now_s, ..Facts::default() };
    push_read(request, hit, value_bytes, facts, out);
}

/// What follows the code and the length of a read that found an item.
fn push_read<'a>(
    request: &Request<'a>,
    hit: &'a Hit,
    value_bytes: u64,
    facts: Facts<'a>,
    out: &mut Vec<u8>,
) {
    let (flags, _, is_base64) = parts(request);
    let key = request.operation.key().unwrap_or_default();
    let value_bytes = Some(value_bytes);
    let facts = Facts { key, is_base64, hit: Some(hit), value_bytes, ..facts };
    push_flags(flags, &facts, out);
    for (is_so, mark) in [(hit.before.win_sent, b" Z"), (hit.item.stale, b" X"), (hit.won, b" W")] {
        if is_so {
            out.extend_from_slice(mark);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The answer where no value was read.
pub(super) fn answer(request: &Request<'_>, answer: &Answer, now_s: u64, out: &mut Vec<u8>) {
    let (flags, is_quiet, is_base64) = parts(request);
    let key = request.operation.key().unwrap_or_default();
    let mut facts = Facts { key, is_base64, now_s, ..Facts::default() };
    if let Operation::Store(store) = &request.operation {
        facts.cas = Some(0);
        facts.value_bytes = Some(store.value_bytes);
    }
    let is_read = matches!(request.operation, Operation::Get(_));
    let code: &[u8] = match answer {
        Answer::NotFound if is_read && is_quiet => return,
        Answer::NotFound if is_read => b"EN",
        Answer::NotFound => b"NF",
        Answer::Exists => b"EX",
        Answer::NotStored => b"NS",
        Answer::NoRange => b"NR",
        Answer::NoArray => b"NA",
        Answer::Stored { .. } | Answer::Deleted if is_quiet => return,
        Answer::Stored { cas, value_bytes } => {
            facts.cas = Some(*cas);
            facts.value_bytes = Some(*value_bytes);
            b"HD"
        }
        Answer::Deleted => b"HD",
        Answer::Number { hit, number } => {
            if !is_quiet || hit.is_new {
                facts.hit = Some(hit);
                push_number(flags, &facts, *number, out);
            }
            return;
        }
        Answer::NotANumber => return out.extend_from_slice(NOT_A_NUMBER),
        Answer::Touched | Answer::Flushed | Answer::Inspected { .. } => {
            panic!("{answer:?} answers no meta command")
        }
    };
    out.extend_from_slice(code);
    push_flags(flags, &facts, out);
    out.extend_from_slice(b"\r\n");
}

fn push_number(flags: &[u8], facts: &Facts<'_>, number: u64, out: &mut Vec<u8>) {
    let mut room = [0; 20];
    let digits = digits_of(number, &mut room);
    let wants_value = Words(flags).any(|word| word[0] == b'v');
    if wants_value {
        out.extend_from_slice(b"VA ");
        push_u64(out, digits.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    push_flags(flags, facts, out);
    out.extend_from_slice(b"\r\n");
    if wants_value {
        out.extend_from_slice(digits);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_flags(flags: &[u8], facts: &Facts<'_>, out: &mut Vec<u8>) {
    // `t` before `T` tells how long it was, behind it how long it is: so do clients count on it.
    let mut timed = facts.hit.map(|hit| hit.before);
    for word in Words(flags) {
        match (word[0], facts.hit) {
            (b'O', _) => push_opaque(word, out),
            (b'k', _) => {
                out.extend_from_slice(b" k");
                push_key(facts.key, facts.is_base64, out);
                if facts.is_base64 {
                    out.extend_from_slice(b" b");
                }
            }
            (b'T', Some(hit)) => timed = Some(hit.item),
            (b'N', Some(hit)) if hit.is_new => timed = Some(hit.item),
            (b'c', hit) => {
                if let Some(cas) = hit.map(|hit| hit.item.cas).or(facts.cas) {
                    out.extend_from_slice(b" c");
                    push_u64(out, cas);
                }
            }
            (b's', _) => {
                if let Some(value_bytes) = facts.value_bytes {
                    out.extend_from_slice(b" s");
                    push_u64(out, value_bytes);
                }
            }
            (b't', Some(_)) => {
                if let Some(item) = &timed {
                    out.extend_from_slice(b" t");
                    push_left(item, facts.now_s, out);
                }
            }
            (b'a', Some(_)) => push_layout(facts.layout, out),
            (b'n', Some(_)) => {
                if let Some(count) = facts.count {
                    out.extend_from_slice(b" n");
                    push_u64(out, count);
                }
            }
            // What reads no item has none of these, and neither has what counts.
            (letter, Some(hit)) if facts.value_bytes.is_some() => {
                push_of_item(letter, hit, facts.now_s, out);
            }
            _ => {}
        }
    }
}

fn push_layout(layout: Layout, out: &mut Vec<u8>) {
    match layout {
        Layout::Whole => {}
        Layout::Values => out.extend_from_slice(b" a*"),
        Layout::Elements(element) => {
            out.extend_from_slice(b" a");
            push_u64(out, u64::from(element.get()));
        }
    }
}

fn push_opaque(word: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(word);
}

/// Flags that tell of an item as it was before it was read.
fn push_of_item(letter: u8, hit: &Hit, now_s: u64, out: &mut Vec<u8>) {
    match letter {
        b'f' => {
            out.extend_from_slice(b" f");
            push_u64(out, u64::from(hit.before.flags));
        }
        b'h' => out.extend_from_slice(if hit.before.fetched { b" h1" } else { b" h0" }),
        b'l' => {
            out.extend_from_slice(b" l");
            push_u64(out, now_s.saturating_sub(hit.before.accessed_s));
        }
        _ => {}
    }
}
