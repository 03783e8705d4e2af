//! Damage is noticed, and no bytes make a decoder panic, not even such as have good checksums.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use super::values::{change, directory_entry, geometry, mark, page_id, root};
use crate::checksum::crc32c;
use crate::detection::{Detection, FilterBlocks, FingerprintKind};
use crate::directory::{self, FOOTER_BYTES, decode_entries, decode_footer, encode_tail};
use crate::domain::DomainId;
use crate::features::Features;
use crate::frame::{self, FRAME_HEADER_BYTES, FrameHeader};
use crate::label::Label;
use crate::mark::Mark;
use crate::page::Page;
use crate::record::{self, Changes, RecordHeader, RecordKind, Settled, decode_header, verify_body};
use crate::root::Root;
use crate::superblock::{self, Geometry, made_by_newer};
use crate::units::{BlockPtr, Codec, ContainerId, Pbn, Zone};
use crate::{BLOCK_BYTES, FeatureClass, FormatError};

const UUID: [u8; 16] = *b"0123456789abcdef";

fn flip(bytes: &mut [u8], bit: Index) {
    let bit = bit.index(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Gives `bytes` the checksum that its structure keeps at `crc_at`, over what starts at `from`.
fn reseal(bytes: &mut [u8], crc_at: usize, from: usize) {
    let crc = crc32c(&bytes[from..]);
    bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
}

fn record(body: &[u8]) -> Vec<u8> {
    let length_bytes = record::record_bytes(body.len());
    let header = RecordHeader {
        length_bytes: length_bytes as u32,
        body_bytes: body.len() as u32,
        kind: RecordKind::Group,
        incarnation: 3,
        sequence: 77,
        previous_crc: 5,
        settled: Settled { durable_sequence: 70, placed_sequence: 60 },
        uuid_prefix: [9; 8],
    };
    let mut record = vec![0; length_bytes];
    record::encode_record(&header, body, &mut record);
    record
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let stored_bytes = payload.len() as u32;
    let header = FrameHeader {
        codec: Codec::Lz4,
        stored_bytes,
        plain_bytes: 4096,
        pbn: Pbn(4),
        domain: DomainId::DEFAULT,
    };
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    frame.extend_from_slice(payload);
    frame::write_header(&mut frame, &header);
    frame
}

proptest! {
    #[test]
    fn a_flipped_bit_in_a_geometry_is_noticed(geometry in geometry(), bit: Index) {
        let mut block = geometry.encode();
        flip(&mut block, bit);
        prop_assert!(Geometry::decode(&block).is_err());
    }

    #[test]
    fn a_flipped_bit_in_a_root_is_noticed(root in root(), bit: Index) {
        let mut block = root.encode(UUID);
        flip(&mut block, bit);
        prop_assert!(Root::decode(&block, UUID).is_err());
    }

    #[test]
    fn a_flipped_bit_in_a_mark_is_noticed(mark in mark(), bit: Index) {
        let mut block = mark.encode();
        flip(&mut block, bit);
        prop_assert!(Mark::decode(&block).is_err());
    }

    #[test]
    fn a_label_says_what_it_was_written_with(geometry in geometry(), root in root(), bit: Index) {
        let label = Label { root: Root { next_pbn: 1, ..root }, geometry };
        let (mut block, uuid) = (label.encode(), label.geometry.uuid);
        prop_assert_eq!(Label::decode(&block, uuid), Ok(label));
        prop_assert!(Label::decode(&block, UUID).is_err(), "another store's");
        flip(&mut block, bit);
        prop_assert!(Label::decode(&block, uuid).is_err());
    }

    #[test]
    fn a_root_torn_between_sectors_is_noticed(old in root(), new in root(), sectors in 0..8usize) {
        let mut block = old.encode(UUID);
        let new = new.encode(UUID);
        block[..sectors * 512].copy_from_slice(&new[..sectors * 512]);
        let whole = block == new || block == old.encode(UUID);
        prop_assert_eq!(Root::decode(&block, UUID).is_ok(), whole);
    }

    #[test]
    fn a_root_of_another_store_is_noticed(root in root(), uuid: [u8; 16]) {
        let structure = crate::Structure::Root;
        let decoded = Root::decode(&root.encode(uuid), UUID);
        prop_assert_eq!(decoded, Err(FormatError::OtherStore { structure }));
    }

    #[test]
    fn a_flipped_bit_in_a_page_is_noticed(id in page_id(), generation: u64, bit: Index) {
        let mut page = Page::empty(id);
        page.payload_mut().fill(0x5a);
        let tag = BlockPtr::tag_of(page.seal(generation));
        flip(page.as_bytes_mut(), bit);
        prop_assert!(page.check(id, tag).is_err());
    }

    #[test]
    fn a_flipped_bit_in_a_record_is_noticed(body in vec(any::<u8>(), 0..9000), bit: Index) {
        let mut record = record(&body);
        flip(&mut record, bit);
        let verified = decode_header(&record)
            .and_then(|header| verify_body(&header, &record).map(<[u8]>::to_vec));
        prop_assert!(verified.is_err());
    }

    #[test]
    fn a_flipped_bit_in_a_frame_is_noticed(payload in vec(any::<u8>(), 1..4096), bit: Index) {
        let mut frame = frame(&payload);
        flip(&mut frame, bit);
        prop_assert!(frame::decode(&frame).is_err());
    }

    #[test]
    fn a_frame_cut_short_is_noticed(payload in vec(any::<u8>(), 1..4096), cut: Index) {
        let frame = frame(&payload);
        prop_assert!(frame::decode(&frame[..cut.index(frame.len())]).is_err());
    }

    #[test]
    fn a_flipped_bit_in_a_directory_is_noticed(
        entries in vec(directory_entry(), 0..40),
        bit: Index,
    ) {
        let mut tail = encode_tail(&entries, ContainerId(1), 2, UUID);
        flip(&mut tail, bit);
        let (directory, footer) = tail.split_at(tail.len() - FOOTER_BYTES);
        let decoded = decode_footer(footer).and_then(|footer| decode_entries(directory, &footer));
        prop_assert!(decoded.is_err());
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..9000)) {
        let _ = Geometry::decode(&bytes);
        let _ = Root::decode(&bytes, UUID);
        let _ = Mark::decode(&bytes);
        let _ = Page::from_bytes(&bytes);
        let _ = decode_header(&bytes).map(|header| verify_body(&header, &bytes).is_ok());
        let _ = record::record_crc(&bytes);
        let _ = frame::decode(&bytes);
        let _ = decode_footer(&bytes).map(|footer| decode_entries(&bytes, &footer));
        let _ = Changes::new(&bytes).count();
    }

    #[test]
    fn fields_are_checked_though_the_checksum_is_good(
        geometry in geometry(),
        root in root(),
        damage in vec((any::<Index>(), any::<u8>()), 1..8),
    ) {
        let (mut geometry, mut root) = (geometry.encode(), root.encode(UUID));
        for (place, value) in damage {
            geometry[16 + place.index(superblock::REST_AT)] = value;
            root[32 + place.index(crate::root::REST_AT)] = value;
        }
        reseal(&mut geometry, 8, 12);
        reseal(&mut root, 8, 12);
        if let Ok(decoded) = Geometry::decode(&geometry) {
            prop_assert!(decoded.check().is_ok());
            prop_assert_eq!(Geometry::decode(&decoded.encode()), Ok(decoded));
        }
        if let Ok(decoded) = Root::decode(&root, UUID) {
            prop_assert_eq!(Root::decode(&decoded.encode(UUID), UUID), Ok(decoded));
        }
    }

    #[test]
    fn hostile_frames_and_footers_with_good_checksums_are_refused_or_bounded(
        frame in vec(any::<u8>(), 16..200),
        footer in vec(any::<u8>(), FOOTER_BYTES),
        count in 0..200_000u32,
    ) {
        let mut frame = frame;
        frame[7] %= 3;
        reseal(&mut frame, 0, 4);
        if let Ok((header, payload)) = frame::decode(&frame) {
            prop_assert_eq!(header.stored_bytes as usize, payload.len());
        }
        let mut footer = footer;
        footer[..12].copy_from_slice(b"TAMIS-CT\x01\0\0\0");
        footer[directory::COUNT_AT..][..4].copy_from_slice(&count.to_le_bytes());
        let crc = crc32c(&footer[..directory::CRC_AT]);
        footer[directory::CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(footer) = decode_footer(&footer) {
            prop_assert_eq!(footer.directory_bytes() as usize, footer.count as usize * 44);
        }
    }

    #[test]
    fn a_damaged_body_ends_the_changes_after_one_error(
        changes in vec(change(), 1..8),
        place: Index,
        value: u8,
    ) {
        let mut body = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut body));
        let place = place.index(body.len());
        body[place] = value;
        let decoded: Vec<_> = Changes::new(&body).collect();
        let errors = decoded.iter().filter(|change| change.is_err()).count();
        prop_assert!(errors == 0 || (errors == 1 && decoded.last().unwrap().is_err()));
    }
}

#[test]
fn a_newer_store_is_told_from_a_damaged_one() {
    let next = crate::FORMAT_VERSION + 1;
    let geometry = Geometry {
        version: next,
        uuid: UUID,
        bucket_seed: UUID,
        chunk_bytes: 4096,
        container_bytes: crate::CONTAINER_BYTES,
        journal_bytes: 4 << 20,
        tables_bytes: 4 << 20,
        data: vec![8],
        detection: Default::default(),
        marked: false,
        features: Default::default(),
    };
    let mut block = geometry.encode();
    let newer = |found| {
        let structure = crate::Structure::Superblock;
        Err(FormatError::NewerVersion { structure, supported: next - 1, found })
    };
    assert_eq!(Geometry::decode(&block), newer(next));
    block[8] ^= 1;
    assert_eq!(Geometry::decode(&block), newer(next), "a newer checksum may be another one");
}

/// A sealed geometry whose block says `bytes` from offset `at` on.
fn geometry_with(detection: Detection, at: usize, bytes: &[u8]) -> Result<Geometry, FormatError> {
    let geometry = Geometry {
        version: crate::FORMAT_VERSION,
        uuid: UUID,
        bucket_seed: UUID,
        chunk_bytes: 4096,
        container_bytes: crate::CONTAINER_BYTES,
        journal_bytes: 4 << 20,
        tables_bytes: 4 << 20,
        data: vec![8],
        detection,
        marked: false,
        features: Default::default(),
    };
    let mut block = Geometry { version: geometry.least_version(), ..geometry }.encode();
    block[at..at + bytes.len()].copy_from_slice(bytes);
    reseal(&mut block, 8, 12);
    Geometry::decode(&block)
}

#[test]
fn zones_that_are_gone_are_some_of_those_that_were() {
    let block_with = |data: &[u32], gone: u64, incompatible: u64| {
        let mut geometry = geometry_with(Detection::default(), 12, &[4, 0, 0, 0]).unwrap();
        geometry.data = data.to_vec();
        (geometry.features.zones_gone, geometry.features.incompatible) = (gone, incompatible);
        geometry.encode()
    };
    let decode =
        |data: &[u32], gone| Geometry::decode(&block_with(data, gone, Features::ZONES_GONE));
    let geometry = decode(&[3, 2, 4], 0b010).unwrap();
    let zones: Vec<_> = geometry.zones().skip(3).map(|(zone, _)| zone).collect();
    assert_eq!(zones, [Zone::Data(0), Zone::Data(2)]);
    assert_eq!((geometry.containers_total(), geometry.containers_present()), (9, 7));
    assert_eq!(geometry.capacity_bytes(), 7 * u64::from(crate::CONTAINER_BYTES));
    let has: Vec<_> = (0..10).map(|id| geometry.has_container(ContainerId(id))).collect();
    assert_eq!(has, [true, true, true, false, false, true, true, true, true, false]);
    assert_eq!((geometry.containers_of(1), geometry.containers_of(2)), (3..5, 5..9));
    assert_eq!(geometry.containers_of(3), 0..0);
    for (data, gone) in [(&[3, 2, 4][..], 0b111), (&[3, 2, 4], 0b1000), (&[3], 1), (&[3, 2], 0)] {
        assert!(decode(data, gone).is_err(), "{gone:b} of {data:?}");
    }
    assert!(Geometry::decode(&block_with(&[3, 2], 1, 0)).is_err(), "gone without the feature");
    assert!(decode(&[1; 64], u64::MAX).is_err() && decode(&[1; 64], u64::MAX - 1).is_ok());
}

#[test]
fn what_a_feature_asks_of_older_programs_is_done() {
    let with = |version: u8, at: usize, bytes: &[u8]| {
        let mut block = [0; crate::BLOCK_BYTES];
        let geometry = geometry_with(Detection::default(), 12, &[version, 0, 0, 0]).unwrap();
        block.copy_from_slice(&geometry.encode());
        block[at..at + bytes.len()].copy_from_slice(bytes);
        reseal(&mut block, 8, 12);
        block
    };
    let bit = 1_u64 << 40;
    let unknown = |class| FormatError::UnknownFeatures { class, bits: bit };
    let incompatible = with(4, 384, &bit.to_le_bytes());
    let refused = unknown(FeatureClass::Incompatible);
    assert_eq!(Geometry::decode(&incompatible), Err(refused));
    assert_eq!(made_by_newer(&incompatible), Some(refused));
    let mut torn = incompatible;
    torn[384] ^= 1;
    assert_eq!(made_by_newer(&torn), None, "damage was taken for a newer program's store");
    let read_only = Geometry::decode(&with(4, 376, &bit.to_le_bytes())).unwrap();
    let refused = unknown(FeatureClass::ReadOnlyCompatible);
    assert_eq!(read_only.features.check_writable(), Err(refused));
    // What is compatible stays, with what it has in reserved bytes; before version 4 nobody looks.
    for at in [368, 426, 511] {
        let block = with(4, at, &[0xc5]);
        let geometry = Geometry::decode(&block).unwrap();
        assert_eq!(geometry.features.check_writable(), Ok(()));
        assert_eq!(geometry.encode(), block);
    }
    let old = Geometry::decode(&with(3, 384, &bit.to_le_bytes())).unwrap();
    assert!(!old.features.any());
}

#[test]
fn a_geometry_has_the_fields_of_its_features_and_no_others() {
    for (at, bytes, field) in [
        (392, &[1][..], "role in a pair"),
        (416, &[1], "role in a pair"),
        (416, &[3], "role in a pair"),
        (376, &[1], "pair"),
        (417, &[2], "copies of maps"),
        (417, &[3], "copies of maps"),
    ] {
        let geometry = geometry_with(Detection::default(), 12, &[4, 0, 0, 0]).unwrap();
        let mut block = geometry.encode();
        block[at..at + bytes.len()].copy_from_slice(bytes);
        reseal(&mut block, 8, 12);
        let error = Geometry::decode(&block).unwrap_err();
        assert!(matches!(error, FormatError::Field { field: of, .. } if of == field), "{error}");
    }
}

#[test]
fn no_store_finds_duplicates_in_a_way_that_is_unknown_or_unsafe() {
    let sha = Detection { kind: FingerprintKind::Sha256, verify: false, ..Default::default() };
    let impossible = |field, found| {
        let structure = crate::Structure::Superblock;
        Err(FormatError::Field { structure, field, found })
    };
    assert!(geometry_with(sha, 76, &[1, 1]).unwrap().detection.verify);
    let beyond = FingerprintKind::ALL.len() as u8;
    assert_eq!(geometry_with(sha, 76, &[beyond]), impossible("kind of fingerprint", beyond.into()));
    assert_eq!(geometry_with(sha, 77, &[8]), impossible("detection flags", 8));
    assert!(geometry_with(sha, 77, &[4]).unwrap().detection.asides);
    let aside = geometry_with(Detection::default(), 77, &[4]);
    assert_eq!(aside, impossible("version", 2), "a program of version 2 would miss the entries");
    assert!(geometry_with(sha, 77, &[2]).unwrap().detection.secret.is_some());
    let keyed = geometry_with(Detection::default(), 77, &[2]);
    assert_eq!(keyed, impossible("version", 2), "a program of version 2 would know no domains");
    assert_eq!(geometry_with(sha, 78, &[8]).unwrap().detection.filter.count(), 8);
    assert_eq!(geometry_with(sha, 78, &[9]), impossible("blocks of a filter", 9));
    let plain = geometry_with(Detection::default(), 78, &[4]);
    assert_eq!(plain, impossible("version", 2), "a program of version 2 would misread the filters");
    for kind in FingerprintKind::ALL {
        let believed = geometry_with(sha, 76, &[kind as u8]);
        if kind.is_strong() {
            assert_eq!(believed.unwrap().detection.kind, kind);
        } else {
            let field = "fingerprint without comparison";
            assert_eq!(believed, impossible(field, u64::from(kind as u8)));
        }
        assert_eq!(geometry_with(sha, 76, &[kind as u8, 1]).unwrap().detection.kind, kind);
    }
    // What version 2 left as zeros means what it always did.
    assert_eq!(geometry_with(sha, 12, &[2]), impossible("version", 2));
    assert_eq!(geometry_with(Detection::default(), 12, &[1]).unwrap().version, 1);
}

#[test]
fn no_number_of_bits_is_too_large_to_be_refused() {
    for bits in [0, 1, 28, u32::MAX / 78, u32::MAX / 78 + 1, 4_000_000_000, u32::MAX] {
        assert_eq!(FilterBlocks::nearest_to(bits), None, "{bits} bits a chunk");
    }
}

#[test]
fn a_zone_of_zeros_holds_nothing() {
    let zeros = [0; BLOCK_BYTES];
    assert!(matches!(Geometry::decode(&zeros), Err(FormatError::Magic { found: 0, .. })));
    assert!(matches!(Root::decode(&zeros, UUID), Err(FormatError::Magic { found: 0, .. })));
    assert!(matches!(Mark::decode(&zeros), Err(FormatError::Magic { found: 0, .. })));
    assert!(matches!(decode_header(&zeros), Err(FormatError::Magic { found: 0, .. })));
    assert!(matches!(decode_footer(&zeros), Err(FormatError::Magic { found: 0, .. })));
    assert!(frame::decode(&zeros).is_err());
    assert!(matches!(Changes::new(&zeros).next(), Some(Err(FormatError::Field { .. }))));
}
