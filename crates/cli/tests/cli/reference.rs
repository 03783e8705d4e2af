//! `docs/reference/commands.md` is what `--help` says, of every command, in the order of the lists.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use crate::harness::tamis;

const REMEDY: &str = "run `UPDATE=1 cargo test -p cli reference` and look at what changed";
const HEAD: &str = "\
# Commands

What `tamis COMMAND --help` says, of all commands. A test compares this page with them
(`crates/cli/tests/cli/reference.rs`); `UPDATE=1 cargo test -p cli reference` writes it again.
";

/// The commands that a help lists.
fn listed(help: &str) -> impl Iterator<Item = &str> {
    let (_, listed) = help.split_once("Commands:\n").unwrap_or_default();
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    // What is indented further goes on with the line before.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help")
}

/// Writes the section of `command` into `page`, and those of its own commands after it.
fn describe(command: &str, page: &mut String) {
    let help = tamis(&format!("{command} --help")).ok().out;
    let (heading, help_text) = (heading(command), help.trim_end());
    write!(page, "\n## {heading}\n\n```text\n{help_text}\n```\n").unwrap();
    for name in listed(&help) {
        describe(format!("{command} {name}").trim_start(), page);
    }
}

fn heading(command: &str) -> String {
    format!("tamis {command}").trim_end().to_owned()
}

#[test]
fn the_reference_is_what_help_says() {
    let mut page = HEAD.to_owned();
    describe("", &mut page);
    assert!(page.matches("\n## ").count() > 50, "few commands were found");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/reference/commands.md differs: {REMEDY}");
}
