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
    let found = tamis(&format!("bench detect {image} --json")).ok().json();
    assert_eq!((&found["data_chunks"], &found["zero_chunks"]), (&512.into(), &1.into()));
    let kinds = found["kinds"].as_array().unwrap();
    assert!(kinds.len() == 10 && kinds.iter().all(|by| by["duplicates"] == 256), "{found}");
    let told = tamis(&format!("bench detect {image}")).ok().out;
    assert!(told.contains("blake3") && told.contains("ecc-crc64"), "{told}");
    tamis(&format!("bench detect {image}.not")).fails(3, "image.not");
}
