//! Accounts: who may use buckets through doors that ask for a key.

use std::path::PathBuf;

use accounts::BucketPattern;
use clap::{ArgGroup, Args, Subcommand};

use super::options::{Confirm, Format};

/// Create, list and change accounts, with which clients of S3 sign
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis account create /srv/store ci --write 'ci-*' --read photos
  tamis account list /srv/store
Accounts are kept in accounts.json in the directory of the store, which only its
owner may read. A server sees every change at once. Commands on this machine
need no account: the permissions of the store's files decide there.")]
pub(crate) enum AccountCommand {
    Create(AccountCreateArgs),
    List(AccountListArgs),
    Set(AccountSetArgs),
    Delete(AccountDeleteArgs),
}

/// An account and how it is spoken of.
#[derive(Debug, Args)]
pub(crate) struct AccountName {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the account
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Create an account, and print its access key and its secret this once
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis account create /srv/store ci --write 'ci-*' --read photos
A PATTERN is the name of a bucket, the beginning of names and *, or * for all.
The secret is printed once and never again: put it where the client reads it.")]
pub(crate) struct AccountCreateArgs {
    #[command(flatten)]
    pub(crate) of: AccountName,
    /// Buckets that it may read; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) read: Vec<BucketPattern>,
    /// Buckets that it may read, write, make and delete; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) write: Vec<BucketPattern>,
    /// Domain inside which the buckets that it makes are deduplicated
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
}

/// List all accounts, without their secrets
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis account list /srv/store --json")]
pub(crate) struct AccountListArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Change what an account may do, or give it new keys
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis account set /srv/store ci --write 'ci-*' --write scratch
  tamis account set /srv/store ci --new-keys
What is given takes the place of what there was: --read of all patterns for
reading, --write of all for writing; none stands for no bucket, and for the
default domain. With --new-keys the keys before open nothing from then on, and
the new secret is printed once.")]
#[command(override_usage = "tamis account set [OPTIONS] <STORE> <NAME>")]
#[command(group(
    ArgGroup::new("what")
        .required(true)
        .multiple(true)
        .args(["read", "write", "domain", "new_keys"])
))]
pub(crate) struct AccountSetArgs {
    #[command(flatten)]
    pub(crate) of: AccountName,
    /// Buckets that it may read, or none; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) read: Vec<BucketPattern>,
    /// Buckets that it may read, write, make and delete, or none; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) write: Vec<BucketPattern>,
    /// Domain inside which the buckets that it makes are deduplicated, or none
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Give it a new access key and secret
    #[arg(long)]
    pub(crate) new_keys: bool,
}

/// Delete an account; its buckets stay
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis account delete /srv/store ci
Its keys open nothing from then on. At a terminal it asks first; elsewhere, in a
script, it needs --yes.")]
pub(crate) struct AccountDeleteArgs {
    #[command(flatten)]
    pub(crate) of: AccountName,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}
