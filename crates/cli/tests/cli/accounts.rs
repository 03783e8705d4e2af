//! `tamis account`, on closed and served stores.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Folder, Served, noise, tamis};

fn lives(store: &str) {
    tamis(&format!("account list {store}")).ok();
    let made = tamis(&format!("account create {store} ci --write ci-* --read photos --json")).ok();
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(secret.len(), 40);
    assert_eq!(made["read"][0], "photos");
    tamis(&format!("account create {store} ci")).fails(7, "an account ci already");
    tamis(&format!("account create {store} a/b")).fails(2, "cannot be the name");
    tamis(&format!("account create {store} x --read A")).fails(2, "matches no bucket");
    let plain = tamis(&format!("account create {store} other --domain tenant")).ok();
    assert!(plain.out.contains("secret") && plain.err.contains("no bucket yet"), "{plain:?}");
    for line in [format!("account list {store}"), format!("account list {store} --json")] {
        let listed = tamis(&line).ok().out;
        assert!(listed.contains("ci-*") && listed.contains("tenant"), "{listed}");
        assert!(!listed.contains(secret), "{listed}");
    }
    let set = tamis(&format!("account set {store} ci --write a --write b --read none --json")).ok();
    let set = set.json();
    assert_eq!(set["write"], serde_json::json!(["a", "b"]));
    assert_eq!(set["read"], serde_json::json!([]));
    assert!(set["secret"].is_null());
    assert_eq!(set["access_key"], made["access_key"]);
    let renewed = tamis(&format!("account set {store} ci --new-keys --json")).ok().json();
    assert!(renewed["secret"] != made["secret"] && renewed["access_key"] != made["access_key"]);
    tamis(&format!("account set {store} ci")).fails(2, "required");
    tamis(&format!("account set {store} nobody --read a")).fails(3, "no account nobody");
    tamis(&format!("account delete {store} nobody --yes")).fails(3, "no account nobody");
    tamis(&format!("account delete {store} ci")).fails(2, "--yes");
    tamis(&format!("account delete {store} ci --yes")).ok();
    let left = tamis(&format!("account list {store} --json")).ok().json();
    assert_eq!(left["accounts"].as_array().unwrap().len(), 1);
    let mode = fs::metadata(format!("{store}/accounts.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_account_lives_on_closed_and_served_stores() {
    let folder = Folder::new();
    let store = folder.store("256M");
    lives(&store);
    let folder = Folder::new();
    let store = folder.store("256M");
    let served = Served::start(&store, "");
    lives(&store);
    assert_eq!(served.interrupt(), Some(0));
    tamis(&format!("account list {}", folder.path("nowhere"))).fails(3, "there is no store");
}

/// A tenant with two buckets, by the commands of its operator.
fn tenant_lives(store: &str, folder: &Folder) {
    let made = tamis(&format!(
        "account create {store} acme --tenant --write acme-* --quota 100K --requests 5000/s \
         --bytes 200M/s --json"
    ));
    let made = made.ok().json();
    assert_eq!(made["domain"], "acme");
    assert_eq!(made["tenant"]["requests_per_second"], 5000);
    assert_eq!(made["tenant"]["bytes_per_second"], 200 << 20);
    tamis(&format!("account create {store} other --quota 1G")).fails(2, "no tenant");
    tamis(&format!("account create {store} other --tenant --domain acme")).fails(7, "of acme");
    tamis(&format!("account set {store} acme --domain none")).fails(2, "stays as it is");
    tamis(&format!("account set {store} acme --burst 60001")).fails(2, "60000");
    tamis(&format!("account set {store} acme --requests 0/s")).fails(2, "at least 1");
    tamis(&format!("bucket create {store} taken --domain taken")).ok();
    tamis(&format!("account create {store} taken --tenant")).fails(7, "has taken in it");
    for bucket in ["acme-1", "acme-2"] {
        tamis(&format!("bucket create {store} {bucket} --domain acme")).ok();
    }
    let file = folder.path("file");
    fs::write(&file, noise(1, 60_000)).unwrap();
    tamis(&format!("put {file} {store}/acme-1/key")).ok();
    tamis(&format!("put {file} {store}/acme-2/key")).fails(6, "buckets of the tenant hold 60000");
    tamis(&format!("cp {store}/acme-1/key {store}/acme-1/other")).fails(6, "their quota");
    tamis(&format!("account set {store} acme --quota none --bytes none")).ok();
    // A server follows at once.
    tamis(&format!("put {file} {store}/acme-2/key")).ok();
    let stats = tamis(&format!("account stats {store} acme --physical --json")).ok().json();
    let stats = &stats["tenants"][0];
    assert_eq!((&stats["buckets"], &stats["objects"]), (&2.into(), &2.into()));
    assert_eq!(stats["logical_bytes"], 120_000);
    assert!(stats["quota_bytes"].is_null());
    // The same bytes twice: they are stored once, beside logs and indexes.
    let stored = stats["physical"]["stored_bytes"].as_u64().unwrap();
    assert!((60_000..120_000).contains(&stored), "{stored}");
    let text = tamis(&format!("account stats {store}")).ok().out;
    assert!(text.contains("acme") && text.contains("THROTTLED"), "{text}");
    tamis(&format!("account stats {store} nobody")).fails(2, "nobody is no tenant");
    tamis(&format!("account delete {store} acme --yes")).fails(4, "has acme-1 and 1 more");
    for bucket in ["acme-1", "acme-2"] {
        tamis(&format!("bucket delete {store} {bucket} --with-objects --yes")).ok();
    }
    tamis(&format!("account delete {store} acme --yes")).ok();
    let none = tamis(&format!("account stats {store}")).ok();
    assert!(none.err.contains("no account is a tenant"), "{none:?}");
}

#[test]
fn a_tenant_lives_on_closed_and_served_stores() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tenant_lives(&store, &folder);
    let folder = Folder::new();
    let store = folder.store("256M");
    let served = Served::start(&store, "");
    tenant_lives(&store, &folder);
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tamis(&format!("account create {store} ci")).ok();
    let path = format!("{store}/accounts.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    tamis(&format!("account list {store}")).fails(1, "0600");
}
