//! Standard output: results, for people or as JSON. Whoever stopped listening (`| head -1`) is no
//! failure of ours, but any other way not to write a result is one.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::table::wrapped;

const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Prints `text` as it is; the heading of a table is bold at a terminal.
pub(crate) fn print(text: impl Display) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let written = match is_styled(&out) {
        true => write!(out, "{text:#}"),
        false => write!(out, "{text}"),
    };
    accept(written.and_then(|()| out.flush()))
}

/// Prints a sentence in lines of 80 columns.
pub(crate) fn print_sentence(text: impl Display) -> Result<(), CliError> {
    print_line(wrapped(&text.to_string()))
}

/// Prints a sentence about what is wrong; it is red at a terminal.
pub(crate) fn print_problem(text: impl Display) -> Result<(), CliError> {
    let text = wrapped(&text.to_string());
    match is_styled(&io::stdout()) {
        true => print_line(format_args!("{RED}{text}{PLAIN}")),
        false => print_line(text),
    }
}

/// Whether `stream` is a terminal that shows colours, and NO_COLOR is not set.
fn is_styled(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Prints `text` as a line.
pub(crate) fn print_line(text: impl Display) -> Result<(), CliError> {
    print(format_args!("{text}\n"))
}

/// Of all documents. It is raised when a field goes, or changes its name, type, unit or meaning;
/// fields are added without that (`docs/reference/json.md`).
const JSON_VERSION: u32 = 1;

/// A document: its version, then its fields.
#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    fields: &'a T,
}

/// Prints the fields of `value` as a document of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    print_line(serde_json::to_string_pretty(&Document { version: JSON_VERSION, fields: value })?)
}

/// Prints the fields of `value` as a document of JSON in one line.
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), CliError> {
    print_line(serde_json::to_string(&Document { version: JSON_VERSION, fields: value })?)
}

/// Says why a command failed as a document of JSON in one line, to standard error.
pub(crate) fn say_json_error(error: Value) {
    say(json!({ "version": JSON_VERSION, "error": error }));
}

/// A path in JSON, which is text: what is none in it is replaced, as messages do.
pub(crate) fn path_as_text<P, S>(path: &P, to: S) -> Result<S::Ok, S::Error>
where
    P: AsRef<Path>,
    S: Serializer,
{
    to.collect_str(&path.as_ref().display())
}

/// Says why a command failed, to standard error.
pub(crate) fn say_error(error: &CliError) {
    let name =
        if is_styled(&io::stderr()) { format!("{RED}tamis:{PLAIN}") } else { "tamis:".into() };
    say(format_args!("{name} {error}"));
}

/// Says something that is not the result, to standard error.
pub(crate) fn say(text: impl Display) {
    // Nothing is left to tell it to when standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

fn accept(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(CliError::Stdout),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::accept;

    #[test]
    fn a_reader_that_left_is_no_failure_and_a_full_disk_is() {
        assert!(accept(Err(Error::from(ErrorKind::BrokenPipe))).is_ok());
        assert!(accept(Err(Error::from(ErrorKind::StorageFull))).is_err());
        assert!(accept(Ok(())).is_ok());
    }
}
