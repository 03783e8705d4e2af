//! `tamis volume`: create, list, show, resize, rename, delete; on a store that is closed and on
//! one that is being served alike.

use crate::staging::check_name;
use engine::control::{ListOpens, RenameVolume, ResizeVolume};
use std::collections::{BTreeSet, HashMap};

use admin::json::Json;
use engine::{Dedup, DeleteRequest, NewVolume, VolumeInfo, VolumeKind};
use serde::Serialize;

use self::settings::{Setting, change, order, set_up};
use super::confirm::confirm;
use crate::args::{
    Quota, VolumeCodec, VolumeCommand, VolumeCreateArgs, VolumeDeleteArgs, VolumeListArgs,
    VolumeName, VolumeRenameArgs, VolumeResizeArgs, VolumeSetArgs,
};
use crate::control::Store;
use crate::error::CliError;
use crate::output;
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

pub(super) mod settings;
mod show;

/// What `--json` prints of a volume that is listed or shown.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    info: VolumeInfo,
    /// The snapshot that it was made from, of a clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    clone_of: Option<String>,
}

/// What `--json` prints of all.
#[derive(Debug, Serialize)]
struct AllListed<'a> {
    volumes: &'a [Listed],
}

pub(super) fn run(command: &VolumeCommand) -> Result<(), CliError> {
    match command {
        VolumeCommand::Create(args) => create(args),
        VolumeCommand::List(args) => list(args),
        VolumeCommand::Show(args) => show::run(args),
        VolumeCommand::Resize(args) => resize(args),
        VolumeCommand::Set(args) => set(args),
        VolumeCommand::Rename(args) => rename(args),
        VolumeCommand::Delete(args) => delete(args),
    }
}

fn create(args: &VolumeCreateArgs) -> Result<(), CliError> {
    let of = &args.of;
    let settings = settings_of_new(args);
    let (volume, note) = Store::with(&of.store, |store| {
        let note = match &args.domain {
            Some(domain) => note_of_domain(domain, &store.volumes()?),
            None => String::new(),
        };
        let (name, domain) = (of.name.clone(), args.domain.clone());
        let (size_bytes, read_only) = (args.size, args.read_only);
        check_name(&name)?;
        let made =
            store.ask(NewVolume { name, size_bytes, read_only, domain, ..NewVolume::default() })?;
        let undo = deletion_of(&made);
        let set = set_up(store, made, &settings);
        if set.is_err() {
            // Nobody asked for a volume without its settings; that they failed is the error to
            // tell.
            let _ = store.ask(undo);
        }
        let volume = set?;
        Ok((volume, note))
    })?;
    report(of, &volume, format_args!("created {}: {}{note}", volume.name, human_bytes(args.size)))
}

/// What a new volume is set to, where that is not what every volume is.
fn settings_of_new(args: &VolumeCreateArgs) -> Vec<Setting> {
    let dedup = if args.no_dedup { Some(Dedup::Off) } else { args.dedup };
    let all = [
        Some(Setting::QuotaBytes(args.quota.and_then(Quota::bytes))),
        Some(Setting::ReservationBytes(args.reservation.and_then(Quota::bytes))),
        dedup.map(Setting::Dedup),
        Some(Setting::Compression(args.compression.and_then(VolumeCodec::own))),
    ];
    all.into_iter().flatten().filter(|setting| !setting.is_default()).collect()
}

/// Whether a domain is a new one, so that nobody has to find out later that its name was mistyped.
fn note_of_domain(domain: &str, volumes: &[VolumeInfo]) -> String {
    let all: BTreeSet<&str> = volumes.iter().filter_map(|v| v.domain.as_deref()).collect();
    if all.contains(domain) {
        return format!(", in domain {domain}");
    }
    let others: Vec<&str> = all.into_iter().collect();
    match others.is_empty() {
        true => format!(", in domain {domain}, which is new"),
        false => format!(", in domain {domain}, which is new beside {}", others.join(", ")),
    }
}

fn list(args: &VolumeListArgs) -> Result<(), CliError> {
    let volumes = Store::with(&args.store, Store::volumes)?;
    let versions = by_name(&volumes);
    let listed: Vec<Listed> = volumes
        .iter()
        .filter(|volume| volume.taken_unix_s.is_none() && volume.kind == VolumeKind::Block)
        .map(|volume| with_origin(volume, &versions))
        .collect();
    if args.format.json {
        return output::print_json(&AllListed { volumes: &listed });
    }
    let table = table_of(&listed);
    if table.is_empty() {
        output::say(format_args!(
            "no volumes yet: make one with `tamis volume create {} NAME --size SIZE`",
            args.store.display()
        ));
        return Ok(());
    }
    output::print_table(&table)
}

fn by_name(versions: &[VolumeInfo]) -> HashMap<&str, &VolumeInfo> {
    versions.iter().map(|version| (version.name.as_str(), version)).collect()
}

/// A volume, and the first snapshot above it that is not one of its own: there may be thousands of
/// those, so each is found by its name.
fn with_origin(volume: &VolumeInfo, versions: &HashMap<&str, &VolumeInfo>) -> Listed {
    fn volume_of(name: &str) -> &str {
        name.split('@').next().unwrap_or_default()
    }
    let own = volume_of(&volume.name);
    let mut clone_of = volume.parent.as_deref();
    while let Some(parent) = clone_of.filter(|parent| volume_of(parent) == own) {
        clone_of = versions.get(parent).and_then(|above| above.parent.as_deref());
    }
    Listed { info: volume.clone(), clone_of: clone_of.map(str::to_owned) }
}

fn resize(args: &VolumeResizeArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| {
        let before = store.block_volume(&of.store, &of.name)?;
        if args.size < before.size_bytes && !args.shrink {
            return Err(CliError::WouldShrink {
                name: of.name.clone(),
                size_bytes: before.size_bytes,
                asked_bytes: args.size,
            });
        }
        let shrinks = args.size < before.size_bytes;
        if shrinks && !args.confirm.yes {
            store.check_unopened(&of.name, args.force)?;
            let (name, beyond) = (&of.name, human_bytes(before.size_bytes - args.size));
            confirm(&args.confirm, format_args!("Cut the last {beyond} off volume {name}?"))?;
        }
        // If somebody else has made it larger meanwhile, more would go than was asked about.
        let may_shrink = args.shrink && (shrinks || args.confirm.yes);
        let (name, size_bytes, even_if_open) = (of.name.clone(), args.size, false);
        store.ask_alone(ResizeVolume { name, size_bytes, may_shrink, even_if_open }, args.force)
    })?;
    report(of, &volume, format_args!("{} has {} now", volume.name, human_bytes(volume.size_bytes)))
}

fn set(args: &VolumeSetArgs) -> Result<(), CliError> {
    let of = &args.of;
    let all = [
        args.quota.map(|quota| Setting::QuotaBytes(quota.bytes())),
        args.reservation.map(|room| Setting::ReservationBytes(room.bytes())),
        args.dedup.map(Setting::Dedup),
        args.compression.map(|codec| Setting::Compression(codec.own())),
    ];
    let mut settings: Vec<Setting> = all.into_iter().flatten().collect();
    let volume = Store::with(&of.store, |store| {
        let before = store.block_volume(&of.store, &of.name)?;
        order(&mut settings, &before);
        change(store, before, &settings)
    })?;
    let done: Vec<String> = settings.iter().map(|setting| setting.sentence(&volume)).collect();
    report(of, &volume, format_args!("{} {}", of.name, done.join(", and ")))
}

fn rename(args: &VolumeRenameArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| {
        check_name(&args.new_name)?;
        store.block_volume(&of.store, &of.name)?;
        let opens = store.ask(ListOpens { name: of.name.clone() })?;
        let (name, new_name) = (of.name.clone(), args.new_name.clone());
        let renamed = store.ask(RenameVolume { name, new_name })?;
        if !opens.is_empty() {
            let clients = human_count(opens.len() as u64);
            output::say(format_args!(
                "note: {clients} connections have {} open and go on; a client that connects again \
                 asks for {}",
                renamed.name, of.name
            ));
        }
        Ok(renamed)
    })?;
    report(of, &volume, format_args!("{} is called {} now", of.name, volume.name))
}

fn delete(args: &VolumeDeleteArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| {
        let volume = store.block_volume(&of.store, &of.name)?;
        if volume.taken_unix_s.is_some() {
            let (store, name) = (of.store.clone(), of.name.clone());
            return Err(CliError::IsSnapshot { store, name });
        }
        let prefix = format!("{}@", of.name);
        let volumes = store.volumes()?;
        let is_snapshot = |other: &&VolumeInfo| other.name.starts_with(&prefix);
        let snapshots: Vec<&VolumeInfo> = volumes.iter().filter(is_snapshot).collect();
        let ids: Vec<u32> = snapshots.iter().map(|snapshot| snapshot.id).collect();
        if !ids.is_empty() && !args.with_snapshots {
            return Err(CliError::HasSnapshots { name: of.name.clone(), count: ids.len() });
        }
        if !args.confirm.yes {
            for name in snapshots.iter().map(|snapshot| &snapshot.name).chain([&of.name]) {
                store.check_unopened(name, args.force)?;
            }
            ask_about(&volume, ids.len(), args)?;
        }
        // With --yes whatever snapshots there are by then are meant.
        let newest = (!args.confirm.yes).then(|| ids.into_iter().fold(volume.id, u32::max));
        let with_snapshots = args.with_snapshots;
        let request = DeleteRequest { with_snapshots, newest, ..deletion_of(&volume) };
        store.ask_alone(request, args.force)?;
        Ok(volume)
    })?;
    let held = human_bytes(volume.mapped_bytes);
    report(of, &volume, format_args!("deleted {}, which held {held}", volume.name))
}

/// A deletion of this volume or snapshot, not of another that has its name by then.
pub(super) fn deletion_of(volume: &VolumeInfo) -> DeleteRequest {
    DeleteRequest { id: Some(volume.id), ..DeleteRequest::of(&volume.name) }
}

fn ask_about(
    volume: &VolumeInfo,
    snapshots: usize,
    args: &VolumeDeleteArgs,
) -> Result<(), CliError> {
    let (name, held) = (&volume.name, human_bytes(volume.mapped_bytes));
    let with_it = match snapshots {
        0 => String::new(),
        1 => ", its snapshot".to_owned(),
        _ => format!(", its {snapshots} snapshots"),
    };
    confirm(&args.confirm, format_args!("Delete volume {name}{with_it} and the {held} it holds?"))
}

fn report(
    of: &VolumeName,
    volume: &VolumeInfo,
    sentence: std::fmt::Arguments<'_>,
) -> Result<(), CliError> {
    if of.format.json { output::print_json(&Json(volume)) } else { output::print_line(sentence) }
}

fn table_of(volumes: &[Listed]) -> Table {
    let clones = volumes.iter().any(|volume| volume.clone_of.is_some());
    let domains = volumes.iter().any(|volume| volume.info.domain.is_some());
    let dedups = volumes.iter().any(|volume| volume.info.dedup != Dedup::On);
    let quotas = volumes.iter().any(|volume| volume.info.quota_bytes.is_some());
    let mut table = Table::with_heading([
        ("VOLUME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("ACCESS", Align::Left),
        (if clones { "CLONE OF" } else { "" }, Align::Left),
        (if quotas { "QUOTA" } else { "" }, Align::Right),
        (if domains { "DOMAIN" } else { "" }, Align::Left),
        (if dedups { "DEDUP" } else { "" }, Align::Left),
    ]);
    for Listed { info: volume, clone_of } in volumes {
        let access = if volume.read_only { "read-only" } else { "read-write" };
        let dedup = if dedups { volume.dedup.name() } else { "" };
        table.row([
            volume.name.clone(),
            human_bytes(volume.size_bytes),
            human_bytes(volume.mapped_bytes),
            access.to_owned(),
            clone_of.clone().unwrap_or_default(),
            volume.quota_bytes.map(human_bytes).unwrap_or_default(),
            volume.domain.clone().unwrap_or_default(),
            dedup.to_owned(),
        ]);
    }
    table
}
