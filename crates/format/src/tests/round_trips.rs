//! What is written is what is read, for every structure that is not a page.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use super::values::{change, directory_entry, domain_id, geometry, mark, pba, pbn, root};
use crate::directory::{
    DIRECTORY_ENTRY_BYTES, FOOTER_BYTES, decode_entries, decode_footer, encode_tail, tail_bytes,
};
use crate::frame::{self, FRAME_HEADER_BYTES, FrameHeader};
use crate::mark::Mark;
use crate::record::{
    Change, Changes, RECORD_BYTES_MAX, RecordHeader, RecordKind, Settled, decode_header,
    encode_record, record_bytes, record_crc, verify_body,
};
use crate::root::Root;
use crate::superblock::{GEOMETRY_BLOCKS, Geometry, ROOT_BLOCKS, root_block};
use crate::units::{Codec, ContainerId, FrameCheck, Lba, Pba, Pbn, VolumeId, Zone, uuid_prefix};
use crate::{BLOCK_BYTES, CONTAINER_BYTES};

proptest! {
    #[test]
    fn a_geometry_comes_back(geometry in geometry()) {
        prop_assert_eq!(Geometry::decode(&geometry.encode()), Ok(geometry));
    }

    #[test]
    fn a_root_comes_back(root in root(), uuid: [u8; 16]) {
        prop_assert_eq!(Root::decode(&root.encode(uuid), uuid), Ok(root));
    }

    #[test]
    fn a_mark_comes_back(mark in mark()) {
        prop_assert_eq!(Mark::decode(&mark.encode()), Ok(mark));
    }

    #[test]
    fn changes_come_back_in_order(changes in vec(change(), 0..20)) {
        let mut body = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut body));
        let decoded: Result<Vec<Change>, _> = Changes::new(&body).collect();
        prop_assert_eq!(decoded, Ok(changes));
    }

    #[test]
    fn a_run_encodes_like_its_change(volume: u32, first: u64, pbns in vec(pbn(), 0..50)) {
        let (volume, first) = (VolumeId(volume), Lba(first));
        let (mut borrowed, mut owned) = (Vec::new(), Vec::new());
        Change::encode_map(&mut borrowed, volume, first, &pbns);
        Change::Map { volume, first, pbns }.encode(&mut owned);
        prop_assert_eq!(borrowed, owned);
    }

    #[test]
    fn a_record_comes_back(
        body in vec(any::<u8>(), 0..20_000),
        spare_blocks in 0..3usize,
        numbers: [u64; 4],
        previous_crc: u32,
        uuid_prefix: [u8; 8],
        kind in select(vec![RecordKind::Group, RecordKind::Filler]),
    ) {
        let length_bytes = record_bytes(body.len()) + spare_blocks * BLOCK_BYTES;
        let header = RecordHeader {
            length_bytes: length_bytes as u32,
            body_bytes: body.len() as u32,
            kind,
            incarnation: numbers[0],
            sequence: numbers[1],
            previous_crc,
            settled: Settled { durable_sequence: numbers[2], placed_sequence: numbers[3] },
            uuid_prefix,
        };
        let mut record = vec![0xee; length_bytes];
        let crc = encode_record(&header, &body, &mut record);
        prop_assert_eq!(decode_header(&record), Ok(header));
        prop_assert_eq!(record_crc(&record), Ok(crc));
        // What follows the record in the ring is not part of it.
        record.extend_from_slice(&[1; 100]);
        prop_assert_eq!(verify_body(&header, &record), Ok(body.as_slice()));
    }

    #[test]
    fn a_frame_comes_back(
        sectors in 1..=128u32,
        payload in vec(any::<u8>(), 1..3000),
        codec in select(vec![Codec::Raw, Codec::Lz4, Codec::Zstd]),
        pbn in pbn(),
        domain in domain_id(),
    ) {
        let plain_bytes = sectors * 512;
        let mut payload = payload;
        payload.truncate(plain_bytes as usize);
        if codec == Codec::Raw {
            payload.resize(plain_bytes as usize, 7);
        }
        let stored_bytes = payload.len() as u32;
        let header = FrameHeader { codec, stored_bytes, plain_bytes, pbn, domain };
        let mut bytes = vec![0; FRAME_HEADER_BYTES];
        bytes.extend_from_slice(&payload);
        frame::write_header(&mut bytes, &header);
        prop_assert_eq!(frame::decode(&bytes), Ok((header, payload.as_slice())));
        prop_assert_eq!(frame::claimed_bytes(&bytes), Some(bytes.len()));
        prop_assert_eq!(frame::claimed_bytes(&bytes[..FRAME_HEADER_BYTES - 1]), None);
        let check = frame::check_of(&bytes);
        prop_assert!(!check.is_unknown() && frame::is_meant(&bytes, pbn, check));
        prop_assert!(frame::is_meant(&bytes, pbn, FrameCheck::UNKNOWN));
        prop_assert!(!frame::is_meant(&bytes, Pbn(pbn.0 ^ 1), check));
        prop_assert!(frame::claims_to_be(&bytes, pbn, check));
        prop_assert!(!frame::claims_to_be(&bytes, Pbn(pbn.0 ^ 1), check));
        prop_assert!(!frame::claims_to_be(&bytes[..FRAME_HEADER_BYTES - 1], pbn, check));
        bytes.push(0);
        prop_assert!(frame::decode(&bytes).is_err(), "a byte too many passed");
        prop_assert!(!frame::claims_to_be(&bytes, pbn, check));
    }

    #[test]
    fn a_directory_comes_back(
        entries in vec(directory_entry(), 0..300),
        id: u32,
        sequence: u32,
        uuid: [u8; 16],
    ) {
        let tail = encode_tail(&entries, ContainerId(id), sequence, uuid);
        prop_assert_eq!(tail.len(), tail_bytes(entries.len()));
        let footer = decode_footer(&tail).unwrap();
        prop_assert_eq!((footer.container, footer.sequence), (ContainerId(id), sequence));
        prop_assert_eq!(footer.count as usize, entries.len());
        prop_assert_eq!(footer.uuid_prefix, uuid_prefix(uuid));
        let directory = &tail[..entries.len() * DIRECTORY_ENTRY_BYTES];
        prop_assert_eq!(footer.directory_bytes() as usize, directory.len());
        let end = footer.directory_offset_bytes as usize + directory.len() + FOOTER_BYTES;
        prop_assert_eq!(end, CONTAINER_BYTES as usize);
        prop_assert_eq!(decode_entries(directory, &footer), Ok(entries));
    }

    #[test]
    fn every_zone_ends_where_its_last_container_does(geometry in geometry()) {
        let zones: Vec<_> = geometry.zones().collect();
        let gone = geometry.features.zones_gone.count_ones() as usize;
        prop_assert_eq!(zones.len() + gone, 3 + geometry.data.len());
        for &(zone, bytes) in &zones {
            prop_assert_eq!(geometry.zone_bytes(zone), bytes);
        }
        let ids = (0..geometry.data.len()).scan(0, |end, zone| {
            *end += geometry.data[zone];
            Some((Zone::Data(zone as u16), ContainerId(*end - 1)))
        });
        for (zone, last) in ids {
            let (found, start_bytes) = geometry.container_zone(last).unwrap();
            prop_assert_eq!(found, zone);
            let end_bytes = start_bytes + u64::from(CONTAINER_BYTES);
            let there_bytes = if geometry.has_container(last) { end_bytes } else { 0 };
            prop_assert_eq!(geometry.zone_bytes(zone), there_bytes);
            prop_assert_eq!(geometry.container_at(zone, start_bytes), Some(last));
            prop_assert_eq!(geometry.container_at(zone, end_bytes - 1), Some(last));
            prop_assert_eq!(geometry.container_at(zone, end_bytes), None);
        }
        let beyond = Zone::Data(geometry.data.len() as u16);
        prop_assert_eq!(geometry.container_at(beyond, 0), None);
        prop_assert_eq!(geometry.zone_bytes(beyond), 0);
        let data = zones[3..].iter().map(|(_, bytes)| bytes).sum::<u64>();
        prop_assert_eq!(data, geometry.capacity_bytes());
    }

    #[test]
    fn containers_follow_each_other_through_the_zones(
        geometry in geometry(), id: u32, pba in pba(),
    ) {
        let mut left = u64::from(id);
        let mut expected = None;
        for (number, &count) in geometry.data.iter().enumerate() {
            if expected.is_none() && left < u64::from(count) {
                let start = left * u64::from(CONTAINER_BYTES);
                expected = Some((Zone::Data(number as u16), start));
            }
            left = left.saturating_sub(u64::from(count));
        }
        let id_is_known = u64::from(id) < geometry.containers_total();
        prop_assert_eq!(geometry.container_zone(ContainerId(id)).is_some(), id_is_known);
        if id_is_known {
            prop_assert_eq!(geometry.container_zone(ContainerId(id)), expected);
        }
        let pba = Pba { container: ContainerId(id), ..pba };
        let fits = pba.offset_bytes + pba.length_bytes <= CONTAINER_BYTES;
        let is_there = geometry.has_container(pba.container);
        prop_assert!(id_is_known || !is_there);
        prop_assert_eq!(geometry.has_place(pba), is_there && fits);
    }
}

#[test]
fn a_run_fills_a_record_to_the_last_byte() {
    let longest = (RECORD_BYTES_MAX - 64 - 17) / 6;
    let mut body = Vec::new();
    Change::encode_map(&mut body, VolumeId(1), Lba(2), &vec![Pbn::MAX; longest]);
    assert!(record_bytes(body.len()) == RECORD_BYTES_MAX);
    assert!(matches!(Changes::new(&body).next(), Some(Ok(Change::Map { pbns, .. }))
        if pbns.len() == longest));
}

#[test]
fn roots_take_turns_beside_the_geometry() {
    assert_eq!((root_block(0), root_block(1), root_block(2)), (1, 2, 1));
    assert!(GEOMETRY_BLOCKS.iter().all(|block| !ROOT_BLOCKS.contains(block)));
}

#[test]
fn a_check_is_never_unknown_and_tells_frames_apart() {
    assert_eq!(FrameCheck::of_crc(0xabcd_0000), FrameCheck::of_crc(1));
    for crc in [0, 1, 0xffff, 0x1_0000, u32::MAX] {
        let check = FrameCheck::of_crc(crc);
        assert!(!check.is_unknown() && check.allows(FrameCheck::of_crc(crc)));
        assert!(!check.allows(FrameCheck::of_crc(crc ^ 0x0ff0)));
        assert!(!check.allows(FrameCheck::UNKNOWN), "bytes too short for a frame pass for one");
        assert!(FrameCheck::UNKNOWN.allows(check));
    }
}
