//! `tamis bucket`: create, list, show, set, snapshot, branch, replicate, promote, demote, delete;
//! on a store that is closed and on one that is being served alike.

use admin::{
    BucketListed, BucketShown, CreateBucket, DeleteBucket, ListBuckets, ReplicateBucket,
    ReplicationChange, ReplicationShown, Segments, SetBucket, ShowBucket,
};
use engine::control::CloneVolume;
use engine::{SnapshotRequest, VolumeInfo, VolumeKind, utc};
use serde::Serialize;

use super::confirm::confirm;
use super::serve::replica_from_anywhere;
use crate::args::{
    BucketBranchArgs, BucketCommand, BucketCreateArgs, BucketDeleteArgs, BucketDemoteArgs,
    BucketListArgs, BucketName, BucketPromoteArgs, BucketReplicateArgs, BucketSetArgs,
    BucketShowArgs, BucketSnapshotArgs, Quota, SnapshotName,
};
use crate::control::Store;
use crate::error::{BucketsError, CliError};
use crate::output;
use crate::scrub_record::unix_seconds;
use crate::size::{counted, human_bytes, human_count};
use crate::table::{Align, Table};

/// Buckets that are listed in one request.
const LISTED_AT_ONCE: usize = 4096;

/// What `--json` prints of all.
#[derive(Serialize)]
struct AllListed<'a> {
    buckets: &'a [BucketListed],
}

pub(super) fn run(command: &BucketCommand) -> Result<(), CliError> {
    match command {
        BucketCommand::Create(args) => create(args),
        BucketCommand::List(args) => list(args),
        BucketCommand::Show(args) => show(args),
        BucketCommand::Set(args) => set(args),
        BucketCommand::Snapshot(args) => snapshot(args),
        BucketCommand::Branch(args) => branch(args),
        BucketCommand::Replicate(args) => replicate(args),
        BucketCommand::Promote(args) => promote(args),
        BucketCommand::Demote(args) => demote(args),
        BucketCommand::Delete(args) => delete(args),
    }
}

/// Checks the name of a new bucket.
pub(super) fn check_bucket_name(name: &str) -> Result<(), CliError> {
    Ok(::buckets::check_bucket_name(name)?)
}

fn create(args: &BucketCreateArgs) -> Result<(), CliError> {
    let of = &args.of;
    let wish = CreateBucket {
        name: of.name.clone(),
        segments: args.segments,
        domain: args.domain.clone(),
        quota_bytes: args.quota.and_then(Quota::bytes),
    };
    let bucket = Store::with(&of.store, |store| store.ask(wish))?;
    match of.format.json {
        true => output::print_json(&bucket),
        false => output::print_line(format_args!("created bucket {}", bucket.name)),
    }
}

fn list_all(store: &Store) -> Result<Vec<BucketListed>, CliError> {
    let mut all: Vec<BucketListed> = Vec::new();
    loop {
        let after = all.last().map(|last| last.name.clone());
        let some = store.ask(ListBuckets { after, most: LISTED_AT_ONCE })?;
        let is_last = some.len() < LISTED_AT_ONCE;
        all.extend(some);
        if is_last {
            return Ok(all);
        }
    }
}

fn list(args: &BucketListArgs) -> Result<(), CliError> {
    let mut all = Store::with(&args.store, list_all)?;
    all.retain(|bucket| bucket.taken_unix_s.is_none());
    if args.format.json {
        return output::print_json(&AllListed { buckets: &all });
    }
    if all.is_empty() {
        output::say(format_args!(
            "no buckets yet: make one with `tamis bucket create {} NAME`",
            args.store.display()
        ));
        return Ok(());
    }
    let domains = all.iter().any(|bucket| bucket.domain.is_some());
    let mut table = Table::with_heading([
        ("BUCKET", Align::Left),
        ("MAPPED", Align::Right),
        (if domains { "DOMAIN" } else { "" }, Align::Left),
    ]);
    for bucket in all {
        table.row([
            bucket.name,
            human_bytes(bucket.mapped_bytes),
            bucket.domain.unwrap_or_default(),
        ]);
    }
    output::print_table(&table)
}

fn show(args: &BucketShowArgs) -> Result<(), CliError> {
    let of = &args.of;
    let name = of.name.clone();
    let bucket = Store::with(&of.store, |store| store.ask(ShowBucket { name }))?;
    if of.format.json {
        return output::print_json(&bucket);
    }
    let mut table = Table::plain([Align::Left, Align::Left]);
    let mut row = |key: &str, value: String| table.row([key.to_owned(), value]);
    row("bucket", bucket.name.clone());
    let replication = bucket.replication.as_ref();
    if let Some(replication) = replication {
        row("replication", replication_sentence(replication));
    }
    if replication.is_some_and(|shown| !shown.objects_known) {
        row("mapped", human_bytes(bucket.mapped_bytes));
        return output::print_table(&table);
    }
    row("objects", human_count(bucket.objects));
    row("bytes", human_bytes(bucket.object_bytes));
    if bucket.parts > 0 {
        let (parts, bytes) = (human_count(bucket.parts), human_bytes(bucket.part_bytes));
        row("unfinished parts", format!("{parts}, {bytes}"));
    }
    row("mapped", human_bytes(bucket.mapped_bytes));
    row("quota", bucket.quota_bytes.map_or_else(|| "none".to_owned(), human_bytes));
    row("segments", segments_name(bucket.segments).to_owned());
    row("domain", bucket.domain.unwrap_or_else(|| "default".to_owned()));
    if let Some(taken) = bucket.taken_unix_s {
        row("taken (UTC)", utc(taken));
    }
    if !bucket.snapshots.is_empty() {
        row("snapshots", bucket.snapshots.join(", "));
    }
    output::print_table(&table)
}

fn replication_sentence(shown: &ReplicationShown) -> String {
    let ReplicationShown {
        role, peer, epoch, sequence, alone_allowed, went_on_alone, link, ..
    } = shown;
    let link = link.as_deref().unwrap_or("not connected");
    let policy = if *alone_allowed { ", goes on alone" } else { "" };
    let lacking = if *went_on_alone { ", the replica lacks changes" } else { "" };
    let place = format!("epoch {epoch}, change {sequence}");
    match role.as_str() {
        "primary" => format!("primary of {peer}, {link}{policy}{lacking}; {place}"),
        "replica" => format!("replica, {link}; {place}"),
        "syncing" => format!("replica that is being compared, {link}; {place}"),
        "fenced" => format!("none any more: {peer}; {place}"),
        _ => format!("none: it stands alone; {place}"),
    }
}

/// Changes how a bucket is replicated, and says what it is now.
fn change_replication(of: &BucketName, change: ReplicationChange) -> Result<(), CliError> {
    let wish = ReplicateBucket { name: of.name.clone(), change };
    let bucket = Store::with(&of.store, |store| store.ask(wish))?;
    let is_now = bucket.replication.as_ref().map(replication_sentence).unwrap_or_default();
    report(&bucket, of.format.json, format_args!("replication of {}: {is_now}", bucket.name))
}

fn replicate(args: &BucketReplicateArgs) -> Result<(), CliError> {
    let change = args.to.as_ref().map_or(ReplicationChange::End, |address| ReplicationChange::To {
        peer: replica_from_anywhere(address).to_string(),
        alone_allowed: args.alone,
    });
    change_replication(&args.of, change)
}

fn promote(args: &BucketPromoteArgs) -> Result<(), CliError> {
    change_replication(&args.of, ReplicationChange::Promote)
}

fn demote(args: &BucketDemoteArgs) -> Result<(), CliError> {
    let name = &args.of.name;
    confirm(
        &args.confirm,
        format_args!("Make bucket {name} a replica, and lose what it holds alone?"),
    )?;
    change_replication(&args.of, ReplicationChange::Demote)
}

fn segments_name(segments: Segments) -> &'static str {
    match segments {
        Segments::Auto => "auto",
        Segments::Fixed => "fixed",
        Segments::Cdc => "cdc",
    }
}

fn set(args: &BucketSetArgs) -> Result<(), CliError> {
    let of = &args.of;
    let wish = SetBucket { name: of.name.clone(), quota_bytes: args.quota.bytes() };
    let bucket = Store::with(&of.store, |store| store.ask(wish))?;
    if of.format.json {
        return output::print_json(&bucket);
    }
    let quota = bucket.quota_bytes.map_or_else(
        || "no quota".to_owned(),
        |bytes| format!("a quota of {}", human_bytes(bytes)),
    );
    output::print_line(format_args!("{} has {quota} now", bucket.name))
}

/// The bucket of this name, or snapshot of one, as a volume.
fn bucket_volume(
    store: &Store,
    path: &std::path::Path,
    name: &str,
) -> Result<VolumeInfo, CliError> {
    let volume = store.volume(path, name)?;
    match volume.kind {
        VolumeKind::Bucket => Ok(volume),
        VolumeKind::Block => Err(BucketsError::IsVolume { name: name.to_owned() }.into()),
    }
}

fn snapshot(args: &BucketSnapshotArgs) -> Result<(), CliError> {
    let SnapshotName { volume: bucket, name } = &args.snapshot;
    let full = args.snapshot.to_string();
    let shown = Store::with(&args.store, |store| {
        bucket_volume(store, &args.store, bucket)?;
        let (volumes, name) = (vec![bucket.clone()], name.clone());
        store.ask(SnapshotRequest { volumes, name, taken_unix_s: unix_seconds() })?;
        store.ask(ShowBucket { name: full.clone() })
    })?;
    report(&shown, args.format.json, format_args!("took {full}"))
}

fn branch(args: &BucketBranchArgs) -> Result<(), CliError> {
    let full = args.snapshot.to_string();
    check_bucket_name(&args.new_name)?;
    let shown = Store::with(&args.store, |store| {
        bucket_volume(store, &args.store, &full)?;
        let name = args.new_name.clone();
        store.ask(CloneVolume { snapshot: full.clone(), name: name.clone() })?;
        store.ask(ShowBucket { name })
    })?;
    report(&shown, args.format.json, format_args!("created bucket {} from {full}", shown.name))
}

fn report(
    bucket: &BucketShown,
    as_json: bool,
    sentence: std::fmt::Arguments<'_>,
) -> Result<(), CliError> {
    if as_json { output::print_json(bucket) } else { output::print_line(sentence) }
}

fn delete(args: &BucketDeleteArgs) -> Result<(), CliError> {
    let of = &args.of;
    let name = &of.name;
    let bucket = Store::with(&of.store, |store| {
        let bucket = store.ask(ShowBucket { name: name.clone() })?;
        if bucket.taken_unix_s.is_some() {
            let (store, name) = (of.store.clone(), name.clone());
            return Err(CliError::IsSnapshot { store, name });
        }
        if let Some(first) = bucket.snapshots.first() {
            let (store, count) = (of.store.clone(), bucket.snapshots.len());
            let (name, first) = (name.clone(), first.clone());
            return Err(BucketsError::HasSnapshots { store, name, count, first }.into());
        }
        if bucket.objects > 0 && !args.with_objects {
            let (name, objects) = (name.clone(), bucket.objects);
            return Err(BucketsError::HoldsObjects { name, objects }.into());
        }
        let (objects, bytes) =
            (counted(bucket.objects, "object"), human_bytes(bucket.object_bytes));
        confirm(&args.confirm, format_args!("Delete bucket {name} and its {objects} of {bytes}?"))?;
        let wish = DeleteBucket { name: name.clone(), with_objects: args.with_objects };
        store.ask(wish)?;
        Ok(bucket)
    })?;
    let held = counted(bucket.objects, "object");
    report(&bucket, of.format.json, format_args!("deleted bucket {name}, which held {held}"))
}
