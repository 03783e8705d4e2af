//! One address, walked through the tables.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::harness::{Folder, Served, noise, tamis};

#[test]
fn an_address_is_explained_offline_and_while_served() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    let chunk = noise(1, 4096);
    fs::write(&image, [chunk.clone(), vec![0; 4096], chunk.clone(), noise(2, 8 << 20)].concat())
        .unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let offline = tamis(&format!("explain {store} v 2 --json")).ok().json();
    let place = &offline["chunk"]["place"];
    assert_eq!((&place["references"], &offline["lba"]), (&2.into(), &2.into()), "{offline}");
    assert_eq!(place["frame"]["named_pbn"], offline["chunk"]["pbn"], "{offline}");
    let text = tamis(&format!("explain {store} v --offset 8K")).ok().out;
    assert!(text.contains("LBAs name it") && text.contains("names this PBN"), "{text}");
    assert!(text.contains(" of data\n") && place["zone"] == "data", "{text}");
    let hole = tamis(&format!("explain {store} v 1")).ok().out;
    assert!(hole.contains("reads as zeros"), "{hole}");
    tamis(&format!("explain {store} v")).fails(2, "<LBA|--offset <SIZE>>");
    tamis(&format!("explain {store} v 99999999")).fails(2, "there is no chunk 99999999");
    tamis(&format!("explain {store} w 0")).fails(3, "no volume w");

    let server = Served::start(&store, "");
    let served = tamis(&format!("explain {store} v 2 --json")).ok().json();
    assert_eq!(served["chunk"]["place"]["frame"], offline["chunk"]["place"]["frame"]);
    tamis(&format!("explain {store} w 0")).fails(3, "no volume w");
    assert_eq!(server.interrupt(), Some(0));

    let at = place["zone_offset_bytes"].as_u64().unwrap() + 100;
    let data =
        fs::OpenOptions::new().read(true).write(true).open(folder.join("store/data")).unwrap();
    let mut byte = [0];
    data.read_exact_at(&mut byte, at).unwrap();
    data.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let told = tamis(&format!("explain {store} v 2")).fails(5, "chunk 2 of volume v is damaged");
    assert!(told.out.contains("damaged"), "{told:?}");
}
