//! `tamis rm`: objects by their keys, or all below a prefix.

use admin::{DeleteObjects, HeadObject, ListObjects, OBJECTS_LISTED_MAX, ObjectKey};
use serde::Serialize;

use super::super::confirm::confirm;
use crate::args::RmArgs;
use crate::control::Store;
use crate::error::{BucketsError, CliError};
use crate::interrupt::Interrupt;
use crate::object_path::ObjectPath;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::size::counted;

/// What `--json` prints.
#[derive(Serialize)]
struct Shown {
    objects: u64,
}

pub(in crate::commands) fn run(args: &RmArgs) -> Result<(), CliError> {
    let targets: Result<Vec<_>, _> =
        args.targets.iter().map(|text| ObjectPath::parse(text)).collect();
    let targets = targets?;
    let Some(first) = targets.first() else { return Ok(()) };
    if let Some(other) = targets.iter().find(|other| other.store != first.store) {
        let (one, other) = (first.text.clone(), other.text.clone());
        return Err(BucketsError::SeveralStores { one, other }.into());
    }
    let interrupt = Interrupt::listen()?;
    let objects = match args.recursive {
        true => {
            for target in &targets {
                // `STORE/BUCKET` is not meant by accident when a slash follows it.
                if target.key.0.is_empty() && !target.text.ends_with('/') {
                    return Err(BucketsError::WholeBucket { text: target.text.clone() }.into());
                }
            }
            remove_prefixes(args, first, &targets, &interrupt)?
        }
        false => {
            let keys: Result<Vec<_>, _> =
                targets.iter().cloned().map(ObjectPath::with_key).collect();
            remove_keys(first, &keys?)?
        }
    };
    match args.format.json {
        true => output::print_json(&Shown { objects }),
        false => output::print_line(format_args!("deleted {}", counted(objects, "object"))),
    }
}

/// Deletes objects of which each must be there; none is deleted if one is not.
fn remove_keys(first: &ObjectPath, targets: &[ObjectPath]) -> Result<u64, CliError> {
    Store::with(&first.store, |store| {
        for target in targets {
            store.ask(HeadObject { bucket: target.bucket.clone(), key: target.key.clone() })?;
        }
        let mut objects = 0;
        for target in targets {
            let (bucket, keys) = (target.bucket.clone(), vec![target.key.clone()]);
            let deleted = store.ask(DeleteObjects { bucket, keys })?;
            objects += deleted.into_iter().filter(|was_there| *was_there).count() as u64;
        }
        Ok(objects)
    })
}

fn remove_prefixes(
    args: &RmArgs,
    first: &ObjectPath,
    targets: &[ObjectPath],
    interrupt: &Interrupt,
) -> Result<u64, CliError> {
    let places: Vec<String> =
        targets.iter().map(|target| format!("{}/{}", target.bucket, target.prefix())).collect();
    Store::with(&first.store, |store| {
        for target in targets {
            // Nobody is asked about what is not there.
            if page_of(store, target, 1)?.is_empty() {
                let (bucket, prefix) = (target.bucket.clone(), target.prefix().to_string());
                return Err(BucketsError::NothingUnder { bucket, prefix }.into());
            }
        }
        let question = format_args!("Delete all objects below {}?", places.join(", "));
        confirm(&args.confirm, question)?;
        let mut progress = Progress::new("deleting", Unit::Steps, None);
        let mut objects = 0;
        for target in targets {
            loop {
                interrupt.check()?;
                let keys = page_of(store, target, OBJECTS_LISTED_MAX)?;
                if keys.is_empty() {
                    break;
                }
                let deleted = store.ask(DeleteObjects { bucket: target.bucket.clone(), keys })?;
                let count = deleted.into_iter().filter(|was_there| *was_there).count() as u64;
                objects += count;
                progress.advance(count);
            }
        }
        progress.finish();
        Ok(objects)
    })
}

/// The first keys below a prefix.
fn page_of(store: &Store, target: &ObjectPath, most: usize) -> Result<Vec<ObjectKey>, CliError> {
    let listed = store.ask(ListObjects {
        bucket: target.bucket.clone(),
        prefix: target.prefix(),
        delimiter: String::new(),
        from: ObjectKey::default(),
        most,
    })?;
    Ok(listed.objects.into_iter().map(|object| object.key).collect())
}
