//! `tamis complete`: what the last word of a command line can become, where that depends on a
//! store: volumes, snapshots, and codecs. The scripts of `tamis completions` ask it, and fall back
//! on what they know of commands and options where it says nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use admin::Control;
use clap::{Arg, Command, CommandFactory};
use engine::{VolumeInfo, VolumeKind};

use crate::args::{Cli, CompleteArgs};
use crate::control;
use crate::error::CliError;
use crate::output;
use crate::store;

const CODECS: [&str; 6] = ["lz4", "zstd", "none", "zstd:3", "zstd:9", "zstd:19"];

/// What a word names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    Volume,
    VolumeOrBucket,
    Bucket,
    BucketOrSnapshot,
    /// A bucket, and behind `@` a name that is free.
    NewBucketSnapshot,
    BucketSnapshot,
    Snapshot,
    VolumeOrSnapshot,
    /// A volume, and behind `@` a name that is free.
    NewSnapshot,
    /// `@NAME`, a snapshot of the volume that stands behind the store.
    Base,
    Codec,
    CodecOrAll,
    /// A codec, or the store's.
    CodecOrStore,
}

/// The word that is asked about.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    kind: Kind,
    /// What stands before it: the store, and what else is no option.
    positionals: Vec<String>,
    /// What is typed of the word, and what of it stays before every answer.
    typed: String,
    fixed: String,
}

pub(super) fn run(args: &CompleteArgs) -> Result<(), CliError> {
    let Some(asked) = asked(&args.words) else { return Ok(()) };
    let mut lines = String::new();
    for candidate in candidates(&asked) {
        lines.push_str(&format!("{}{candidate}\n", asked.fixed));
    }
    output::print(lines)
}

/// What the words of a command line ask for, if this file knows of it.
fn asked(words: &[OsString]) -> Option<Asked> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into()).collect();
    let (typed, before) = words.get(1..)?.split_last()?;
    let root = Cli::command();
    let (mut command, mut path) = (&root, Vec::new());
    let (mut positionals, mut option) = (Vec::new(), None);
    for word in before {
        if option.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix("--") {
            option = option_of(command, name);
        } else if let Some(child) = command.find_subcommand(word).filter(|_| positionals.is_empty())
        {
            command = child;
            path.push(child.get_name());
        } else if !word.starts_with('-') {
            positionals.push(word.clone());
        }
    }
    let (arg, typed, fixed) = match (option, typed.split_once('=')) {
        (Some(arg), _) => (arg, typed.clone(), String::new()),
        (None, Some((name, value))) if name.starts_with("--") => {
            (option_of(command, &name[2..])?, value.to_owned(), format!("{name}="))
        }
        _ if typed.starts_with('-') => return None,
        _ => (positional(command, positionals.len())?, typed.clone(), String::new()),
    };
    let kind = kind(&path.join(" "), arg.get_id().as_str())?;
    Some(Asked { kind, positionals, typed, fixed })
}

/// The option of this name, if it takes a value.
fn option_of<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut options = command.get_opts();
    options.find(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
}

/// The argument at this place; the last one may stand for all behind it.
fn positional(command: &Command, at: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    let last = all.last().filter(|arg| matches!(arg.get_action(), clap::ArgAction::Append));
    all.get(at).or(last).copied()
}

fn kind(command: &str, argument: &str) -> Option<Kind> {
    Some(match (command, argument) {
        ("volume show", "name")
        | ("diff", "from" | "to")
        | ("explain" | "export", "volume")
        | ("check", "without_volume") => Kind::VolumeOrSnapshot,
        ("volume resize" | "volume set" | "volume rename" | "volume delete", "name")
        | ("import", "volume") => Kind::Volume,
        ("snapshot list", "volume") | ("snapshot create", "group") => Kind::VolumeOrBucket,
        ("snapshot create", "snapshots") => Kind::NewSnapshot,
        ("snapshot delete", "snapshots") | ("snapshot rollback" | "clone", "snapshot") => {
            Kind::Snapshot
        }
        ("bucket set" | "bucket delete", "name") => Kind::Bucket,
        ("bucket show", "name") => Kind::BucketOrSnapshot,
        ("bucket snapshot", "snapshot") => Kind::NewBucketSnapshot,
        ("bucket branch", "snapshot") => Kind::BucketSnapshot,
        ("export", "from") => Kind::Base,
        ("estimate", "compression") => Kind::CodecOrAll,
        ("volume create" | "volume set" | "import", "compression") => Kind::CodecOrStore,
        (_, "compression" | "recompress") => Kind::Codec,
        _ => return None,
    })
}

fn candidates(asked: &Asked) -> Vec<String> {
    let store = || asked.positionals.first().map(PathBuf::from);
    let of_kind = |kind: Option<VolumeKind>, choose: &dyn Fn(&str) -> Option<String>| {
        let volumes = store().map(|store| volumes(&store)).unwrap_or_default();
        let of_kind = volumes.iter().filter(|one| kind.is_none_or(|kind| one.kind == kind));
        of_kind.filter_map(|one| choose(&one.name)).collect::<Vec<_>>()
    };
    let of_store = |choose: &dyn Fn(&str) -> Option<String>| of_kind(None, choose);
    let of_buckets =
        |choose: &dyn Fn(&str) -> Option<String>| of_kind(Some(VolumeKind::Bucket), choose);
    let is_snapshot = |name: &str| name.contains('@');
    let whole = |name: &str| name.to_owned();
    let codecs = CODECS.iter().map(|name| whole(name));
    let all = match asked.kind {
        Kind::Volume => {
            of_kind(Some(VolumeKind::Block), &|name| (!is_snapshot(name)).then(|| whole(name)))
        }
        Kind::VolumeOrBucket => of_store(&|name| (!is_snapshot(name)).then(|| whole(name))),
        Kind::Bucket => of_buckets(&|name| (!is_snapshot(name)).then(|| whole(name))),
        Kind::BucketOrSnapshot => of_buckets(&|name| Some(whole(name))),
        Kind::NewBucketSnapshot => {
            of_buckets(&|name| (!is_snapshot(name)).then(|| format!("{name}@")))
        }
        Kind::BucketSnapshot => of_buckets(&|name| is_snapshot(name).then(|| whole(name))),
        Kind::Snapshot => of_store(&|name| is_snapshot(name).then(|| whole(name))),
        Kind::VolumeOrSnapshot => of_store(&|name| Some(whole(name))),
        Kind::NewSnapshot => of_store(&|name| (!is_snapshot(name)).then(|| format!("{name}@"))),
        Kind::Base => {
            let volume = asked.positionals.get(1).map_or("", String::as_str);
            let volume = volume.split('@').next().unwrap_or_default();
            of_store(&|name| {
                let (of, base) = name.split_once('@')?;
                (of == volume).then(|| format!("@{base}"))
            })
        }
        Kind::Codec => codecs.collect(),
        Kind::CodecOrAll => codecs.chain([whole("all")]).collect(),
        Kind::CodecOrStore => codecs.chain([whole("store")]).collect(),
    };
    all.into_iter().filter(|candidate| candidate.starts_with(&asked.typed)).collect()
}

/// The volumes and snapshots of the store; none where it cannot be asked. Nothing is written: who
/// types a line has not given it yet.
fn volumes(store: &Path) -> Vec<VolumeInfo> {
    let volumes = match control::connect(store) {
        Ok(Some(mut server)) => server.volumes().ok(),
        Ok(None) => store::volumes_unchanged(store),
        Err(_) => None,
    };
    volumes.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Kind, asked, candidates};

    fn of(line: &str) -> Option<(Kind, String, String)> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        asked(&words).map(|asked| (asked.kind, asked.typed, asked.fixed))
    }

    #[test]
    fn every_word_that_names_something_is_known() {
        let plain = |kind, typed: &str| Some((kind, typed.to_owned(), String::new()));
        for (line, kind, typed) in [
            ("tamis volume show s ", Kind::VolumeOrSnapshot, ""),
            ("tamis volume show s --json v", Kind::VolumeOrSnapshot, "v"),
            ("tamis volume delete --yes s v", Kind::Volume, "v"),
            ("tamis volume set s --quota 1G v", Kind::Volume, "v"),
            ("tamis snapshot create s v", Kind::NewSnapshot, "v"),
            ("tamis snapshot create s a@x v", Kind::NewSnapshot, "v"),
            ("tamis snapshot create s --group v", Kind::VolumeOrBucket, "v"),
            ("tamis snapshot delete s a@x a@", Kind::Snapshot, "a@"),
            ("tamis snapshot rollback s v", Kind::Snapshot, "v"),
            ("tamis clone s v", Kind::Snapshot, "v"),
            ("tamis diff s a b", Kind::VolumeOrSnapshot, "b"),
            ("tamis explain s ", Kind::VolumeOrSnapshot, ""),
            ("tamis export s v@a f --from @", Kind::Base, "@"),
            ("tamis import s v", Kind::Volume, "v"),
            ("tamis bucket show s b", Kind::BucketOrSnapshot, "b"),
            ("tamis bucket set s --quota 1G b", Kind::Bucket, "b"),
            ("tamis bucket delete s b", Kind::Bucket, "b"),
            ("tamis bucket snapshot s b", Kind::NewBucketSnapshot, "b"),
            ("tamis bucket branch s b@", Kind::BucketSnapshot, "b@"),
            ("tamis set s --compression z", Kind::Codec, "z"),
            ("tamis collect s --recompress ", Kind::Codec, ""),
            ("tamis estimate f --compression ", Kind::CodecOrAll, ""),
            ("tamis volume create s v --compression ", Kind::CodecOrStore, ""),
            ("tamis volume set s v --compression ", Kind::CodecOrStore, ""),
            ("tamis import s v f --compression ", Kind::CodecOrStore, ""),
        ] {
            assert_eq!(of(line), plain(kind, typed), "{line}");
        }
        let fixed = ("tamis set s --compression=z", "--compression=".to_owned());
        assert_eq!(of(fixed.0), Some((Kind::Codec, "z".to_owned(), fixed.1)));
        for line in
            ["tamis", "tamis vol", "tamis volume show ", "tamis volume show s v x", "tamis x y z"]
        {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(of("tamis volume show s --js"), None);
        assert_eq!(asked(&[]), None);
    }

    #[test]
    fn codecs_begin_as_what_is_typed() {
        let words = ["tamis", "set", "s", "--compression", "zstd:"].map(OsString::from);
        let found = candidates(&asked(&words).unwrap());
        assert_eq!(found, ["zstd:3", "zstd:9", "zstd:19"]);
    }
}
