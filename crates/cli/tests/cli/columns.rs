//! Everything that people read fits 80 columns, and what stats tells one screen.

use std::fs;

use crate::harness::{Folder, Outcome, Served, noise, tamis};

const COLUMNS_MAX: usize = 80;
const LINES_MAX: usize = 24;

/// Checks that each line fits; one with a path in it may be longer.
fn fits(what: &str, text: &str) {
    for line in text.lines().filter(|line| !line.contains("/tamis-cli-test-")) {
        assert!(line.chars().count() <= COLUMNS_MAX, "{what}: {line}");
    }
}

#[test]
fn every_help_fits() {
    let mut commands = vec![String::new()];
    while let Some(command) = commands.pop() {
        let help = tamis(&format!("{command} --help")).ok().out;
        fits(&format!("{command} --help"), &help);
        fits(&format!("{command} -h"), &tamis(&format!("{command} -h")).ok().out);
        let listed = help.split_once("Commands:\n").map_or("", |(_, behind)| behind);
        let names = listed.lines().take_while(|line| line.starts_with("  "));
        let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let names = names.filter(|name| !name.is_empty() && *name != "help");
        commands.extend(names.map(|name| format!("{command} {name}")));
    }
}

/// A store with something of everything that tables have columns for.
fn rich(folder: &Folder) -> String {
    let store = folder.path("store");
    let image = folder.path("image");
    fs::write(&image, noise(1, 3 << 20).repeat(2)).unwrap();
    for line in [
        "init STORE --capacity 128M --fingerprint ecc-crc64 --verify",
        "import STORE vm1 IMAGE",
        "import STORE vm2 IMAGE --domain tenantA",
        "volume create STORE vm3 --size 1023.5G --read-only --quota 999.5G --no-dedup",
        "snapshot create STORE vm1@monday",
        "clone STORE vm1@monday vm4",
        "snapshot delete STORE vm1@monday --yes",
        "snapshot create STORE vm1@tuesday",
    ] {
        tamis(&line.replace("STORE", &store).replace("IMAGE", &image)).ok();
    }
    store
}

const TABLES: [&str; 12] = [
    "stats STORE",
    "stats STORE --all",
    "stats STORE --volumes",
    "volume list STORE",
    "volume show STORE vm1",
    "volume show STORE vm3",
    "snapshot list STORE",
    "diff STORE vm1@tuesday vm2",
    "explain STORE vm1 1",
    "explain STORE vm1 767",
    "scrub STORE --rate unlimited",
    "scrub STORE --status",
];

#[test]
fn every_table_fits() {
    let folder = Folder::new();
    let store = rich(&folder);
    let all = || {
        for line in TABLES {
            let Outcome { out, err, .. } = tamis(&line.replace("STORE", &store)).ok();
            fits(line, &out);
            fits(line, &err);
        }
    };
    all();
    let served = Served::start(&store, "");
    all();
    assert_eq!(served.interrupt(), Some(0));
    let place = "image-of-the-machine-that-was-tried";
    for line in [
        format!("import {store} {place} {}", folder.path("image")),
        format!("init {} --capacity 64M", folder.path("second")),
        format!("init {} --capacity 1G", folder.path("third")),
        format!("check {store}"),
        format!("collect {store}"),
        format!("set {store} --compression zstd:3"),
        format!("estimate {} --compression all", folder.path("image")),
        format!("bench detect {} --in-memory", folder.path("image")),
        format!("replay --workload write-m --requests 1000 --dir {}", folder.path("")),
        format!(
            "replay --workload write-m --requests 1000 --chunk-size 4K,8K --dir {}",
            folder.path("")
        ),
    ] {
        let told = tamis(&line).ok();
        fits(&line, &told.out);
        fits(&line, &told.err);
    }
}

#[test]
fn stats_fit_one_screen() {
    let folder = Folder::new();
    let store = rich(&folder);
    let lines = |words: &str| tamis(&format!("stats {store}{words}")).ok().out.lines().count();
    assert!(lines("") <= LINES_MAX, "{}", lines(""));
    let served = Served::start(&store, "");
    assert!(lines("") <= LINES_MAX, "{}", lines(""));
    assert!(lines(" --all") > LINES_MAX, "{}", lines(" --all"));
    let told = tamis(&format!("stats {store}")).ok().out;
    for name in ["mapped by volumes", "free", "garbage", "allocated", "reading", "--all shows"] {
        assert!(told.lines().any(|line| line.starts_with(name)), "{name}: {told}");
    }
    assert_eq!(served.interrupt(), Some(0));
}
