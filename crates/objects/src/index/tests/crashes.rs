//! Every place where a crash can cut what is written, and what openings write.

use format::objects::header::{INDEX_COPIES_AT_BYTES, RING_AT_BYTES};
use format::objects::log::{GroupHeader, LoggedChange, encode_change, encode_group};

use redb::StorageBackend;
use std::sync::Arc;
use store::ReservedFor;

use super::watched::{
    CHUNK, LITTLE, Model, TestVolume, UUID, Written, apply, create, open, remove, set, store_of,
};
use crate::index::pages::{Pages, PagesOfRedb, read_length};
use crate::index::{Change, Index, IndexError, IndexOptions, Table, VolumeIndex};

fn some_changes(from: u32, count: u32) -> Vec<Change> {
    let change = |number: u32| match number % 5 {
        4 => remove(Table::Objects, (number / 2).to_be_bytes()),
        _ => set(Table::Objects, number.to_be_bytes(), vec![number as u8; 90]),
    };
    (from..from + count).map(change).collect()
}

#[test]
fn behind_every_chunk_that_is_written_a_crash_leaves_what_was_acknowledged() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 16 * CHUNK as u64);
    let mut model = Model::default();
    let mut history = vec![(volume.written_count(), model.clone())];
    for round in 0..6 {
        for part in 0..6 {
            let changes = some_changes(round * 97 + part * 20, 20);
            model.apply(&changes);
            apply(&index, changes);
            history.push((volume.written_count(), model.clone()));
        }
        if round % 2 == 1 {
            assert!(index.merge().unwrap().steps > 2, "several steps");
        }
    }
    let written = volume.written();
    let crashed = TestVolume::new(&store, "crashed");
    let created = history[0].0;
    crashed.repeat(&written[..created - 2]);
    for header in created - 2..created {
        let error = VolumeIndex::open(crashed.clone(), &LITTLE).err();
        assert!(matches!(error, Some(IndexError::Unfinished)), "{error:?}");
        crashed.repeat(&written[header..=header]);
    }
    for kept in created..written.len() {
        let told = &history.iter().rev().find(|(count, _)| *count <= kept).unwrap().1;
        let index = open(&crashed);
        assert_eq!(&Model::of(&index), told, "behind {kept} of {}", written.len());
        if kept % 16 == 0 {
            assert_eq!(index.check().unwrap().damage, [""; 0]);
        }
        crashed.repeat(&written[kept..=kept]);
    }
}

#[test]
fn the_length_is_written_first_when_it_grows_and_last_when_it_shrinks() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let pages = Arc::new(Pages::new(volume.clone(), UUID));
    let redb = PagesOfRedb(Arc::clone(&pages));
    let chunk = CHUNK as u64;
    let change = |length: u64, byte: u8| {
        let before = volume.written_count();
        redb.set_len(length * chunk).unwrap();
        redb.write(0, &[byte; 320]).unwrap();
        redb.write((length - 2) * chunk, &[byte; 2 * CHUNK]).unwrap();
        pages.write_out(ReservedFor::Writes).unwrap().unwrap();
        assert_eq!(read_length(&*volume, UUID).unwrap(), length * chunk);
        volume.written()[before..]
            .iter()
            .map(|one| match one {
                Written::Chunk(at, _) | Written::Trim(at, _) => *at,
            })
            .collect::<Vec<_>>()
    };
    let [copy, mirror] = INDEX_COPIES_AT_BYTES;
    let page = |number: u64| [copy + (number + 1) * chunk, mirror + (number + 1) * chunk];
    let ([first, first_mirror], [header, header_mirror]) = (page(8), page(0));
    let grown = change(10, 1);
    assert_eq!(grown[..3], [copy, mirror, first]);
    assert_eq!(grown[4], first_mirror);
    assert_eq!(grown[6..], [header, header_mirror]);
    let shrunk = change(4, 2);
    assert_eq!(shrunk[4..8], [header, header_mirror, copy, mirror]);
    assert_eq!(shrunk[8..], page(4), "what is behind it is trimmed");
    let mut bytes = [7; 2 * CHUNK];
    assert!(redb.read(3 * chunk, &mut bytes).is_err(), "it ends there");
    redb.set_len(10 * chunk).unwrap();
    redb.read(7 * chunk, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 2 * CHUNK], "what it grows by is zeros");
    redb.read(0, &mut bytes[..320]).unwrap();
    assert_eq!(bytes[..320], [2; 320]);
    pages.discard();
    assert!(redb.write(0, &[1]).is_err() && redb.len().is_err() && redb.sync_data().is_err());
    assert_eq!(
        Pages::open(volume, UUID).map(|pages| PagesOfRedb(Arc::new(pages)).len().unwrap()).unwrap(),
        4 * chunk
    );
}

#[test]
fn an_opening_writes_nothing_and_a_snapshot_opens_as_a_volume_does() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 1 << 20);
    let mut model = Model::default();
    for round in 0..3 {
        model.apply(&some_changes(round * 100, 100));
        apply(&index, some_changes(round * 100, 100));
        if round == 1 {
            index.merge().unwrap();
        }
    }
    drop(index);
    let before = volume.written_count();
    let snapshot = volume.read_only();
    let options = IndexOptions { read_only: true, ..LITTLE };
    let index = VolumeIndex::open(snapshot, &options).unwrap();
    assert_eq!(Model::of(&index), model);
    assert_eq!(index.check().unwrap().damage, [""; 0]);
    let refused = index.apply(some_changes(0, 1), store::Durability::Acknowledged);
    assert!(matches!(refused, Err(IndexError::ReadOnly)));
    assert!(matches!(index.merge(), Err(IndexError::ReadOnly)));
    drop(index);
    assert_eq!(Model::of(&open(&volume)), model);
    assert_eq!(volume.written_count(), before);
}

#[test]
fn the_header_page_is_written_last_and_the_mirror_like_the_pages() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 1 << 20);
    apply(&index, some_changes(0, 10));
    let before = volume.written_count();
    index.merge().unwrap();
    let [copy, mirror] = INDEX_COPIES_AT_BYTES;
    let mut places: Vec<u64> = Vec::new();
    for one in &volume.written()[before..] {
        match one {
            Written::Chunk(at, _) if *at > copy => places.push(*at),
            Written::Chunk(at, _) => panic!("nothing but pages is written, but {at} was"),
            Written::Trim(at, _) => assert!(*at < copy, "the log is trimmed"),
        }
    }
    let (headers, pages) = (&places[places.len() - 2..], &places[..places.len() - 2]);
    assert_eq!(headers, [copy + CHUNK as u64, mirror + CHUNK as u64]);
    let (pages, mirrored) = pages.split_at(pages.len() / 2);
    assert!(pages.is_sorted() && pages.iter().all(|at| *at < mirror));
    assert!(pages.iter().map(|at| at - copy + mirror).eq(mirrored.iter().copied()));
}

#[test]
fn the_same_calls_write_the_same_bytes() {
    let store = store_of(64 << 20);
    let run = |name: &str| {
        let volume = TestVolume::new(&store, name);
        let index = create(&volume, 16 * CHUNK as u64);
        for round in 0..20 {
            apply(&index, some_changes(round * 31, 60));
        }
        index.merge().unwrap();
        volume.written()
    };
    assert!(run("one") == run("other"));
}

/// A user's value is in a group that a crash tears, and its bytes look like the next group.
#[test]
fn bytes_of_users_in_a_torn_group_are_not_taken_for_a_group() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 1 << 20);
    let mut forged_body = Vec::new();
    let forged = LoggedChange { table: 1, key: b"forged", value: Some(b"value") };
    encode_change(forged, &mut forged_body);
    // The next group of one small change has 64 bytes of header, 8 of the change, and these.
    let filling = vec![1; CHUNK - 64 - 8 - 3];
    let header = GroupHeader { uuid: UUID, sequence: 1, position: CHUNK as u64 };
    let mut forged_group = Vec::new();
    encode_group(&header, &forged_body, &mut forged_group);
    let mut value = filling.clone();
    value.extend_from_slice(&forged_group);
    value.resize(3 * CHUNK, 2);
    let before = volume.written_count();
    apply(&index, vec![set(Table::Objects, "key", &value)]);
    let written = volume.written();
    let chunks = written[before..].iter().filter(|one| matches!(one, Written::Chunk(..)));
    assert_eq!(chunks.count(), 4);

    // Its last chunk is lost. The group is torn, and the forged one is at the start of the second.
    let crashed = TestVolume::new(&store, "crashed");
    crashed.repeat(&written[..written.len() - 1]);
    let mut second = [0; CHUNK];
    crashed.inner.read_at(RING_AT_BYTES + CHUNK as u64, &mut second).unwrap();
    assert!(second.starts_with(&forged_group));
    let index = open(&crashed);
    assert_eq!(Model::of(&index), Model::default());
    // A group takes its place that ends where the forged one begins.
    apply(&index, vec![set(Table::Objects, "key", &filling)]);
    let index = open(&crashed);
    assert_eq!(index.get(Table::Objects, b"forged").unwrap(), None);
    assert_eq!(index.get(Table::Objects, b"key").unwrap(), Some(filling));
}

#[test]
fn a_group_of_another_round_place_or_bucket_ends_the_log() {
    let store = store_of(64 << 20);
    let body = |key: &[u8]| {
        let mut body = Vec::new();
        encode_change(LoggedChange { table: 1, key, value: Some(b"value") }, &mut body);
        body
    };
    let first = GroupHeader { uuid: UUID, sequence: 0, position: 0 };
    let mut group = Vec::new();
    encode_group(&first, &body(b"first"), &mut group);
    let second = GroupHeader { uuid: UUID, sequence: 1, position: group.len() as u64 };
    let others = [
        (second, 2),
        (GroupHeader { uuid: [1; 16], ..second }, 1),
        (GroupHeader { sequence: 0, ..second }, 1),
        (GroupHeader { sequence: 2, ..second }, 1),
        (GroupHeader { position: second.position + (16 * CHUNK) as u64, ..second }, 1),
    ];
    for (number, (header, count)) in others.into_iter().enumerate() {
        let volume = TestVolume::new(&store, &format!("bucket-{number}"));
        drop(create(&volume, 16 * CHUNK as u64));
        let mut chunk = group.clone();
        encode_group(&header, &body(b"second"), &mut chunk);
        chunk.resize(CHUNK, 0);
        volume.inner.write_at(RING_AT_BYTES, &chunk).unwrap();
        assert_eq!(Model::of(&open(&volume)).0.len(), count, "{header:?}");
    }
}

#[test]
fn the_ring_goes_round_and_round() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let mut index = create(&volume, 16 * CHUNK as u64);
    let mut model = Model::default();
    for round in 0..300 {
        let changes = some_changes(round % 50 * 13, 30);
        model.apply(&changes);
        apply(&index, changes);
        if round % 37 == 0 {
            index = open(&volume);
        }
    }
    assert_eq!(Model::of(&index), model);
    assert_eq!(Model::of(&open(&volume)), model);
    let ring = volume.places(RING_AT_BYTES, INDEX_COPIES_AT_BYTES[0]);
    assert_eq!(ring.len(), 16, "all of the ring and nothing else");
}
