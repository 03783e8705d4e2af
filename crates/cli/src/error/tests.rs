//! Sentences that people read, and codes that scripts go by.

use std::io;
use std::path::PathBuf;

use admin::{CallError, Refusal, RefusalKind};
use disk::IoError;
use engine::{RepairError, RequestError};
use format::units::Zone;
use images::{Compression, Content, ForeignFormat, ImageError};
use nbd::client::ClientError;

use super::{CliError, Exit, Losses, Unplannable};

fn store() -> PathBuf {
    PathBuf::from("/srv/my store")
}

fn refused(errno: u32) -> ClientError {
    ClientError::Refused { errno, sentence: None }
}

fn vmdk() -> &'static ForeignFormat {
    match Content::of_first_bytes(b"KDMV") {
        Content::Foreign(format) => format,
        other => panic!("{other:?}"),
    }
}

/// An example of each failure with a code of its own.
fn examples() -> Vec<(CliError, Exit)> {
    let io = |kind: io::ErrorKind| io::Error::from(kind);
    let path = || PathBuf::from("x.img");
    let refusal = |kind| Refusal { kind, sentence: "the server says no".into() };
    vec![
        (CliError::NoStore { store: store() }, Exit::NotFound),
        (CliError::absent(&store(), "v", &[]), Exit::NotFound),
        (RequestError::NoSuchVolume { name: "v".into() }.into(), Exit::NotFound),
        (refusal(RefusalKind::Exists).into(), Exit::Exists),
        (CliError::StoreExists { store: store() }, Exit::Exists),
        (RequestError::VolumeExists { name: "v".into() }.into(), Exit::Exists),
        (CliError::OutputExists { path: path() }, Exit::Exists),
        (CliError::OutputInUse { path: path() }, Exit::InUse),
        (CliError::OutputUnfit { path: path() }, Exit::Usage),
        (CliError::OutputLeadsNowhere { path: path() }, Exit::Usage),
        (CliError::VolumeHoldsData { name: "v".into(), mapped_bytes: 1 << 30 }, Exit::Exists),
        (CliError::InUse { store: store() }, Exit::InUse),
        (CliError::ServedNoCheck { store: store(), pid: 1234 }, Exit::InUse),
        (CliError::ServedAlready { store: store(), pid: 1234 }, Exit::InUse),
        (CliError::StoreMoved { store: store() }, Exit::Failed),
        (CliError::Served(refused(28)), Exit::NoSpace),
        (CliError::Served(refused(5)), Exit::Damage),
        (CliError::Served(ClientError::Closed), Exit::Failed),
        (RequestError::InUse { name: "v".into(), opens: Vec::new() }.into(), Exit::InUse),
        (RequestError::RollingBack { name: "v".into() }.into(), Exit::InUse),
        (RequestError::RequestsUnderWay { name: "v".into() }.into(), Exit::InUse),
        (RequestError::SnapshotUnderWay { name: "v".into() }.into(), Exit::InUse),
        (refusal(RefusalKind::InUse).into(), Exit::InUse),
        (RequestError::NotAVolume { name: "v@a".into() }.into(), Exit::Usage),
        (RequestError::NotASnapshot { name: "v".into() }.into(), Exit::Usage),
        (RequestError::HasSnapshots { name: "v".into(), count: 2 }.into(), Exit::Usage),
        (CliError::HasSnapshots { name: "v".into(), count: 1 }, Exit::Usage),
        (RequestError::NewSnapshots { name: "v".into() }.into(), Exit::Usage),
        (RequestError::OtherVolume { name: "v".into() }.into(), Exit::NotFound),
        (
            RequestError::WouldShrink { name: "v".into(), size_bytes: 2048, asked_bytes: 512 }
                .into(),
            Exit::Usage,
        ),
        (CliError::IsSnapshot { store: store(), name: "v@a".into() }, Exit::Usage),
        (CliError::SnapshotNamesDiffer { one: "a".into(), other: "b".into() }, Exit::Usage),
        (CliError::DamageFound { problems: 2 }, Exit::Damage),
        (CliError::DamageLeft { problems: 2 }, Exit::Damage),
        (CliError::Repaired { problems: 2 }, Exit::Repaired),
        (
            CliError::RepairedWithLosses(Losses {
                chunks: 3,
                records: 1,
                journal: true,
                short_journal: true,
                volumes: vec!["v".into()],
            }),
            Exit::RepairedWithLosses,
        ),
        (RequestError::Damaged { volume: "v".into(), lba: 7 }.into(), Exit::Damage),
        (refusal(RefusalKind::Damaged).into(), Exit::Damage),
        (RepairError::NoRoom { blocks: 7 }.into(), Exit::NoSpace),
        (RepairError::TooMuchLost { blocks: 7, volumes: vec!["v".into()] }.into(), Exit::NoSpace),
        (RepairError::NoVolume { name: "v".into() }.into(), Exit::NotFound),
        (RepairError::Write(IoError::lost(Zone::Tables, 0)).into(), Exit::Failed),
        (RepairError::Catalog { leaf: 7 }.into(), Exit::Damage),
        (
            CliError::NoRoomToLengthen { path: path(), needed_bytes: 7, free_bytes: 3 },
            Exit::NoSpace,
        ),
        (RequestError::NoSpace.into(), Exit::NoSpace),
        (refusal(RefusalKind::NoSpace).into(), Exit::NoSpace),
        (
            CliError::OutputFailed { path: path(), source: io(io::ErrorKind::StorageFull) },
            Exit::NoSpace,
        ),
        (CliError::Stdout(io(io::ErrorKind::StorageFull)), Exit::NoSpace),
        (RequestError::BadSize { size_bytes: 1 }.into(), Exit::Usage),
        (ImageError::OtherFormat { path: path(), format: vmdk() }.into(), Exit::Usage),
        (ImageError::Damaged { path: path(), what: "too short".into() }.into(), Exit::Damage),
        (ImageError::LengthChanged { path: path() }.into(), Exit::Failed),
        (
            ImageError::DamagedForeign { path: path(), format: vmdk(), what: "cut".into() }.into(),
            Exit::Damage,
        ),
        (ImageError::Qemu { path: path(), what: "no socket".into() }.into(), Exit::Failed),
        (
            ImageError::BackingUnasked { path: path(), format: "a qcow2 image", option: "qcow2" }
                .into(),
            Exit::Usage,
        ),
        (CliError::NoStream { path: path() }, Exit::Usage),
        (
            CliError::CompressedNoDisk { name: "x.gz".into(), compression: Compression::Gzip },
            Exit::Usage,
        ),
        (
            CliError::CompressedDamaged {
                name: "x.gz".into(),
                compression: Compression::Gzip,
                source: io(io::ErrorKind::InvalidData),
            },
            Exit::Damage,
        ),
        (CliError::ImageEmpty, Exit::Usage),
        (CliError::ReservedName { name: "v~importing".into() }, Exit::Usage),
        (CliError::NameTooLong { name: "v".into(), most_bytes: 245 }, Exit::Usage),
        (CliError::Qcow2FromStdin, Exit::Usage),
        (
            CliError::WouldShrink { name: "v".into(), size_bytes: 2048, asked_bytes: 512 },
            Exit::Usage,
        ),
        (CliError::NotAllRead { count: 2, in_part: 0 }, Exit::Failed),
        (
            Unplannable::NoPrices { path: path(), reason: "a price is below 0".into() }.into(),
            Exit::Usage,
        ),
        (Unplannable::NoData.into(), Exit::Usage),
        (
            CliError::NotUndone {
                volume: "v".into(),
                error: Box::new(CliError::StreamCut { at_bytes: 7 }),
                source: Box::new(RequestError::NoSpace.into()),
            },
            Exit::Damage,
        ),
        (CliError::NotConfirmed, Exit::Failed),
        (CallError::Closed.into(), Exit::Failed),
        (
            ImageError::Io { path: path(), source: io(io::ErrorKind::PermissionDenied) }.into(),
            Exit::Failed,
        ),
    ]
}

#[test]
fn every_failure_has_its_code() {
    for (error, exit) in examples() {
        assert_eq!(error.exit(), exit, "{error}");
    }
}

#[test]
fn every_sentence_reads_as_one() {
    for (error, _) in examples() {
        let sentence = error.to_string();
        assert!(!sentence.ends_with('.'), "{sentence}");
        assert!(sentence.len() > 10 || matches!(error, CliError::NotConfirmed), "{sentence}");
        for debug in ["Some(", "None", "{ ", "Os {", "\n\n", "  /"] {
            assert!(!sentence.contains(debug), "{sentence}");
        }
    }
}

#[test]
fn sentences_show_the_way_out() {
    let shown = CliError::NoStore { store: store() }.to_string();
    assert_eq!(
        shown,
        "there is no store at /srv/my store: make one with `tamis init '/srv/my store'`"
    );
    let shown =
        CliError::WouldShrink { name: "v".into(), size_bytes: 2 << 30, asked_bytes: 1 << 30 };
    assert!(shown.to_string().contains("--shrink"), "{shown}");
    let sentence = Some(RequestError::NoSpace.to_string());
    let shown = CliError::Served(ClientError::Refused { errno: 28, sentence }).to_string();
    assert_eq!(shown, CliError::from(RequestError::NoSpace).to_string());
    assert!(shown.contains("with `tamis grow STORE --capacity SIZE`. If the file"), "{shown}");
    let shown = CliError::ServedNoCheck { store: store(), pid: 1234 };
    assert!(shown.to_string().contains("`kill 1234`"), "{shown}");
}

#[test]
fn the_codes_are_those_of_the_help() {
    use clap::CommandFactory;
    let help = crate::args::Cli::command().render_help().to_string();
    for (exit, words) in [
        (Exit::Failed, "the operation failed"),
        (Exit::Usage, "the command line is not understood"),
        (Exit::NotFound, "no such store, volume, snapshot"),
        (Exit::InUse, "in use"),
        (Exit::Damage, "damage was found"),
        (Exit::NoSpace, "no space"),
        (Exit::Exists, "exists already"),
        (Exit::NearlyFull, "--warn"),
    ] {
        let line = help.lines().find(|line| line.starts_with(&format!("  {:<3}", exit as u8)));
        assert!(line.is_some_and(|line| line.contains(words)), "{exit:?} {line:?}");
    }
}
