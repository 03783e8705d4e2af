//! Headers, groups and changes of buckets: all comes back, damage is noticed, nothing panics.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use crate::objects::header::{BucketHeader, IndexLength, RING_BYTES_MIN};
use crate::objects::log::{
    GROUP_ALIGN, GroupHeader, LoggedChange, LoggedChanges, decode_body, decode_header,
    encode_change, encode_group, group_bytes,
};

fn flip(bytes: &mut [u8], bit: Index) {
    let bit = bit.index(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

proptest! {
    #[test]
    fn headers_come_back_and_no_bit_of_them_may_change(
        uuid: [u8; 16], blocks in 0_u64..1 << 20, bit: Index,
    ) {
        let ring_bytes = RING_BYTES_MIN + blocks * 4096;
        let header = BucketHeader { uuid, ring_bytes };
        let mut block = header.encode();
        prop_assert_eq!(BucketHeader::decode(&block), Ok(header));
        prop_assert!(IndexLength::decode(&block).is_err());
        flip(&mut block, bit);
        prop_assert!(BucketHeader::decode(&block).is_err());

        let length = IndexLength { uuid, length_bytes: blocks * 4096 };
        let mut block = length.encode();
        prop_assert_eq!(IndexLength::decode(&block), Ok(length));
        flip(&mut block, bit);
        prop_assert!(IndexLength::decode(&block).is_err());
    }

    #[test]
    fn groups_come_back_and_no_bit_of_them_may_change(
        uuid: [u8; 16], sequence: u64, position: u64, bit: Index, cut: Index,
        changes in vec(
            (any::<u8>(), vec(any::<u8>(), 0..40), option::of(vec(any::<u8>(), 0..99))), 0..9,
        ),
    ) {
        let mut body = Vec::new();
        for (table, key, value) in &changes {
            encode_change(LoggedChange { table: *table, key, value: value.as_deref() }, &mut body);
        }
        let header = GroupHeader { uuid, sequence, position };
        let mut group = Vec::new();
        encode_group(&header, &body, &mut group);
        prop_assert_eq!(group.len(), group_bytes(body.len()));
        prop_assert_eq!(group.len() % GROUP_ALIGN, 0);
        prop_assert_eq!(decode_header(&group), Ok((header, body.len())));
        prop_assert_eq!(decode_body(&group), Ok(&body[..]));
        let found: Result<Vec<_>, _> = LoggedChanges::new(&body).collect();
        let told: Vec<_> = changes.iter().map(|(table, key, value)| {
            LoggedChange { table: *table, key, value: value.as_deref() }
        }).collect();
        prop_assert_eq!(found, Ok(told));

        let covered = 64 + body.len();
        prop_assert!(decode_body(&group[..cut.index(covered)]).is_err());
        flip(&mut group[..covered], bit);
        prop_assert!(decode_body(&group).is_err());
    }

    #[test]
    fn any_bytes_are_an_answer(bytes in vec(any::<u8>(), 0..5000)) {
        let _ = (BucketHeader::decode(&bytes), IndexLength::decode(&bytes), decode_body(&bytes));
        prop_assert!(LoggedChanges::new(&bytes).count() <= bytes.len());
    }

    #[test]
    fn any_body_with_a_good_checksum_is_an_answer(bytes in vec(0_u8..4, 0..200)) {
        let mut group = Vec::new();
        let header = GroupHeader { uuid: [1; 16], sequence: 0, position: 0 };
        encode_group(&header, &bytes, &mut group);
        prop_assert!(LoggedChanges::new(decode_body(&group).unwrap()).count() <= bytes.len());
    }
}
