//! The value behind a line: whole, in parts, or too long.

use super::{Line, Local, Next, Refusal, Step, lines};
use crate::limits::Limits;
use crate::operation::{Delete, Operation};
use crate::request::{Form, Request};

/// What is known of a value before it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    /// Its length, in bytes.
    pub(super) bytes: u64,
    /// What is sent if no line end follows it, or if it is too long.
    pub(super) is_quiet: bool,
    /// If it is too long, what it was to replace is removed: nobody is to go on reading that.
    pub(super) replaces: bool,
}

/// Takes a line with its value, and lets `build` make the request of both; the value is empty if it
/// comes in parts.
pub(super) fn take_value<'a>(
    input: &'a mut [u8],
    line: Line,
    value: Announced,
    limits: &Limits,
    build: impl FnOnce(&'a mut [u8], &'a [u8]) -> Request<'a>,
) -> Next<'a> {
    let refused = |line| if value.is_quiet { lines::NOTHING } else { line };
    let whole = usize::try_from(value.bytes).ok().filter(|&it| it <= limits.whole_value_bytes_max);
    let fits = value.bytes <= limits.value_bytes_max;
    let Some(bytes) = whole.filter(|_| fits) else {
        let (head, behind) = input.split_at_mut(line.whole);
        let step = if fits {
            Step::Large(build(head, &[]))
        } else {
            let refusal = if value.replaces {
                Refusal::Request(removal(&build(head, &[]), value.is_quiet))
            } else {
                Refusal::Line(refused(lines::TOO_LARGE))
            };
            Step::Swallow { bytes: value.bytes + 2, refusal }
        };
        return (step, behind);
    };
    let all = line.whole + bytes + 2;
    if input.len() < all {
        return (Step::More { bytes: all }, input);
    }
    let (front, behind) = input.split_at_mut(all);
    let (head, value) = front.split_at_mut(line.whole);
    let value: &'a [u8] = value;
    match value.strip_suffix(b"\r\n") {
        Some(value) => (Step::Request(build(head, value)), behind),
        None => (Step::Local(Local::Line(refused(lines::BAD_CHUNK))), behind),
    }
}

fn removal<'a>(store: &Request<'a>, is_quiet: bool) -> Request<'a> {
    let key = store.operation.key().unwrap_or_default();
    let form = Form::TooLarge { is_quiet, is_base64: store.is_base64() };
    Request { operation: Operation::Delete(Delete::new(key)), form }
}
