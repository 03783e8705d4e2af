//! Structures with sound checksums that no program writes: a store is refused, or checked without
//! taking memory for what it claims. Found by the fuzz target `store`.

use disk::MemoryDisk;
use engine::{Codec, Compression, OpenError, Zone};
use format::BLOCK_BYTES;
use format::root::Root;
use format::superblock::{Geometry, ROOT_BLOCKS};
use format::units::CONTAINER_BYTES;

use crate::stand::{CHUNK, MIB, Wish, check, fresh};

const UUID: [u8; 16] = [7; 16];
const CONTAINERS: u32 = 4;

fn geometry() -> Geometry {
    Geometry {
        version: format::FORMAT_VERSION_COMMON,
        uuid: UUID,
        bucket_seed: [9; 16],
        chunk_bytes: 4096,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: 2 << 20,
        tables_bytes: 4 << 20,
        data: vec![CONTAINERS],
        detection: Default::default(),
    }
}

fn new_store() -> MemoryDisk {
    let geometry = geometry();
    let zones: Vec<_> = geometry.zones().collect();
    let disk = MemoryDisk::new(&zones, 1);
    let lz4 = Compression { codec: Codec::Lz4, level: 0 };
    engine::create(Box::new(disk.clone()), &geometry, lz4).unwrap();
    disk
}

/// Changes every root that is there, and makes its checksum right.
fn forge_roots(disk: &MemoryDisk, uuid: [u8; 16], change: impl Fn(&mut Root)) {
    for offset_bytes in ROOT_BLOCKS.map(|block| block * BLOCK_BYTES as u64) {
        let bytes = disk.peek(Zone::Superblock, offset_bytes, BLOCK_BYTES);
        let Ok(mut root) = Root::decode(&bytes, uuid) else { continue };
        change(&mut root);
        for (at, forged) in (offset_bytes..).zip(root.encode(uuid)) {
            disk.corrupt(Zone::Superblock, at, |byte| *byte = forged);
        }
    }
}

#[test]
fn a_root_that_counts_more_chunks_than_fit_is_no_root() {
    let disk = new_store();
    forge_roots(&disk, UUID, |root| root.next_pbn = 1 << 44);
    let checked = engine::check(Box::new(disk.clone()), &mut |_| {});
    assert!(matches!(checked, Err(OpenError::Roots(_))), "{checked:?}");
    assert!(engine::repair(Box::new(disk), &mut |_| {}).is_err());
}

#[test]
fn a_store_has_no_more_containers_than_its_tables_can_list() {
    let listed = 1024 * 254;
    assert_eq!(Geometry { data: vec![listed], ..geometry() }.check(), Ok(()));
    for data in [vec![listed + 1], vec![1 << 28, 3]] {
        assert!(Geometry { data, ..geometry() }.check().is_err());
    }
}

/// A root that counts no dead chunks, and a journal that revives some: no total becomes less than
/// nothing, a check comes to its end, and what is stored is served.
#[test]
fn totals_that_are_too_low_harm_nobody() {
    let wish = Wish::default();
    let stand = wish.stand();
    let volume = stand.volume("v", MIB);
    stand.write(&volume, 0, &fresh(1, 4 * CHUNK));
    stand.flush();
    stand.trim(&volume, 0, 4 * CHUNK);
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    stand.write(&volume, 0, &fresh(1, 4 * CHUNK));
    stand.flush();
    let disk = stand.kill(1);
    let geometry = disk.peek(Zone::Superblock, 0, BLOCK_BYTES);
    forge_roots(&disk, Geometry::decode(&geometry).unwrap().uuid, |root| {
        assert!(root.totals.dead_chunks >= 4 || root.generation == 1, "{root:?}");
        (root.totals.dead_chunks, root.totals.dead_frame_bytes) = (0, 0);
    });
    check(&disk);
    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    assert!(stand.read(&volume, 0, 4 * CHUNK) == fresh(1, 4 * CHUNK));
}
