//! A store that is full.

use std::fs;

use crate::harness::{Folder, noise, tamis};

#[test]
fn a_full_store_says_so_and_goes_on() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (small, large) = (folder.path("small.img"), folder.path("large.img"));
    fs::write(&small, noise(1, 4 << 20)).unwrap();
    fs::write(&large, noise(2, 160 << 20)).unwrap();
    tamis(&format!("import {store} kept {small}")).ok();
    tamis(&format!("import {store} too-much {large}")).fails(6, "full");

    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let out = folder.path("out.img");
    tamis(&format!("export {store} kept {out}")).ok();
    assert!(fs::read(&small).unwrap() == fs::read(&out).unwrap());
    tamis(&format!("check {store}")).ok();
}
