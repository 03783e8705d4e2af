//! Volumes in domains: made, listed, imported into, and kept apart.

use std::fs;

use crate::harness::{Folder, Served, listed as all_in, noise, tamis};

#[test]
fn what_tenants_store_is_shared_inside_their_domain_only() {
    let folder = Folder::new();
    let (store, image, back) = (folder.store("64M"), folder.path("image"), folder.path("back"));
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    let said = tamis(&format!("volume create {store} a1 --size 1M --domain A")).ok().out;
    assert!(said.contains("created a1: 1 MiB, in domain A, which is new"), "{said}");
    let said = tamis(&format!("volume create {store} b1 --size 1M --domain B")).ok().out;
    assert!(said.contains("in domain B, which is new beside A"), "{said}");
    let said = tamis(&format!("volume create {store} a2 --size 1M --domain A")).ok().out;
    assert!(said.ends_with("in domain A\n"), "{said}");
    let unique = || tamis(&format!("stats {store} --json")).ok().json()["unique_chunks"].clone();
    let imports = [("a1", ""), ("a2", "--domain A"), ("b1", ""), ("c", ""), ("a3", "--domain A")];
    for ((volume, domain), stored) in imports.into_iter().zip([256, 256, 512, 768, 768]) {
        tamis(&format!("import {store} {volume} {image} {domain}")).ok();
        assert_eq!(unique(), stored, "{volume}");
    }
    tamis(&format!("import {store} a1 {image} --overwrite --domain B --yes"))
        .fails(7, "a1 is in another domain");
    tamis(&format!("import {store} c {image} --overwrite --domain B --yes"))
        .fails(7, "another domain");
    tamis(&format!("volume create {store} d --size 1M --domain a/b")).fails(2, "name a domain");

    let listed = tamis(&format!("volume list {store}")).ok().out;
    assert!(listed.starts_with("VOLUME"), "{listed}");
    let first = listed.lines().next().unwrap_or_default();
    assert!(first.ends_with("DOMAIN"), "{listed}");
    let json = tamis(&format!("volume list {store} --json")).ok().json();
    let domains: Vec<_> = all_in(&json).iter().map(|v| v["domain"].as_str()).collect();
    assert_eq!(domains, [Some("A"), Some("A"), Some("A"), Some("B"), None]);
    let shown = tamis(&format!("volume show {store} b1")).ok().out;
    assert!(shown.contains("domain") && shown.contains("256 chunks"), "{shown}");
    let told = tamis(&format!("stats {store}")).ok().out;
    assert!(told.contains("5 volumes, 2 domains of their own"), "{told}");

    tamis(&format!("snapshot create {store} b1@s")).ok();
    let stream = folder.path("stream");
    let said = tamis(&format!("export {store} b1@s {stream} --stream")).ok().err;
    assert!(said.contains("b1@s is in domain B, which a stream does not say"), "{said}");
    tamis(&format!("import {store} b3 {stream} --domain B")).ok();
    assert_eq!(unique(), 768, "{stream}");
    tamis(&format!("clone {store} b1@s b2")).ok();
    let clone = tamis(&format!("volume show {store} b2 --quick --json")).ok().json();
    assert_eq!(clone["domain"], "B");
    tamis(&format!("check {store}")).ok();
    tamis(&format!("scrub {store} --fingerprint --rate unlimited")).ok();
    tamis(&format!("export {store} b2 {back}")).ok();
    assert!(fs::read(&back).unwrap() == fs::read(&image).unwrap());
}

/// The first domain of a store may begin while it is served; later ones and other openings go on
/// with its secret.
#[test]
fn a_domain_begins_while_the_store_is_served() {
    let folder = Folder::new();
    let (store, image) = (folder.store("64M"), folder.path("image"));
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    let served = Served::start(&store, "");
    for (volume, domain) in [("a", "A"), ("b", "B")] {
        let made =
            tamis(&format!("volume create {store} {volume} --size 1M --domain {domain} --json"));
        assert_eq!(made.ok().json()["domain"], domain);
    }
    tamis(&format!("volume create {store} c --size 1M --domain a@b")).fails(2, "name a domain");
    assert_eq!(served.interrupt(), Some(0));
    for (volume, stored) in [("a", 256), ("b", 512)] {
        tamis(&format!("import {store} {volume} {image}")).ok();
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        assert_eq!(stats["unique_chunks"], stored, "{volume}");
    }
    tamis(&format!("check {store}")).ok();
}
