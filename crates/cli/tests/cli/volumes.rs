//! Stores and volumes, on a store that nobody serves.

use std::sync::{Arc, Mutex};

use admin::json::{FromJson, Json};
use admin::{ControlError, Refusal, RefusalKind, Server, Service, Spoken};
use engine::RequestError;
use serde_json::{Value, json};

use crate::harness::{Folder, listed as all_in, run, tamis};

#[test]
fn volumes_are_made_listed_changed_and_deleted() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let made = tamis(&format!("volume create {store} vm1 --size 40G --json")).ok().json();
    assert_eq!(made["size_bytes"], 40_u64 << 30);
    tamis(&format!("volume create {store} vm2 --size 1M --read-only")).ok();
    tamis(&format!("volume create {store} vm1 --size 1G")).fails(7, "vm1 exists already");

    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    let names: Vec<&str> = all_in(&listed).iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["vm1", "vm2"]);
    assert_eq!(listed["volumes"][1]["read_only"], true);
    let text = tamis(&format!("volume list {store}")).ok().out;
    assert!(text.starts_with("VOLUME    SIZE  MAPPED  ACCESS\n"), "{text}");
    assert!(text.contains("vm1     40 GiB     0 B  read-write\n"), "{text}");

    tamis(&format!("volume resize {store} vm1 --size 20G")).fails(2, "--shrink");
    tamis(&format!("volume resize {store} vm1 --size 20G --shrink --yes")).ok();
    tamis(&format!("volume rename {store} vm1 web")).ok();
    let shown = tamis(&format!("volume show {store} web --json")).ok().json();
    assert_eq!(shown["size_bytes"], 20_u64 << 30);

    tamis(&format!("volume delete {store} web --yes")).ok();
    tamis(&format!("volume show {store} web")).fails(3, "there is no volume web");
    tamis(&format!("volume delete {store} web --yes")).fails(3, "there is no volume web");
}

#[test]
fn a_store_says_what_it_is_made_of() {
    let folder = Folder::new();
    let store = folder.path("store");
    let line = format!("init {store} --capacity 100M --chunk-size 8K --compression zstd:3 --json");
    let made = tamis(&line).ok().json();
    assert_eq!(made["capacity_bytes"], 100 << 20);
    assert_eq!(made["chunk_bytes"], 8192);
    assert_eq!(made["compression"], "zstd:3");
    tamis(&line).fails(7, "there is a store at");
}

#[test]
fn data_and_tables_can_live_elsewhere() {
    let folder = Folder::new();
    let (store, fast) = (folder.path("store"), folder.path("fast.tables"));
    let (one, two) = (folder.path("one.data"), folder.path("two.data"));
    tamis(&format!("init {store} --capacity 128M --data {one} --data {two} --tables {fast}")).ok();
    assert!(std::fs::symlink_metadata(folder.join("store/tables")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&one).unwrap().len(), 64 << 20);
    tamis(&format!("volume create {store} v --size 1G")).ok();
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!(stats["volumes"][0]["name"], "v");
}

#[test]
fn data_files_have_together_no_less_than_was_asked_for() {
    let folder = Folder::new();
    let store = folder.path("store");
    let data: Vec<String> =
        (0..3).map(|number| format!("--data {}", folder.path(&format!("{number}.data")))).collect();
    let line = format!("init {store} --capacity 64M {} --json", data.join(" "));
    assert_eq!(tamis(&line).ok().json()["capacity_bytes"], 3 * (24 << 20));
}

#[test]
fn what_is_not_there_is_code_3() {
    let folder = Folder::new();
    let nowhere = folder.path("nowhere");
    for command in ["volume list", "stats", "check", "serve"] {
        tamis(&format!("{command} {nowhere}")).fails(3, "tamis init");
    }
    tamis(&format!("set {nowhere} --compression none")).fails(3, "there is no store");
    let store = folder.store("64M");
    tamis(&format!("export {store} ghost {}", folder.path("x"))).fails(3, "no volume ghost");
    tamis(&format!("import {store} v {}", folder.path("no.img"))).fails(3, "no.img");
    assert!(!folder.join("x").exists());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    let store = folder.path("store");
    tamis(&format!("init {store} --capacity 1M")).fails(2, "too small");
    assert!(!folder.join("store").exists());
    tamis(&format!("init {store} --capacity 1000T")).fails(6, "free");
    assert!(!folder.join("store").exists());
    let store = folder.store("64M");
    tamis(&format!("volume create {store} a/b --size 1G")).fails(2, "cannot name a volume");
    tamis(&format!("volume create {store} v --size 100")).fails(2, "512");
}

#[test]
fn compression_changes_for_what_comes() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let set = tamis(&format!("set {store} --compression zstd:5 --json")).ok().json();
    assert_eq!(set["compression"], "zstd:5");
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert!(stats["compression"].as_str().unwrap().contains("zstd"), "{stats}");
}

/// What a verb says, as JSON with its name.
fn said<V: Spoken>(verb: &V) -> Value {
    let mut said = serde_json::to_value(Json(verb)).unwrap();
    said["verb"] = V::NAME.into();
    said
}

fn volumes<V: Spoken>(listed: &[(&str, u32)]) -> V::Answer {
    let volume = |(name, id): &(&str, u32)| {
        json!({
            "name": name, "id": id, "size_bytes": 1 << 20, "mapped_bytes": 0, "read_only": false,
            "quota_bytes": 4096, "kind": "block", "dedup": "on", "dedup_active": true,
            "unindexed_chunks": 0,
        })
    };
    let answer = match V::NAME {
        "list_volumes" => listed.iter().map(volume).collect(),
        _ => volume(&listed[0]),
    };
    V::Answer::from_json(answer).unwrap()
}

/// A server that refuses the last of what a command asks of it. What it was asked, in words.
struct Refusing(Arc<Mutex<Vec<String>>>);

impl Service for Refusing {
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError> {
        let asked = said(&verb);
        let words = [&asked["verb"], &asked["name"], &asked["quota_bytes"]];
        self.0.lock().unwrap().push(words.map(ToString::to_string).join(" ").replace('"', ""));
        match (V::NAME, asked["name"].as_str()) {
            ("set_dedup", _) | ("delete_volume", Some("v@b")) => {
                let sentence = "the server says no".to_owned();
                Err(Refusal { kind: RefusalKind::Failed, sentence }.into())
            }
            ("list_opens", _) => Ok(V::Answer::from_json(json!([])).unwrap()),
            ("delete_volume", _) => Ok(V::Answer::from_json(Value::Null).unwrap()),
            _ => Ok(volumes::<V>(&[("v", 1), ("v@a", 1), ("v@b", 1), ("v@c", 1)])),
        }
    }
}

#[test]
fn what_fails_in_its_middle_is_taken_back_or_said() {
    let folder = Folder::new();
    let store = folder.path("store");
    std::fs::create_dir(&store).unwrap();
    let asked = Arc::default();
    let _server = Server::start(store.as_ref(), Refusing(Arc::clone(&asked))).unwrap();
    let all_asked = || std::mem::take(&mut *asked.lock().unwrap());

    tamis(&format!("volume create {store} v --size 1M --quota 8K --dedup off")).fails(1, "says no");
    assert_eq!(
        all_asked(),
        ["create_volume v null", "set_quota v 8192", "set_dedup v null", "delete_volume v null"]
    );
    tamis(&format!("volume set {store} v --quota 8K --dedup off")).fails(1, "says no");
    let expected = ["list_volumes null null", "set_quota v 8192", "set_dedup v null"];
    assert_eq!(all_asked(), [&expected[..], &["set_quota v 4096"]].concat());
    let refused = tamis(&format!("snapshot delete {store} v@a v@b v@c --yes")).fails(1, "says no");
    assert!(refused.err.contains("deleted v@a, and no more"), "{refused:?}");
}

/// A server whose volumes become others whenever they have been looked at.
struct Replacing(Arc<Mutex<Vec<Value>>>);

impl Service for Replacing {
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError> {
        if V::NAME == "list_volumes" {
            return Ok(volumes::<V>(&[("v", 3), ("v@a", 5), ("v@b", 4)]));
        }
        if V::NAME == "list_opens" {
            return Ok(V::Answer::from_json(json!([])).unwrap());
        }
        self.0.lock().unwrap().push(said(&verb));
        Err(RequestError::OtherVolume { name: "v".to_owned() }.into())
    }
}

#[test]
fn what_destroys_is_asked_for_by_the_number_that_was_looked_at() {
    let folder = Folder::new();
    let store = folder.path("store");
    std::fs::create_dir(&store).unwrap();
    let asked = Arc::default();
    let _server = Server::start(store.as_ref(), Replacing(Arc::clone(&asked))).unwrap();
    let asked_by = |words: &str| {
        tamis(words).fails(3, "another has its name");
        std::mem::take(&mut *asked.lock().unwrap())
    };
    let delete = |name: &str, id: u32| {
        let verb = "delete_volume";
        json!({"verb": verb, "name": name, "id": id, "newest": null, "even_if_open": false})
    };
    let with = |mut request: Value, key: &str, value: Value| {
        request[key] = value;
        request
    };

    let all = with(delete("v", 3), "with_snapshots", true.into());
    let words = format!("volume delete {store} v --with-snapshots");
    assert_eq!(asked_by(&format!("{words} --yes")), std::slice::from_ref(&all));
    // Whoever is asked is asked about the snapshots that there are.
    let line = format!("echo y | script -qec '{} {words}' /dev/null", env!("CARGO_BIN_EXE_tamis"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]);
    assert_eq!(run(shell).code, Some(3));
    let asked_at_terminal = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(asked_at_terminal, [with(all, "newest", 5.into())]);
    let one = with(delete("v@b", 4), "with_snapshots", false.into());
    assert_eq!(asked_by(&format!("snapshot delete {store} v@b --yes")), [one]);
    let back = json!({"verb": "roll_back", "snapshot": "v@a", "volume": null, "id": 5});
    assert_eq!(asked_by(&format!("snapshot rollback {store} v@a --yes")), [back]);
    let resize = json!({
        "verb": "resize_volume", "name": "v", "size_bytes": 2 << 20, "may_shrink": false,
        "even_if_open": false,
    });
    assert_eq!(asked_by(&format!("volume resize {store} v --size 2M")), [resize]);
}
