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
        assert!(told.contains(&format!("256 unique chunks of 4 KiB, named by {kind}")), "{told}");
        let found = tamis(&format!("scrub {store} --fingerprint --rate unlimited --json")).ok();
        assert_eq!(found.json()["findings"].as_array().map(Vec::len), Some(0), "{found:?}");
        tamis(&format!("check {store}")).ok();
        tamis(&format!("export {store} v {back}")).ok();
        assert!(fs::read(&back).unwrap() == fs::read(&image).unwrap(), "{kind}");
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
    let found = tamis(&format!("bench detect {image} --json")).ok().json();
    assert_eq!((&found["data_chunks"], &found["zero_chunks"]), (&512.into(), &1.into()));
    let kinds = found["kinds"].as_array().unwrap();
    assert!(kinds.len() == 10 && kinds.iter().all(|by| by["duplicates"] == 256), "{found}");
    let told = tamis(&format!("bench detect {image}")).ok().out;
    assert!(told.contains("blake3") && told.contains("ecc-crc64"), "{told}");
    tamis(&format!("bench detect {image}.not")).fails(3, "image.not");
}
