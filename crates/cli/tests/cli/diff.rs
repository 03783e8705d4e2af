//! Where two versions differ, as people and programs are told.

use std::fs;

use crate::harness::{Folder, Served, noise, tamis};

#[test]
fn versions_are_compared_offline_and_while_served() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    let mut bytes = noise(1, 1 << 20);
    fs::write(&image, &bytes).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    bytes[8192..12288].copy_from_slice(&noise(2, 4096));
    bytes[12288..20480].fill(0);
    fs::write(&image, &bytes).unwrap();
    tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
    let compare = || {
        let text = tamis(&format!("diff {store} v@a v")).ok().out;
        assert_eq!(
            text,
            "OFFSET  LENGTH  CHANGE\n\
             \u{20} 8192    4096  written\n\
             \u{20}12288    8192  unmapped\n\
             2 ranges differ from v@a to v: 4 KiB written, 8 KiB unmapped\n"
        );
        let told = tamis(&format!("diff {store} v@a v --json")).ok().json();
        assert_eq!((&told["from"], &told["chunk_bytes"]), (&"v@a".into(), &4096.into()));
        assert_eq!(told["written_bytes"], 4096);
        assert_eq!(told["ranges"][1]["unmapped"], true, "{told}");
        let same = tamis(&format!("diff {store} v v")).ok().out;
        assert_eq!(same, "v and v hold the same\n");
        tamis(&format!("diff {store} v@a v@ghost")).fails(3, "no snapshot v@ghost");
    };
    compare();
    let server = Served::start(&store, "");
    compare();
    assert_eq!(server.interrupt(), Some(0));
}
