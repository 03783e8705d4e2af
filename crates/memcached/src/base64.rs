//! Keys in base64: decoded where they stand in the input buffer, encoded into an answer.
//!
//! Padding must be there, as memcached wants it. Bits behind the last byte are not looked at, so
//! that several texts may name one key; an answer has the one with zeros.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn value_of(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// How many bytes a text stands for; `None` if it is not base64, or stands for nothing.
pub(crate) fn decoded_bytes(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&letter| letter == b'=').count();
    let letters = text.len().checked_sub(padding)?;
    let is_valid = padding <= 2 && text[..letters].iter().all(|&byte| value_of(byte).is_some());
    is_valid.then(|| text.len() / 4 * 3 - padding)
}

/// Undoes [`decode_in_place`], which has left `bytes` bytes at the front of `text`: a text of the
/// same key, where several are.
pub(crate) fn encode_in_place(text: &mut [u8], bytes: usize) {
    let mut encoded = Vec::with_capacity(bytes.div_ceil(3) * 4);
    encode(&text[..bytes], &mut encoded);
    text[..encoded.len()].copy_from_slice(&encoded);
}

/// Decodes a text over itself; the key is what comes back as a length, from the start.
pub(crate) fn decode_in_place(text: &mut [u8]) -> Option<usize> {
    let bytes = decoded_bytes(text)?;
    for quad in 0..text.len() / 4 {
        let letters = [text[quad * 4], text[quad * 4 + 1], text[quad * 4 + 2], text[quad * 4 + 3]];
        let bits = letters
            .iter()
            .fold(0_u32, |bits, &letter| bits << 6 | u32::from(value_of(letter).unwrap_or(0)));
        text[quad * 3..quad * 3 + 3].copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    Some(bytes)
}

/// Appends bytes as base64, with padding.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.chunks(3) {
        let byte = |at: usize| part.get(at).map_or(0, |&byte| u32::from(byte));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= part.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{decode_in_place, decoded_bytes, encode};
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in vec(any::<u8>(), 1..60)) {
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            prop_assert_eq!(decoded_bytes(&text), Some(bytes.len()));
            let length = decode_in_place(&mut text);
            prop_assert_eq!(length, Some(bytes.len()));
            prop_assert_eq!(&text[..bytes.len()], &bytes[..]);
        }

        #[test]
        fn any_text_is_decoded_or_refused(mut text in vec(any::<u8>(), 0..20)) {
            let expected = decoded_bytes(&text);
            prop_assert_eq!(decode_in_place(&mut text), expected);
        }
    }

    #[test]
    fn texts_that_are_not_base64_are_refused() {
        for text in [&b""[..], b"AAA", b"A===", b"====", b"AA=A", b"A A=", b"AA-A"] {
            assert_eq!(decoded_bytes(text), None, "{text:?}");
        }
        assert_eq!(decoded_bytes(b"44OG44K544OI"), Some(9));
    }
}
