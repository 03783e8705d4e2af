//! What operations report, against a recount: whatever was stored before, and whatever others do
//! with the store meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Folder, Served, command, noise, tamis};

const CHUNK: usize = 4096;
/// A frame of noise, with its header.
const FRAME: u64 = CHUNK as u64 + 16;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What a store holds: the numbers of the chunks of each volume and snapshot.
#[derive(Default)]
struct Model {
    held: BTreeMap<String, Vec<Option<u64>>>,
    made: u64,
}

/// What an import is to report.
#[derive(Debug, Default, PartialEq)]
struct Took {
    unique_bytes: u64,
    duplicate_bytes: u64,
    stored_bytes: u64,
}

impl Took {
    fn of(report: &Value) -> Self {
        let figure = |name: &str| report[name].as_u64().unwrap();
        let [unique_bytes, duplicate_bytes, stored_bytes] =
            ["unique_bytes", "duplicate_bytes", "stored_bytes"].map(figure);
        Self { unique_bytes, duplicate_bytes, stored_bytes }
    }
}

impl Model {
    fn stored(&self) -> BTreeSet<u64> {
        self.held.values().flatten().copied().flatten().collect()
    }

    /// An image for volume `name`: zeros, chunks that are stored and chunks that are new; what its
    /// import is to report.
    fn image(&mut self, dice: &mut Dice, name: &str, path: &str) -> Took {
        let stored: Vec<u64> = self.stored().into_iter().collect();
        let mut took = Took::default();
        let (mut bytes, mut chunks) = (Vec::new(), Vec::new());
        for _ in 0..64 {
            let known = dice.below(2) == 0;
            let known = known.then(|| stored.get(dice.below(stored.len().max(1) as u64) as usize));
            match (dice.below(4), known.flatten()) {
                (0, _) => chunks.push(None),
                (_, Some(number)) => {
                    took.duplicate_bytes += CHUNK as u64;
                    chunks.push(Some(*number));
                }
                (_, None) => {
                    took.unique_bytes += CHUNK as u64;
                    took.stored_bytes += FRAME;
                    chunks.push(Some(self.made));
                    self.made += 1;
                }
            }
        }
        for chunk in &chunks {
            bytes.extend(chunk.map_or_else(|| vec![0; CHUNK], |number| noise(number + 1, CHUNK)));
        }
        fs::write(path, bytes).unwrap();
        self.held.insert(name.to_owned(), chunks);
        took
    }

    fn mapped_bytes(&self, of_snapshots: bool) -> u64 {
        let held = self.held.iter().filter(|(name, _)| name.contains('@') == of_snapshots);
        held.map(|(_, chunks)| (chunks.iter().flatten().count() * CHUNK) as u64).sum()
    }

    fn check_stats(&self, store: &str) {
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        assert_eq!(stats["logical_bytes"], self.mapped_bytes(false), "{stats}");
        assert_eq!(stats["snapshot_bytes"], self.mapped_bytes(true), "{stats}");
        // What was deleted may be stored yet: never fewer chunks than are held.
        let unique_bytes = stats["unique_bytes"].as_u64().unwrap();
        assert!(unique_bytes >= (self.stored().len() * CHUNK) as u64, "{stats}");
        for ratio in ["dedup_ratio", "reduction_ratio"] {
            let at_least = if ratio == "dedup_ratio" { 1.0 } else { 0.99 };
            let is_true = stats[ratio].as_f64().is_none_or(|ratio| ratio >= at_least);
            assert!(is_true, "{ratio}: {stats}");
        }
        let room_bytes = stats["capacity_bytes"].as_u64().unwrap();
        let kept_bytes = stats["kept_bytes"].as_u64().unwrap();
        assert!(stats["free_bytes"].as_u64().unwrap() <= room_bytes - kept_bytes, "{stats}");
    }
}

/// One step of a life of the store at `store`, by chance.
fn step(model: &mut Model, dice: &mut Dice, folder: &Folder, store: &str, at: u64) {
    let volumes: Vec<String> =
        model.held.keys().filter(|name| !name.contains('@')).cloned().collect();
    let some = volumes.get(dice.below(volumes.len().max(1) as u64) as usize).cloned();
    let image = folder.path("image");
    match (dice.below(6), some) {
        (0, Some(name)) => {
            let took = model.image(dice, &name, &image);
            let line = format!("import {store} {name} {image} --overwrite --yes --json");
            assert_eq!(Took::of(&tamis(&line).ok().json()), took, "{line}");
        }
        (1, Some(name)) => {
            tamis(&format!("snapshot create {store} {name}@{at}")).ok();
            let held = model.held[&name].clone();
            model.held.insert(format!("{name}@{at}"), held);
        }
        (2, Some(name)) => {
            tamis(&format!("volume delete {store} {name} --with-snapshots --yes")).ok();
            let prefix = format!("{name}@");
            model.held.retain(|other, _| *other != name && !other.starts_with(&prefix));
        }
        (3, Some(_)) => {
            let report = tamis(&format!("collect {store} --json")).ok().json();
            let figure = |name: &str| report[name].as_u64().unwrap();
            let freed_bytes = figure("read_bytes").saturating_sub(figure("written_bytes"));
            assert_eq!(figure("freed_bytes"), freed_bytes, "{report}");
        }
        _ => {
            let name = format!("v{at}");
            let took = model.image(dice, &name, &image);
            let line = format!("import {store} {name} {image} --json");
            assert_eq!(Took::of(&tamis(&line).ok().json()), took, "{line}");
        }
    }
    model.check_stats(store);
}

#[test]
fn every_report_is_what_a_recount_says() {
    for seed in [1, 2] {
        let folder = Folder::new();
        let store = folder.store("64M");
        let (mut model, mut dice) = (Model::default(), Dice(seed));
        for at in 0..10 {
            step(&mut model, &mut dice, &folder, &store, at);
        }
        let served = Served::start(&store, "");
        for at in 10..20 {
            step(&mut model, &mut dice, &folder, &store, at);
        }
        assert_eq!(served.interrupt(), Some(0));
        tamis(&format!("check {store}")).ok();
    }
}

/// Two imports at once into one served store: each counts its own.
#[test]
fn imports_side_by_side_count_their_own() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let served = Served::start(&store, "");
    let mut running = Vec::new();
    for (number, mib) in [(1, 3), (2, 7)] {
        let image = folder.path(&format!("image{number}"));
        fs::write(&image, noise(number, mib << 20)).unwrap();
        let line = format!("import {store} v{number} {image} --json");
        let mut import = command(line.split(' '));
        running.push((mib, import.stdout(Stdio::piped()).spawn().unwrap()));
    }
    for (mib, import) in running {
        let report: Value =
            serde_json::from_slice(&import.wait_with_output().unwrap().stdout).unwrap();
        let chunks = (mib << 20) as u64 / CHUNK as u64;
        let took = Took {
            unique_bytes: chunks * CHUNK as u64,
            duplicate_bytes: 0,
            stored_bytes: chunks * FRAME,
        };
        assert_eq!(Took::of(&report), took, "{report}");
    }
    assert_eq!(served.interrupt(), Some(0));
}

/// What a replay reports as stored is what the store then holds.
#[test]
fn a_replay_reports_what_it_stored() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let before = noise(7, 1 << 20);
    fs::write(folder.join("image"), before).unwrap();
    tamis(&format!("import {store} kept {}", folder.path("image"))).ok();
    let stored = |store: &str| {
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        stats["stored_bytes"].as_u64().unwrap()
    };
    let stored_before = stored(&store);
    let line = format!("replay --store {store} --workload write-m --requests 2000 --json");
    let run = tamis(&line).ok().json()["runs"][0].clone();
    let added = stored(&store) - stored_before;
    assert!(run["stored_bytes"].as_u64().unwrap() >= added && added > 0, "{added} {run}");
    assert!(run["saved_percent"].as_u64().unwrap() > 0, "{run}");
}

/// What a sentence says is saved is of the data that the sentence names.
#[test]
fn a_percentage_is_of_the_figure_beside_it() {
    let folder = Folder::new();
    let store = folder.store("64M");
    // Zeros too short for the image to be read around them: they are read, and nothing maps them.
    let mut bytes = noise(1, 256 * CHUNK);
    bytes.chunks_mut(CHUNK).skip(1).step_by(2).for_each(|chunk| chunk.fill(0));
    let image = folder.path("image");
    fs::write(&image, bytes).unwrap();
    tamis(&format!("import {store} a {image}")).ok();
    let said = tamis(&format!("import {store} b {image}")).ok().out;
    assert!(said.contains("512 KiB of data now take 0 B, 100% saved"), "{said}");
    let said = tamis(&format!("stats {store}")).ok().out;
    let mapped = said.lines().next().unwrap_or_default();
    assert!(mapped.contains("mapped by volumes") && mapped.contains("1 MiB"), "{said}");
}
