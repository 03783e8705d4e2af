//! `tamis set`: settings that change for what is written from now on.

use engine::control::SetCompression;
use serde::Serialize;

use crate::args::SetArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::output;

#[derive(Serialize)]
struct Settings {
    compression: String,
}

pub(super) fn run(args: &SetArgs) -> Result<(), CliError> {
    Store::with(&args.store, |store| store.ask(SetCompression { compression: args.compression }))?;
    let settings = Settings { compression: args.compression.to_string() };
    if args.format.json {
        return output::print_json(&settings);
    }
    output::print_line(format_args!("new data is compressed with {}", settings.compression))
}
