//! `tamis account`: create, list, set, delete; in a file of the store's directory, whether the
//! store is served or not. What tenants did is asked of the store (`stats.rs`).

mod stats;

use std::path::Path;

use accounts::{Account, Accounts, AccountsError, BucketPattern, NewAccount, TenantLimits};
use admin::{Control, ListTenants};
use engine::{VolumeInfo, utc};
use serde::Serialize;

use super::confirm::confirm;
use crate::args::{
    AccountCommand, AccountCreateArgs, AccountDeleteArgs, AccountListArgs, AccountSetArgs,
};
use crate::control::{Store, connect};
use crate::error::{BucketsError, CliError};
use crate::output;
use crate::scrub_record::unix_seconds;
use crate::size::human_bytes;
use crate::store::check_there;
use crate::table::{Align, Table};

/// The word that stands for no bucket and for the default domain.
const NONE: &str = "none";

/// What `--json` prints of an account.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    access_key: &'a str,
    /// Printed once, when the keys are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
    read: &'a [BucketPattern],
    write: &'a [BucketPattern],
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    /// What a tenant may use; others are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<Limits>,
    created_unix_s: u64,
}

/// What a tenant may use.
#[derive(Serialize)]
struct Limits {
    quota_bytes: Option<u64>,
    requests_per_second: Option<u64>,
    bytes_per_second: Option<u64>,
    burst_ms: u32,
}

impl From<&TenantLimits> for Limits {
    fn from(limits: &TenantLimits) -> Self {
        Self {
            quota_bytes: limits.quota_bytes,
            requests_per_second: limits.requests_per_s.map(Into::into),
            bytes_per_second: limits.bytes_per_s.map(Into::into),
            burst_ms: limits.burst_ms.unwrap_or(TenantLimits::BURST_MS_DEFAULT),
        }
    }
}

/// What it prints of all.
#[derive(Serialize)]
struct AllShown<'a> {
    accounts: Vec<Shown<'a>>,
}

fn shown(account: &Account, with_secret: bool) -> Shown<'_> {
    Shown {
        name: &account.name,
        access_key: &account.access_key,
        secret: with_secret.then(|| account.secret.reveal()),
        read: &account.read,
        write: &account.write,
        domain: account.domain.as_deref(),
        tenant: account.tenant.as_ref().map(Limits::from),
        created_unix_s: account.created_unix_s,
    }
}

pub(super) fn run(command: &AccountCommand) -> Result<(), CliError> {
    match command {
        AccountCommand::Create(args) => create(args),
        AccountCommand::List(args) => list(args),
        AccountCommand::Set(args) => set(args),
        AccountCommand::Stats(args) => stats::run(args),
        AccountCommand::Delete(args) => delete(args),
    }
}

fn accounts_of(store: &Path) -> Result<Accounts, CliError> {
    check_there(store)?;
    Ok(Accounts::in_directory(store))
}

fn create(args: &AccountCreateArgs) -> Result<(), CliError> {
    let of = &args.of;
    if !args.tenant && args.limits.is_given() {
        return Err(AccountsError::NoTenant { name: of.name.clone() }.into());
    }
    let accounts = accounts_of(&of.store)?;
    if args.tenant && args.domain.is_none() {
        check_new_domain(&of.store, &of.name)?;
    }
    let mut limits = TenantLimits::default();
    args.limits.apply(&mut limits);
    let made = accounts.create(NewAccount {
        name: of.name.clone(),
        read: patterns(&args.read),
        write: patterns(&args.write),
        domain: args.domain.clone(),
        tenant: args.tenant.then_some(limits),
        created_unix_s: unix_seconds(),
    })?;
    if args.tenant {
        tell_server(&of.store, &made.name);
    }
    if of.format.json {
        return output::print_json(&shown(&made, true));
    }
    if made.read.is_empty() && made.write.is_empty() {
        output::say(format_args!(
            "note: {} may use no bucket yet: `tamis account set --read PATTERN --write PATTERN`",
            made.name
        ));
    }
    print_keys(&made, "created")
}

/// Has the store's server, if there is one, look at the accounts before this command ends. A server
/// that does not answer follows them within a second by itself.
fn tell_server(store: &Path, name: &str) {
    if let Ok(Some(mut server)) = connect(store) {
        let _ = server.ask(ListTenants { name: Some(name.to_owned()) });
    }
}

/// Checks that nothing is in the domain that a new tenant is to have alone.
fn check_new_domain(store: &Path, domain: &str) -> Result<(), CliError> {
    let volumes = Store::with(store, Store::volumes)?;
    match volumes.iter().find(|volume| volume.domain.as_deref() == Some(domain)) {
        Some(volume) => Err(BucketsError::DomainInUse {
            domain: domain.to_owned(),
            volume: volume.name.clone(),
        }
        .into()),
        None => Ok(()),
    }
}

/// Checks that a tenant has no bucket left, whose quota and rates would be nobody's.
fn check_no_buckets(store: &Path, account: &Account) -> Result<(), CliError> {
    let (Some(_), Some(domain)) = (&account.tenant, &account.domain) else { return Ok(()) };
    let volumes = Store::with(store, Store::volumes)?;
    let is_of_it = |volume: &&VolumeInfo| volume.domain.as_ref() == Some(domain);
    let (name, mut found) = (account.name.clone(), volumes.iter().filter(is_of_it));
    match found.next() {
        Some(first) => {
            let (first, others) = (first.name.clone(), found.count());
            Err(BucketsError::TenantHasBuckets { name, first, others }.into())
        }
        None => Ok(()),
    }
}

fn print_keys(account: &Account, done: &str) -> Result<(), CliError> {
    output::print_line(format_args!(
        "{done} {}; the secret is not shown again\naccess key  {}\nsecret      {}",
        account.name,
        account.access_key,
        account.secret.reveal()
    ))
}

/// The patterns, without the word for none.
fn patterns(given: &[BucketPattern]) -> Vec<BucketPattern> {
    given.iter().filter(|pattern| pattern.to_string() != NONE).cloned().collect()
}

fn list(args: &AccountListArgs) -> Result<(), CliError> {
    let all = accounts_of(&args.store)?.list()?;
    if args.format.json {
        let accounts = all.iter().map(|account| shown(account, false)).collect();
        return output::print_json(&AllShown { accounts });
    }
    if all.is_empty() {
        output::say(format_args!(
            "no accounts yet: make one with `tamis account create {} NAME --write PATTERN`",
            args.store.display()
        ));
        return Ok(());
    }
    let mut table = Table::with_heading([
        ("ACCOUNT", Align::Left),
        ("ACCESS KEY", Align::Left),
        ("READ", Align::Left),
        ("WRITE", Align::Left),
        ("DOMAIN", Align::Left),
        ("TENANT", Align::Left),
        ("CREATED (UTC)", Align::Left),
    ]);
    for account in &all {
        table.row([
            account.name.clone(),
            account.access_key.clone(),
            joined(&account.read),
            joined(&account.write),
            account.domain.clone().unwrap_or_default(),
            account.tenant.as_ref().map(limits_of).unwrap_or_default(),
            utc(account.created_unix_s),
        ]);
    }
    output::print_table(&table)
}

/// The limits in few words.
fn limits_of(limits: &TenantLimits) -> String {
    let parts = [
        limits.quota_bytes.map(human_bytes),
        limits.requests_per_s.map(|rate| format!("{rate} requests/s")),
        limits.bytes_per_s.map(|rate| format!("{}/s", human_bytes(rate.get()))),
    ];
    let given: Vec<String> = parts.into_iter().flatten().collect();
    if given.is_empty() { "unlimited".to_owned() } else { given.join(", ") }
}

fn joined(patterns: &[BucketPattern]) -> String {
    patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn set(args: &AccountSetArgs) -> Result<(), CliError> {
    let of = &args.of;
    let accounts = accounts_of(&of.store)?;
    if args.limits.is_given() {
        accounts.set_tenant(&of.name, |limits| args.limits.apply(limits))?;
        tell_server(&of.store, &of.name);
    }
    let mut account = accounts.set(&of.name, |account| {
        if !args.read.is_empty() {
            account.read = patterns(&args.read);
        }
        if !args.write.is_empty() {
            account.write = patterns(&args.write);
        }
        if let Some(domain) = &args.domain {
            account.domain = Some(domain.clone()).filter(|domain| domain != NONE);
        }
    })?;
    if args.new_keys {
        account = accounts.renew_keys(&of.name)?;
    }
    match (of.format.json, args.new_keys) {
        (true, with_secret) => output::print_json(&shown(&account, with_secret)),
        (false, true) => print_keys(&account, "changed"),
        (false, false) => output::print_line(format_args!("changed {}", account.name)),
    }
}

fn delete(args: &AccountDeleteArgs) -> Result<(), CliError> {
    let of = &args.of;
    let accounts = accounts_of(&of.store)?;
    let found = accounts.list()?.into_iter().find(|account| account.name == of.name);
    let account = found.ok_or_else(|| AccountsError::NoSuchAccount { name: of.name.clone() })?;
    check_no_buckets(&of.store, &account)?;
    let question = format_args!("Delete account {} and revoke its keys?", of.name);
    confirm(&args.confirm, question)?;
    accounts.delete(&of.name)?;
    match of.format.json {
        true => output::print_json(&shown(&account, false)),
        false => output::print_line(format_args!("deleted {}", of.name)),
    }
}
