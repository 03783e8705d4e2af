//! Files of accounts: changed, damaged, and of tenants.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{Accounts, FILE_NAME};
use crate::account::{NewAccount, TenantLimits};
use crate::error::AccountsError;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn new(name: &str) -> NewAccount {
    let write = vec!["b-*".parse().unwrap()];
    NewAccount { name: name.to_owned(), write, ..NewAccount::default() }
}

#[test]
fn another_process_sees_what_was_changed() {
    let directory = Directory::new("accounts-seen");
    let (writer, reader) =
        (Accounts::in_directory(&directory.0), Accounts::in_directory(&directory.0));
    assert!(reader.list().unwrap().is_empty());
    let made = writer.create(new("ci")).unwrap();
    assert!(matches!(writer.create(new("ci")), Err(AccountsError::Exists { .. })));
    assert_eq!(*reader.by_access_key(&made.access_key).unwrap().unwrap(), made);
    let renewed = writer.renew_keys("ci").unwrap();
    assert!(reader.by_access_key(&made.access_key).unwrap().is_none());
    let found = reader.by_access_key(&renewed.access_key).unwrap().unwrap();
    assert!(found.may_write("b-1") && found.secret != made.secret);
    writer.set("ci", |account| account.write.clear()).unwrap();
    let found = reader.by_access_key(&renewed.access_key).unwrap().unwrap();
    assert!(!found.may_write("b-1"));
    writer.delete("ci").unwrap();
    assert!(reader.list().unwrap().is_empty());
    assert!(matches!(writer.delete("ci"), Err(AccountsError::NoSuchAccount { .. })));
}

#[test]
fn the_file_is_its_owners_alone() {
    let directory = Directory::new("accounts-mode");
    let accounts = Accounts::in_directory(&directory.0);
    accounts.create(new("ci")).unwrap();
    let path = directory.0.join(FILE_NAME);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(accounts.list(), Err(AccountsError::Readable { mode: 0o640, .. })));
    assert!(accounts.create(new("other")).is_err());
}

#[test]
fn a_damaged_file_is_refused_and_kept_and_its_secrets_are_not_told() {
    let directory = Directory::new("accounts-damage");
    let accounts = Accounts::in_directory(&directory.0);
    let made = accounts.create(new("ci")).unwrap();
    let path = directory.0.join(FILE_NAME);
    let whole = fs::read_to_string(&path).unwrap();
    for damaged in
        [&whole[..whole.len() / 2], "", "[]", &whole.replace("\"version\": 1", "\"version\": 3")]
    {
        fs::write(&path, damaged).unwrap();
        let error = accounts.list().unwrap_err();
        assert!(matches!(error, AccountsError::Damaged { .. }), "{error}");
        assert!(!error.to_string().contains(made.secret.reveal()));
        assert!(accounts.create(new("other")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
}

#[test]
fn tenants_have_domains_of_their_own() {
    let directory = Directory::new("accounts-tenants");
    let accounts = Accounts::in_directory(&directory.0);
    let path = directory.0.join(FILE_NAME);
    let has_version =
        |version| fs::read_to_string(&path).unwrap().contains(&format!("\"version\": {version},"));
    let of = |name, domain: Option<&str>| NewAccount {
        tenant: Some(TenantLimits::default()),
        domain: domain.map(str::to_owned),
        ..new(name)
    };
    accounts.create(new("plain")).unwrap();
    assert!(has_version(1));
    let made = accounts.create(of("acme", None)).unwrap();
    assert_eq!(made.domain.as_deref(), Some("acme"));
    assert!(has_version(2));
    let taken = accounts.create(of("second", Some("acme"))).unwrap_err();
    assert!(matches!(&taken, AccountsError::DomainTaken { owner, .. } if owner == "acme"));
    let shared = NewAccount { domain: Some("shared".to_owned()), ..new("key") };
    accounts.create(shared).unwrap();
    assert!(accounts.create(of("shared", None)).is_err());
    accounts.create(of("shared", Some("shared"))).unwrap();
    let moved = accounts.set("acme", |account| account.domain = None).unwrap_err();
    assert!(matches!(moved, AccountsError::DomainOfTenant { .. }));
    let set = accounts.set("acme", |account| account.tenant = None).unwrap();
    assert_eq!(set.tenant, Some(TenantLimits::default()));
    let limited = accounts.set_tenant("acme", |limits| limits.quota_bytes = Some(7)).unwrap();
    assert_eq!(limited.tenant.unwrap().quota_bytes, Some(7));
    let none = accounts.set_tenant("plain", |_| {}).unwrap_err();
    assert!(matches!(none, AccountsError::NoTenant { .. }));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("quota_bytes", "quota_of_moons")).unwrap();
    assert!(matches!(accounts.list(), Err(AccountsError::Damaged { .. })));
    fs::write(&path, text).unwrap();
    accounts.delete("acme").unwrap();
    accounts.delete("shared").unwrap();
    assert!(has_version(1));
}

#[test]
fn names_that_nobody_can_type_are_refused() {
    let directory = Directory::new("accounts-names");
    let accounts = Accounts::in_directory(&directory.0);
    for name in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
        assert!(matches!(accounts.create(new(name)), Err(AccountsError::BadName { .. })));
    }
}
