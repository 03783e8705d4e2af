//! `docs/reference/json.md` against what the commands print: every field that is printed stands
//! there with its type, every field that stands there is printed, unless its row says that it is
//! rare.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Folder, Served, noise, run_with_input, tamis};

/// The page: sections by their names.
struct Page {
    sections: BTreeMap<String, Section>,
    /// Rows that were seen, and fields that have none.
    seen: RefCell<BTreeSet<(String, String)>>,
    unknown: RefCell<BTreeSet<String>>,
}

#[derive(Default)]
struct Section {
    /// Commands that print it.
    printed_by: Vec<String>,
    /// Sections whose rows it has as well.
    includes: Vec<String>,
    /// Type and meaning by path.
    rows: BTreeMap<String, (String, String)>,
}

/// What stands between backquotes.
fn quoted(line: &str) -> Vec<String> {
    line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What links of a line name: `[volume](#volume)`.
fn linked(line: &str) -> Vec<String> {
    let names = line.split('[').skip(1).filter_map(|part| part.split_once("](#"));
    names.map(|(name, _)| name.to_owned()).collect()
}

impl Page {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.md");
        let text = fs::read_to_string(path).unwrap();
        let mut sections: BTreeMap<String, Section> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                name = heading.to_owned();
            }
            let section = sections.entry(name.clone()).or_default();
            if line.starts_with("Printed by ") {
                section.printed_by = quoted(line);
            } else if line.starts_with("Has all of ") {
                section.includes = linked(line);
            } else if let [path] = &quoted(line.split('|').nth(1).unwrap_or_default())[..] {
                let cell =
                    |at: usize| line.split('|').nth(at).unwrap_or_default().trim().to_owned();
                section.rows.insert(path.clone(), (cell(2), cell(3)));
            }
        }
        Self { sections, seen: RefCell::default(), unknown: RefCell::default() }
    }

    fn find(&self, section: &str, path: &str) -> Option<(&str, &(String, String))> {
        let (name, of) = self.sections.get_key_value(section)?;
        let own = of.rows.get(path).map(|row| (name.as_str(), row));
        own.or_else(|| of.includes.iter().find_map(|other| self.find(other, path)))
    }

    /// Checks a document that `command` has printed.
    fn check(&self, command: &str, document: &Value) {
        let by =
            |(_, section): &(&String, &Section)| section.printed_by.iter().any(|by| by == command);
        let section = self.sections.iter().find(by).map(|(name, _)| name);
        let section = section.unwrap_or_else(|| panic!("no section is printed by `{command}`"));
        assert_eq!(document["version"], 1, "{command}: {document}");
        self.check_fields(section, "", document);
    }

    fn check_fields(&self, section: &str, prefix: &str, value: &Value) {
        let fields = value.as_object().unwrap_or_else(|| panic!("{section} {prefix}: {value}"));
        for (name, value) in fields {
            let path = format!("{prefix}{name}");
            let Some((of, (type_, _))) = self.find(section, &path) else {
                self.unknown.borrow_mut().insert(format!("{section}: {path}: {value:.60}"));
                continue;
            };
            self.seen.borrow_mut().insert((of.to_owned(), path.clone()));
            let type_ = match (type_.strip_suffix(" or null"), value) {
                (Some(_), Value::Null) => continue,
                (Some(type_), _) => type_,
                (None, _) => type_,
            };
            self.check_value(section, &path, type_, value);
        }
    }

    fn check_value(&self, section: &str, path: &str, type_: &str, value: &Value) {
        if let Some(of) = type_.strip_prefix("list of ") {
            let elements = value.as_array().unwrap_or_else(|| panic!("{section} {path}: {value}"));
            let (path, of) = match of {
                "objects" => (format!("{path}[]"), "object"),
                of => (path.to_owned(), of),
            };
            return elements
                .iter()
                .for_each(|element| self.check_value(section, &path, of, element));
        }
        let fits = match type_ {
            "object" => return self.check_fields(section, &format!("{path}."), value),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            other => match &linked(other)[..] {
                [section] => return self.check_fields(section, "", value),
                _ => false,
            },
        };
        assert!(fits, "{section} {path} is no {type_}: {value}");
    }

    /// Checks that nothing was unknown, and that nothing is left that nobody printed.
    fn end(&self) {
        let unknown = self.unknown.borrow();
        let unknown: Vec<&str> = unknown.iter().map(String::as_str).collect();
        assert!(unknown.is_empty(), "the page does not name:\n{}", unknown.join("\n"));
        let mut unseen = Vec::new();
        for (name, section) in &self.sections {
            for (path, (_, meaning)) in &section.rows {
                let is_seen = self.seen.borrow().contains(&(name.clone(), path.clone()));
                if !is_seen && !meaning.starts_with("Rare") {
                    unseen.push(format!("{name}: {path}"));
                }
            }
        }
        assert!(unseen.is_empty(), "nobody prints:\n{}", unseen.join("\n"));
    }

    /// Runs `tamis COMMAND WORDS --json` and checks what it prints.
    fn run(&self, command: &str, words: &str) -> Value {
        let outcome = tamis(&format!("{command} {words} --json"));
        let document = outcome.json();
        self.check(command, &document);
        document
    }
}

#[test]
fn the_page_names_every_field_and_no_other() {
    let page = Page::read();
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let (store, other) = (path("store"), path("other"));
    fs::write(path("image"), noise(1, 1 << 20).repeat(2)).unwrap();
    page.run("init", &format!("{store} --capacity 64M"));
    page.run("init", &format!("{other} --capacity 64M"));
    page.run("grow", &format!("{store} --capacity 96M"));
    let files = path("files");
    page.run("init", &format!("{files} --capacity 64M"));
    page.run("grow", &format!("{files} --capacity 128M --data {}", path("second")));
    page.run("data list", &files);
    page.run("data replace", &format!("{files} data.1 {}", path("third")));
    page.run("data remove", &format!("{files} data.0"));
    page.run("set", &format!("{store} --compression zstd:1"));
    volumes(&page, &folder, &store);
    buckets(&page, &folder, &store);
    copies(&page, &folder, &store, &other);
    served(&page, &store);
    page.run("collect", &format!("{store} --recompress zstd:9"));
    page.run("check", &store);
    page.run("scrub", &format!("{store} --fingerprint"));
    page.run("scrub", &format!("{store} --status"));
    measured(&page, &folder);
    damaged(&page, &folder, &store);
    page.end();
}

fn buckets(page: &Page, folder: &Folder, store: &str) {
    let file = folder.path("image");
    page.run("bucket create", &format!("{store} photos --quota 1G"));
    page.run("put", &format!("{file} {store}/photos/a --expires-in 1d --content-type x/y"));
    page.run("cp", &format!("{store}/photos/a {store}/photos/b"));
    page.run("ls", &format!("{store}/photos/a"));
    page.run("get", &format!("{store}/photos/a {}", folder.path("got")));
    page.run("rm", &format!("{store}/photos/b"));
    page.run("bucket set", &format!("{store} photos --quota 2G"));
    page.run("bucket snapshot", &format!("{store} photos@a"));
    page.run("bucket show", &format!("{store} photos"));
    page.run("bucket list", store);
    page.run("account create", &format!("{store} ci --read photos --write * --domain tenantA"));
    page.run("account create", &format!("{store} acme --tenant"));
    page.run("account stats", &format!("{store} --physical"));
}

fn volumes(page: &Page, folder: &Folder, store: &str) {
    page.run("volume create", &format!("{store} v --size 1M --quota 1G"));
    page.run("volume create", &format!("{store} w --size 1M --domain tenantA --no-dedup"));
    page.run("volume resize", &format!("{store} v --size 2M"));
    page.run("volume set", &format!("{store} v --quota 2G --reservation 1M --compression zstd:3"));
    page.run("volume rename", &format!("{store} w u"));
    page.run("volume delete", &format!("{store} u --yes"));
    page.run("import", &format!("{store} v {} --overwrite --yes", folder.path("image")));
    page.run("snapshot create", &format!("{store} v@a"));
    page.run("snapshot create", &format!("{store} v@b"));
    page.run("snapshot list", store);
    page.run("clone", &format!("{store} v@a c"));
    page.run("snapshot rollback", &format!("{store} v@b --yes"));
    page.run("volume show", &format!("{store} v"));
    page.run("volume show", &format!("{store} c"));
    page.run("volume show", &format!("{store} v@a --quick"));
    page.run("volume list", store);
    page.run("explain", &format!("{store} v 1"));
    page.run("stats", &format!("{store} --volumes"));
}

fn copies(page: &Page, folder: &Folder, store: &str, other: &str) {
    let path = |name: &str| folder.path(name);
    fs::write(path("changed"), noise(2, 1 << 20)).unwrap();
    page.run("export", &format!("{store} v@a {} --stream", path("all")));
    page.run("import", &format!("{other} v {}", path("all")));
    page.run("snapshot delete", &format!("{store} v@b --yes"));
    tamis(&format!("import {store} v {} --overwrite --yes", path("changed"))).ok();
    tamis(&format!("snapshot create {store} v@c")).ok();
    page.run("diff", &format!("{store} v@a v@c"));
    page.run("export", &format!("{store} v@c {} --from @a", path("change")));
    page.run("import", &format!("{other} v {}", path("change")));
    page.run("snapshot list", other);
    page.run("export", &format!("{store} v {}", path("out")));
}

fn served(page: &Page, store: &str) {
    let socket = format!("unix:{store}/memcached.sock");
    let replicas = format!("unix:{store}/replicas.sock");
    let words = format!(
        "--memcached {socket} --memcached-bucket photos --replica-listen {replicas} \
         --accelerator emulated"
    );
    let served = Served::start(store, &words);
    page.check("serve", &served.ready);
    page.run("stats", &format!("{store} --volumes"));
    page.run("explain", &format!("{store} v 1"));
    let serve = tamis(&format!("serve {store} --json"));
    check_error(page, &serve.err, "in_use", 4);
    assert_eq!(served.interrupt(), Some(0));
}

fn measured(page: &Page, folder: &Folder) {
    let dir = folder.path("");
    let (image, trace) = (folder.path("image"), folder.path("trace"));
    page.run("estimate", &format!("{image} --compression all"));
    page.run("plan", "--throughput 1G --dram 100G");
    page.run("bench detect", &format!("{image} --in-memory"));
    page.run("bench detect", &format!("{image} --dir {dir} --writes 10"));
    page.run("bench detect", &format!("{image} --dir {dir} --writes 10 --sweep"));
    let made = "--workload write-m --requests 2000";
    page.run("replay", &format!("{made} --verify --dir {dir}"));
    tamis(&format!("replay {made} --to {trace}")).ok();
    let mut lines = fs::read_to_string(&trace).unwrap();
    lines.insert_str(0, "no request\n");
    fs::write(&trace, lines).unwrap();
    page.run("replay", &format!("{trace} --chunk-size 8K --capacity 64M --dir {dir}"));
}

/// What is damaged on purpose: the containers of a store.
fn damaged(page: &Page, folder: &Folder, store: &str) {
    let _ = folder;
    let data = OpenOptions::new().write(true).open(format!("{store}/data")).unwrap();
    for at in 0..96 {
        data.write_all_at(&[0x5a; 512], at << 20 | 8192).unwrap();
    }
    page.run("check", store);
    page.run("scrub", store);
    page.run("check", &format!("{store} --repair"));
}

/// Checks the last line of standard error.
fn check_error(page: &Page, err: &str, kind: &str, code: i32) -> Value {
    let last = err.lines().last().unwrap_or_default();
    let document: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{err:?}"));
    let error = &document["error"];
    assert_eq!((&error["kind"], &error["exit_code"]), (&kind.into(), &code.into()), "{document}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert_eq!(document["version"], 1);
    page.check_fields("error", "", &document);
    document
}

#[test]
fn an_error_is_the_last_line_of_standard_error() {
    let page = Page::read();
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} vm1 --size 1G")).ok();
    let of = |line: &str, kind, code| {
        let refused = tamis(&line.replace("STORE", &store));
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{refused:?}");
        check_error(&page, &refused.err, kind, code)["error"].clone()
    };
    let error = of("volume show STORE vm --json", "not_found", 3);
    assert_eq!(error["name"], "vm");
    assert_eq!(error["nearest"], serde_json::json!(["vm1"]));
    let error = of("volume create STORE vm1 --size 1G --json", "exists", 7);
    assert_eq!(error["reason"], "volume_exists");
    let error = of("explain STORE vm1 99999999 --json", "usage", 2);
    assert_eq!((&error["size_bytes"], &error["chunk_bytes"]), (&(1 << 30).into(), &4096.into()));
    of("volume create STORE v --json", "usage", 2);
    of("volume create STORE v --size 1Q --json", "usage", 2);
    of("stats /nope --json", "not_found", 3);
    of("volume delete STORE vm1 --json", "usage", 2);
    // Nor does a progress bar mix into it, nor a note that comes before.
    let image = folder.path("image");
    fs::write(&image, noise(1, 4 << 20)).unwrap();
    tamis(&format!("volume resize {store} vm1 --size 1M --shrink --yes")).ok();
    of(&format!("import STORE vm1 {image} --json"), "usage", 2);
    let mut piped = crate::harness::command(["export", &store, "nope", "-", "--json"]);
    piped.stdin(std::process::Stdio::null());
    check_error(&page, &run_with_input(piped).err, "not_found", 3);
    // Without --json it is a sentence.
    let refused = tamis(&format!("volume show {store} vm"));
    assert!(refused.err.starts_with("tamis: there is no volume vm"), "{refused:?}");
    assert!(tamis("--help --json").ok().out.starts_with("Tamis"));
}
