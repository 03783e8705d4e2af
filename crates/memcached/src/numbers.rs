//! Decimal numbers in lines: read as memcached reads them, and written without formatting.

/// A number without sign; a `+` in front is allowed.
pub(crate) fn parse_u64(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// A number of 32 bits without sign.
pub(crate) fn parse_u32(word: &[u8]) -> Option<u32> {
    parse_u64(word).and_then(|number| u32::try_from(number).ok())
}

/// A number that may have a sign.
pub(crate) fn parse_i64(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some([b'+', ..]) => None,
        Some(digits) => 0_i64.checked_sub_unsigned(parse_u64(digits)?),
        None => i64::try_from(parse_u64(word)?).ok(),
    }
}

/// Appends a number in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    out.extend_from_slice(digits_of(number, &mut digits));
}

/// The digits of a number, laid at the end of `room`.
pub(crate) fn digits_of(number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut left = number;
    let mut start = room.len();
    for place in room.iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
        start -= 1;
        if left == 0 {
            break;
        }
    }
    &room[start..]
}

#[cfg(test)]
mod tests {
    use super::{parse_i64, parse_u32, parse_u64, push_u64};

    #[test]
    fn numbers_are_read_to_their_borders() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"+7"), Some(7));
        for word in [&b""[..], b"-1", b"1a", b"a", b" 1", b"+", b"++1"] {
            assert_eq!(parse_u64(word), None, "{word:?}");
        }
        assert_eq!(parse_u32(b"4294967295"), Some(u32::MAX));
        assert_eq!(parse_u32(b"4294967296"), None);
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-"), None);
        assert_eq!(parse_i64(b"-+1"), None);
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 9, 10, 4096, u64::MAX] {
            let mut out = b"x".to_vec();
            push_u64(&mut out, number);
            assert_eq!(out, format!("x{number}").into_bytes());
        }
    }
}
