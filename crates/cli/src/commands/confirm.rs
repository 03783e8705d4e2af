//! A question before something is lost.

use std::fmt::Arguments;
use std::io::{BufRead, IsTerminal};

use crate::output;

/// Asks at a terminal; a script means what it says.
pub(super) fn confirm(question: Arguments<'_>) -> bool {
    if !std::io::stdin().is_terminal() {
        return true;
    }
    output::say(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
