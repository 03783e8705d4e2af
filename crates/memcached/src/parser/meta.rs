//! The meta commands: `mg`, `ms`, `md`, `ma` and `me`.

use std::ops::Range;

use super::flags::MetaFlags;
use super::values::{Announced, take_value};
use super::{Line, Next, Refusal, Step, lines};
use crate::base64::{decode_in_place, decoded_bytes};
use crate::expiry::Expiry;
use crate::layout::Place;
use crate::limits::{KEY_BYTES_MAX, Limits};
use crate::numbers::parse_i64;
use crate::operation::{Arithmetic, Delete, Get, Operation, Store, StoreMode};
use crate::request::{Form, Request};
use crate::words::{Words, split_word};

/// A line with more words than this is refused.
const WORDS_MAX: usize = 19;
/// A length above this is no length.
const LENGTH_MAX: i64 = i32::MAX as i64 - 2;

/// Where key and flags are in a line.
#[derive(Clone, Debug)]
struct Places {
    key: Range<usize>,
    flags: Range<usize>,
}

/// Reads a meta command.
pub(super) fn command<'a>(
    input: &'a mut [u8],
    line: Line,
    now_s: u64,
    limits: &Limits,
) -> Next<'a> {
    let text = &input[..line.text];
    let letter = text[line.behind_word - 1];
    let Some((key, rest)) = split_word(&text[line.behind_word..]) else {
        let refusal = if letter == b'e' { lines::BAD_FORMAT } else { lines::ERROR };
        return line.local(input, refusal);
    };
    let behind_key = line.text - rest.len();
    let places = Places { key: behind_key - key.len()..behind_key, flags: behind_key..line.text };
    if key.len() > KEY_BYTES_MAX {
        return line.local(input, lines::BAD_FORMAT);
    }
    if letter == b'e' {
        return inspect(input, line, &places);
    }
    if letter == b's' && Words(rest).next().is_none() {
        return line.local(input, lines::BAD_FORMAT);
    }
    if Words(text).count() > WORDS_MAX {
        return line.local(input, lines::TOO_MANY_FLAGS);
    }
    if letter == b's' {
        return store(input, line, places, now_s, limits);
    }
    let flags = match (letter, MetaFlags::parse(rest, key, now_s)) {
        (b'd' | b'a', Ok(flags)) if flags.is_of_parts() => {
            return line.local(input, lines::INVALID_OR_DUPLICATE);
        }
        (_, Ok(flags)) => flags,
        (b'g', Err(refusal)) => return line.local(input, refusal),
        (_, Err(_)) => return line.local(input, lines::INVALID_OR_DUPLICATE),
    };
    let operation = match letter {
        b'g' => Ok(Operation::Get(get(flags))),
        b'd' => Ok(Operation::Delete(delete(flags))),
        _ => arithmetic(flags).map(Operation::Arithmetic),
    };
    let (operation, flags) = match operation.and_then(|it| Ok((it, flags.check_opaque()?))) {
        Ok(parsed) => parsed,
        Err(refusal) => return line.local(input, refusal),
    };
    let (head, behind) = input.split_at_mut(line.whole);
    let (key, form) = place(head, &places, &flags);
    (Step::Request(Request { operation: with_key(operation, key), form }), behind)
}

/// Decodes the key where it stands, and borrows it and the flags for as long as the input.
fn place<'a>(head: &'a mut [u8], places: &Places, flags: &MetaFlags) -> (&'a [u8], Form<'a>) {
    let (front, back) = head.split_at_mut(places.flags.start);
    let key = decode(front, places.key.clone(), flags.is_base64);
    let form = Form::Meta {
        flags: &back[..places.flags.len()],
        is_quiet: flags.is_quiet,
        is_base64: flags.is_base64,
    };
    (key, form)
}

fn decode(text: &mut [u8], key: Range<usize>, is_base64: bool) -> &[u8] {
    let place = &mut text[key];
    let length = if is_base64 { decode_in_place(place) } else { Some(place.len()) };
    let length = length.unwrap_or_default();
    &place[..length]
}

/// Operations are made before their key is decoded, and get it then.
fn with_key<'a>(operation: Operation<'static>, key: &'a [u8]) -> Operation<'a> {
    match operation {
        Operation::Get(get) => Operation::Get(Get { key, ..get }),
        Operation::Delete(delete) => Operation::Delete(Delete { key, ..delete }),
        Operation::Arithmetic(sum) => Operation::Arithmetic(Arithmetic { key, ..sum }),
        Operation::Store(store) => Operation::Store(Store { key, ..store }),
        Operation::Touch(touch) => {
            Operation::Touch(crate::operation::Touch { key, expires: touch.expires })
        }
        Operation::Inspect { .. } => Operation::Inspect { key },
        Operation::Flush { at_s } => Operation::Flush { at_s },
    }
}

fn inspect<'a>(input: &'a mut [u8], line: Line, places: &Places) -> Next<'a> {
    let is_base64 = Words(&input[places.flags.clone()]).next() == Some(b"b");
    if is_base64 && decoded_bytes(&input[places.key.clone()]).is_none() {
        return line.local(input, lines::BAD_FORMAT);
    }
    let (head, behind) = input.split_at_mut(line.whole);
    let key = decode(head, places.key.clone(), is_base64);
    let operation = Operation::Inspect { key };
    (Step::Request(Request { operation, form: Form::Inspect { is_base64 } }), behind)
}

fn get(flags: MetaFlags) -> Get<'static> {
    Get {
        key: &[],
        wants_value: flags.wants_value,
        marks_access: !flags.leaves_access,
        touch: flags.expires,
        vivify: flags.vivify,
        recache: flags.recache,
        new_cas: flags.new_cas,
        part: flags.part,
        wants_count: flags.wants_count,
    }
}

fn delete(flags: MetaFlags) -> Delete<'static> {
    Delete {
        key: &[],
        compare: flags.compare,
        invalidate: flags.invalidate,
        removes_value: flags.removes_value,
        expires: flags.expires,
        flags: flags.client_flags,
        new_cas: flags.new_cas,
    }
}

fn arithmetic(flags: MetaFlags) -> Result<Arithmetic<'static>, &'static [u8]> {
    let is_down = match flags.mode {
        None | Some(b'I' | b'+') => false,
        Some(b'D' | b'-') => true,
        Some(_) => return Err(lines::BAD_ARITHMETIC_MODE),
    };
    Ok(Arithmetic {
        key: &[],
        is_down,
        delta: flags.delta.unwrap_or(1),
        compare: flags.compare,
        vivify: flags.vivify,
        initial: flags.initial,
        touch: flags.expires,
        new_cas: flags.new_cas,
    })
}

fn store<'a>(
    input: &'a mut [u8],
    line: Line,
    places: Places,
    now_s: u64,
    limits: &Limits,
) -> Next<'a> {
    let text = &input[places.flags.clone()];
    let (length, rest) = split_word(text).unwrap_or_default();
    let length = parse_i64(length).filter(|&length| length <= LENGTH_MAX);
    let Some(bytes) = length.and_then(|length| u64::try_from(length).ok()) else {
        return line.local(input, lines::BAD_FORMAT);
    };
    let places = Places { flags: line.text - rest.len()..line.text, ..places };
    let parsed = MetaFlags::parse(rest, &input[places.key.clone()], now_s)
        .and_then(|flags| Ok((mode_of(&flags)?, place_of(&flags)?, flags.check_opaque()?)));
    let (mode, written_at, flags) = match parsed {
        Ok(parsed) => parsed,
        Err(refusal) => {
            let refusal = Refusal::Line(refusal);
            let step = Step::Swallow { bytes: bytes + 2, refusal };
            return (step, &mut input[line.whole..]);
        }
    };
    // With `q` faults are told nevertheless.
    let replaces = mode == StoreMode::Set && written_at.is_none();
    let value = Announced { bytes, is_quiet: false, replaces };
    take_value(input, line, value, limits, |head, value| {
        let (key, form) = place(head, &places, &flags);
        let store = Store {
            key,
            value,
            value_bytes: bytes,
            mode,
            flags: flags.client_flags,
            expires: flags.expires.unwrap_or(Expiry::NEVER),
            compare: flags.compare,
            invalidate: flags.invalidate,
            vivify: flags.vivify,
            new_cas: flags.new_cas,
            place: written_at,
            layout: flags.layout,
            value_bytes_max: limits.value_bytes_max,
        };
        Request { operation: Operation::Store(store), form }
    })
}

fn mode_of(flags: &MetaFlags) -> Result<StoreMode, &'static [u8]> {
    match flags.mode {
        None | Some(b'S') => Ok(StoreMode::Set),
        Some(b'E') => Ok(StoreMode::Add),
        Some(b'A') => Ok(StoreMode::Append),
        Some(b'P') => Ok(StoreMode::Prepend),
        Some(b'R') => Ok(StoreMode::Replace),
        Some(_) => Err(lines::BAD_STORE_MODE),
    }
}

/// Where a store writes. With a place it has no other mode than to set.
fn place_of(flags: &MetaFlags) -> Result<Option<Place>, &'static [u8]> {
    let Some(part) = flags.part else { return Ok(None) };
    if !matches!(flags.mode, None | Some(b'S' | b'R')) {
        return Err(lines::BAD_STORE_MODE);
    }
    part.to_place().map(Some).ok_or(lines::BAD_TOKEN)
}
