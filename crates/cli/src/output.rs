//! Standard output: results, for people or as JSON. A reader that stopped listening (`| head -1`)
//! is no failure of ours, but any other way not to write a result is one.
//!
//! Everything that commands say passes through here, and this is where it is escaped
//! ([`format::shown`]): what came from a disk, a peer or a name commands no terminal. In a sentence
//! nothing ends a line, so that no name passes for one of ours. JSON means what it meant.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use format::shown::Escaped;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::args;
use crate::error::{CliError, Exit};
use crate::table::{Table, wrapped};

const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Prints lines of text.
pub(crate) fn print(text: impl Display) -> Result<(), CliError> {
    write_out(Escaped::lines(&text.to_string()))
}

/// Prints a table, whose cells are escaped already; its heading is bold at a terminal.
pub(crate) fn print_table(table: &Table) -> Result<(), CliError> {
    match is_styled(&io::stdout()) {
        true => write_out(format_args!("{table:#}")),
        false => write_out(table),
    }
}

/// Prints a sentence in lines of 80 columns.
pub(crate) fn print_sentence(text: impl Display) -> Result<(), CliError> {
    print_line(wrapped(&sentence(text)))
}

/// Prints a sentence about what is wrong; it is red at a terminal.
pub(crate) fn print_problem(text: impl Display) -> Result<(), CliError> {
    let text = wrapped(&sentence(text));
    match is_styled(&io::stdout()) {
        true => write_out(format_args!("{RED}{text}{PLAIN}\n")),
        false => print_line(text),
    }
}

/// A sentence, in which nothing ends a line.
fn sentence(text: impl Display) -> String {
    Escaped::line(&text.to_string()).to_string()
}

/// Writes what is escaped already.
fn write_out(text: impl Display) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    accept(write!(out, "{text}").and_then(|()| out.flush()))
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
    let document = Document { version: JSON_VERSION, fields: value };
    write_out(format_args!("{}\n", Escaped::json(&serde_json::to_string_pretty(&document)?)))
}

/// Prints the fields of `value` as a document of JSON in one line.
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), CliError> {
    let document = Document { version: JSON_VERSION, fields: value };
    write_out(format_args!("{}\n", Escaped::json(&serde_json::to_string(&document)?)))
}

/// Says why a command failed as a document of JSON in one line, to standard error.
pub(crate) fn say_json_error(error: Value) {
    let document = json!({ "version": JSON_VERSION, "error": error }).to_string();
    write_err(Escaped::json(&document));
}

/// A path in JSON, which is text: what is none in it is replaced, as messages do.
pub(crate) fn path_as_text<P, S>(path: &P, to: S) -> Result<S::Ok, S::Error>
where
    P: AsRef<Path>,
    S: Serializer,
{
    to.collect_str(&path.as_ref().display())
}

/// Says why a command failed as its line asks for, to standard error.
pub(crate) fn say_failure(error: &CliError) {
    match args::wants_json(std::env::args_os().skip(1)) {
        true => say_json_error(error.to_json()),
        false => say_error(error),
    }
}

/// Says why a command failed, to standard error.
pub(crate) fn say_error(error: &CliError) {
    let name =
        if is_styled(&io::stderr()) { format!("{RED}tamis:{PLAIN}") } else { "tamis:".into() };
    write_err(format_args!("{name} {}", sentence(error)));
}

/// Says what is wrong with a command line, or the help that was asked for.
pub(crate) fn say_usage(error: &clap::Error) -> ExitCode {
    let told = error.to_string();
    let escaped = Escaped::lines(&told).to_string();
    if escaped == told {
        error.exit();
    }
    write_err(escaped.trim_end());
    ExitCode::from(Exit::Usage as u8)
}

/// Says lines of text that are not the result, to standard error.
pub(crate) fn say(text: impl Display) {
    write_err(Escaped::lines(&text.to_string()));
}

/// Writes a line of what is escaped already.
fn write_err(text: impl Display) {
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

    use format::shown::Escaped;

    use super::{accept, sentence};

    #[test]
    fn a_name_in_a_sentence_ends_no_line_and_json_means_what_it_meant() {
        let name = "a\u{1b}]0;t\u{7}\u{9b}\u{202e}\u{e0041}\r\nserving";
        assert_eq!(
            sentence(format_args!("there is no volume {name}")),
            "there is no volume a\\u{1b}]0;t\\u{7}\\u{9b}\\u{202e}\\u{e0041}\\r\\nserving"
        );
        let document = serde_json::json!({ "name": name }).to_string();
        let told = Escaped::json(&document).to_string();
        assert!(told.is_ascii() && !told.contains(char::is_control), "{told}");
        let read: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(read["name"], name);
    }

    #[test]
    fn a_reader_that_left_is_no_failure_and_a_full_disk_is() {
        assert!(accept(Err(Error::from(ErrorKind::BrokenPipe))).is_ok());
        assert!(accept(Err(Error::from(ErrorKind::StorageFull))).is_err());
        assert!(accept(Ok(())).is_ok());
    }
}
