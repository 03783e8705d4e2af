//! Buckets whose chunks rot in the store's data file: `tamis check --repair` makes a new index of
//! what can be read.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use engine::Opener;
use engine::control::Explain;
use format::BLOCK_BYTES;
use format::objects::VALUES_START_BYTES;
use format::objects::header::INDEX_COPIES_AT_BYTES;
use store::{Options, Store, Volume};

use crate::harness::{Folder, noise, tamis};

const OBJECTS: u32 = 300;

fn key(number: u32) -> String {
    format!("objects/{number:04}")
}

fn bytes_of(number: u32) -> Vec<u8> {
    noise(u64::from(number) + 1, 3000)
}

/// A store with a bucket of many objects.
fn filled(folder: &Folder) -> String {
    let store = folder.store("128M");
    let files = folder.join("files");
    fs::create_dir_all(files.join("objects")).unwrap();
    for number in 0..OBJECTS {
        fs::write(files.join(key(number)), bytes_of(number)).unwrap();
    }
    tamis(&format!("bucket create {store} photos")).ok();
    tamis(&format!("put -r {} {store}/photos/", files.display())).ok();
    store
}

/// Blocks of the bucket's volume that the closed store holds, with what they hold.
fn with_volume<T>(store: &str, look: impl FnOnce(&Store, &Volume) -> T) -> T {
    let store = Store::open(Path::new(store), Options::default()).unwrap();
    let opened = store.client().open_volume("photos", Opener::new("a test", 0)).unwrap();
    let volume = Volume::new(store.client().clone(), opened);
    let found = look(&store, &volume);
    drop(volume);
    store.close().unwrap();
    found
}

/// Places of leaves of the index that have the key of one object, of this moment and before.
fn leaves_of(store: &str, number: u32) -> Vec<u64> {
    let wanted = key(number);
    with_volume(store, |_, volume| {
        let has_key = |place: &u64| {
            let mut page = [0; BLOCK_BYTES];
            volume.read_at(INDEX_COPIES_AT_BYTES[0] + place, &mut page).unwrap();
            let mut parts = page.windows(wanted.len());
            page[0] == 1 && parts.any(|part| part == wanted.as_bytes())
        };
        let places = (1..2000).map(|block| block * BLOCK_BYTES as u64);
        places.filter(has_key).collect()
    })
}

/// Spoils the frames of these places of the bucket's volume in the store's data file.
fn rot(store: &str, places: &[u64]) {
    let frames: BTreeSet<u64> = with_volume(store, |store, _| {
        let of_place = |place: &u64| {
            let lba = place / BLOCK_BYTES as u64;
            let address = engine::Address::Lba(lba);
            let verb = Explain { volume: "photos".to_owned(), address };
            let found = store.client().ask(verb).unwrap();
            found.chunk.unwrap().place.unwrap().zone_offset_bytes
        };
        places.iter().map(of_place).collect()
    });
    assert_eq!(frames.len(), places.len(), "each copy has a frame of its own");
    let data = OpenOptions::new().read(true).write(true).open(format!("{store}/data")).unwrap();
    for at in frames {
        let mut bytes = [0; 16];
        data.read_exact_at(&mut bytes, at + 100).unwrap();
        data.write_all_at(&bytes.map(|byte| !byte), at + 100).unwrap();
    }
}

/// Numbers of the objects that can be read, each with the bytes that were put.
fn readable(folder: &Folder, store: &str) -> Vec<u32> {
    let out = folder.path("out");
    let _ = fs::remove_dir_all(&out);
    tamis(&format!("get -r {store}/photos/objects {out}")).ok();
    let mut numbers: Vec<u32> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    for number in &numbers {
        assert!(fs::read(format!("{out}/{number:04}")).unwrap() == bytes_of(*number));
    }
    numbers
}

#[test]
fn a_leaf_that_rots_in_both_copies_costs_its_objects_and_no_others() {
    let folder = Folder::new();
    let store = filled(&folder);
    let leaves = leaves_of(&store, 150);
    let in_both = |leaf: u64| INDEX_COPIES_AT_BYTES.map(|copy| copy + leaf);
    rot(&store, &leaves.into_iter().flat_map(in_both).collect::<Vec<u64>>());
    let found = tamis(&format!("check {store}"));
    assert_eq!(found.code, Some(5), "{found:?}");
    let repaired = tamis(&format!("check {store} --repair --json"));
    assert_eq!(repaired.code, Some(9), "{repaired:?}");
    assert!(repaired.err.contains("1 bucket and repaired, but not without losses"), "{repaired:?}");
    let document = repaired.json();
    let repair = &document["buckets"][0]["repair"];
    assert_eq!(repair["lost_count"], 1, "{document}");
    let sentence = repair["sentences"][0].as_str().unwrap();
    assert!(sentence.starts_with("objects behind objects/01"), "{sentence}");
    assert!(sentence.contains(" may be lost: "), "{sentence}");
    assert_eq!(document["repair"]["left"].as_array().unwrap().len(), 0, "{document}");

    let kept = readable(&folder, &store);
    assert!((200..OBJECTS as usize).contains(&kept.len()), "{}", kept.len());
    assert!(!kept.contains(&150));
    assert_eq!(repair["objects"], kept.len());
    let sound = tamis(&format!("check {store}")).ok().out;
    assert!(sound.contains(&format!("bucket photos is sound: {} objects", kept.len())), "{sound}");
    assert_eq!(tamis(&format!("check {store} --repair")).ok().out.matches("lost").count(), 0);
    let listed = tamis(&format!("bucket list {store}")).ok().out;
    assert!(!listed.contains("repairing"), "{listed}");
    let file = folder.path("files/objects/0150");
    tamis(&format!("put {file} {store}/photos/objects/0150")).ok();
    assert!(readable(&folder, &store).contains(&150));
    tamis(&format!("check {store}")).ok();
}

#[test]
fn the_first_page_that_rots_in_both_copies_costs_nothing() {
    let folder = Folder::new();
    let store = filled(&folder);
    rot(&store, &INDEX_COPIES_AT_BYTES.map(|copy| copy + BLOCK_BYTES as u64));
    tamis(&format!("ls {store}/photos")).fails(5, "");
    let repaired = tamis(&format!("check {store} --repair"));
    assert_eq!(repaired.code, Some(8), "{repaired:?}");
    assert!(repaired.out.contains("bucket photos has a new index: it keeps 300 objects"));
    assert_eq!(readable(&folder, &store).len(), OBJECTS as usize);
    tamis(&format!("check {store}")).ok();
}

#[test]
fn an_object_with_a_chunk_that_rots_is_named_and_stays() {
    let folder = Folder::new();
    let store = filled(&folder);
    rot(&store, &[VALUES_START_BYTES + 7 * BLOCK_BYTES as u64]);
    let repaired = tamis(&format!("check {store} --repair --json"));
    assert_eq!(repaired.code, Some(9), "{repaired:?}");
    let document = repaired.json();
    let bucket = &document["buckets"][0];
    assert_eq!((&bucket["damaged_count"], &bucket["objects"]), (&1.into(), &OBJECTS.into()));
    assert!(bucket["repair"].is_null(), "its index is whole: {document}");
    let damaged = bucket["damaged_keys"][0].as_str().unwrap().to_owned();
    tamis(&format!("get {store}/photos/{damaged} {}", folder.path("lost"))).fails(5, "");
    let found = tamis(&format!("check {store}"));
    assert_eq!(found.code, Some(5), "{found:?}");
    assert!(
        found.out.contains(&damaged) && found.out.contains("photos has a sound index"),
        "{found:?}"
    );
    // When it is put again, nothing is lost any more.
    tamis(&format!("put {} {store}/photos/{damaged}", folder.path(&format!("files/{damaged}"))))
        .ok();
    assert_eq!(readable(&folder, &store).len(), OBJECTS as usize);
}

/// A mirror that rots is no damage to users, and a repair makes both copies whole.
#[test]
fn one_copy_that_rots_is_repaired_without_loss() {
    let folder = Folder::new();
    let store = filled(&folder);
    let leaves = leaves_of(&store, 10).into_iter().map(|leaf| INDEX_COPIES_AT_BYTES[1] + leaf);
    rot(&store, &leaves.collect::<Vec<u64>>());
    assert_eq!(tamis(&format!("check {store} --repair")).code, Some(8));
    assert_eq!(readable(&folder, &store).len(), OBJECTS as usize);
    tamis(&format!("check {store}")).ok();
}
