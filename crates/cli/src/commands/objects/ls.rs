//! `tamis ls`: the objects of a bucket, page by page, in bounded memory.

use std::fmt::Write;

use admin::{ObjectKey, ObjectPage, ObjectShown};
use engine::utc;
use serde::Serialize;

use super::each_page;
use crate::args::LsArgs;
use crate::control::Store;
use crate::error::{BucketsError, CliError};
use crate::object_path::ObjectPath;
use crate::output;
use crate::size::human_bytes;

/// A line of `--json`.
#[derive(Serialize)]
struct PrefixShown<'a> {
    prefix: &'a ObjectKey,
}

pub(in crate::commands) fn run(args: &LsArgs) -> Result<(), CliError> {
    let source = ObjectPath::parse(&args.source)?;
    let delimiter = if args.recursive { "" } else { "/" };
    let mut entries = 0;
    Store::with(&source.store, |store| {
        each_page(store, &source, &source.key, delimiter, |page| {
            entries += page.objects.len() + page.prefixes.len();
            print(args, page)
        })
    })?;
    match entries {
        0 if !source.key.0.is_empty() => {
            let (bucket, prefix) = (source.bucket, source.key.to_string());
            Err(BucketsError::NothingUnder { bucket, prefix }.into())
        }
        _ => Ok(()),
    }
}

/// Prints a page in the order of keys.
fn print(args: &LsArgs, page: ObjectPage) -> Result<(), CliError> {
    let mut objects = page.objects.iter().peekable();
    let mut lines = String::new();
    for prefix in &page.prefixes {
        while let Some(object) = objects.next_if(|object| object.key < *prefix) {
            add(args, object, &mut lines)?;
        }
        match (args.format.json, args.long) {
            (true, _) => output::print_json_line(&PrefixShown { prefix })?,
            (false, true) => line(&mut lines, format_args!("{:>10}  {:19}  {prefix}", "-", "")),
            (false, false) => line(&mut lines, format_args!("{prefix}")),
        }
    }
    objects.try_for_each(|object| add(args, object, &mut lines))?;
    output::print(lines)
}

fn add(args: &LsArgs, object: &ObjectShown, lines: &mut String) -> Result<(), CliError> {
    if args.format.json {
        return output::print_json_line(object);
    }
    let key = &object.key;
    match args.long {
        true => {
            let (size, put) = (human_bytes(object.size_bytes), utc(object.created_unix_ms / 1000));
            line(lines, format_args!("{size:>10}  {put:19}  {key}  {}", object.etag));
        }
        false => line(lines, format_args!("{key}")),
    }
    Ok(())
}

fn line(lines: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = writeln!(lines, "{text}");
}
