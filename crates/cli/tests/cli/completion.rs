//! Completion as a shell does it: commands and options, and what a store has.

use std::path::Path;
use std::process::Command;

use crate::harness::{Folder, Served, tamis};

/// What bash would offer at the end of `line`.
fn offered(line: &str) -> Vec<String> {
    let script = r#"
        source <(tamis completions bash)
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
        read -a COMP_WORDS <<<"$1"
        [[ $1 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        function=$(complete -p tamis | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" tamis "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let folder = Path::new(env!("CARGO_BIN_EXE_tamis")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash", line]).env("PATH", path);
    let output = bash.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_what_a_store_has() {
    let folder = Folder::new();
    let store = folder.store("64M");
    for name in ["vm1", "vm2", "data"] {
        tamis(&format!("volume create {store} {name} --size 1G")).ok();
    }
    tamis(&format!("snapshot create {store} vm1@monday vm2@monday")).ok();
    tamis(&format!("snapshot create {store} vm1@tuesday")).ok();
    let all = || {
        for (line, expected) in [
            ("volume delete STORE vm", &["vm1", "vm2"][..]),
            (
                "volume show STORE ",
                &["data", "vm1", "vm1@monday", "vm1@tuesday", "vm2", "vm2@monday"],
            ),
            ("snapshot create STORE d", &["data@"]),
            // What stands before the @ stays.
            ("snapshot delete STORE vm1@", &["monday", "tuesday"]),
            ("snapshot rollback STORE vm1@t", &["tuesday"]),
            ("clone STORE vm2", &["vm2@monday"]),
            ("export STORE vm1@tuesday f --from ", &["@monday", "@tuesday"]),
            ("export STORE vm1@tuesday f --from @m", &["monday"]),
            ("set STORE --compression zstd:", &["3", "9", "19"]),
            ("set STORE --compression l", &["lz4"]),
            ("set STORE --compression=l", &["lz4"]),
        ] {
            let mut found = offered(&format!("tamis {}", line.replace("STORE", &store)));
            found.sort();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{line}");
        }
    };
    all();
    let served = Served::start(&store, "");
    all();
    assert_eq!(served.interrupt(), Some(0));
    // Nothing else is lost by it.
    assert!(offered("tamis vol").contains(&"volume".to_owned()));
    assert!(offered(&format!("tamis volume show {store} --js")).contains(&"--json".to_owned()));
    assert_eq!(offered("tamis volume delete /nope v"), Vec::<String>::new());
}

#[test]
fn completing_writes_nothing() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} vm1 --size 1G")).ok();
    let served = Served::start(&store, "");
    served.kill();
    let zones = || {
        ["superblock", "journal", "tables"]
            .map(|zone| std::fs::read(format!("{store}/{zone}")).unwrap())
    };
    let before = zones();
    assert_eq!(offered(&format!("tamis volume delete {store} ")), ["vm1"]);
    assert!(zones() == before, "a store that was killed is recovered by who uses it");
}
