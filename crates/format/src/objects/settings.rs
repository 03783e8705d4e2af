//! Settings of a bucket: what the index has in its table of settings, beside the high-water mark.
//!
//! Counts are kept in [`STRIPES`] parts, and the key of an object says in which: two puts of
//! different parts then change different settings, and neither waits for the other to know the sum.

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{put_u64, u64_at};

/// How a bucket cuts values: [`SEGMENTS_AUTO`], [`SEGMENTS_FIXED`] or [`SEGMENTS_CDC`] in one byte.
/// A bucket whose creation has finished has this setting.
pub const SEGMENTS_SETTING: &[u8] = b"bucket.segments";
/// Most bytes that objects and parts of the bucket may have together; not there: any.
pub const QUOTA_SETTING: &[u8] = b"bucket.quota_bytes";
/// Every version and upload of the bucket has a number below this one.
pub const VERSIONS_SETTING: &[u8] = b"bucket.versions_end";
/// When the bucket was made, in milliseconds since 1970; not there: nobody knows.
pub const CREATED_SETTING: &[u8] = b"bucket.created_unix_ms";
/// A byte with the number of a part of the counts follows.
pub const FIGURES_SETTING: &[u8] = b"bucket.figures.";

/// The name of a document follows; doors and upkeep say what documents hold.
pub const DOCUMENT_SETTING: &[u8] = b"bucket.document.";

/// The bucket chooses by the content.
pub const SEGMENTS_AUTO: u8 = 1;
/// Segments of one length.
pub const SEGMENTS_FIXED: u8 = 2;
/// Segments whose ends the content defines.
pub const SEGMENTS_CDC: u8 = 3;

/// Parts of the counts.
pub const STRIPES: usize = 256;

/// Length of [`Figures`].
pub const FIGURES_BYTES: usize = 32;

pub(crate) const OBJECTS_AT: usize = 0;
pub(crate) const OBJECT_BYTES_AT: usize = 8;
pub(crate) const PARTS_AT: usize = 16;
pub(crate) const PART_BYTES_AT: usize = 24;

const _: () = assert!(PART_BYTES_AT + 8 == FIGURES_BYTES && STRIPES == u8::MAX as usize + 1);

/// The part of the counts that has the object of this key, and the uploads of it.
#[must_use]
pub fn stripe_of(key: &[u8]) -> u8 {
    (slot_of(key) >> 8) as u8
}

/// A finer part of the keys: keys of one slot are in one stripe.
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    (crc32c(key) >> 16) as u16
}

/// The setting that holds a part of the counts.
#[must_use]
pub fn figures_setting(stripe: u8) -> Vec<u8> {
    let mut name = FIGURES_SETTING.to_vec();
    name.push(stripe);
    name
}

/// What a bucket holds, or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Objects, expired ones included until they are removed.
    pub objects: u64,
    /// Bytes of the objects.
    pub object_bytes: u64,
    /// Parts of uploads that are not completed.
    pub parts: u64,
    /// Bytes of those parts.
    pub part_bytes: u64,
}

impl Figures {
    /// As a setting holds it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; FIGURES_BYTES];
        put_u64(&mut bytes, OBJECTS_AT, self.objects);
        put_u64(&mut bytes, OBJECT_BYTES_AT, self.object_bytes);
        put_u64(&mut bytes, PARTS_AT, self.parts);
        put_u64(&mut bytes, PART_BYTES_AT, self.part_bytes);
        bytes
    }

    /// What a setting holds.
    ///
    /// # Errors
    /// [`FormatError`] when it has another length.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_length(bytes, FIGURES_BYTES)?;
        Ok(Self {
            objects: u64_at(bytes, OBJECTS_AT),
            object_bytes: u64_at(bytes, OBJECT_BYTES_AT),
            parts: u64_at(bytes, PARTS_AT),
            part_bytes: u64_at(bytes, PART_BYTES_AT),
        })
    }
}

/// A number as a setting holds it.
#[must_use]
pub fn encode_number(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// The number that a setting holds.
///
/// # Errors
/// [`FormatError`] when it has another length.
pub fn decode_number(bytes: &[u8]) -> Result<u64, FormatError> {
    check_length(bytes, 8)?;
    Ok(u64_at(bytes, 0))
}

fn check_length(bytes: &[u8], expected: usize) -> Result<(), FormatError> {
    let (expected_bytes, found_bytes) = (expected as u64, bytes.len() as u64);
    match expected_bytes == found_bytes {
        true => Ok(()),
        false => {
            let structure = Structure::BucketSetting;
            Err(FormatError::Length { structure, expected_bytes, found_bytes })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{Figures, decode_number, encode_number, figures_setting, stripe_of};

    proptest! {
        #[test]
        fn settings_come_back(numbers: [u64; 4]) {
            let [objects, object_bytes, parts, part_bytes] = numbers;
            let figures = Figures { objects, object_bytes, parts, part_bytes };
            prop_assert_eq!(Figures::decode(&figures.encode()), Ok(figures));
            prop_assert_eq!(decode_number(&encode_number(objects)), Ok(objects));
        }

        #[test]
        fn arbitrary_bytes_are_an_answer(bytes: Vec<u8>, eight in any::<[u8; 8]>()) {
            for bytes in [bytes.as_slice(), &eight, &[7; 32]] {
                let _ = Figures::decode(bytes);
                let _ = decode_number(bytes);
            }
        }
    }

    /// Where the counts of a key are is part of the format.
    #[test]
    fn a_key_is_counted_where_it_always_was() {
        assert_eq!([stripe_of(b""), stripe_of(b"a"), stripe_of(b"key")], [0x00, 0xc1, 0x40]);
        assert_eq!(figures_setting(3), b"bucket.figures.\x03");
    }
}
