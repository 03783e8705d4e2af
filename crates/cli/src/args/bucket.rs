//! Buckets.

use std::path::PathBuf;

use admin::Segments;
use clap::{Args, Subcommand};

use super::options::{Confirm, Format};
use super::values::{Quota, SnapshotName, parse_quota, parse_segments, parse_snapshot};

/// Create, list and change buckets, which hold objects
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis bucket create /srv/store photos
  tamis put cat.jpg /srv/store/photos/2026/
  tamis bucket list /srv/store
A bucket holds objects, each under a key of up to 1024 bytes, beside the volumes
of the store; their data is deduplicated together. Buckets need a store of 4-KiB
chunks. All of them also work while the store is being served.")]
pub(crate) enum BucketCommand {
    Create(BucketCreateArgs),
    List(BucketListArgs),
    Show(BucketShowArgs),
    Set(BucketSetArgs),
    Snapshot(BucketSnapshotArgs),
    Branch(BucketBranchArgs),
    Replicate(BucketReplicateArgs),
    Promote(BucketPromoteArgs),
    Demote(BucketDemoteArgs),
    Delete(BucketDeleteArgs),
}

/// A bucket and how it is spoken of.
#[derive(Debug, Args)]
pub(crate) struct BucketName {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the bucket
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Create a bucket
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis bucket create /srv/store photos --quota 100G
  tamis bucket create /srv/store backups --domain tenantA --segments cdc
A name has 3 to 63 lower-case letters, digits, hyphens and single dots. Objects
are cut into segments, and equal segments are stored once: fixed cuts at equal
distances, for data that changes in place; cdc cuts where the content says so,
for data in which bytes are put in and left out; auto chooses for each object.
The domain is as `tamis volume create --domain`. Segments and domain stay.")]
pub(crate) struct BucketCreateArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
    /// How objects are cut into segments: auto, fixed or cdc
    #[arg(
        long,
        value_name = "auto|fixed|cdc",
        value_parser = parse_segments,
        default_value = "auto"
    )]
    pub(crate) segments: Segments,
    /// Deduplication domain: its chunks are shared inside the domain only, and times tell nothing
    /// of it outside
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Most bytes that its objects may have together
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) quota: Option<Quota>,
}

/// List all buckets
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bucket list /srv/store --json
MAPPED is what the index and the data of a bucket take before deduplication and
compression.")]
pub(crate) struct BucketListArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Show what a bucket, or a snapshot of it, holds
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis bucket show /srv/store photos
  tamis bucket show /srv/store photos@monday --json
`tamis volume show` says what of it no other volume or bucket holds.")]
pub(crate) struct BucketShowArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
}

/// Change the quota of a bucket
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis bucket set /srv/store photos --quota 200G
  tamis bucket set /srv/store photos --quota none
A quota bounds the bytes of all objects together, as they were put. A bucket
that holds more keeps it, and takes nothing that makes it grow.")]
#[command(override_usage = "tamis bucket set --quota <SIZE> <STORE> <NAME>")]
pub(crate) struct BucketSetArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
    /// Most bytes that its objects may have together, or none
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) quota: Quota,
}

/// Take a snapshot of a bucket: all its objects as they are now, at once
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bucket snapshot /srv/store photos@monday
It is read as a bucket that does not change: `tamis ls /srv/store/photos@monday`.
`tamis snapshot list`, `delete` and `rollback` work with it as with snapshots of
volumes.")]
pub(crate) struct BucketSnapshotArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Bucket, and name of its snapshot
    #[arg(value_name = "BUCKET@NAME", value_parser = parse_snapshot)]
    pub(crate) snapshot: SnapshotName,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Make a bucket that begins as a snapshot, at once; it takes no room until it changes
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bucket branch /srv/store photos@monday photos-test
From then on both change, and neither sees the other's changes.")]
pub(crate) struct BucketBranchArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Bucket and snapshot
    #[arg(value_name = "BUCKET@NAME", value_parser = parse_snapshot)]
    pub(crate) snapshot: SnapshotName,
    /// Name of the new bucket
    pub(crate) new_name: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Keep a second copy of a bucket on another server
#[derive(Debug, Args)]
#[command(after_help = "\
Example, of two servers on one machine:
  tamis serve /srv/b --replica-listen unix:/run/b.sock
  tamis bucket replicate /srv/a photos --to unix:/run/b.sock
  tamis bucket show /srv/a photos
From when `show` says in step, a change is acknowledged when both servers have
it; while the replica is away changes wait up to 10 seconds and then fail, or go
on with --alone. A server whose requests use the bucket all the time, as
memcached does, is stopped for this command. What goes to the replica is not
encrypted yet, so its address is a unix socket or a port of this machine.")]
pub(crate) struct BucketReplicateArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
    /// Where the replica's server waits: unix:PATH or tcp:127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", required_unless_present = "off")]
    pub(crate) to: Option<replicas::Address>,
    /// Acknowledge changes while the replica is away: they are lost if this server dies then
    #[arg(long, requires = "to")]
    pub(crate) alone: bool,
    /// Replicate no more: the bucket goes on here, and the replica stays as it is until `tamis
    /// bucket promote` or `tamis bucket delete` there
    #[arg(long, conflicts_with = "to")]
    pub(crate) off: bool,
}

/// Promote a replica to primary
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bucket promote /srv/b photos
All that was acknowledged is there. The old primary takes no changes from when
it hears of this; with --alone it may have acknowledged some until then, so be
sure that it is down. A replica that is being compared is not promoted.")]
pub(crate) struct BucketPromoteArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
}

/// Make a copy that has been taken over from a replica of the new primary
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bucket demote /srv/a photos --yes
  tamis bucket replicate /srv/b photos --to unix:/run/a.sock
It becomes equal to the new primary: what it holds alone is lost. At a terminal
it asks first; elsewhere, in a script, it needs --yes.")]
pub(crate) struct BucketDemoteArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}

/// Delete a bucket
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis bucket delete /srv/store photos
  tamis bucket delete /srv/store photos --with-objects
A bucket that holds objects is refused without --with-objects, and one that has
snapshots until they are deleted. At a terminal it asks first; elsewhere, in a
script, it needs --yes.")]
pub(crate) struct BucketDeleteArgs {
    #[command(flatten)]
    pub(crate) of: BucketName,
    /// Delete its objects as well
    #[arg(long)]
    pub(crate) with_objects: bool,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}
