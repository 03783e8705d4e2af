//! `tamis completions`: a script that teaches a shell our commands. What depends on a store it asks
//! of `tamis complete` when somebody presses the key.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs};
use crate::error::CliError;
use crate::output;

/// Bash breaks words at `@`, `=` and `:`, and replaces what is behind the last of them only.
const BASH: &str = r#"
_tamis_named() {
    local line=${COMP_LINE:0:COMP_POINT} words=() found=() last
    read -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    mapfile -t found < <(tamis complete -- "${words[@]}" 2>/dev/null)
    if ((${#found[@]} == 0)); then
        _tamis "$@"
        return
    fi
    last=${words[${#words[@]} - 1]}
    COMPREPLY=("${found[@]#"${last%"${last##*[@=:]}"}"}")
}
complete -F _tamis_named -o bashdefault -o default tamis
"#;

const ZSH: &str = r#"
_tamis_named() {
    local -a found
    found=(${(f)"$(tamis complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then
        compadd -- $found
    else
        _tamis "$@"
    fi
}
compdef _tamis_named tamis
"#;

const FISH: &str = r#"
function __tamis_named
    set -l current (commandline -ct)
    test (count $current) -eq 0; and set current ''
    tamis complete -- (commandline -opc) $current 2>/dev/null
end
complete -c tamis -n 'test (count (__tamis_named)) -gt 0' -f -a '(__tamis_named)'
"#;

pub(super) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tamis", &mut script);
    output::print(String::from_utf8_lossy(&script))?;
    match args.shell {
        Shell::Bash => output::print(BASH),
        Shell::Zsh => output::print(ZSH),
        Shell::Fish => output::print(FISH),
        _ => Ok(()),
    }
}
