//! Structures with sound checksums that no program writes: a store is refused, or checked without
//! taking memory for what it claims. Found by the fuzz target `store`.

use disk::MemoryDisk;
use engine::{Codec, CollectRequest, Compression, OpenError, Problem, Zone, structures};
use format::checksum::crc32c;
use format::page::Page;
use format::root::{Root, Totals};
use format::superblock::{Geometry, ROOT_BLOCKS};
use format::units::{CONTAINER_BYTES, Pbn, TreeId, VolumeId};
use format::{BLOCK_BYTES, catalog, container_page, map_page, pba_page};

use crate::stand::{CHUNK, MIB, Opens, Wish, check, check_clean, fresh};

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
        marked: false,
        features: Default::default(),
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

/// Where a page's header has four bytes that nothing reads in a page that passes its check.
const SPARE_AT: usize = 20;

/// Changes the spare bytes of a page so that its checksum is what it was `before`: each bit of
/// them does to the checksum what it does in any page, and some of the bits make any difference.
fn keep_checksum(page: &mut Page, before: &Page) {
    let crc = |bytes: &[u8]| crc32c(&bytes[4..]);
    let still = [0; BLOCK_BYTES];
    let mut wanted = crc(page.as_bytes()) ^ crc(before.as_bytes());
    // Effects and the bits that have them, reduced until each leads with a bit of its own.
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for bit in 0..32 {
        let mut one = still;
        one[SPARE_AT + bit / 8] = 1 << (bit % 8);
        let row = (crc(&one) ^ crc(&still), 1 << bit);
        let lesser = |row: (u32, u32), by: &(u32, u32)| match row.0 ^ by.0 < row.0 {
            true => (row.0 ^ by.0, row.1 ^ by.1),
            false => row,
        };
        rows.push(rows.iter().fold(row, lesser));
        rows.sort_unstable_by(|a, b| b.cmp(a));
    }
    let mut patch = 0;
    for (effect, bits) in rows {
        if wanted ^ effect < wanted {
            (wanted, patch) = (wanted ^ effect, patch ^ bits);
        }
    }
    let spare = &mut page.as_bytes_mut()[SPARE_AT..SPARE_AT + 4];
    spare.iter_mut().zip(patch.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
    assert_eq!(crc(page.as_bytes()), crc(before.as_bytes()));
}

/// The newest version of a tree's first leaf, and where it is in the tables.
fn first_leaf(disk: &MemoryDisk, tree: TreeId) -> (u64, Page) {
    let map = structures(Box::new(disk.left_by_kill(1))).unwrap();
    let leaves = map.iter().filter(|structure| structure.kind.ends_with(", leaf"));
    let pages = leaves.map(|leaf| {
        let bytes = disk.peek(leaf.zone, leaf.offset_bytes, BLOCK_BYTES);
        (leaf.offset_bytes, Page::from_bytes(&bytes).unwrap())
    });
    let is_wanted = |page: &Page| page.id().tree == tree && page.id().index == 0;
    let wanted = pages.filter(|(_, page)| is_wanted(page));
    let newest = wanted.max_by_key(|(_, page)| page.generation());
    newest.unwrap_or_else(|| panic!("no leaf of {tree}"))
}

/// Changes a tree's first leaf; no checksum tells, and no tag.
fn forge_leaf(disk: &MemoryDisk, tree: TreeId, change: impl Fn(&mut Page)) {
    let (offset_bytes, before) = first_leaf(disk, tree);
    let mut page = before.clone();
    change(&mut page);
    assert!(page != before, "{tree}");
    keep_checksum(&mut page, &before);
    for (at, &forged) in (offset_bytes..).zip(page.as_bytes()) {
        disk.corrupt(Zone::Tables, at, |byte| *byte = forged);
    }
}

/// An LBA that is mapped in the store below.
const MAPPED: usize = 3;

/// A closed store with chunks that live, chunks that are dead, and PBNs that are free.
fn with_all_tables() -> MemoryDisk {
    let wish = Wish::default();
    let stand = wish.stand();
    let volume = stand.volume("v", 8 * MIB);
    for number in 0..1100 {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    stand.flush();
    stand.trim(&volume, 100 * CHUNK, 990 * CHUNK);
    let mut request = CollectRequest::default();
    loop {
        request.position = stand.client.ask(request).unwrap().next;
        if request.position.is_none() {
            break;
        }
    }
    stand.trim(&volume, 90 * CHUNK, 10 * CHUNK);
    let disk = stand.close();
    check_clean(&disk);
    disk
}

/// Names of the problems that a check finds in a store that was changed so.
fn found(disk: &MemoryDisk, change: impl Fn(&MemoryDisk)) -> Vec<String> {
    let forged = disk.left_by_kill(1);
    change(&forged);
    let problems = check(&forged).problems;
    let name = |told: String| told.split([' ', '{']).next().unwrap_or_default().to_owned();
    problems.iter().map(|problem| name(format!("{problem:?}"))).collect()
}

/// A lie, and the problem that it is.
type Lie<'a> = (&'a str, &'a dyn Fn(&MemoryDisk));

/// Those that a check does not call by their names.
fn unnamed(disk: &MemoryDisk, lies: &[Lie<'_>]) -> Vec<String> {
    let told = lies.iter().enumerate().map(|(row, (name, lie))| {
        let found = found(disk, lie);
        (!found.iter().any(|found| found == name)).then(|| format!("{row}, {name}: {found:?}"))
    });
    told.flatten().collect()
}

/// What the simulator calls sound is what a check says is: so each lie that a table can tell under
/// a right checksum is called by its name.
#[test]
fn a_check_names_every_lie_of_a_table() {
    let disk = with_all_tables();
    let volume = |change: &dyn Fn(&mut catalog::CatalogEntry), disk: &MemoryDisk| {
        forge_leaf(disk, TreeId::CATALOG, |page| {
            let mut entry = catalog::get(page, 0).unwrap().unwrap();
            change(&mut entry);
            catalog::set(page, 0, Some(&entry));
        });
    };
    // Of the live chunks, the second.
    let chunk = |change: &dyn Fn(&mut pba_page::PbaEntry, pba_page::PbaEntry),
                 disk: &MemoryDisk| {
        forge_leaf(disk, TreeId::PBN_PBA, |page| {
            let chunk = |slot| pba_page::get(page, slot).filter(|entry| entry.references > 0);
            let live = |slot| chunk(slot).map(|entry| (slot, entry));
            let live: Vec<_> = (0..pba_page::SLOTS).filter_map(live).take(2).collect();
            let [(_, first), (slot, mut second)] = live[..] else { panic!("{live:?}") };
            change(&mut second, first);
            pba_page::set(page, slot, Some(second));
        });
    };
    // Of those that hold something, the first.
    let container = |change: &dyn Fn(&mut container_page::ContainerEntry), disk: &MemoryDisk| {
        forge_leaf(disk, TreeId::CONTAINERS, |page| {
            let entry = |slot| container_page::get(page, slot).unwrap();
            let slot = (0..container_page::SLOTS).find(|&slot| entry(slot).live_bytes > 0).unwrap();
            let mut entry = entry(slot);
            change(&mut entry);
            container_page::set(page, slot, &entry);
        });
    };
    let map = TreeId::volume(VolumeId(1));
    let live = map_page::get(&first_leaf(&disk, map).1, MAPPED);
    let lies: [Lie<'_>; 11] = [
        ("MapNamesNoChunk", &|disk| {
            forge_leaf(disk, map, |page| map_page::set(page, MAPPED, Pbn(1 << 40)));
        }),
        ("MapBeyondEnd", &|disk| volume(&|entry| entry.size_bytes = CHUNK, disk)),
        ("MappedCount", &|disk| volume(&|entry| entry.mapped_chunks += 1, disk)),
        ("MappedCount", &|disk| volume(&|entry| entry.mapped_chunks -= 1, disk)),
        ("References", &|disk| chunk(&|entry, _| entry.references += 1, disk)),
        ("FramesOverlap", &|disk| {
            chunk(&|entry, first| entry.pba.offset_bytes = first.pba.offset_bytes + 1, disk);
        }),
        ("FrameMisplaced", &|disk| container(&|entry| entry.used_bytes = 1, disk)),
        ("LiveBytes", &|disk| container(&|entry| entry.live_bytes += 1, disk)),
        ("LiveBytes", &|disk| container(&|entry| entry.live_bytes -= 1, disk)),
        ("FreePbnInUse", &|disk| {
            forge_leaf(disk, TreeId::FREE_PBNS, |page| {
                let twice = map_page::get(page, 1);
                map_page::set(page, 0, twice);
            });
        }),
        ("FreePbnInUse", &|disk| {
            forge_leaf(disk, TreeId::FREE_PBNS, |page| map_page::set(page, 0, live));
        }),
    ];
    let unnamed = unnamed(&disk, &lies);
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

/// Each of them, too high and too low.
#[test]
fn a_check_names_every_total_that_is_off() {
    let disk = with_all_tables();
    type Total = (&'static str, fn(&mut Totals) -> &mut u64);
    let totals: [Total; 7] = [
        ("mapped chunks", |totals| &mut totals.mapped_chunks),
        ("unique chunks", |totals| &mut totals.unique_chunks),
        ("bytes of live frames", |totals| &mut totals.live_frame_bytes),
        ("dead chunks", |totals| &mut totals.dead_chunks),
        ("bytes of dead frames", |totals| &mut totals.dead_frame_bytes),
        ("second copies", |totals| &mut totals.copied_chunks),
        ("bytes of second copies", |totals| &mut totals.copy_frame_bytes),
    ];
    let uuid = Geometry::decode(&disk.peek(Zone::Superblock, 0, BLOCK_BYTES)).unwrap().uuid;
    for (name, total) in totals {
        for added in [1, u64::MAX] {
            let forged = disk.left_by_kill(1);
            forge_roots(&forged, uuid, |root| {
                let total = total(&mut root.totals);
                *total = total.wrapping_add(added);
            });
            let problems = check(&forged).problems;
            let is_it = |problem: &Problem| {
                matches!(problem, Problem::Total { what, counted, recorded }
                    if what == name && *recorded == counted.wrapping_add(added))
            };
            assert!(problems.len() == 1 && is_it(&problems[0]), "{name}: {problems:?}");
        }
    }
}
