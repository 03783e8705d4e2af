//! `tamis bucket`, `put`, `get`, `ls`, `rm` and `cp`, on closed and served stores, and what
//! commands for volumes do with buckets.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::harness::{Folder, Served, command, noise, run, tamis};

/// Lets `work` use a store that is closed, and then another one that is served.
fn closed_and_served(work: impl Fn(&Folder, &str)) {
    let folder = Folder::new();
    let store = folder.store("512M");
    work(&folder, &store);
    let folder = Folder::new();
    let store = folder.store("512M");
    let served = Served::start(&store, "");
    work(&folder, &store);
    assert_eq!(served.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_volume_that_is_not_there_is_told_of_volumes_and_not_of_buckets() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("bucket create {store} photos")).ok();
    tamis(&format!("volume show {store} photo")).fails(3, "it has none, make one with");
    tamis(&format!("volume create {store} disk --size 1G")).ok();
    tamis(&format!("volume show {store} photo")).fails(3, ": there is disk");
}

#[test]
fn an_object_is_put_listed_copied_got_and_removed() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} photos")).ok();
        let (cat, back) = (folder.path("cat.jpg"), folder.path("back.jpg"));
        let bytes = noise(1, 3_000_000);
        fs::write(&cat, &bytes).unwrap();
        tamis(&format!("put {cat} {store}/photos/2026/")).ok();
        tamis(&format!("put {cat} {store}/photos/2026/cat.jpg --if-absent"))
            .fails(7, "has an object 2026/cat.jpg already");
        tamis(&format!("put {cat} {store}/photos/top --content-type image/jpeg")).ok();
        assert_eq!(tamis(&format!("ls {store}/photos")).ok().out, "2026/\ntop\n");
        assert_eq!(tamis(&format!("ls -r {store}/photos")).ok().out, "2026/cat.jpg\ntop\n");
        let long = tamis(&format!("ls -l {store}/photos/to")).ok().out;
        assert!(long.contains("2.9M") || long.contains("MiB"), "{long}");
        let line = tamis(&format!("ls {store}/photos/to --json")).ok().json();
        assert_eq!(line["size_bytes"], 3_000_000);
        assert_eq!(line["content_type"], "image/jpeg");

        tamis(&format!("get {store}/photos/2026/cat.jpg {back}")).ok();
        assert!(fs::read(&back).unwrap() == bytes);
        tamis(&format!("get {store}/photos/top {back}")).fails(7, "exists already");
        tamis(&format!("get {store}/photos/top {back} --overwrite")).ok();
        tamis(&format!("get {store}/photos/nobody {back} --overwrite"))
            .fails(3, "there is no object nobody in bucket photos");
        assert!(fs::read(&back).unwrap() == bytes, "it stays as it was");

        tamis(&format!("cp {store}/photos/top {store}/photos/copies/")).ok();
        tamis(&format!("cp {store}/photos/top {store}/photos/copies/top --if-absent"))
            .fails(7, "copies/top");
        tamis(&format!("cp {store}/photos/none {store}/photos/x")).fails(3, "no object none");
        tamis(&format!("bucket create {store} other")).ok();
        tamis(&format!("cp {store}/photos/top {store}/other/")).ok();
        let copied = tamis(&format!("ls {store}/other --json")).ok().json();
        assert_eq!(copied["etag"], line["etag"]);

        tamis(&format!("rm {store}/photos/top {store}/photos/none")).fails(3, "no object none");
        tamis(&format!("rm {store}/photos/top")).ok();
        tamis(&format!("rm -r {store}/photos")).fails(2, "end it with /");
        tamis(&format!("rm -r {store}/photos/")).fails(2, "--yes");
        let gone = tamis(&format!("rm -r {store}/photos/ --yes --json")).ok().json();
        assert_eq!(gone["objects"], 2);
        assert_eq!(tamis(&format!("ls {store}/photos")).ok().out, "");
        tamis(&format!("ls {store}/photos/x")).fails(3, "nothing in bucket photos");
    });
}

#[test]
fn standard_input_and_output_carry_objects() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} pipes")).ok();
        let source = folder.path("source");
        let bytes = noise(7, 2_500_001);
        fs::write(&source, &bytes).unwrap();
        let mut put = command(["put", "-", &format!("{store}/pipes/a/b"), "--expires-in", "1h"]);
        put.stdin(Stdio::from(fs::File::open(&source).unwrap()));
        assert!(put.output().unwrap().status.success());
        let mut get = command(["get", &format!("{store}/pipes/a/b"), "-"]);
        let got = get.output().unwrap();
        assert!(got.status.success() && got.stdout == bytes);
        let shown = tamis(&format!("ls -r --json {store}/pipes")).ok().json();
        assert!(
            shown["expires_unix_ms"].as_u64().unwrap() > shown["created_unix_ms"].as_u64().unwrap()
        );
        tamis(&format!("put - {store}/pipes/a/")).fails(2, "standard input has no name");
    });
}

#[test]
fn a_directory_goes_in_and_comes_out_and_no_key_leads_out_of_it() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} trees")).ok();
        let (site, out) = (folder.path("site"), folder.path("out"));
        fs::create_dir_all(format!("{site}/deep/er")).unwrap();
        fs::write(format!("{site}/index.html"), "<p>").unwrap();
        fs::write(format!("{site}/deep/er/empty"), "").unwrap();
        tamis(&format!("put {site} {store}/trees/")).fails(2, "add -r");
        tamis(&format!("put -r {site}/index.html {store}/trees/")).fails(2, "is no directory");
        tamis(&format!("put -r {site} {store}/trees/www")).ok();
        let listed = tamis(&format!("ls -r {store}/trees")).ok().out;
        assert_eq!(listed, "www/deep/er/empty\nwww/index.html\n");
        tamis(&format!("get -r {store}/trees/www {out}")).ok();
        assert_eq!(fs::read_to_string(format!("{out}/index.html")).unwrap(), "<p>");
        assert_eq!(fs::read(format!("{out}/deep/er/empty")).unwrap(), b"");
        tamis(&format!("get -r {store}/trees/none {out}")).fails(3, "nothing in bucket trees");

        for key in ["up/../../escaped", "up//etc/passwd"] {
            tamis(&format!("put {site}/index.html {store}/trees/{key}")).ok();
            tamis(&format!("get -r {store}/trees/up {out}")).fails(2, key);
            tamis(&format!("rm {store}/trees/{key}")).ok();
        }
        assert!(!folder.join("escaped").exists());
        // A link in the directory would lead out of it as well.
        std::os::unix::fs::symlink(folder.join(""), format!("{out}/link")).unwrap();
        tamis(&format!("put {site}/index.html {store}/trees/up/link/escaped")).ok();
        tamis(&format!("get -r {store}/trees/up {out}")).fails(2, "link");
        assert!(!folder.join("escaped").exists());
    });
}

#[test]
fn keys_are_bytes() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} bytes")).ok();
        let file = folder.path("file");
        fs::write(&file, "x").unwrap();
        let key = std::ffi::OsStr::from_bytes(b"/bytes/\xff\xfe").to_owned();
        let mut at = std::ffi::OsString::from(store);
        at.push(key);
        let mut put = command(["put", &file]);
        put.arg(&at);
        run(put).ok();
        assert_eq!(tamis(&format!("ls {store}/bytes")).ok().out, "\\xff\\xfe\n");
        let listed = tamis(&format!("ls {store}/bytes --json")).ok().json();
        assert_eq!(listed["key"], serde_json::json!([255, 254]));
        let mut rm = command(["rm"]);
        rm.arg(&at);
        run(rm).ok();
        let long = "k".repeat(1025);
        tamis(&format!("put {file} {store}/bytes/{long}")).fails(2, "1025 bytes");
    });
}

#[test]
fn a_bucket_is_made_shown_set_and_deleted() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket list {store}")).ok();
        tamis(&format!("bucket create {store} Photos")).fails(2, "lower-case");
        let words = "--segments cdc --domain tenant --quota 1M";
        tamis(&format!("bucket create {store} photos {words}")).ok();
        tamis(&format!("bucket create {store} photos")).fails(7, "photos already");
        tamis(&format!("bucket create {store} other --segments big"))
            .fails(2, "auto, fixed or cdc");
        let file = folder.path("file");
        fs::write(&file, noise(3, 900_000)).unwrap();
        tamis(&format!("put {file} {store}/photos/a")).ok();
        tamis(&format!("put {file} {store}/photos/b")).fails(6, "quota");
        assert_eq!(tamis(&format!("ls {store}/photos")).ok().out, "a\n");
        tamis(&format!("bucket set {store} photos --quota 2M")).ok();
        tamis(&format!("put {file} {store}/photos/b")).ok();
        tamis(&format!("bucket set {store} photos --quota none")).ok();
        let shown = tamis(&format!("bucket show {store} photos --json")).ok().json();
        assert_eq!(shown["objects"], 2);
        assert_eq!(shown["object_bytes"], 1_800_000);
        assert_eq!(shown["segments"], "cdc");
        assert_eq!(shown["domain"], "tenant");
        assert!(shown["quota_bytes"].is_null());
        assert!(tamis(&format!("bucket show {store} photos")).ok().out.contains("cdc"));
        let listed = tamis(&format!("bucket list {store} --json")).ok().json();
        assert_eq!(listed["buckets"][0]["name"], "photos");
        assert_eq!(listed["buckets"].as_array().unwrap().len(), 1);

        tamis(&format!("bucket delete {store} photos --yes")).fails(2, "--with-objects");
        tamis(&format!("bucket delete {store} photos --with-objects")).fails(2, "--yes");
        tamis(&format!("bucket delete {store} photos --with-objects --yes")).ok();
        tamis(&format!("bucket show {store} photos")).fails(3, "there is no bucket photos");
        tamis(&format!("put {file} {store}/photos/a")).fails(3, "there is no bucket photos");
        tamis(&format!("bucket delete {store} photos --yes")).fails(3, "there is no bucket photos");
    });
}

#[test]
fn snapshots_and_branches_of_a_bucket() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} photos")).ok();
        let (file, back) = (folder.path("file"), folder.path("back"));
        fs::write(&file, "old").unwrap();
        tamis(&format!("put {file} {store}/photos/a")).ok();
        tamis(&format!("bucket snapshot {store} photos@monday")).ok();
        fs::write(&file, "newer").unwrap();
        tamis(&format!("put {file} {store}/photos/a")).ok();
        tamis(&format!("put {file} {store}/photos/b")).ok();
        tamis(&format!("get {store}/photos@monday/a {back}")).ok();
        assert_eq!(fs::read(&back).unwrap(), b"old");
        tamis(&format!("put {file} {store}/photos@monday/a")).fails(2, "is a snapshot");
        tamis(&format!("rm {store}/photos@monday/a")).fails(2, "is a snapshot");
        tamis(&format!("cp {store}/photos@monday/a {store}/photos/old")).ok();
        tamis(&format!("get {store}/photos/old {back} --overwrite")).ok();
        assert_eq!(fs::read(&back).unwrap(), b"old");

        tamis(&format!("bucket branch {store} photos@monday Bad")).fails(2, "lower-case");
        tamis(&format!("bucket branch {store} photos@monday branch")).ok();
        tamis(&format!("bucket branch {store} photos@monday branch")).fails(7, "branch");
        tamis(&format!("clone {store} photos@monday clone")).ok();
        tamis(&format!("put {file} {store}/branch/c")).ok();
        assert_eq!(tamis(&format!("ls {store}/branch")).ok().out, "a\nc\n");
        assert_eq!(tamis(&format!("ls {store}/clone")).ok().out, "a\n");

        tamis(&format!("bucket delete {store} photos --with-objects --yes"))
            .fails(2, "photos@monday");
        tamis(&format!("snapshot rollback {store} photos@monday --yes")).ok();
        assert_eq!(tamis(&format!("ls {store}/photos")).ok().out, "a\n");
        tamis(&format!("snapshot create {store} photos@tuesday")).ok();
        let listed = tamis(&format!("snapshot list {store} photos")).ok().out;
        assert!(listed.contains("photos@monday") && listed.contains("photos@tuesday"), "{listed}");
        tamis(&format!("ls {store}/photos@tuesday")).ok();
        tamis(&format!("snapshot delete {store} photos@monday photos@tuesday --yes")).ok();
        tamis(&format!("ls {store}/photos@monday")).fails(3, "there is no bucket photos@monday");
        tamis(&format!("bucket delete {store} photos --with-objects --yes")).ok();
    });
}

#[test]
fn what_is_for_volumes_refuses_a_bucket_by_its_name() {
    closed_and_served(|folder, store| {
        tamis(&format!("bucket create {store} photos")).ok();
        let image = folder.path("image");
        fs::write(&image, noise(1, 8192)).unwrap();
        for line in [
            format!("volume resize {store} photos --size 1G --shrink --yes"),
            format!("volume set {store} photos --dedup off"),
            format!("volume set {store} photos --quota 1G"),
            format!("volume rename {store} photos pictures"),
            format!("volume delete {store} photos --yes"),
            format!("import {store} photos {image}"),
            format!("import {store} photos {image} --overwrite --yes"),
        ] {
            tamis(&line).fails(2, "photos is a bucket and not a volume");
        }
        let listed = tamis(&format!("volume list {store}")).ok().out;
        assert!(!listed.contains("photos"), "{listed}");
        tamis(&format!("volume create {store} disk --size 1M")).ok();
        tamis(&format!("bucket show {store} disk")).fails(3, "there is no bucket disk");
        tamis(&format!("bucket snapshot {store} disk@a")).fails(2, "is a volume and not a bucket");
        tamis(&format!("ls {store}/disk")).fails(3, "there is no bucket disk");
        tamis(&format!("bucket create {store} disk")).fails(7, "disk already");
        tamis(&format!("ls {store}/photos")).ok();
    });
}

#[test]
fn a_path_that_is_no_object_is_refused_with_the_way_to_write_one() {
    let folder = Folder::new();
    let store = folder.store("512M");
    tamis(&format!("ls {store}")).fails(2, "STORE/BUCKET/KEY");
    tamis(&format!("ls {}/b", folder.path("nowhere"))).fails(3, "is a store");
    tamis(&format!("rm {store}/photos")).fails(2, "names no key");
    tamis(&format!("put {store}/none {store}/photos/x")).fails(3, "no file");
    tamis(&format!("put {store}/superblock {store}/photos/x --expires-in soon")).fails(2, "30d");
}

#[test]
fn objects_outlive_a_server_that_is_killed() {
    let folder = Folder::new();
    let store = folder.store("512M");
    let served = Served::start(&store, "");
    tamis(&format!("bucket create {store} durable")).ok();
    let (file, back) = (folder.path("file"), folder.path("back"));
    let bytes = noise(9, 1_000_000);
    fs::write(&file, &bytes).unwrap();
    tamis(&format!("put {file} {store}/durable/a")).ok();
    tamis(&format!("put {file} {store}/durable/b")).ok();
    tamis(&format!("rm {store}/durable/b")).ok();
    served.kill();
    assert_eq!(tamis(&format!("ls {store}/durable")).ok().out, "a\n");
    tamis(&format!("get {store}/durable/a {back}")).ok();
    assert!(fs::read(&back).unwrap() == bytes);
    let checked = tamis(&format!("check {store}")).ok().out;
    assert!(checked.contains("bucket durable is sound: 1 object"), "{checked}");
}

/// A put that fails at the server ends before all of it was sent, and the server goes on.
#[test]
fn a_put_without_room_is_refused_and_leaves_nothing() {
    let folder = Folder::new();
    let (store, file) = (folder.store("64M"), folder.path("file"));
    fs::write(&file, noise(5, 200 << 20)).unwrap();
    let fails = || {
        tamis(&format!("put {file} {store}/small/big")).fails(6, "");
        assert_eq!(tamis(&format!("ls {store}/small")).ok().out, "");
    };
    tamis(&format!("bucket create {store} small")).ok();
    fails();
    let served = Served::start(&store, "");
    fails();
    assert_eq!(served.interrupt(), Some(0));
}
