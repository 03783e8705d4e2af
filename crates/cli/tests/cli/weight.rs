//! What a volume holds and would give back, as people and programs are told.

use std::fs;

use crate::harness::{Folder, Served, noise, tamis};

#[test]
fn a_volume_is_weighed_offline_and_while_served() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    let import = |name: &str, bytes: &[u8]| {
        fs::write(&image, bytes).unwrap();
        tamis(&format!("import {store} {name} {image}")).ok();
    };
    import("v", &[noise(1, 1 << 20), noise(2, 4096).repeat(3)].concat());
    import("w", &noise(1, 8192));
    let look = || {
        let shown = tamis(&format!("volume show {store} v --json")).ok().json();
        let weight = &shown["weight"];
        assert_eq!((&shown["name"], &shown["snapshots"]), (&"v".into(), &0.into()));
        assert_eq!(weight["mapped_bytes"], (1 << 20) + 3 * 4096);
        assert_eq!(weight["chunks"]["chunks"], 257, "{shown}");
        assert_eq!(weight["shared"]["chunks"], 2);
        assert_eq!(weight["freed_by_deletion"]["chunks"], 255);
        assert_eq!(weight["references"][2]["mapped"], 3, "{shown}");
        let text = tamis(&format!("volume show {store} v")).ok().out;
        assert!(text.contains("freed") && text.contains("by its deletion"), "{text}");
        assert!(text.contains("REFERENCES  CHUNKS  MAPPED"), "{text}");
        assert!(text.contains("       3-4       1       3"), "{text}");
        let quick = tamis(&format!("volume show {store} v --quick --json")).ok().json();
        assert!(quick["weight"].is_null() && quick["mapped_bytes"].is_number(), "{quick}");
        let all = tamis(&format!("stats {store} --volumes --json")).ok().json();
        assert_eq!(all["weights"][0]["freed_by_deletion"], weight["freed_by_deletion"], "{all}");
        assert_eq!(all["weights"][1]["name"], "w", "{all}");
        let text = tamis(&format!("stats {store} --volumes")).ok().out;
        assert!(text.contains("VOLUME    MAPPED    UNIQUE"), "{text}");
        weight["freed_by_deletion"]["frame_bytes"].as_u64().unwrap()
    };
    let offline = look();
    let server = Served::start(&store, "");
    assert_eq!(look(), offline);
    assert_eq!(server.interrupt(), Some(0));
    let stored = || {
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        (stats["stored_bytes"].as_u64().unwrap(), stats["deletions"].as_u64().unwrap())
    };
    let (before, _) = stored();
    let server = Served::start(&store, "");
    tamis(&format!("volume delete {store} v --yes")).ok();
    let gone = (0..500).find_map(|_| Some(stored()).filter(|(_, deletions)| *deletions == 0));
    assert_eq!(before - gone.unwrap().0, offline);
    assert_eq!(server.interrupt(), Some(0));
}
