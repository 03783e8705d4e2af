//! Answers of the classic text protocol.

use crate::answer::{Answer, Fault};
use crate::base64;
use crate::item::Item;
use crate::numbers::push_u64;
use crate::operation::Operation;

/// The line of an operation's outcome.
pub(super) fn answer(answer: &Answer, out: &mut Vec<u8>) {
    let line: &[u8] = match answer {
        Answer::NotFound => b"NOT_FOUND\r\n",
        Answer::Exists => b"EXISTS\r\n",
        Answer::NotStored => b"NOT_STORED\r\n",
        Answer::Stored { .. } => b"STORED\r\n",
        Answer::Deleted => b"DELETED\r\n",
        Answer::Touched => b"TOUCHED\r\n",
        Answer::Flushed => b"OK\r\n",
        Answer::NotANumber => NOT_A_NUMBER,
        Answer::Number { number, .. } => {
            push_u64(out, *number);
            b"\r\n"
        }
        // No command of this form asks for a part.
        Answer::NoRange | Answer::NoArray => panic!("{answer:?} answers a meta command"),
        Answer::Inspected { .. } => panic!("only `me` is answered with what is known"),
    };
    out.extend_from_slice(line);
}

/// What counting says of a value that is no number.
pub(super) const NOT_A_NUMBER: &[u8] =
    b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

/// The line of a fault. What it says is in one line, whatever the cache wrote.
pub(crate) fn fault(fault: &Fault, out: &mut Vec<u8>) {
    let text = fault.to_string();
    out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// What stands before a value.
#[inline]
pub(super) fn value_head(
    key: &[u8],
    item: &Item,
    value_bytes: u64,
    has_cas: bool,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    push_u64(out, u64::from(item.flags));
    out.push(b' ');
    push_u64(out, value_bytes);
    if has_cas {
        out.push(b' ');
        push_u64(out, item.cas);
    }
    out.extend_from_slice(b"\r\n");
}

/// The line of `me`. There are no slabs, so that every item is of class 1.
pub(super) fn inspected(
    operation: &Operation<'_>,
    answer: &Answer,
    is_base64: bool,
    now_s: u64,
    out: &mut Vec<u8>,
) {
    let Answer::Inspected { item, size_bytes } = answer else {
        assert!(*answer == Answer::NotFound, "`me` is answered with what is known, or nothing");
        return out.extend_from_slice(b"EN\r\n");
    };
    out.extend_from_slice(b"ME ");
    push_key(operation.key().unwrap_or_default(), is_base64, out);
    out.extend_from_slice(b" exp=");
    push_left(item, now_s, out);
    out.extend_from_slice(b" la=");
    push_u64(out, now_s.saturating_sub(item.accessed_s));
    out.extend_from_slice(b" cas=");
    push_u64(out, item.cas);
    out.extend_from_slice(b" fetch=");
    out.extend_from_slice(if item.fetched { b"yes" } else { b"no" });
    out.extend_from_slice(b" cls=1 size=");
    push_u64(out, *size_bytes);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn push_key(key: &[u8], is_base64: bool, out: &mut Vec<u8>) {
    if is_base64 {
        base64::encode(key, out);
    } else {
        out.extend_from_slice(key);
    }
}

/// The seconds that an item has left; -1 if it never ends.
pub(super) fn push_left(item: &Item, now_s: u64, out: &mut Vec<u8>) {
    match item.expires.left_s(now_s) {
        Some(left_s) => push_u64(out, left_s),
        None => out.extend_from_slice(b"-1"),
    }
}
