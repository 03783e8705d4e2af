//! `tamis account`, on closed and served stores.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Folder, Served, tamis};

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

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tamis(&format!("account create {store} ci")).ok();
    let path = format!("{store}/accounts.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    tamis(&format!("account list {store}")).fails(1, "0600");
}
