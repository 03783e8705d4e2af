//! Strategies for the values of the format.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use crate::catalog::{CatalogEntry, Dedup, Lineage, Origin, VolumeFlags, VolumeKind, VolumeState};
use crate::container_page::{self, ContainerEntry, ContainerState};
use crate::detection::{Detection, FilterBlocks, FingerprintKind};
use crate::directory::DirectoryEntry;
use crate::domain::{Domain, DomainId, DomainSecret};
use crate::features::{Features, Pair, PairRole};
use crate::mark::Mark;
use crate::pba_page::PbaEntry;
use crate::record::Change;
use crate::root::{
    HashShape, JournalPosition, OpenContainer, Root, STREAMS, Stream, TREES, Totals,
};
use crate::superblock::{DATA_ZONES_MAX, Geometry, JOURNAL_BYTES_MIN};
use crate::units::{
    BLOCK_BYTES, BlockPtr, CONTAINER_BYTES, Codec, Compression, ContainerId, Fingerprint,
    FrameCheck, Lba, PageId, Pba, Pbn, TreeId, TreeRoot, VolumeId, Zone,
};

/// A PBN, often none.
pub(super) fn pbn() -> impl Strategy<Value = Pbn> {
    prop_oneof![1 => Just(Pbn::NONE), 4 => (0..=Pbn::MAX.0).prop_map(Pbn)]
}

pub(super) fn fingerprint() -> impl Strategy<Value = Fingerprint> {
    any::<[u8; 32]>().prop_map(Fingerprint)
}

pub(super) fn pba() -> impl Strategy<Value = Pba> {
    let check = option::of(any::<u32>());
    (any::<u32>(), 0..1u32 << 24, 1..1u32 << 23, check).prop_map(
        |(id, offset_bytes, length_bytes, crc)| Pba {
            container: ContainerId(id),
            offset_bytes,
            length_bytes,
            check: crc.map_or(FrameCheck::UNKNOWN, FrameCheck::of_crc),
        },
    )
}

fn checked_pba() -> impl Strategy<Value = Pba> {
    (pba(), any::<u32>()).prop_map(|(pba, crc)| Pba { check: FrameCheck::of_crc(crc), ..pba })
}

fn dedup(number: u32) -> Dedup {
    Dedup::from_number((number % 3) as u8).unwrap()
}

/// One of those that a volume may have of its own, or none.
fn volume_compression(number: u32) -> Option<Compression> {
    let [codec, level, ..] = number.to_le_bytes();
    let codec = (codec % 4).checked_sub(1).and_then(Codec::from_number);
    codec.map(|codec| Compression { codec, level: level.cast_signed() })
}

pub(super) fn pba_entry() -> impl Strategy<Value = PbaEntry> {
    (pba(), any::<u32>(), any::<bool>()).prop_map(|(pba, references, aside)| PbaEntry {
        pba,
        references,
        aside,
    })
}

pub(super) fn pointer() -> impl Strategy<Value = BlockPtr> {
    let some = (1..BlockPtr::BLOCKS_MAX, any::<u32>());
    prop_oneof![Just(BlockPtr::NONE), some.prop_map(|(block, crc)| BlockPtr::new(block, crc))]
}

pub(super) fn tree_root() -> impl Strategy<Value = TreeRoot> {
    (pointer(), 1..=TreeRoot::DEPTH_MAX).prop_map(|(pointer, depth)| TreeRoot { pointer, depth })
}

pub(super) fn page_id() -> impl Strategy<Value = PageId> {
    let tree = prop_oneof![
        (0..TREES as u32).prop_map(TreeId),
        (0..1u32 << 31).prop_map(|id| TreeId::volume(VolumeId(id))),
    ];
    (tree, any::<u8>(), any::<u64>()).prop_map(|(tree, level, index)| PageId { tree, level, index })
}

pub(super) fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_äöü€][a-zA-Z0-9 ._äöü€-]{0,80}"
}

pub(super) fn compression() -> impl Strategy<Value = Compression> {
    (select(vec![Codec::Raw, Codec::Lz4, Codec::Zstd]), any::<i8>())
        .prop_map(|(codec, level)| Compression { codec, level })
}

pub(super) fn container_entry() -> impl Strategy<Value = ContainerEntry> {
    let states = vec![ContainerState::Free, ContainerState::Open, ContainerState::Sealed];
    (any::<u32>(), any::<u32>(), select(states), any::<u32>()).prop_map(
        |(live_bytes, used_bytes, state, sequence)| ContainerEntry {
            live_bytes,
            used_bytes,
            state,
            sequence,
        },
    )
}

pub(super) fn catalog_entry() -> impl Strategy<Value = CatalogEntry> {
    let state = select(vec![VolumeState::Live, VolumeState::Deleting]);
    let numbers = (any::<u32>(), any::<[u64; 4]>());
    let flags = (state, any::<bool>());
    (numbers, name(), flags, tree_root(), lineage(), option::of(domain())).prop_map(
        |(numbers, name, (state, read_only), root, lineage, domain)| {
            let (id, [size_bytes, mapped_chunks, created_generation, quota_bytes]) = numbers;
            CatalogEntry {
                id: VolumeId(id),
                name,
                size_bytes,
                mapped_chunks,
                state,
                read_only,
                quota_bytes,
                reservation_bytes: mapped_chunks / 2,
                dedup: dedup(id),
                compression: volume_compression(id),
                domain,
                root,
                created_generation,
                lineage,
                kind: VolumeKind::from_number((id % 2) as u8).unwrap(),
                flags: VolumeFlags { compatible: id },
            }
        },
    )
}

pub(super) fn domain_id() -> impl Strategy<Value = DomainId> {
    (0..=DomainId::COUNT_MAX).prop_map(|number| DomainId::new(number).unwrap())
}

fn domain() -> impl Strategy<Value = Domain> {
    (domain_id().prop_filter("keyed", |id| id.is_keyed()), name())
        .prop_filter("short", |(_, name)| Domain::is_name(name))
        .prop_map(|(id, name)| Domain { id, name })
}

fn origin() -> impl Strategy<Value = Origin> {
    (1..u128::MAX, any::<u32>())
        .prop_map(|(uuid, number)| Origin { uuid: uuid.to_le_bytes(), number })
}

fn lineage() -> impl Strategy<Value = Lineage> {
    let relatives = (any::<Option<u32>>(), any::<Option<u32>>(), option::of(origin()));
    let numbers = any::<[u64; 4]>();
    (relatives, numbers).prop_map(|((parent, snapshot_of, origin), [taken, back, from, to])| {
        Lineage {
            parent: parent.map(VolumeId),
            snapshot_of: snapshot_of.map(VolumeId),
            taken_unix_s: taken,
            given_back_leaves: back,
            cut_leaves: from..to,
            origin,
        }
    })
}

pub(super) fn directory_entry() -> impl Strategy<Value = DirectoryEntry> {
    (fingerprint(), pbn(), 0..2u32 << 20, 1..65_552u32).prop_map(
        |(fingerprint, pbn, offset_bytes, length_bytes)| DirectoryEntry {
            fingerprint,
            pbn,
            offset_bytes,
            length_bytes,
        },
    )
}

pub(super) fn detection() -> impl Strategy<Value = Detection> {
    let kind = proptest::sample::select(&FingerprintKind::ALL[..]);
    let secret = any::<Option<[u8; 32]>>();
    (kind, any::<bool>(), 2..28_u32, secret).prop_map(|(kind, verify, bits, secret)| Detection {
        kind,
        verify: verify || !kind.is_strong(),
        filter: FilterBlocks::nearest_to(bits).unwrap_or_default(),
        secret: secret.map(DomainSecret),
        asides: bits % 2 == 0,
    })
}

fn features() -> impl Strategy<Value = Features> {
    let pair = option::of((1..u128::MAX, select(PairRole::ALL.to_vec()), any::<u64>()));
    (any::<u64>(), any::<[bool; 2]>(), pair).prop_map(|(compatible, [buckets, codecs], pair)| {
        let features = Features {
            compatible,
            read_only_compatible: if pair.is_some() { Features::PAIRED } else { 0 },
            pair: pair.map(|(uuid, role, epoch)| Pair { uuid: uuid.to_le_bytes(), role, epoch }),
            ..Features::default()
        };
        let bits = [(buckets, Features::BUCKETS), (codecs, Features::VOLUME_CODECS)];
        let bits = bits.into_iter().filter(|(has, _)| *has).map(|(_, bit)| bit);
        features.with_incompatible(bits.sum())
    })
}

pub(super) fn geometry() -> impl Strategy<Value = Geometry> {
    let block = BLOCK_BYTES as u64;
    let lengths = (12..=16u32, 0..1u64 << 30, 1..1u64 << 40);
    let data = vec(1..1u32 << 26, 1..=DATA_ZONES_MAX);
    let ways = (detection(), prop_oneof![Just(Features::default()), features()]);
    (any::<[u8; 16]>(), any::<[u8; 16]>(), lengths, data, ways).prop_map(
        move |(uuid, bucket_seed, (chunk_bits, journal, tables), data, (detection, features))| {
            let containers: u64 = data.iter().map(|&containers| u64::from(containers)).sum();
            let tables = tables.max(containers.div_ceil(container_page::SLOTS as u64));
            // One zone at least is left.
            let features = match data.len() {
                2.. if features.any() && bucket_seed[0] % 2 == 0 => features.without_zone(1),
                _ => features,
            };
            let geometry = Geometry {
                version: crate::FORMAT_VERSION,
                uuid,
                bucket_seed,
                chunk_bytes: 1 << chunk_bits,
                container_bytes: CONTAINER_BYTES,
                journal_bytes: JOURNAL_BYTES_MIN + journal * block,
                tables_bytes: tables * block,
                data,
                detection,
                marked: journal % 2 == 0,
                features,
            };
            Geometry { version: geometry.least_version(), ..geometry }
        },
    )
}

pub(super) fn mark() -> impl Strategy<Value = Mark> {
    let data = (0..DATA_ZONES_MAX as u16).prop_map(Zone::Data);
    let zone = prop_oneof![Just(Zone::Journal), Just(Zone::Tables), data];
    (any::<[u8; 16]>(), zone).prop_map(|(uuid, zone)| Mark { uuid, zone })
}

pub(super) fn root() -> impl Strategy<Value = Root> {
    (counters(), numbers(), totals(), compression(), [open_container(), open_container()]).prop_map(
        |(counters, numbers, totals, compression, open_containers)| Root {
            compression,
            open_containers,
            totals,
            free_head: numbers.free_head,
            free_tail: numbers.free_tail,
            next_pbn: numbers.next_pbn,
            next_volume: numbers.next_volume,
            domains: numbers.domains,
            catalog_slots: numbers.catalog_slots,
            next_container_sequence: numbers.next_container_sequence,
            label: numbers.catalog_slots / 3,
            ..counters
        },
    )
}

fn counters() -> impl Strategy<Value = Root> {
    let journal = (any::<u64>(), 0..1u64 << 50, any::<u32>());
    let hash = (any::<bool>(), 0..1u64 << 47, 0..1u64 << 47, 0..1u64 << 47, any::<u64>());
    let trees = proptest::array::uniform10(tree_root());
    (any::<u64>(), any::<bool>(), journal, any::<u64>(), trees, hash).prop_map(
        |(
            generation,
            clean,
            journal,
            next_incarnation,
            trees,
            (turn, before, small, large, entries),
        )| Root {
            generation,
            clean,
            journal: JournalPosition {
                sequence: journal.0,
                offset_bytes: journal.1 * BLOCK_BYTES as u64,
                previous_crc: journal.2,
            },
            next_incarnation,
            trees,
            hash: HashShape {
                turn,
                before,
                after: large,
                merged: small.min(large),
                entries,
                tail: large,
                sealed: small.min(large),
            },
            ..empty_root()
        },
    )
}

fn numbers() -> impl Strategy<Value = Root> {
    let queue = (any::<u64>(), any::<u64>());
    let volumes = (any::<u32>(), any::<u16>());
    (any::<u64>(), queue, volumes, any::<u64>(), any::<u32>()).prop_map(
        |(next_pbn, (a, b), (next_volume, domains), catalog_slots, next_container_sequence)| Root {
            next_pbn,
            free_head: a.min(b),
            free_tail: a.max(b),
            next_volume,
            domains,
            catalog_slots,
            next_container_sequence,
            ..empty_root()
        },
    )
}

fn totals() -> impl Strategy<Value = Totals> {
    any::<[u64; 7]>().prop_map(|[mapped, unique, live, dead, dead_bytes, copied, copies]| Totals {
        mapped_chunks: mapped,
        unique_chunks: unique,
        live_frame_bytes: live,
        dead_chunks: dead,
        dead_frame_bytes: dead_bytes,
        copied_chunks: copied,
        copy_frame_bytes: copies,
    })
}

fn open_container() -> impl Strategy<Value = Option<OpenContainer>> {
    option::of(any::<[u32; 3]>().prop_map(|[id, fill_bytes, sequence]| OpenContainer {
        id: ContainerId(id),
        fill_bytes,
        sequence,
    }))
}

/// The root of a store in which nothing ever happened.
pub(super) fn empty_root() -> Root {
    Root {
        generation: 0,
        clean: false,
        journal: JournalPosition::default(),
        next_incarnation: 0,
        compression: Compression::default(),
        trees: [TreeRoot::default(); TREES],
        hash: HashShape::default(),
        next_pbn: 0,
        free_head: 0,
        free_tail: 0,
        next_volume: 0,
        domains: 0,
        catalog_slots: 0,
        open_containers: [None; STREAMS],
        next_container_sequence: 0,
        totals: Totals::default(),
        label: 0,
    }
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        chunk_change(),
        container_change(),
        volume_change(),
        version_change(),
        store_change()
    ]
}

fn chunk_change() -> impl Strategy<Value = Change> {
    let run = (any::<u32>(), any::<u64>(), vec(pbn(), 0..200));
    let gap = (any::<u32>(), any::<u64>(), any::<u64>());
    prop_oneof![
        (pbn(), fingerprint(), pba()).prop_map(|(pbn, fingerprint, pba)| Change::Store {
            pbn,
            fingerprint,
            pba
        }),
        run.prop_map(|(volume, first, pbns)| {
            Change::Map { volume: VolumeId(volume), first: Lba(first), pbns }
        }),
        gap.prop_map(|(volume, first, count)| {
            Change::Unmap { volume: VolumeId(volume), first: Lba(first), count }
        }),
        (pbn(), fingerprint(), checked_pba())
            .prop_map(|(pbn, fingerprint, pba)| { Change::StoreAside { pbn, fingerprint, pba } }),
        (pbn(), pba()).prop_map(|(pbn, to)| Change::Move { pbn, to, fingerprint: None }),
        (pbn(), option::of(fingerprint()), checked_pba())
            .prop_map(|(pbn, fingerprint, to)| Change::Move { pbn, to, fingerprint }),
        (pbn(), option::of(fingerprint()), checked_pba())
            .prop_map(|(pbn, fingerprint, at)| Change::Copy { pbn, at, fingerprint }),
        pbn().prop_map(|pbn| Change::DropCopy { pbn }),
        (pbn(), fingerprint()).prop_map(|(pbn, fingerprint)| Change::Forget { pbn, fingerprint }),
        (any::<u32>(), 0..1u32 << 24, vec(any::<u8>(), 0..5000)).prop_map(
            |(id, offset_bytes, bytes)| {
                Change::Carry { container: ContainerId(id), offset_bytes, bytes }
            }
        ),
    ]
}

fn container_change() -> impl Strategy<Value = Change> {
    (any::<u32>(), any::<u32>()).prop_flat_map(|(id, number)| {
        let id = ContainerId(id);
        select(vec![
            Change::OpenContainer { id, sequence: number, stream: Stream::Clients },
            Change::OpenContainer { id, sequence: number, stream: Stream::Collection },
            Change::SealContainer { id, used_bytes: number },
            Change::FreeContainer { id },
        ])
    })
}

fn volume_change() -> impl Strategy<Value = Change> {
    (any::<u32>(), any::<u64>(), any::<bool>(), name(), option::of(domain())).prop_flat_map(
        |(id, size_bytes, read_only, name, domain)| {
            let kind = VolumeKind::from_number((size_bytes % 2) as u8).unwrap();
            let (id, called) = (VolumeId(id), name.clone());
            select(vec![
                Change::CreateVolume { id, size_bytes, read_only, name: called, domain, kind },
                Change::ResizeVolume { id, size_bytes },
                Change::RenameVolume { id, name },
                Change::DeleteVolume { id },
                Change::DropVolume { id },
            ])
        },
    )
}

fn version_change() -> impl Strategy<Value = Change> {
    (any::<[u32; 3]>(), any::<u64>(), any::<u64>(), name(), origin()).prop_flat_map(
        |(ids, one, other, name, origin)| {
            let [volume, id, into] = ids.map(VolumeId);
            select(vec![
                Change::TakeSnapshot { volume, id, taken_unix_s: one, name: name.clone() },
                Change::CloneVolume { snapshot: volume, id, name },
                Change::CutOff { volume, into, leaves: one..other },
                Change::Rollback { volume, to: id, into },
                Change::GiveBack { id, leaves: one },
                Change::SetQuota { id, quota_bytes: other },
                Change::SetDedup { id, dedup: dedup(other as u32) },
                Change::SetVolumeCompression { id, compression: volume_compression(one as u32) },
                Change::SetReservation { id, reservation_bytes: one },
                Change::SetOrigin { id, origin },
            ])
        },
    )
}

fn store_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        compression().prop_map(Change::SetCompression),
        any::<u64>().prop_map(|incarnation| Change::Opened { incarnation }),
    ]
}

/// A PBN whose bytes all differ.
pub(super) const PBN: Pbn = Pbn(0x0605_0403_0201);

/// A PBA whose bytes all differ.
pub(super) const PBA: Pba = Pba {
    container: ContainerId(0x0a09_0807),
    offset_bytes: 0x0d_0c0b,
    length_bytes: 0x10_0f0e,
    check: FrameCheck::of_crc(0x1211),
};

/// The same as version 1 had it.
pub(super) const PBA_UNCHECKED: Pba = Pba { check: FrameCheck::UNKNOWN, ..PBA };

/// A fingerprint whose bytes all differ.
pub(super) fn numbered_fingerprint() -> Fingerprint {
    let mut bytes = [0; 32];
    (0x80..).zip(&mut bytes).for_each(|(number, byte)| *byte = number);
    Fingerprint(bytes)
}

/// Every kind of change, in the order of their numbers.
pub(super) fn one_of_each_change() -> Vec<Change> {
    let (volume, container, name) = (VolumeId(0x51), ContainerId(0x52), "größe".to_owned());
    let (pbn, first, fingerprint) = (PBN, Lba(0x5354), numbered_fingerprint());
    let domain = Domain { id: DomainId::new(0x3456).unwrap(), name: "Mühle".to_owned() };
    let create = |domain| {
        let (size_bytes, name, kind) = (0x58, name.clone(), VolumeKind::Block);
        Change::CreateVolume { id: volume, size_bytes, read_only: true, name, domain, kind }
    };
    let bucket = Change::CreateVolume {
        id: volume,
        size_bytes: 0x58,
        read_only: true,
        name: name.clone(),
        domain: None,
        kind: VolumeKind::Bucket,
    };
    vec![
        Change::Store { pbn, fingerprint, pba: PBA_UNCHECKED },
        Change::Map { volume, first, pbns: vec![PBN, Pbn::NONE] },
        Change::Unmap { volume, first, count: 0x55 },
        Change::Move { pbn, to: PBA_UNCHECKED, fingerprint: None },
        Change::Forget { pbn, fingerprint },
        Change::OpenContainer { id: container, sequence: 0x56, stream: Stream::Clients },
        Change::SealContainer { id: container, used_bytes: 0x57 },
        Change::FreeContainer { id: container },
        create(None),
        Change::ResizeVolume { id: volume, size_bytes: 0x59 },
        Change::RenameVolume { id: volume, name: name.clone() },
        Change::DeleteVolume { id: volume },
        Change::DropVolume { id: volume },
        Change::SetCompression(Compression { codec: Codec::Lz4, level: 1 }),
        Change::Opened { incarnation: 0x5a },
        Change::Store { pbn, fingerprint, pba: PBA },
        Change::Move { pbn, to: PBA, fingerprint: None },
        Change::TakeSnapshot { volume, id: VolumeId(0x5b), taken_unix_s: 0x5c, name: name.clone() },
        Change::CloneVolume { snapshot: volume, id: VolumeId(0x5d), name: name.clone() },
        Change::CutOff { volume, into: VolumeId(0x5e), leaves: 0x5f..0x60 },
        Change::Rollback { volume, to: VolumeId(0x61), into: VolumeId(0x62) },
        Change::GiveBack { id: volume, leaves: 0x63 },
        Change::Copy { pbn, at: PBA, fingerprint: None },
        Change::DropCopy { pbn },
        Change::OpenContainer { id: container, sequence: 0x56, stream: Stream::Collection },
        Change::SetQuota { id: volume, quota_bytes: 0x64 },
        Change::StoreAside { pbn, fingerprint, pba: PBA },
        Change::Move { pbn, to: PBA, fingerprint: Some(fingerprint) },
        Change::Copy { pbn, at: PBA, fingerprint: Some(fingerprint) },
        create(Some(domain)),
        Change::Carry { container, offset_bytes: 0x65, bytes: vec![0x66, 0x67] },
        Change::SetDedup { id: volume, dedup: Dedup::Auto },
        Change::SetOrigin { id: volume, origin: Origin { uuid: [0x68; 16], number: 0x69 } },
        bucket,
        Change::SetVolumeCompression {
            id: volume,
            compression: Some(Compression { codec: Codec::Zstd, level: 9 }),
        },
        Change::SetReservation { id: volume, reservation_bytes: 0x6c },
    ]
}
