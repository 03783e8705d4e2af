//! Why something was not done with an account.

use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The store has no account of this name.
    #[error("there is no account {name}")]
    NoSuchAccount {
        /// The name.
        name: String,
    },
    /// An account has this name.
    #[error("there is an account {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// Two tenants would share chunks.
    #[error(
        "the domain {domain} is that of {owner}: a tenant has a domain of its own; give it another \
         with --domain, or make another account of {owner} with --domain {domain} and without \
         --tenant"
    )]
    DomainTaken {
        /// The domain.
        domain: String,
        /// The account that has it.
        owner: String,
    },
    /// The buckets of a tenant are in its domain.
    #[error("{name} is a tenant, whose domain is that of its buckets and stays as it is")]
    DomainOfTenant {
        /// Name of the account.
        name: String,
    },
    /// Only tenants have limits.
    #[error(
        "{name} is no tenant, so it has no quota, rates or burst: make an account with --tenant"
    )]
    NoTenant {
        /// Name of the account.
        name: String,
    },
    /// Nobody may give an account this name.
    #[error(
        "{name:?} cannot be the name of an account: that has 1 to 64 letters, digits, hyphens, \
         dots and underscores"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// What is meant to match names of buckets matches none.
    #[error(
        "{pattern:?} matches no bucket: write the name of a bucket, the beginning of names and \
         `*`, or `*` for all"
    )]
    BadPattern {
        /// As it was written.
        pattern: String,
    },
    /// Others than its owner may read the file, so its secrets are known.
    #[error(
        "{path} has mode {mode:03o}, so that others may read its secrets: make it 0600, and give \
         its accounts new keys"
    )]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is none that this program writes.
    #[error("{path} cannot be read as a file of accounts: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
    /// The kernel gives no random bytes.
    #[error("the machine gives no random bytes: {0}")]
    NoRandomness(String),
}
