//! Keys of the table of multi-part uploads.
//!
//! ```text
//! 1, key of the object in groups, upload (8 B)    record of the object to be, without bytes
//! 2, upload (8 B), 0 (2 B)                        key of the object
//! 2, upload (8 B), number of a part (2 B)         record of the part
//! ```
//!
//! Numbers are big endian. Entries of the first kind have the order of (key, upload), so uploads
//! are listed by prefix; those of the second have the order in which uploads were begun. A key in
//! groups is a group for each [`GROUP_BYTES`] bytes of it: these bytes, zeros up to the group's
//! length, and a byte that says how many they are, or [`GROUP_GOES_ON`] when another group
//! follows. So no key in groups is the beginning of another, their order is that of the keys, and
//! the longest fits.

use crate::error::{FormatError, Structure};
use crate::objects::OBJECT_KEY_BYTES_MAX;
use crate::objects::record::PARTS_MAX;

const KIND_UPLOAD: u8 = 1;
const KIND_PART: u8 = 2;

/// Bytes of a key in one group.
pub const GROUP_BYTES: usize = 32;
/// Ends a group that another one follows.
pub const GROUP_GOES_ON: u8 = GROUP_BYTES as u8 + 1;

/// Length of a key of the second kind.
pub const PART_KEY_BYTES: usize = 11;

/// What a key of the table stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadEntry {
    /// An upload of the object `key`.
    Upload {
        /// Key of the object.
        key: Vec<u8>,
        /// Which upload.
        upload: u64,
    },
    /// A part of an upload; 0: what says which object's it is.
    Part {
        /// Which upload.
        upload: u64,
        /// Which part, 1 to [`PARTS_MAX`], or 0.
        number: u16,
    },
}

impl UploadEntry {
    /// The key of the table.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Upload { key, upload } => upload_key(key, *upload),
            Self::Part { upload, number } => part_key(*upload, *number).to_vec(),
        }
    }

    /// What the key of the table stands for.
    ///
    /// # Errors
    /// [`FormatError`] when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let impossible =
            |field| FormatError::field(Structure::UploadKey, field, bytes.len() as u64);
        match bytes.split_first() {
            Some((&KIND_UPLOAD, rest)) => {
                let upload =
                    rest.split_last_chunk().map(|(key, upload)| (take_groups(key), upload));
                let Some((Some(key), upload)) = upload else {
                    return Err(impossible("key in groups, of an entry of bytes"));
                };
                Ok(Self::Upload { key, upload: u64::from_be_bytes(*upload) })
            }
            Some((&KIND_PART, rest)) => {
                let parts = rest.split_first_chunk().map(|(upload, number)| {
                    (u64::from_be_bytes(*upload), <[u8; 2]>::try_from(number))
                });
                match parts {
                    Some((upload, Ok(number))) if u16::from_be_bytes(number) <= PARTS_MAX => {
                        Ok(Self::Part { upload, number: u16::from_be_bytes(number) })
                    }
                    _ => Err(impossible("part, of an entry of bytes")),
                }
            }
            _ => Err(impossible("kind, of an entry of bytes")),
        }
    }
}

/// The table's key for an upload of the object `key`. That of upload 0, which there is not, is
/// before those of all uploads of this and of all later keys.
#[must_use]
pub fn upload_key(key: &[u8], upload: u64) -> Vec<u8> {
    let groups = key.len().div_ceil(GROUP_BYTES).max(1);
    let mut bytes = Vec::with_capacity(1 + groups * (GROUP_BYTES + 1) + 8);
    bytes.push(KIND_UPLOAD);
    let mut rest = key;
    loop {
        let (group, behind) = rest.split_at(rest.len().min(GROUP_BYTES));
        rest = behind;
        bytes.extend(group);
        bytes.resize(bytes.len() + GROUP_BYTES - group.len(), 0);
        if rest.is_empty() {
            bytes.push(group.len() as u8);
            break;
        }
        bytes.push(GROUP_GOES_ON);
    }
    bytes.extend(upload.to_be_bytes());
    bytes
}

/// The table's key for a part of an upload; for 0, the one that says which object's it is.
#[must_use]
pub fn part_key(upload: u64, number: u16) -> [u8; PART_KEY_BYTES] {
    let mut bytes = [0; PART_KEY_BYTES];
    bytes[0] = KIND_PART;
    bytes[1..9].copy_from_slice(&upload.to_be_bytes());
    bytes[9..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The key that was put into groups; none when these are no encoder's.
fn take_groups(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let mut groups = bytes.chunks(GROUP_BYTES + 1).peekable();
    while let Some(group) = groups.next() {
        let (&end, group) = group.split_last().filter(|(_, group)| group.len() == GROUP_BYTES)?;
        let length = match (end, groups.peek()) {
            (GROUP_GOES_ON, Some(_)) => GROUP_BYTES,
            (0..GROUP_GOES_ON, None) => usize::from(end),
            _ => return None,
        };
        let (part, zeros) = group.split_at(length);
        if zeros.iter().any(|byte| *byte != 0) {
            return None;
        }
        key.extend(part);
    }
    let is_written_so = upload_key(&key, 0).len() == 1 + bytes.len() + 8;
    (is_written_so && (1..=OBJECT_KEY_BYTES_MAX).contains(&key.len())).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{UploadEntry, part_key, upload_key};
    use crate::objects::OBJECT_KEY_BYTES_MAX;
    use crate::objects::log::KEY_BYTES_MAX;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![vec(0..2_u8, 1..100), vec(any::<u8>(), 1..=OBJECT_KEY_BYTES_MAX)]
    }

    proptest! {
        #[test]
        fn entries_come_back(key in key(), upload: u64, number in 0..=10_000_u16) {
            let both = [UploadEntry::Upload { key, upload }, UploadEntry::Part { upload, number }];
            for entry in both {
                let bytes = entry.encode();
                prop_assert!(bytes.len() <= KEY_BYTES_MAX);
                prop_assert_eq!(UploadEntry::decode(&bytes), Ok(entry));
            }
        }

        #[test]
        fn the_order_is_that_of_keys_and_uploads(
            one in key(), other in key(), uploads: (u64, u64),
        ) {
            let (first, second) = (upload_key(&one, uploads.0), upload_key(&other, uploads.1));
            prop_assert_eq!(first.cmp(&second), (&one, uploads.0).cmp(&(&other, uploads.1)));
            prop_assert!(first < part_key(0, 0).to_vec(), "parts are behind all uploads");
        }

        #[test]
        fn arbitrary_bytes_are_an_answer(mut bytes: Vec<u8>, kind in 0..3_u8, end in 0..35_u8) {
            let _ = UploadEntry::decode(&bytes);
            if let [first, .., last] = bytes.as_mut_slice() {
                (*first, *last) = (kind, end);
            }
            bytes.extend([0; 8]);
            if let Ok(entry) = UploadEntry::decode(&bytes) {
                prop_assert_eq!(entry.encode(), bytes);
            }
        }
    }

    #[test]
    fn the_longest_key_fits() {
        let longest = upload_key(&[0; OBJECT_KEY_BYTES_MAX], u64::MAX);
        assert!(longest.len() <= KEY_BYTES_MAX, "{} bytes", longest.len());
    }
}
