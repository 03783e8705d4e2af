//! A question before something is lost.

use std::fmt::Arguments;
use std::io::{BufRead, IsTerminal};

use crate::args::Confirm;
use crate::error::CliError;
use crate::output;

/// Asks at a terminal, unless `--yes` has answered already.
///
/// # Errors
/// [`CliError::NotConfirmed`] when the answer is no, and [`CliError::NobodyToAsk`] when there is no
/// terminal to ask at.
pub(super) fn confirm(given: &Confirm, question: Arguments<'_>) -> Result<(), CliError> {
    if given.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::NobodyToAsk { question: question.to_string() });
    }
    output::say(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let is_yes = read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes");
    if is_yes { Ok(()) } else { Err(CliError::NotConfirmed) }
}
