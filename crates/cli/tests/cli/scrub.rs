//! Scrub on real files: damage found and healed, pauses, a served store with clients on it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Folder, Outcome, Served, command, installed, noise, tamis};

/// Flips bytes of the store's data in the middle of the chunk that begins with `start`.
fn spoil(folder: &Folder, start: &[u8]) {
    let path = folder.join("store/data");
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(start.len()).position(|window| window == start).unwrap() + 1000;
    let data = File::options().write(true).open(&path).unwrap();
    data.write_all_at(&[!bytes[at], !bytes[at + 1]], at as u64).unwrap();
}

/// A store whose volume `v` has this content; chunk 40 of it is a file as well, `piece.img`.
fn imported(folder: &Folder) -> (String, Vec<u8>) {
    let store = folder.store("64M");
    let (image, piece) = (folder.path("in.img"), folder.path("piece.img"));
    let content = noise(3, 8 << 20);
    fs::write(&image, &content).unwrap();
    fs::write(&piece, &content[40 * 4096..41 * 4096]).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    (store, content)
}

#[test]
fn damage_is_named_stays_known_and_heals_when_its_content_comes_again() {
    let folder = Folder::new();
    let (store, content) = imported(&folder);
    let piece = folder.path("piece.img");
    assert!(tamis(&format!("scrub {store}")).ok().out.starts_with("all is sound: 2,048 frames"));
    let status = tamis(&format!("scrub {store} --status")).ok().out;
    assert!(
        status.contains("no scrub is under way") && status.contains("all is sound"),
        "{status}"
    );

    spoil(&folder, &content[40 * 4096..40 * 4096 + 64]);
    let found = tamis(&format!("scrub {store} --fingerprint --json"));
    assert_eq!(found.code, Some(5), "{found:?}");
    let json = found.json();
    assert_eq!((&json["sound"], &json["complete"]), (&false.into(), &true.into()), "{json}");
    let sentences = json["sentences"].to_string();
    assert!(sentences.contains("volume v from chunk 40 on"), "{sentences}");
    assert_eq!(json["frames"], 2047);

    // Whoever opens the store next knows it.
    assert_eq!(tamis(&format!("stats {store} --json")).ok().json()["damaged_chunks"], 1);
    assert!(tamis(&format!("stats {store}")).ok().out.contains("damaged"));
    assert_eq!(tamis(&format!("export {store} v {}", folder.path("no.img"))).code, Some(5));
    tamis(&format!("import {store} w {piece}")).ok();
    assert_eq!(tamis(&format!("stats {store} --json")).ok().json()["damaged_chunks"], 0);
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == content);
    tamis(&format!("scrub {store} --fingerprint")).ok();
    tamis(&format!("check {store}")).ok();
}

/// Puts a frame of other bytes, with the checksum that goes with them and the check of the old one,
/// in the place of that of the chunk that begins with `start`.
fn spoil_beneath_checksum(folder: &Folder, start: &[u8]) {
    let path = folder.join("store/data");
    let bytes = fs::read(&path).unwrap();
    let place = bytes.windows(start.len()).position(|window| window == start).unwrap();
    let at = place - format::frame::FRAME_HEADER_BYTES;
    let mut frame = bytes[at..place + 4096].to_vec();
    let check = format::frame::check_of(&frame);
    let (header, _) = format::frame::decode(&frame).unwrap();
    for number in 0_u32.. {
        frame[1000..1004].copy_from_slice(&number.to_le_bytes());
        format::frame::write_header(&mut frame, &header);
        if format::frame::check_of(&frame) == check && frame != bytes[at..place + 4096] {
            break;
        }
    }
    let data = File::options().write(true).open(&path).unwrap();
    data.write_all_at(&frame, at as u64).unwrap();
}

/// Lets the last scrub have been interrupted at `position`, with `findings` so far.
fn interrupt_at(folder: &Folder, position: &Value, findings: impl Fn(&Value) -> bool) {
    let path = folder.join("store/scrub.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut run = record["last"].take();
    run["position"] = position.clone();
    run["findings"].as_array_mut().unwrap().retain(findings);
    record["run"] = run;
    fs::write(&path, record.to_string()).unwrap();
}

/// Forgets `key` of each damaged chunk that is remembered; all of them if there is none.
fn forget_damaged(folder: &Folder, key: Option<&str>) {
    let path = folder.join("store/scrub.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let damaged = record["damaged"].as_array_mut().unwrap();
    assert_eq!(damaged.len(), 1);
    match key {
        Some(key) => drop(damaged[0].as_object_mut().unwrap().remove(key).unwrap()),
        None => damaged.clear(),
    }
    fs::write(&path, record.to_string()).unwrap();
}

#[test]
fn what_only_fingerprints_show_is_told_by_every_scrub_until_it_heals() {
    let folder = Folder::new();
    let (store, content) = imported(&folder);
    let piece = folder.path("piece.img");
    spoil_beneath_checksum(&folder, &content[40 * 4096..40 * 4096 + 64]);
    tamis(&format!("scrub {store}")).ok();
    let sentence = "does not have the fingerprint it is stored under";
    // One that does not look at fingerprints, interrupted, is not what is asked for.
    let at_the_end = json!({"stage": "losses", "volume": 0, "leaf": 0});
    interrupt_at(&folder, &at_the_end, |_| true);
    let found = tamis(&format!("scrub {store} --fingerprint"));
    assert!(found.code == Some(5) && found.out.contains(sentence), "{found:?}");

    // Interrupted behind it, and taken up by another process.
    let behind = json!({"stage": "containers", "container": 1});
    interrupt_at(&folder, &behind, |finding| finding["problem"] == "wrong_fingerprint");
    let found = tamis(&format!("scrub {store} --fingerprint"));
    assert!(found.code == Some(5) && found.err.contains("going on at"), "{found:?}");
    assert!(found.out.contains("volume v from chunk 40 on"), "{found:?}");

    let found = tamis(&format!("scrub {store}"));
    assert!(found.code == Some(5) && found.out.contains(sentence), "{found:?}");
    // Earlier releases did not say what had shown it.
    forget_damaged(&folder, Some("checksum_fits"));
    assert_eq!(tamis(&format!("stats {store} --json")).ok().json()["damaged_chunks"], 1);
    tamis(&format!("import {store} w {piece}")).ok();
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == content);
    tamis(&format!("scrub {store} --fingerprint")).ok();
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_scrub_that_goes_on_calls_healed_what_has_been_read_again() {
    let folder = Folder::new();
    let (store, content) = imported(&folder);
    let piece = folder.path("piece.img");
    spoil(&folder, &content[40 * 4096..40 * 4096 + 64]);
    assert_eq!(tamis(&format!("scrub {store}")).code, Some(5));

    // As a store is opened that has more damage than can be recalled at once.
    let at_the_end = json!({"stage": "losses", "volume": 0, "leaf": 0});
    interrupt_at(&folder, &at_the_end, |finding| finding["problem"] == "damaged_frame");
    forget_damaged(&folder, None);
    let found = tamis(&format!("scrub {store}"));
    assert!(found.code == Some(5) && found.out.contains("volume v from chunk 40 on"), "{found:?}");
    assert_eq!(tamis(&format!("stats {store} --json")).ok().json()["damaged_chunks"], 1);

    interrupt_at(&folder, &at_the_end, |finding| finding["problem"] == "damaged_frame");
    tamis(&format!("import {store} w {piece}")).ok();
    assert!(tamis(&format!("scrub {store}")).ok().out.contains("all is sound, 1 healed"));
}

#[test]
fn a_chunk_that_many_addresses_share_outlives_either_of_its_frames() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.path("in.img"), folder.path("out.img"));
    let content = [noise(3, 1 << 20), noise(4, 4096).repeat(1100)].concat();
    fs::write(&image, &content).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!((&stats["copied_chunks"], &stats["copy_bytes"]), (&1.into(), &4112.into()));
    assert!(tamis(&format!("stats {store}")).ok().out.contains("second copies"), "{stats}");
    tamis(&format!("check {store}")).ok();

    let place = || tamis(&format!("explain {store} v 300 --json")).ok().json()["chunk"].take();
    let spoil = |offset_bytes: &serde_json::Value| {
        let data = File::options().write(true).open(folder.join("store/data")).unwrap();
        data.write_all_at(&[9; 64], offset_bytes.as_u64().unwrap() + 1000).unwrap();
    };
    spoil(&place()["place"]["zone_offset_bytes"]);
    let damage = tamis(&format!("check {store}"));
    assert!(damage.code == Some(5) && !damage.out.contains("lost"), "{damage:?}");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == content);
    tamis(&format!("check {store}")).ok();

    for frame in ["/place/zone_offset_bytes", "/place/second_copy/zone_offset_bytes"] {
        spoil(place().pointer(frame).unwrap());
        let healed = tamis(&format!("scrub {store}")).ok().out;
        assert!(healed.contains("(healed)"), "{healed}");
        assert!(tamis(&format!("scrub {store}")).ok().out.starts_with("all is sound"));
        tamis(&format!("check {store}")).ok();
    }
    assert!(tamis(&format!("explain {store} v 300")).ok().out.contains("second copy"));
}

/// A repair leaves no damage, and addresses that nothing can be read from. They are named by all
/// that is asked, until each of them is written again or gone.
#[test]
fn what_a_repair_gave_up_is_told_by_every_scrub_until_it_is_written_anew() {
    let folder = Folder::new();
    let (store, content) = imported(&folder);
    tamis(&format!("snapshot create {store} v@s")).ok();
    assert!(tamis(&format!("scrub {store}")).ok().out.starts_with("all is sound"));
    spoil(&folder, &content[40 * 4096..40 * 4096 + 64]);
    assert_eq!(tamis(&format!("check {store} --repair")).code, Some(9));
    let sound = "all is sound";
    let status = || tamis(&format!("scrub {store} --status")).ok().out;
    let stats = || tamis(&format!("stats {store}")).ok().out;
    assert!(!status().contains(sound) && status().contains("abandoned 2 chunks"), "{}", status());
    // A second repair does not give them up once more.
    let journal = OpenOptions::new().write(true).open(folder.join("store/journal")).unwrap();
    journal.set_len(8192).unwrap();
    assert_eq!(tamis(&format!("check {store} --repair")).code, Some(9));
    assert!(status().contains("abandoned 2 chunks"), "{}", status());
    assert!(stats().contains("`tamis scrub` says"), "{}", stats());

    let in_both = |found: Outcome| {
        let told = ["volume v from chunk 40 on", "volume v@s from chunk 40 on"];
        let both = told.iter().all(|told| found.out.contains(told));
        assert!(found.code == Some(5) && both && !found.out.contains(sound), "{found:?}");
    };
    in_both(tamis(&format!("scrub {store}")));
    in_both(tamis(&format!("scrub {store} --fingerprint")));
    assert!(!status().contains(sound), "{}", status());
    assert!(stats().contains("2 chunks when"), "{}", stats());
    let server = Served::start(&store, "");
    in_both(tamis(&format!("scrub {store}")));
    assert_eq!(server.interrupt(), Some(0));

    let image = folder.path("in.img");
    tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
    let found = tamis(&format!("scrub {store}"));
    assert!(found.code == Some(5) && !found.out.contains("volume v from"), "{found:?}");
    assert!(stats().contains("1 chunk when"), "{}", stats());
    tamis(&format!("snapshot delete {store} v@s --yes")).ok();
    assert!(tamis(&format!("scrub {store}")).ok().out.starts_with(sound));
    assert!(status().contains(sound) && !stats().contains("lost"), "{}", stats());
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_copy_of_the_geometry_heals_and_that_is_no_damage() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let path = folder.join("store/superblock");
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[9; 8], 3 * 4096).unwrap();
    let healed = tamis(&format!("scrub {store}")).ok().out;
    assert!(healed.contains("geometry in block 3") && healed.contains("(healed)"), "{healed}");
    assert!(tamis(&format!("scrub {store}")).ok().out.starts_with("all is sound: 0 frames"));
}

#[test]
fn a_paused_scrub_goes_on_where_it_was() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.path("in.img");
    fs::write(&image, noise(5, 40 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let line = format!("scrub {store} --rate 1M");
    let mut slow = command(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while tamis(&format!("scrub {store} --status --json")).ok().json()["running"] != true {}
    tamis(&format!("scrub {store}")).fails(4, "is being scrubbed by another process");
    let pid = Pid::from_raw(i32::try_from(slow.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(slow.wait().unwrap().code(), Some(130));

    let status = tamis(&format!("scrub {store} --status")).ok().out;
    assert!(status.starts_with("paused at "), "{status}");
    let resumed = tamis(&format!("scrub {store} --json")).ok();
    assert!(resumed.err.contains("going on at "), "{resumed:?}");
    let json = resumed.json();
    assert_eq!((&json["complete"], &json["frames"]), (&true.into(), &10_240.into()), "{json}");
    let status = tamis(&format!("scrub {store} --status --json")).ok().json();
    assert_eq!((&status["running"], &status["complete"]), (&false.into(), &true.into()));
}

/// Copies write over each other, so that chunks die, containers are collected and used again.
#[test]
fn a_served_store_is_scrubbed_while_it_is_written() {
    if !installed("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let store = folder.path("store");
    let served = Served::start(&store, "--create --capacity 96M --size 24M");
    let uri = served.uri();
    let images: Vec<String> = (0..4)
        .map(|number| {
            let image = folder.path(&format!("{number}.img"));
            fs::write(&image, noise(number + 20, 24 << 20)).unwrap();
            image
        })
        .collect();
    let copy = |image: &str| {
        let copied = Command::new("nbdcopy").args(["--flush", "--", image, &uri]).status();
        assert!(copied.unwrap().success());
    };
    copy(&images[0]);
    let scrubbed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut turns = 1;
            while !scrubbed.load(Ordering::Acquire) || turns < 8 {
                copy(&images[turns % images.len()]);
                turns += 1;
            }
            turns
        });
        for words in ["--rate unlimited", "--fingerprint --rate 200M", "--rate unlimited"] {
            let outcome = tamis(&format!("scrub {store} {words} --json")).ok();
            assert_eq!(outcome.json()["findings"], serde_json::json!([]), "{outcome:?}");
        }
        scrubbed.store(true, Ordering::Release);
        assert!(writer.join().unwrap() >= 8);
    });
    let collected = tamis(&format!("stats {store} --json")).ok().json();
    assert!(collected["counters"]["containers_collected"].as_u64().unwrap() > 0, "{collected}");
    assert_eq!(served.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}
