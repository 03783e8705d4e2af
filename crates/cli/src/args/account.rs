//! Accounts: who may use buckets through doors that ask for a key.

use std::path::PathBuf;

use accounts::{BucketPattern, TenantLimits};
use clap::{ArgGroup, Args, Subcommand};

use super::options::{Confirm, Format};
use super::values::{Limit, Quota, parse_bytes_rate, parse_quota, parse_requests_rate};

/// Create, list and change accounts, with which clients of S3 sign
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis account create /srv/store ci --write 'ci-*' --read photos
  tamis account create /srv/store acme --tenant --write 'acme-*' --quota 1T \
      --requests 5000/s --bytes 200M/s
  tamis account stats /srv/store acme
Accounts are kept in accounts.json in the directory of the store, which only its
owner may read. A server sees every change at once. Commands on this machine
need no account: the permissions of the store's files decide there.")]
pub(crate) enum AccountCommand {
    Create(AccountCreateArgs),
    List(AccountListArgs),
    Set(AccountSetArgs),
    Stats(AccountStatsArgs),
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
Examples:
  tamis account create /srv/store ci --write 'ci-*' --read photos
  tamis account create /srv/store acme --tenant --write 'acme-*' --quota 1T
A PATTERN is the name of a bucket, the beginning of names and *, or * for all.
The secret is printed once and never again: put it where the client reads it.

A tenant has a dedup domain of its own, so no tenant can tell from answers or
times what another tenant stores. All accounts with that domain are the
tenant's, and share its limits. A request of n bytes takes 1/N + n/SIZE seconds
of its time. Over its rates a tenant is not read from; one that would have to
wait for more than 30 seconds is told SlowDown.")]
pub(crate) struct AccountCreateArgs {
    #[command(flatten)]
    pub(crate) of: AccountName,
    /// Buckets that it may read; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) read: Vec<BucketPattern>,
    /// Buckets that it may read, write, make and delete; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) write: Vec<BucketPattern>,
    /// Domain inside which the buckets that it makes are deduplicated [default: of a tenant its
    /// name, of others the store's default domain]
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Make it a tenant, whose use of the store can be limited and is counted
    #[arg(long)]
    pub(crate) tenant: bool,
    #[command(flatten)]
    pub(crate) limits: TenantLimitsArgs,
}

/// What a tenant may use.
#[derive(Debug, Args)]
pub(crate) struct TenantLimitsArgs {
    /// Of a tenant: most bytes of the objects in all its buckets together, as they were put; or
    /// none
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) quota: Option<Quota>,
    /// Of a tenant: requests that it may make, as in 5000/s; or none
    #[arg(long, value_name = "N/s", value_parser = parse_requests_rate)]
    pub(crate) requests: Option<Limit>,
    /// Of a tenant: bytes that it may send and be sent, as in 200M/s; or none
    #[arg(long, value_name = "SIZE/s", value_parser = parse_bytes_rate)]
    pub(crate) bytes: Option<Limit>,
    /// Of a tenant: how much it may do at once after a pause: what its rates give in
    /// this number of milliseconds, up to 60000 [default: 1000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(0..=60_000))]
    pub(crate) burst: Option<u32>,
}

impl TenantLimitsArgs {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        self.quota.is_some()
            || self.requests.is_some()
            || self.bytes.is_some()
            || self.burst.is_some()
    }

    /// Changes the limits that are given.
    pub(crate) fn apply(&self, limits: &mut TenantLimits) {
        if let Some(quota) = self.quota {
            limits.quota_bytes = quota.bytes();
        }
        if let Some(Limit(requests_per_s)) = self.requests {
            limits.requests_per_s = requests_per_s;
        }
        if let Some(Limit(bytes_per_s)) = self.bytes {
            limits.bytes_per_s = bytes_per_s;
        }
        if self.burst.is_some() {
            limits.burst_ms = self.burst;
        }
    }
}

/// Say what tenants may use, what they hold, and what they did since the store is served
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis account stats /srv/store
  tamis account stats /srv/store acme --physical
Times are those of requests that were answered, from their beginning, without
the wait for the rates; \"throttled\" is that wait, of all requests together.
Logical bytes are those of objects as they were put; physical ones what is
stored for the buckets of the tenant, each chunk once.")]
#[command(override_usage = "tamis account stats [OPTIONS] <STORE> [NAME]")]
pub(crate) struct AccountStatsArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of a tenant [default: all]
    pub(crate) name: Option<String>,
    /// Count the bytes that are stored as well, by going through the maps of its buckets
    #[arg(long)]
    pub(crate) physical: bool,
    #[command(flatten)]
    pub(crate) format: Format,
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
  tamis account set /srv/store acme --bytes 100M/s --quota none
What is given takes the place of what there was: --read of all patterns for
reading, --write of all for writing; none stands for no bucket, and for the
default domain. With --new-keys the old keys are refused from then on, and the
new secret is printed once. Limits of a tenant hold from then on, also of
requests that are under way; its domain is that of its buckets and stays.")]
#[command(override_usage = "tamis account set [OPTIONS] <STORE> <NAME>")]
#[command(group(
    ArgGroup::new("what")
        .required(true)
        .multiple(true)
        .args(["read", "write", "domain", "new_keys", "quota", "requests", "bytes", "burst"])
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
    #[command(flatten)]
    pub(crate) limits: TenantLimitsArgs,
}

/// Delete an account; its buckets stay, and a tenant that has some is not deleted
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis account delete /srv/store ci
Its keys are refused from then on. At a terminal it asks first; elsewhere, in a
script, it needs --yes.")]
pub(crate) struct AccountDeleteArgs {
    #[command(flatten)]
    pub(crate) of: AccountName,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}
