//! What the protocol keeps with a value, and its form as bytes beside the value's own metadata.
//!
//! ```text
//! u8 version = 1 | u8 marks | u16 zero | u32 flags | u64 cas | u64 expires | u64 accessed
//! | u32 generation | u32 layout      little-endian, 40 bytes
//! ```
//!
//! The generation is the count of flushes of the cache at the time when the item was stored: a
//! flush makes the cache's count larger, and every item of a smaller one is gone at once, however
//! many there are.

use crate::expiry::Expiry;
use crate::layout::Layout;

/// The length of an encoded item.
pub const ITEM_BYTES: usize = 40;

const VERSION: u8 = 1;
const FETCHED: u8 = 1;
const STALE: u8 = 2;
const WIN_SENT: u8 = 4;
const MARKS: u8 = FETCHED | STALE | WIN_SENT;

/// What is kept with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Item {
    /// A number of the client's, which means nothing here.
    pub flags: u32,
    /// Which version of the value this is, for conditions. It is unique unless clients give it.
    pub cas: u64,
    /// When the item ends.
    pub expires: Expiry,
    /// When a client last stored or read it, in seconds since 1970.
    pub accessed_s: u64,
    /// How many flushes the cache had seen when the item was stored.
    pub generation: u32,
    /// How the value is divided into elements.
    pub layout: Layout,
    /// A client has read it since it was stored.
    pub fetched: bool,
    /// A client has said that the value is old; others may use it until one stores a new one.
    pub stale: bool,
    /// A client has been told that it is the one that stores a new value.
    pub win_sent: bool,
}

/// Why bytes are no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// The length is another one.
    #[error("an item of a cache has {ITEM_BYTES} bytes, not {found_bytes}")]
    Length {
        /// How many bytes there are.
        found_bytes: usize,
    },
    /// A newer program wrote it.
    #[error("an item of a cache has version {VERSION}, not {found}")]
    Version {
        /// What the first byte says.
        found: u8,
    },
    /// A layout that this version does not have.
    #[error("an item of a cache has layout {found:#010x}, which this version does not have")]
    Layout {
        /// The number.
        found: u32,
    },
    /// Marks that this version does not have, or bytes that must be zero.
    #[error("an item of a cache has marks {marks:#04x} or bytes that this version does not have")]
    Reserved {
        /// The byte of marks.
        marks: u8,
    },
}

impl Item {
    /// The item as bytes.
    pub fn encode(&self) -> [u8; ITEM_BYTES] {
        let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
        let marks =
            mark(self.fetched, FETCHED) | mark(self.stale, STALE) | mark(self.win_sent, WIN_SENT);
        let fields: [&[u8]; 8] = [
            &[VERSION, marks],
            &[0; 2],
            &self.flags.to_le_bytes(),
            &self.cas.to_le_bytes(),
            &self.expires.to_stored().to_le_bytes(),
            &self.accessed_s.to_le_bytes(),
            &self.generation.to_le_bytes(),
            &self.layout.to_stored().to_le_bytes(),
        ];
        let mut bytes = [0; ITEM_BYTES];
        let mut rest = &mut bytes[..];
        for field in fields {
            let (place, behind) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = behind;
        }
        assert!(rest.is_empty(), "the fields of an item fill its bytes");
        bytes
    }

    /// The item that bytes stand for.
    ///
    /// # Errors
    /// If they have another length, another version, or what this version does not know.
    pub fn decode(bytes: &[u8]) -> Result<Self, ItemError> {
        let &[version, marks, zero_a, zero_b, ref fields @ ..] = bytes else {
            return Err(ItemError::Length { found_bytes: bytes.len() });
        };
        if version != VERSION {
            return Err(ItemError::Version { found: version });
        }
        let mut fields = Fields(fields);
        let read = (|| {
            let item = Item {
                flags: u32::from_le_bytes(fields.next()?),
                cas: u64::from_le_bytes(fields.next()?),
                expires: Expiry::from_stored(u64::from_le_bytes(fields.next()?)),
                accessed_s: u64::from_le_bytes(fields.next()?),
                generation: u32::from_le_bytes(fields.next()?),
                fetched: marks & FETCHED != 0,
                layout: Layout::Whole,
                stale: marks & STALE != 0,
                win_sent: marks & WIN_SENT != 0,
            };
            let layout = u32::from_le_bytes(fields.next()?);
            fields.0.is_empty().then_some((item, layout))
        })();
        let Some((item, layout)) = read else {
            return Err(ItemError::Length { found_bytes: bytes.len() });
        };
        if marks & !MARKS != 0 || [zero_a, zero_b] != [0; 2] {
            return Err(ItemError::Reserved { marks });
        }
        let found = layout;
        let layout = Layout::from_stored(found).ok_or(ItemError::Layout { found })?;
        Ok(Item { layout, ..item })
    }

    /// Whether clients may still see it, in a cache that has been flushed `generation` times.
    pub fn is_live(&self, now_s: u64, generation: u32) -> bool {
        self.generation >= generation && !self.expires.is_over(now_s)
    }
}

/// Takes fields of fixed length from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::{ITEM_BYTES, Item, ItemError};
    use crate::expiry::Expiry;
    use crate::layout::Layout;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn item() -> Item {
        Item {
            flags: 0x0102_0304,
            cas: 0x1112_1314_1516_1718,
            expires: Expiry::from_stored(0x2122_2324_2526_2728),
            accessed_s: 0x3132_3334_3536_3738,
            generation: 0x4142_4344,
            layout: Layout::from_stored(0x3152_5354).unwrap(),
            fetched: true,
            stale: false,
            win_sent: true,
        }
    }

    #[test]
    fn the_layout_stays() {
        let expected = [
            1, 5, 0, 0, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27,
            0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
            0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x31,
        ];
        assert_eq!(item().encode(), expected);
        assert_eq!(Item::decode(&expected), Ok(item()));
    }

    #[test]
    fn what_this_version_does_not_know_is_refused() {
        let mut bytes = item().encode();
        bytes[0] = 2;
        assert_eq!(Item::decode(&bytes), Err(ItemError::Version { found: 2 }));
        for at in [1, 2, 3] {
            let mut bytes = item().encode();
            bytes[at] |= 0x80;
            assert_eq!(Item::decode(&bytes), Err(ItemError::Reserved { marks: bytes[1] }), "{at}");
        }
        let mut bytes = item().encode();
        bytes[39] |= 0x80;
        assert_eq!(Item::decode(&bytes), Err(ItemError::Layout { found: 0xb152_5354 }));
        for found_bytes in [0, 3, ITEM_BYTES - 1] {
            let short = &item().encode()[..found_bytes];
            assert_eq!(Item::decode(short), Err(ItemError::Length { found_bytes }));
        }
        let long = [&item().encode()[..], &[0]].concat();
        assert_eq!(Item::decode(&long), Err(ItemError::Length { found_bytes: ITEM_BYTES + 1 }));
    }

    #[test]
    fn a_flush_ends_items_of_before() {
        let item = Item { generation: 3, expires: Expiry::NEVER, ..item() };
        assert!(item.is_live(u64::MAX, 3));
        assert!(!item.is_live(0, 4));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_item_or_refused(bytes in vec(any::<u8>(), 0..48)) {
            if let Ok(item) = Item::decode(&bytes) {
                prop_assert_eq!(&item.encode()[..], &bytes[..]);
            }
        }
    }
}
