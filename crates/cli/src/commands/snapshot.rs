//! `tamis snapshot` and `tamis clone`: volumes as they were, on a store that is closed and on one
//! that is being served alike.

use crate::staging::{check_name, check_snapshots};
use admin::json::Json;
use engine::control::{CloneVolume, Rollback};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{SnapshotRequest, VolumeInfo, VolumeKind, utc};
use serde::Serialize;

use super::bucket::check_bucket_name;
use super::confirm::confirm;
use super::volume::deletion_of;
use crate::args::{
    CloneArgs, Force, SnapshotCommand, SnapshotCreateArgs, SnapshotDeleteArgs, SnapshotListArgs,
    SnapshotName, SnapshotRollbackArgs,
};
use crate::control::Store;
use crate::error::CliError;
use crate::output;
use crate::size::human_bytes;
use crate::staging::{check_rollback, marks_for};
use crate::table::{Align, Table};

/// What `--json` prints of several.
#[derive(Serialize)]
struct Snapshots<'a> {
    #[serde(serialize_with = "admin::json::serialize")]
    snapshots: &'a [VolumeInfo],
}

pub(super) fn run(command: &SnapshotCommand) -> Result<(), CliError> {
    match command {
        SnapshotCommand::Create(args) => create(args),
        SnapshotCommand::List(args) => list(args),
        SnapshotCommand::Delete(args) => delete(args),
        SnapshotCommand::Rollback(args) => rollback(args),
    }
}

fn create(args: &SnapshotCreateArgs) -> Result<(), CliError> {
    let request = request_of(args)?;
    let names: Vec<String> =
        request.volumes.iter().map(|volume| format!("{volume}@{}", request.name)).collect();
    let taken = Store::with(&args.store, |store| {
        check_snapshots(&request)?;
        store.ask(request)?;
        let volumes = store.volumes()?;
        Ok(volumes.into_iter().filter(|volume| names.contains(&volume.name)).collect::<Vec<_>>())
    })?;
    if args.format.json {
        return output::print_json(&Snapshots { snapshots: &taken });
    }
    output::print_line(format_args!("took {}", names.join(", ")))
}

fn request_of(args: &SnapshotCreateArgs) -> Result<SnapshotRequest, CliError> {
    let taken_unix_s =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Some(first) = args.snapshots.first() else {
        let (volumes, name) = (args.group.clone(), args.name.clone().unwrap_or_default());
        return Ok(SnapshotRequest { volumes, name, taken_unix_s });
    };
    if let Some(other) = args.snapshots.iter().find(|other| other.name != first.name) {
        let (one, other) = (first.name.clone(), other.name.clone());
        return Err(CliError::SnapshotNamesDiffer { one, other });
    }
    let volumes = args.snapshots.iter().map(|snapshot| snapshot.volume.clone()).collect();
    Ok(SnapshotRequest { volumes, name: first.name.clone(), taken_unix_s })
}

fn list(args: &SnapshotListArgs) -> Result<(), CliError> {
    let snapshots = Store::with(&args.store, |store| {
        if let Some(volume) = &args.volume {
            store.volume(&args.store, volume)?;
        }
        let is_asked_for = |snapshot: &VolumeInfo| match snapshot.name.split_once('@') {
            Some((of, _)) => args.volume.as_ref().is_none_or(|volume| volume == of),
            None => false,
        };
        Ok(store.volumes()?.into_iter().filter(is_asked_for).collect::<Vec<_>>())
    })?;
    if args.format.json {
        return output::print_json(&Snapshots { snapshots: &snapshots });
    }
    if snapshots.is_empty() {
        let store = args.store.display();
        output::say(format_args!(
            "no snapshots yet: take one with `tamis snapshot create {store} VOLUME@NAME`"
        ));
        return Ok(());
    }
    output::print_table(&table_of(snapshots))
}

/// Oldest first, volume by volume.
fn table_of(mut snapshots: Vec<VolumeInfo>) -> Table {
    // Numbers are given in the order in which snapshots are taken; a clock may have been set back.
    snapshots.sort_by_key(|snapshot| {
        let volume = snapshot.name.split('@').next().unwrap_or_default().to_owned();
        (volume, snapshot.id)
    });
    let mut table = Table::with_heading([
        ("SNAPSHOT", Align::Left),
        ("TAKEN (UTC)", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
    ]);
    for snapshot in snapshots {
        let taken = snapshot.taken_unix_s.filter(|seconds| *seconds > 0);
        table.row([
            snapshot.name,
            taken.map_or_else(|| "unknown".to_owned(), utc),
            human_bytes(snapshot.size_bytes),
            human_bytes(snapshot.mapped_bytes),
        ]);
    }
    table
}

fn delete(args: &SnapshotDeleteArgs) -> Result<(), CliError> {
    let mut names: Vec<String> = Vec::new();
    for name in args.snapshots.iter().map(SnapshotName::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let gone = Store::with(&args.store, |store| {
        // All are looked for before any is deleted.
        let found: Result<Vec<_>, _> =
            names.iter().map(|name| store.volume(&args.store, name)).collect();
        let found = found?;
        // Nor is any if one of them cannot be.
        found.iter().try_for_each(|one| store.close_bucket(one))?;
        names.iter().try_for_each(|name| store.check_unopened(name, args.force))?;
        confirm(&args.confirm, format_args!("Delete {}?", names.join(", ")))?;
        let doomed = with_marks(&found, &store.volumes()?);
        delete_all(store, &doomed, args.force)?;
        Ok(found)
    })?;
    if args.format.json {
        return output::print_json(&Snapshots { snapshots: &gone });
    }
    output::print_line(format_args!("deleted {}", names.join(", ")))
}

/// Deletes snapshots, one after the other; of those before one that cannot be it is said that they
/// are gone.
fn delete_all(store: &Store, snapshots: &[VolumeInfo], force: Force) -> Result<(), CliError> {
    for (count, snapshot) in snapshots.iter().enumerate() {
        if let Err(error) = store.ask_alone(deletion_of(snapshot), force) {
            if let Some(gone) = snapshots.get(..count).filter(|gone| !gone.is_empty()) {
                let names: Vec<&str> = gone.iter().map(|gone| gone.name.as_str()).collect();
                output::say(format_args!("deleted {}, and no more", names.join(", ")));
            }
            return Err(error);
        }
    }
    Ok(())
}

/// What is deleted with these snapshots: before each what an import that was killed at its end has
/// left, which without the other would look like that of an import in its middle.
fn with_marks(found: &[VolumeInfo], all: &[VolumeInfo]) -> Vec<VolumeInfo> {
    let mut doomed: Vec<VolumeInfo> = Vec::new();
    for snapshot in found {
        let marks = marks_for(&snapshot.name);
        let marks = marks.iter().filter_map(|mark| all.iter().find(|other| other.name == *mark));
        for one in marks.chain([snapshot]) {
            if !doomed.iter().any(|other| other.name == one.name) {
                doomed.push(one.clone());
            }
        }
    }
    doomed
}

fn rollback(args: &SnapshotRollbackArgs) -> Result<(), CliError> {
    let SnapshotName { volume, name } = &args.snapshot;
    let full = args.snapshot.to_string();
    check_rollback(&full)?;
    let rolled_back = Store::with(&args.store, |store| {
        let snapshot = store.volume(&args.store, &full)?;
        store.close_bucket(&VolumeInfo { name: volume.clone(), ..snapshot.clone() })?;
        if !args.confirm.yes {
            store.check_unopened(volume, args.force)?;
        }
        let question = format_args!("Discard what {volume} holds, and roll it back to {name}?");
        confirm(&args.confirm, question)?;
        let id = Some(snapshot.id);
        store.ask_alone(Rollback { snapshot: snapshot.name, volume: None, id }, args.force)
    })?;
    if args.format.json {
        return output::print_json(&Json(&rolled_back));
    }
    output::print_line(format_args!("{volume} holds what {full} holds"))
}

/// `tamis clone`.
pub(super) fn clone(args: &CloneArgs) -> Result<(), CliError> {
    let full = args.snapshot.to_string();
    let volume = Store::with(&args.store, |store| {
        let snapshot = store.volume(&args.store, &full)?;
        if snapshot.kind == VolumeKind::Bucket {
            check_bucket_name(&args.new_name)?;
        }
        check_name(&args.new_name)?;
        store.ask(CloneVolume { snapshot: full.clone(), name: args.new_name.clone() })
    })?;
    if args.format.json {
        return output::print_json(&Json(&volume));
    }
    let size = human_bytes(volume.size_bytes);
    output::print_line(format_args!("created {} from {full}: {size}", volume.name))
}
