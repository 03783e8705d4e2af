//! Encodings of version 2, and what versions 3 and 4 have beside them.
//!
//! Each structure is encoded with fixed values; length and digest of the bytes stand here. A
//! difference means that stores written yesterday cannot be read today. Once a release has written
//! version 2 they are frozen: then raise [`crate::FORMAT_VERSION`], tell it in `docs/format.md`,
//! and keep reading version 2. That version 1 is read is shown by its image in `lab/tests/images`.

use std::ops::RangeInclusive;

use super::values::{
    PBA, PBA_UNCHECKED, PBN, empty_root, numbered_fingerprint, one_of_each_change,
};
use crate::catalog::{self, CatalogEntry, Dedup, Lineage, VolumeFlags, VolumeKind, VolumeState};
use crate::container_page::{self, ContainerEntry, ContainerState};
use crate::detection::{Detection, FingerprintKind};
use crate::directory::{DirectoryEntry, encode_tail};
use crate::domain::{Domain, DomainId, DomainSecret};
use crate::features::{Features, Pair, PairRole};
use crate::frame::{FrameHeader, write_header};
use crate::mark::Mark;
use crate::page::Page;
use crate::pba_page::{self, PbaEntry};
use crate::record::{
    Change, Changes, RecordHeader, RecordKind, Settled, encode_record, record_bytes,
};
use crate::root::{HashShape, JournalPosition, OpenContainer, Root, Totals};
use crate::superblock::Geometry;
use crate::units::{
    BlockPtr, CONTAINER_BYTES, Codec, Compression, ContainerId, PageId, TreeId, TreeRoot, VolumeId,
    Zone,
};
use crate::zone_start::begins_a_zone;
use crate::{bucket, map_page, pointer_page};

const UUID: [u8; 16] = [
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
];

fn tree(number: u64) -> TreeRoot {
    TreeRoot { pointer: BlockPtr::new(1000 + number, 0xabc_def0 + number as u32), depth: 2 }
}

fn page(tree: TreeId, level: u8, fill: impl FnOnce(&mut Page)) -> Vec<u8> {
    let mut page = Page::empty(PageId { tree, level, index: 0x1122_3344 });
    fill(&mut page);
    page.seal(0x99);
    page.as_bytes().to_vec()
}

fn geometry(detection: Detection) -> Vec<u8> {
    geometry_with(detection, Features::default())
}

fn geometry_with(detection: Detection, features: Features) -> Vec<u8> {
    let geometry = Geometry {
        version: crate::FORMAT_VERSION,
        uuid: UUID,
        bucket_seed: [7; 16],
        chunk_bytes: 8192,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: 64 << 20,
        tables_bytes: 3 << 30,
        data: vec![100, 2000, 30],
        detection,
        marked: false,
        features,
    };
    Geometry { version: geometry.least_version(), ..geometry }.encode().to_vec()
}

fn open_container(number: u32) -> Option<OpenContainer> {
    let (id, fill_bytes, sequence) = (ContainerId(number), number + 1, number + 2);
    Some(OpenContainer { id, fill_bytes, sequence })
}

fn root() -> Vec<u8> {
    let root = Root {
        generation: 41,
        clean: true,
        journal: JournalPosition { sequence: 42, offset_bytes: 43 << 12, previous_crc: 44 },
        next_incarnation: 45,
        compression: Compression { codec: Codec::Zstd, level: -3 },
        trees: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(tree),
        hash: HashShape {
            turn: true,
            before: 45,
            after: 47,
            merged: 46,
            entries: 48,
            tail: 50,
            sealed: 49,
        },
        next_pbn: 48,
        free_head: 49,
        free_tail: 50,
        next_volume: 51,
        domains: 0,
        catalog_slots: 52,
        open_containers: [open_container(53), open_container(62)],
        next_container_sequence: 56,
        label: 0,
        totals: Totals {
            mapped_chunks: 57,
            unique_chunks: 58,
            live_frame_bytes: 59,
            dead_chunks: 60,
            dead_frame_bytes: 61,
            copied_chunks: 65,
            copy_frame_bytes: 66,
        },
    };
    root.encode(UUID).to_vec()
}

fn record() -> Vec<u8> {
    let body = b"the body of a record";
    let header = RecordHeader {
        length_bytes: record_bytes(body.len()) as u32,
        body_bytes: body.len() as u32,
        kind: RecordKind::Filler,
        incarnation: 1,
        sequence: 2,
        previous_crc: 3,
        settled: Settled { durable_sequence: 4, placed_sequence: 0 },
        uuid_prefix: [5; 8],
    };
    let mut record = vec![0; record_bytes(body.len())];
    encode_record(&header, body, &mut record);
    record
}

/// One of each change of these kinds.
fn changes(kinds: RangeInclusive<u8>) -> Vec<u8> {
    let mut body = Vec::new();
    for change in one_of_each_change() {
        let start = body.len();
        change.encode(&mut body);
        if !kinds.contains(&body[start]) {
            body.truncate(start);
        }
    }
    body
}

fn frame() -> Vec<u8> {
    let payload = b"compressed, they say";
    let mut frame = vec![0; 16];
    frame.extend_from_slice(payload);
    let header = FrameHeader {
        codec: Codec::Zstd,
        stored_bytes: payload.len() as u32,
        plain_bytes: 65_536,
        pbn: PBN,
        domain: DomainId::DEFAULT,
    };
    write_header(&mut frame, &header);
    frame
}

fn directory() -> Vec<u8> {
    let entry = DirectoryEntry {
        fingerprint: numbered_fingerprint(),
        pbn: PBN,
        offset_bytes: PBA.offset_bytes,
        length_bytes: PBA.length_bytes,
    };
    encode_tail(&[entry, entry], ContainerId(0x61), 0x62, UUID)
}

fn catalog() -> Vec<u8> {
    page(TreeId::CATALOG, 0, |page| catalog::set(page, 6, Some(&catalog_entry())))
}

fn catalog_entry() -> CatalogEntry {
    CatalogEntry {
        id: VolumeId(0x71),
        name: "größe".to_owned(),
        size_bytes: 0x72,
        mapped_chunks: 0x73,
        state: VolumeState::Deleting,
        read_only: true,
        quota_bytes: 0,
        reservation_bytes: 0,
        dedup: Dedup::On,
        compression: None,
        domain: None,
        root: tree(6),
        created_generation: 0x74,
        lineage: Lineage::default(),
        kind: VolumeKind::Block,
        flags: VolumeFlags::default(),
    }
}

fn containers() -> Vec<u8> {
    let state = ContainerState::Sealed;
    let entry = ContainerEntry { live_bytes: 1, used_bytes: 2, state, sequence: 3 };
    page(TreeId::CONTAINERS, 0, |page| container_page::set(page, 253, &entry))
}

fn pbas() -> Vec<u8> {
    let entry = PbaEntry { pba: PBA, references: 0x8182_8384, aside: false };
    page(TreeId::PBN_PBA, 0, |page| pba_page::set(page, 253, Some(entry)))
}

fn bucket() -> Vec<u8> {
    page(TreeId::HASH_PBN, 0, |page| {
        bucket::push(page, &numbered_fingerprint(), PBN).unwrap();
        bucket::set_ends_segment(page);
    })
}

/// FNV-1a: a CRC would be blind to some changes of bytes that hold CRCs.
fn digest(bytes: &[u8]) -> u64 {
    let step = |digest: u64, &byte: &u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn version_2_is_written_as_ever() {
    let volume = TreeId::volume(VolumeId(9));
    let written = [
        ("geometry", geometry(Detection::default())),
        ("root", root()),
        ("empty root", empty_root().encode(UUID).to_vec()),
        ("mark", Mark { uuid: UUID, zone: Zone::Data(3) }.encode().to_vec()),
        ("record", record()),
        ("changes", changes(1..=27)),
        ("frame", frame()),
        ("directory", directory()),
        ("catalog", catalog()),
        ("containers", containers()),
        ("PBAs", pbas()),
        ("bucket", bucket()),
        ("map", page(volume, 0, |page| map_page::set(page, 676, PBN))),
        ("pointers", page(volume, 1, |page| pointer_page::set(page, 507, tree(7).pointer))),
    ];
    let found = written.map(|(name, bytes)| (name, bytes.len(), digest(&bytes)));
    assert_eq!(found, VERSION_2);
}

#[test]
fn a_zone_is_told_from_other_files_by_its_beginning() {
    let mark = Mark { uuid: UUID, zone: Zone::Data(3) }.encode();
    for start in [geometry(Detection::default()), mark.to_vec(), record(), frame()] {
        assert!(begins_a_zone(&start));
        assert!(begins_a_zone(&[start.as_slice(), &[7; 9000]].concat()));
    }
    let mut damaged = frame();
    damaged[20] ^= 1;
    let qcow2 = [b"QFI\xfb\0\0\0\x03".as_slice(), &[0; 4096]].concat();
    for other in [vec![], vec![0; 9000], vec![0xff; 9000], qcow2, b"TAMIS-".to_vec(), damaged] {
        assert!(!begins_a_zone(&other), "{:?}", &other[..other.len().min(8)]);
    }
}

const VERSION_2: [(&str, usize, u64); 14] = [
    ("geometry", 4096, 0x1997_de5c_b5ac_ef46),
    ("root", 4096, 0x5fcb_0e98_51e1_7aa5),
    ("empty root", 4096, 0x9970_296b_408b_2641),
    ("mark", 4096, 0x430c_11ac_7ed8_2d34),
    ("record", 4096, 0xe28c_cb94_e9d8_959f),
    ("changes", 459, 0xdf01_6f9a_ffd0_d97e),
    ("frame", 36, 0x8238_7681_10ff_9ed1),
    ("directory", 152, 0xbe28_cc57_003a_1776),
    ("catalog", 4096, 0x3238_2d92_b6ee_4a10),
    ("containers", 4096, 0xe359_3fe4_6802_16c4),
    ("PBAs", 4096, 0x59b2_f31a_a823_b67f),
    ("bucket", 4096, 0x6813_07ad_b003_a19b),
    ("map", 4096, 0x921a_59a4_fd86_625f),
    ("pointers", 4096, 0x81dd_4939_8676_2646),
];

#[test]
fn version_3_says_how_duplicates_are_found() {
    for (number, kind) in (0..).zip(FingerprintKind::ALL) {
        for verify in [false, true] {
            let block = geometry(Detection { kind, verify, ..Default::default() });
            let version = if number == 0 && !verify { 2 } else { 3 };
            assert_eq!(block[12..16], [version, 0, 0, 0], "{kind}");
            assert_eq!(block[76..80], [number, u8::from(verify), 0, 0], "{kind}");
        }
    }
    let block =
        geometry(Detection { kind: FingerprintKind::Sha256, verify: true, ..Default::default() });
    assert_eq!(digest(&block), VERSION_3_GEOMETRY);
}

const VERSION_3_GEOMETRY: u64 = 0x78e5_b016_f617_52f1;

#[test]
fn version_3_has_changes_of_its_own() {
    let body = changes(28..=31);
    let (body, create) = body.split_at(153);
    assert_eq!((body[0], body[51], body[102]), (28, 29, 30));
    // PBN, fingerprint, PBA, check: the same in each.
    assert!(body[1..51] == body[52..102] && body[1..51] == body[103..]);
    assert_eq!(digest(body), VERSION_3_CHANGES);
    // As a volume of version 2 is created, but for the kind and the domain.
    let name = "größe".len();
    assert_eq!((create[0], create.len()), (31, 15 + name + 3 + "Mühle".len()));
    assert_eq!(create[15 + name..][..3], [0x56, 0x34, "Mühle".len() as u8]);
}

#[test]
fn a_record_carries_frames() {
    let carry = [32, 0x52, 0, 0, 0, 0x65, 0, 0, 2, 0, 0, 0x66, 0x67];
    assert_eq!(changes(32..=32), carry);
}

#[test]
fn version_3_says_where_domains_are() {
    let secret = Some(DomainSecret([0xd5; 32]));
    let block = geometry(Detection { secret, ..Default::default() });
    assert_eq!((block[12], block[77]), (3, 2));
    assert_eq!(block[336..368], [0xd5; 32]);
    assert!(!format!("{secret:?}").contains("213"), "the secret was printed");
    let header = FrameHeader {
        codec: Codec::Zstd,
        stored_bytes: 1,
        plain_bytes: 65_536,
        pbn: PBN,
        domain: DomainId::new(0x3456).unwrap(),
    };
    let mut frame = vec![0; 17];
    write_header(&mut frame, &header);
    assert_eq!((frame[7], frame[14], frame[15]), (0x34 << 2 | 2, 128, 0x56));
    let id = DomainId::new(0x3456).unwrap();
    let domain = Some(Domain { id, name: "Mühle".to_owned() });
    let entry = CatalogEntry { domain, ..catalog_entry() };
    let page = page(TreeId::CATALOG, 0, |page| catalog::set(page, 0, Some(&entry)));
    assert_eq!(page[32 + 376..][..9], *b"\x56\x34\x06M\xc3\xbchle");
    let root = Root { domains: 0x3456, ..empty_root() }.encode(UUID);
    assert_eq!(root[280..283], [0x56, 0x34, 0]);
}

#[test]
fn a_volume_says_whether_its_duplicates_are_looked_for() {
    for (dedup, flags, number) in [(Dedup::On, 0, 1), (Dedup::Off, 8, 0), (Dedup::Auto, 16, 2)] {
        let entry = CatalogEntry { dedup, ..catalog_entry() };
        let mut page = Page::empty(PageId { tree: TreeId::CATALOG, level: 0, index: 0 });
        catalog::set(&mut page, 0, Some(&entry));
        let at = &mut page.payload_mut()[1];
        assert_eq!(*at & 24, flags);
        *at |= 24;
        assert!(catalog::get(&page, 0).is_err(), "it was both");
        let mut body = Vec::new();
        Change::SetDedup { id: entry.id, dedup }.encode(&mut body);
        assert_eq!((body[0], body.len(), body[5]), (33, 6, number));
        body[5] = 3;
        assert!(Changes::new(&body).next().unwrap().is_err(), "a way that nobody knows passed");
    }
}

const VERSION_3_CHANGES: u64 = 0x9e6b_f5f8_5ef2_4ddd;

/// What version 1 wrote of a PBA is the same but for the check, which was zeros.
#[test]
fn a_pba_of_version_1_is_one_without_a_check() {
    let mut body = Vec::new();
    let both = [PBA_UNCHECKED, PBA].map(|to| Change::Move { pbn: PBN, to, fingerprint: None });
    both.iter().for_each(|change| change.encode(&mut body));
    assert_eq!((body[0], body[17]), (4, 17));
    assert_eq!(body[1..17], body[18..34]);
    assert_eq!(body[34..], [0x11, 0x12]);
    body[34..].fill(0);
    let decoded: Vec<_> = Changes::new(&body).collect();
    assert!(decoded[0].is_ok() && decoded[1].is_err(), "a checked change without a check passed");
}

#[test]
fn version_4_says_which_features_a_store_has() {
    let features = Features {
        compatible: 0x11 << 56 | 1,
        read_only_compatible: Features::PAIRED,
        pair: Some(Pair { uuid: [0x6a; 16], role: PairRole::Secondary, epoch: 0x6b }),
        ..Features::default().with_incompatible(Features::BUCKETS)
    };
    let block = geometry_with(Detection::default(), features.clone());
    let plain = geometry(Detection::default());
    assert_eq!((block[12], plain[12]), (4, 2));
    assert!(block[16..368] == plain[16..368], "a field of version 2 has changed");
    assert!(plain[368..].iter().all(|&byte| byte == 0));
    assert_eq!(block[368..392], *b"\x01\0\0\0\0\0\0\x11\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
    assert_eq!(block[392..408], [0x6a; 16]);
    assert_eq!(block[408..418], [0x6b, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    assert!(block[418..].iter().all(|&byte| byte == 0));
    assert_eq!(Geometry::decode(&block).unwrap().features, features);
}

#[test]
fn version_4_says_what_kind_a_volume_is() {
    let entry = |kind, compatible| {
        let entry = CatalogEntry { kind, flags: VolumeFlags { compatible }, ..catalog_entry() };
        let mut page = Page::empty(PageId { tree: TreeId::CATALOG, level: 0, index: 0 });
        catalog::set(&mut page, 0, Some(&entry));
        assert_eq!(catalog::get(&page, 0).unwrap(), Some(entry));
        page
    };
    let block = entry(VolumeKind::Block, 0);
    assert!(block.payload()[463..512].iter().all(|&byte| byte == 0));
    let mut bucket = entry(VolumeKind::Bucket, 0x1234_5678);
    assert_eq!(bucket.payload()[463..472], *b"\x01\0\0\0\0\x78\x56\x34\x12");
    bucket.payload_mut()[464] = 1;
    assert!(catalog::get(&bucket, 0).is_err(), "a flag that nobody may ignore was ignored");
    bucket.payload_mut()[464] = 0;
    bucket.payload_mut()[463] = 2;
    assert!(catalog::get(&bucket, 0).is_err(), "a kind that nobody knows passed");
    let body = changes(35..=35);
    let name = "größe".len();
    assert_eq!((body.len(), body[15 + name..].to_vec()), (19 + name, vec![0, 0, 0, 1]));
    let mut plain = body;
    *plain.last_mut().unwrap() = 0;
    assert!(Changes::new(&plain).next().unwrap().is_err(), "an older change makes that volume");
}

#[test]
fn version_4_says_what_a_volumes_frames_are_compressed_with() {
    let page = |compression| {
        let entry = CatalogEntry { compression, ..catalog_entry() };
        let mut page = Page::empty(PageId { tree: TreeId::CATALOG, level: 0, index: 0 });
        catalog::set(&mut page, 0, Some(&entry));
        assert_eq!(catalog::get(&page, 0).unwrap(), Some(entry));
        page
    };
    assert_eq!(page(None).payload()[472..474], [0, 0]);
    let lz4 = Compression { codec: Codec::Lz4, level: 0 };
    assert_eq!(page(Some(lz4)).payload()[472..474], [2, 0]);
    let mut zstd = page(Some(Compression { codec: Codec::Zstd, level: -7 }));
    assert_eq!(zstd.payload()[472..474], [3, 249]);
    zstd.payload_mut()[472] = 4;
    assert!(catalog::get(&zstd, 0).is_err(), "a codec that nobody knows passed");
    let mut body = changes(36..=36);
    assert_eq!((body.len(), body[0], body[5..].to_vec()), (7, 36, vec![3, 9]));
    body[5] = 0;
    assert!(Changes::new(&body).next().unwrap().is_err(), "a level without a codec passed");
}

#[test]
fn version_4_says_what_is_reserved_for_a_volume() {
    let entry = CatalogEntry { reservation_bytes: 0x1234_5678, ..catalog_entry() };
    let mut page = Page::empty(PageId { tree: TreeId::CATALOG, level: 0, index: 0 });
    catalog::set(&mut page, 0, Some(&entry));
    assert_eq!(page.payload()[474..482], *b"\x78\x56\x34\x12\0\0\0\0");
    assert_eq!(catalog::get(&page, 0).unwrap(), Some(entry));
    assert_eq!(changes(37..=37), [37, 0x51, 0, 0, 0, 0x6c, 0, 0, 0, 0, 0, 0, 0]);
}
