//! Keys of the table that has the objects which expire, in the order of their times.
//!
//! A key is the time in milliseconds since 1970, 8 bytes, big endian, and the key of the object.
//! The value has no bytes.

use crate::error::{FormatError, Structure};
use crate::objects::OBJECT_KEY_BYTES_MAX;

/// The key for an object that expires at this time.
#[must_use]
pub fn expiry_key(expires_unix_ms: u64, key: &[u8]) -> Vec<u8> {
    [&expires_unix_ms.to_be_bytes(), key].concat()
}

/// Time and key of an object that expires.
///
/// # Errors
/// [`FormatError`] when it is no such key.
pub fn decode_expiry_key(bytes: &[u8]) -> Result<(u64, &[u8]), FormatError> {
    let structure = Structure::ExpiryKey;
    match bytes.split_first_chunk() {
        Some((time, key)) if (1..=OBJECT_KEY_BYTES_MAX).contains(&key.len()) => {
            Ok((u64::from_be_bytes(*time), key))
        }
        _ => Err(FormatError::field(structure, "length", bytes.len() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{decode_expiry_key, expiry_key};

    proptest! {
        #[test]
        fn keys_come_back_in_the_order_of_times(
            one: u64, other: u64, key in vec(any::<u8>(), 1..1024),
        ) {
            let (first, second) = (expiry_key(one, &key), expiry_key(other, &key));
            prop_assert_eq!(decode_expiry_key(&first), Ok((one, key.as_slice())));
            prop_assert_eq!(first.cmp(&second), one.cmp(&other));
        }

        #[test]
        fn arbitrary_bytes_are_an_answer(bytes: Vec<u8>) {
            if let Ok((time, key)) = decode_expiry_key(&bytes) {
                prop_assert_eq!(expiry_key(time, key), bytes);
            }
        }
    }
}
