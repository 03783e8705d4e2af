//! What teaches, and what is said about a command line that is not understood.

use crate::harness::tamis;

#[test]
fn every_command_explains_itself_with_an_example() {
    for command in [
        "init",
        "serve",
        "volume",
        "volume create",
        "volume list",
        "volume show",
        "volume resize",
        "volume set",
        "volume rename",
        "volume delete",
        "snapshot",
        "snapshot create",
        "snapshot list",
        "snapshot delete",
        "snapshot rollback",
        "clone",
        "bucket",
        "bucket create",
        "bucket list",
        "bucket show",
        "bucket set",
        "bucket snapshot",
        "bucket branch",
        "bucket replicate",
        "bucket promote",
        "bucket demote",
        "bucket delete",
        "put",
        "get",
        "ls",
        "rm",
        "cp",
        "account",
        "account create",
        "account list",
        "account set",
        "account delete",
        "diff",
        "import",
        "export",
        "estimate",
        "plan",
        "bench",
        "bench detect",
        "replay",
        "stats",
        "check",
        "scrub",
        "set",
        "completions",
    ] {
        let help = tamis(&format!("{command} --help")).ok().out;
        assert!(help.contains("Example"), "{command}: {help}");
        assert!(help.contains(&format!("tamis {command} ")), "{command}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{command}: {help}");
    }
}

#[test]
fn the_first_help_shows_the_way_and_the_exit_codes() {
    let help = tamis("--help").ok().out;
    for words in
        ["tamis serve ./store --create", "Exit codes:", "  3  no such store, volume, snapshot"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(tamis("--version").ok().out.starts_with("tamis 0."));
}

#[test]
fn what_is_not_understood_is_code_2() {
    for line in ["", "frobnicate", "init", "init x --capacity many", "volume create x y"] {
        assert_eq!(tamis(line).code, Some(2), "{line}");
    }
    tamis("init x --capacity 10Q").fails(2, "\"Q\" is not a unit");
    tamis("init x --compression gzip").fails(2, "use lz4, zstd, zstd:LEVEL or none");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = tamis(&format!("completions {shell}")).ok().out;
        assert!(script.contains("import") && script.contains("tamis"), "{shell}");
    }
}
