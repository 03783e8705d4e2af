//! A store whose bytes were changed under it: reads fail, nothing wrong is returned.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::harness::{Folder, noise, tamis};

#[test]
fn changed_bytes_are_found_and_never_returned() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.path("in.img"), folder.path("out.img"));
    fs::write(&image, noise(3, 8 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("check {store}")).ok();

    let data = OpenOptions::new().read(true).write(true).open(folder.join("store/data")).unwrap();
    let mut bytes = [0; 16];
    data.read_exact_at(&mut bytes, 1 << 20).unwrap();
    data.write_all_at(&bytes.map(|byte| !byte), 1 << 20).unwrap();

    let found = tamis(&format!("check {store} --json"));
    assert_eq!(found.code, Some(5), "{found:?}");
    assert_eq!(found.json()["sound"], false);
    assert!(!found.json()["sentences"].as_array().unwrap().is_empty());
    let exported = tamis(&format!("export {store} v {out}"));
    assert_eq!(exported.code, Some(5), "{exported:?}");
    assert!(!folder.join("out.img").exists());
    // Whoever reads a pipe learns from nothing else that this was not all.
    let piped = tamis(&format!("export {store} v -"));
    assert_eq!(piped.code, Some(5), "{piped:?}");
}
