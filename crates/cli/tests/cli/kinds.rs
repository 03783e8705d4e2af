//! What makes fingerprints is chosen with `init`, shown, and kept to.

use std::fs;

use crate::harness::{Folder, noise, tamis};

#[test]
fn a_store_names_chunks_as_it_was_told() {
    for kind in ["blake3", "sha256", "sha3-256", "sha512-256", "blake2b"] {
        let folder = Folder::new();
        let (store, image, back) =
            (folder.path("store"), folder.path("image"), folder.path("back"));
        let made = tamis(&format!("init {store} --capacity 64M --fingerprint {kind} --json")).ok();
        assert_eq!(made.json()["fingerprint"], kind);
        fs::write(&image, noise(1, 1 << 20).repeat(2)).unwrap();
        tamis(&format!("import {store} v {image}")).ok();
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        assert_eq!((&stats["fingerprint"], &stats["verify"]), (&kind.into(), &false.into()));
        assert_eq!(stats["unique_chunks"], 256, "{kind}");
        let told = tamis(&format!("stats {store}")).ok().out;
        assert!(told.contains("256 unique chunks of 4 KiB"), "{told}");
        assert!(told.lines().any(|line| line.starts_with("fingerprint") && line.ends_with(kind)));
        let found = tamis(&format!("scrub {store} --fingerprint --rate unlimited --json")).ok();
        assert_eq!(found.json()["findings"].as_array().map(Vec::len), Some(0), "{found:?}");
        tamis(&format!("check {store}")).ok();
        tamis(&format!("export {store} v {back}")).ok();
        assert!(fs::read(&back).unwrap() == fs::read(&image).unwrap(), "{kind}");
    }
}

/// Multiples of the polynomials behind the codes of `ecc-bch` and `ecc-crc64`, added to a chunk.
fn twins(chunk: &[u8]) -> [Vec<u8>; 2] {
    let bch = (0x115_f914_e07b_0c13_8741_c5c4_fb23_u128 << 23).to_be_bytes();
    let crc64 = u128::from(0xad93_d235_94c9_3659_u64.reverse_bits()) << 1 | 1;
    [bch, crc64.to_le_bytes()].map(|pattern| {
        let mut twin = chunk.to_vec();
        twin[900..].iter_mut().zip(pattern).for_each(|(byte, added)| *byte ^= added);
        twin
    })
}

#[test]
fn a_store_that_compares_keeps_what_only_shares_a_fingerprint() {
    let chunks = noise(1, 1 << 20);
    let [bch, crc64] = twins(&chunks[..4096]);
    let all = [chunks.clone(), bch.clone(), crc64.clone(), chunks, bch, crc64].concat();
    // A chunk aside is stored again each time.
    let kinds =
        [("blake3", 0), ("sha1", 0), ("md5", 0), ("xxh3", 0), ("ecc-bch", 1), ("ecc-crc64", 1)];
    for (kind, stored_again) in kinds {
        let folder = Folder::new();
        let (store, image, back) =
            (folder.path("store"), folder.path("image"), folder.path("back"));
        tamis(&format!("init {store} --capacity 64M --fingerprint {kind} --verify")).ok();
        fs::write(&image, &all).unwrap();
        tamis(&format!("import {store} v {image}")).ok();
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        assert_eq!((&stats["fingerprint"], &stats["verify"]), (&kind.into(), &true.into()));
        assert_eq!(stats["unique_chunks"], 258 + stored_again, "{kind}");
        tamis(&format!("check {store}")).ok();
        tamis(&format!("scrub {store} --fingerprint --rate unlimited")).ok();
        tamis(&format!("export {store} v {back}")).ok();
        assert!(fs::read(&back).unwrap() == all, "{kind}");
    }
}

#[test]
fn what_two_chunks_may_share_is_refused_alone() {
    let folder = Folder::new();
    let store = folder.path("store");
    for kind in ["sha1", "md5", "xxh3", "ecc-bch", "ecc-crc64"] {
        tamis(&format!("init {store} --capacity 64M --fingerprint {kind}")).fails(2, "--verify");
        assert!(!folder.join("store").exists(), "{kind}");
    }
    tamis(&format!("init {store} --fingerprint crc32")).fails(2, "use one of blake3, sha256");
}

#[test]
fn the_ways_to_find_a_duplicate_are_compared_over_files() {
    let folder = Folder::new();
    let image = folder.path("image");
    fs::write(&image, [noise(1, 1 << 20).repeat(2), vec![0; 4096]].concat()).unwrap();
    let found = tamis(&format!("bench detect {image} --in-memory --json")).ok().json();
    assert_eq!((&found["data_chunks"], &found["zero_chunks"]), (&512.into(), &1.into()));
    let ways = found["kinds"].as_array().unwrap();
    let [kinds @ .., auto, sampling] = ways.as_slice() else { panic!("{found}") };
    assert!(kinds.len() == 10 && kinds.iter().all(|by| by["duplicates"] == 256), "{found}");
    // What comes twice is what sampling never finds.
    assert!(sampling["duplicates"] == 0 && sampling["hashes"] == 256, "{found}");
    assert!(sampling["lost"] == 256 && auto["lost"] == 0 && auto["kind"] == "auto", "{found}");
    assert_eq!(found["stores"].as_array().map(Vec::len), Some(0));
    let told = tamis(&format!("bench detect {image} --in-memory")).ok().out;
    assert!(told.contains("blake3") && told.contains("sampling"), "{told}");
    tamis(&format!("bench detect {image}.not")).fails(3, "image.not");
}

#[test]
fn the_same_chunks_go_to_a_store_of_every_kind() {
    let folder = Folder::new();
    let (image, dir, plots) = (folder.path("image"), folder.path("stores"), folder.path("plots"));
    fs::create_dir(&dir).unwrap();
    let chunks = noise(1, 1 << 20);
    let all = [chunks.clone(), twins(&chunks[..4096]).concat(), chunks].concat();
    fs::write(&image, all).unwrap();
    let command = format!("bench detect {image} --dir {dir} --writes 40 --plots {plots}");
    let found = tamis(&format!("{command} --json")).ok().json();
    let stores = found["stores"].as_array().unwrap();
    assert_eq!(stores.len(), 11, "{found}");
    for store in stores {
        let (way, cases) = (store["way"].as_str().unwrap(), &store["cases"]);
        // A twin of the first chunk by its code is stored aside.
        let asides = u64::from(way.starts_with("ecc-"));
        assert_eq!(store["duplicates"], 256, "{store}");
        let equal = if way.ends_with("--verify") { 256 } else { 0 };
        assert_eq!((&cases["equal"], &cases["differ"]), (&equal.into(), &asides.into()), "{way}");
        let new = cases["denied"].as_u64().unwrap() + cases["absent"].as_u64().unwrap();
        assert_eq!(new, 258 - asides, "{store}");
        for latency in ["acknowledged", "durable_depth_1", "durable_depth_32"] {
            let [p50, p99] = ["p50_us", "p99_us"].map(|name| store[latency][name].as_f64());
            assert!(p50 > Some(0.0) && p50 <= p99, "{latency}: {store}");
        }
    }
    let told = tamis(&command).ok().out;
    assert!(told.contains("xxh3 --verify") && told.contains("DURABLE 32"), "{told}");
    for plot in ["time-in-memory", "found-in-memory", "throughput", "latency", "look-ups"] {
        let svg = fs::read_to_string(folder.join("plots").join(format!("{plot}.svg"))).unwrap();
        assert!(svg.contains("blake3"), "{plot}");
    }
    let swept = tamis(&format!("bench detect {image} --dir {dir} --writes 40 --sweep --json"));
    let swept = swept.ok().json();
    let stores = swept["stores"].as_array().unwrap();
    assert!(stores.iter().all(|store| store["way"] == "ecc-crc64 --verify"), "{swept}");
    assert!(stores.iter().all(|store| store["duplicates"] == 256), "{swept}");
    assert_eq!((&stores[0]["distance_bytes"], &stores[0]["ahead_bytes"]), (&0.into(), &0.into()));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "a store was left behind");
    // Told before anything is read: this image cannot be.
    fs::write(&image, b"QFI\xfb and no more").unwrap();
    tamis(&format!("bench detect {image} --dir {dir}")).fails(2, &image);
    tamis(&format!("bench detect {image} --dir {dir}/not")).fails(3, "make it first");
}
