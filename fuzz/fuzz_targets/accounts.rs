//! The file of accounts, and the patterns and names in it: a file that is read is written to the
//! same accounts, and one that is none is an error that does not quote it.
#![no_main]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use accounts::{Accounts, BucketPattern};
use libfuzzer_sys::fuzz_target;

fn directory() -> &'static PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = PathBuf::from(format!("/tmp/tamis-fuzz-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a folder can be made");
        directory
    })
}

fn file(bytes: &[u8]) {
    let path = directory().join("accounts.json");
    fs::write(&path, bytes).expect("a file can be written");
    let owner_alone = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&path, owner_alone).expect("it is ours");
    let accounts = Accounts::in_directory(directory());
    let read = match accounts.list() {
        Ok(read) => read,
        Err(error) => return assert!(error.to_string().len() < 1000),
    };
    for account in &read {
        let found = accounts.by_access_key(&account.access_key);
        assert!(found.expect("it was read").is_some());
        let _ = (account.may_read("photos@monday"), account.may_write("team-a"));
    }
    let Some(first) = read.first() else { return };
    if accounts.set(&first.name, |_| ()).is_ok() {
        let mut before = read.clone();
        before.sort_by(|one, two| one.name.cmp(&two.name));
        assert_eq!(accounts.list().expect("it was written"), before);
    }
}

fn names(text: &str) {
    if let Ok(pattern) = text.parse::<BucketPattern>() {
        assert_eq!(pattern.to_string(), text);
        assert!(pattern.matches(text.trim_end_matches('*')));
    }
    if buckets::check_bucket_name(text).is_ok() {
        let pattern: BucketPattern = text.parse().expect("a name is a pattern");
        assert!(pattern.matches(text) && pattern.matches(&format!("{text}@a")));
        assert!(!pattern.matches(&format!("{text}x")));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 2 {
        0 => file(rest),
        _ => names(&String::from_utf8_lossy(rest)),
    }
});
