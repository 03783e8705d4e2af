//! `tamis volume`: create, list, show, resize, rename, delete; on a store that is closed and on
//! one that is being served alike.

use std::io::{BufRead, IsTerminal};

use engine::VolumeInfo;

use crate::args::{
    VolumeCommand, VolumeCreateArgs, VolumeDeleteArgs, VolumeListArgs, VolumeName,
    VolumeRenameArgs, VolumeResizeArgs, VolumeShowArgs,
};
use crate::error::CliError;
use crate::output;
use crate::size::human_bytes;
use crate::store::Store;
use crate::table::{Align, Table};

pub(super) fn run(command: &VolumeCommand) -> Result<(), CliError> {
    match command {
        VolumeCommand::Create(args) => create(args),
        VolumeCommand::List(args) => list(args),
        VolumeCommand::Show(args) => show(args),
        VolumeCommand::Resize(args) => resize(args),
        VolumeCommand::Rename(args) => rename(args),
        VolumeCommand::Delete(args) => delete(args),
    }
}

fn create(args: &VolumeCreateArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume =
        Store::with(&of.store, |store| store.create_volume(&of.name, args.size, args.read_only))?;
    report(of, &volume, format_args!("created {}: {}", volume.name, human_bytes(args.size)))
}

fn list(args: &VolumeListArgs) -> Result<(), CliError> {
    let volumes = Store::with(&args.store, Store::volumes)?;
    if args.format.json {
        return output::print_json(&volumes);
    }
    let table = table_of(&volumes);
    if table.is_empty() {
        output::say(format_args!(
            "no volumes yet: make one with `tamis volume create {} NAME --size SIZE`",
            args.store.display()
        ));
        return Ok(());
    }
    output::print(table)
}

fn show(args: &VolumeShowArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| store.volume(&of.store, &of.name))?;
    if of.format.json {
        return output::print_json(&volume);
    }
    output::print(table_of(&[volume]))
}

fn resize(args: &VolumeResizeArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| {
        let before = store.volume(&of.store, &of.name)?;
        if args.size < before.size_bytes && !args.shrink {
            return Err(CliError::WouldShrink {
                name: of.name.clone(),
                size_bytes: before.size_bytes,
                asked_bytes: args.size,
            });
        }
        store.resize_volume(&of.name, args.size)
    })?;
    report(of, &volume, format_args!("{} has {} now", volume.name, human_bytes(volume.size_bytes)))
}

fn rename(args: &VolumeRenameArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| store.rename_volume(&of.name, &args.new_name))?;
    report(of, &volume, format_args!("{} is called {} now", of.name, volume.name))
}

fn delete(args: &VolumeDeleteArgs) -> Result<(), CliError> {
    let of = &args.of;
    let volume = Store::with(&of.store, |store| {
        let volume = store.volume(&of.store, &of.name)?;
        if !args.yes && !confirmed(&volume) {
            return Err(CliError::NotConfirmed);
        }
        store.delete_volume(&of.name)?;
        Ok(volume)
    })?;
    let held = human_bytes(volume.mapped_bytes);
    report(of, &volume, format_args!("deleted {}, which held {held}", volume.name))
}

/// Asks at a terminal; a script means what it says.
fn confirmed(volume: &VolumeInfo) -> bool {
    if !std::io::stdin().is_terminal() {
        return true;
    }
    let held = human_bytes(volume.mapped_bytes);
    output::say(format_args!("Delete volume {} and the {held} it holds? [y/N]", volume.name));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn report(
    of: &VolumeName,
    volume: &VolumeInfo,
    sentence: std::fmt::Arguments<'_>,
) -> Result<(), CliError> {
    if of.format.json { output::print_json(volume) } else { output::print_line(sentence) }
}

fn table_of(volumes: &[VolumeInfo]) -> Table {
    let mut table = Table::with_heading([
        ("VOLUME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("ACCESS", Align::Left),
    ]);
    for volume in volumes {
        let access = if volume.read_only { "read-only" } else { "read-write" };
        table.row([
            volume.name.clone(),
            human_bytes(volume.size_bytes),
            human_bytes(volume.mapped_bytes),
            access.to_owned(),
        ]);
    }
    table
}
