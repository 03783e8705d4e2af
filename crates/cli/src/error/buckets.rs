//! What goes wrong with buckets and objects on the command's side.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{CliError, Exit};
use crate::shell::{shell_path, shell_word};
use crate::size::counted;

/// Why a command about buckets or objects was not carried out.
#[derive(Debug, Error)]
pub(crate) enum BucketsError {
    #[error(
        "no leading part of {text} is a store: write STORE/BUCKET/KEY, where STORE is the \
         directory of a store"
    )]
    NoStoreIn { text: String },
    #[error(
        "damage was found in buckets, in {problems} {}: `tamis check --repair` makes their indexes \
         anew of what can be read",
        if *problems == 1 { "place" } else { "places" }
    )]
    DamagedBuckets { problems: u64 },
    #[error(
        "damage is left in {}: their repair failed, and they are as they were",
        counted(*buckets, "bucket")
    )]
    BucketsNotRepaired { buckets: u64 },
    #[error(
        "damage was found in {}, and all of it is repaired: nothing is lost",
        counted(*buckets, "bucket")
    )]
    BucketsRepaired { buckets: u64 },
    #[error(
        "damage was found in {} and repaired, but not without losses: {lost} of what they held is \
         lost or cannot be read, and is named above",
        counted(*buckets, "bucket")
    )]
    BucketsRepairedWithLosses { buckets: u64, lost: u64 },
    #[error(
        "tenant {name} has {first}{}: delete what it has first, or give it an end with `tamis \
         account set`",
        match others { 0 => String::new(), others => format!(" and {others} more") }
    )]
    TenantHasBuckets { name: String, first: String, others: usize },
    #[error(
        "the domain {domain} has {volume} in it, which a tenant of that name would share chunks \
         with: name a domain with --domain, {domain} itself if that is meant"
    )]
    DomainInUse { domain: String, volume: String },
    #[error("{text} names no bucket: write STORE/BUCKET/KEY")]
    NoBucketIn { text: String },
    #[error("{text} names no key: write STORE/BUCKET/KEY")]
    NoKeyIn { text: String },
    #[error(
        "{name} is a bucket and not a volume: use `tamis bucket` for it, `tamis bucket show {} {}` \
         first",
        shell_path(store),
        shell_word(name)
    )]
    IsBucket { store: PathBuf, name: String },
    #[error("{name} is a volume and not a bucket: use `tamis volume` for it")]
    IsVolume { name: String },
    #[error("bucket {name} holds {objects} objects: add --with-objects to delete them as well")]
    HoldsObjects { name: String, objects: u64 },
    #[error(
        "bucket {name} has {count} snapshots, {first} the first: delete them with `tamis snapshot \
         delete {} {first}`",
        shell_path(store)
    )]
    HasSnapshots { store: PathBuf, name: String, count: usize, first: String },
    #[error(
        "{path} is a directory: add -r to put all files in it",
        path = path.display()
    )]
    IsDirectory { path: PathBuf },
    #[error("{path} is no directory: -r puts the files of a directory", path = path.display())]
    NoDirectory { path: PathBuf },
    #[error("standard input has no name: give the object a key instead of a prefix that ends in /")]
    NamelessInput,
    #[error("nothing in bucket {bucket} has a key that begins with {prefix}")]
    NothingUnder { bucket: String, prefix: String },
    #[error(
        "the key {key} is no name of a file below the directory: get it alone, with \
         `tamis get KEY FILE`"
    )]
    UnsafeKey { key: String },
    #[error("{from} and {to} are in different stores: use `tamis get` and `tamis put`")]
    OtherStore { from: String, to: String },
    #[error("all keys must be in one store: {one} and {other} are not")]
    SeveralStores { one: String, other: String },
    #[error("-r lists and deletes by prefix, and {text} names the whole bucket: end it with /")]
    WholeBucket { text: String },
}

impl BucketsError {
    pub(crate) fn is_bucket(store: &Path, name: &str) -> Self {
        Self::IsBucket { store: store.to_owned(), name: name.to_owned() }
    }

    /// What it means to a script.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::NoStoreIn { .. } | Self::NothingUnder { .. } => Exit::NotFound,
            Self::TenantHasBuckets { .. } => Exit::InUse,
            Self::DomainInUse { .. } => Exit::Exists,
            Self::DamagedBuckets { .. } | Self::BucketsNotRepaired { .. } => Exit::Damage,
            Self::BucketsRepaired { .. } => Exit::Repaired,
            Self::BucketsRepairedWithLosses { .. } => Exit::RepairedWithLosses,
            _ => Exit::Usage,
        }
    }
}

impl From<buckets::BucketsError> for CliError {
    fn from(error: buckets::BucketsError) -> Self {
        admin::ControlError::from(error).into()
    }
}
