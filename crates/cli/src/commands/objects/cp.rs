//! `tamis cp`: an object to another key, in the same store.

use admin::{CopyObject, ObjectKey, ObjectPut};
use serde::Serialize;

use crate::args::CpArgs;
use crate::control::Store;
use crate::error::{BucketsError, CliError};
use crate::object_path::ObjectPath;
use crate::output;
use crate::same_file::same_place;
use crate::size::human_bytes;

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    key: &'a ObjectKey,
    #[serde(flatten)]
    put: ObjectPut,
}

pub(in crate::commands) fn run(args: &CpArgs) -> Result<(), CliError> {
    let source = ObjectPath::parse(&args.source)?.with_key()?;
    let target = ObjectPath::parse(&args.target)?;
    if !same_place(&source.store, &target.store) {
        return Err(BucketsError::OtherStore { from: source.text, to: target.text }.into());
    }
    let to = match target.is_prefix() {
        true => target.below(source.key.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()),
        false => target.key.clone(),
    };
    let wish = CopyObject {
        from_bucket: source.bucket.clone(),
        from: source.key.clone(),
        to_bucket: target.bucket.clone(),
        to: to.clone(),
        if_absent: args.if_absent,
    };
    let put = Store::with(&source.store, |store| store.ask(wish))?;
    if args.format.json {
        return output::print_json(&Shown { key: &to, put });
    }
    let bytes = human_bytes(put.size_bytes);
    output::print_line(format_args!("copied {} to {}: {bytes}", source.text, target.place(&to)))
}
