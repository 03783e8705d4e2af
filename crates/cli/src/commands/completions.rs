//! `tamis completions`: a script that teaches a shell our commands.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tamis", &mut script);
    output::print(String::from_utf8_lossy(&script))
}
