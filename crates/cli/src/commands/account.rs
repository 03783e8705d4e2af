//! `tamis account`: create, list, set, delete; in a file of the store's directory, whether the
//! store is served or not.

use std::path::Path;

use accounts::{Account, Accounts, BucketPattern, NewAccount};
use engine::utc;
use serde::Serialize;

use super::confirm::confirm;
use crate::args::{
    AccountCommand, AccountCreateArgs, AccountDeleteArgs, AccountListArgs, AccountSetArgs,
};
use crate::error::CliError;
use crate::output;
use crate::scrub_record::unix_seconds;
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
    created_unix_s: u64,
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
        created_unix_s: account.created_unix_s,
    }
}

pub(super) fn run(command: &AccountCommand) -> Result<(), CliError> {
    match command {
        AccountCommand::Create(args) => create(args),
        AccountCommand::List(args) => list(args),
        AccountCommand::Set(args) => set(args),
        AccountCommand::Delete(args) => delete(args),
    }
}

fn accounts_of(store: &Path) -> Result<Accounts, CliError> {
    check_there(store)?;
    Ok(Accounts::in_directory(store))
}

fn create(args: &AccountCreateArgs) -> Result<(), CliError> {
    let of = &args.of;
    let made = accounts_of(&of.store)?.create(NewAccount {
        name: of.name.clone(),
        read: patterns(&args.read),
        write: patterns(&args.write),
        domain: args.domain.clone(),
        tenant: None,
        created_unix_s: unix_seconds(),
    })?;
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
        ("CREATED (UTC)", Align::Left),
    ]);
    for account in &all {
        table.row([
            account.name.clone(),
            account.access_key.clone(),
            joined(&account.read),
            joined(&account.write),
            account.domain.clone().unwrap_or_default(),
            utc(account.created_unix_s),
        ]);
    }
    output::print(table)
}

fn joined(patterns: &[BucketPattern]) -> String {
    patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn set(args: &AccountSetArgs) -> Result<(), CliError> {
    let of = &args.of;
    let accounts = accounts_of(&of.store)?;
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
    let account =
        found.ok_or_else(|| accounts::AccountsError::NoSuchAccount { name: of.name.clone() })?;
    let question = format_args!("Delete account {}, whose keys open nothing then?", of.name);
    confirm(&args.confirm, question)?;
    accounts.delete(&of.name)?;
    match of.format.json {
        true => output::print_json(&shown(&account, false)),
        false => output::print_line(format_args!("deleted {}", of.name)),
    }
}
