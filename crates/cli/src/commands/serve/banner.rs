//! What `tamis serve` prints when it is ready: where the volumes are, and the lines to paste.

use std::fmt::Write;
use std::path::Path;

use engine::VolumeInfo;
use nbd::Listen;

use super::listening::Listening;
use crate::args::ServeArgs;
use crate::shell::{shell_path, shell_word};
use crate::size::human_bytes;
use crate::table::{Align, Table};

/// The whole text.
pub(super) fn banner(
    place: &Path,
    listening: &Listening<'_>,
    volumes: &[VolumeInfo],
    args: &ServeArgs,
) -> String {
    let Listening { nbd: addresses, s3, memcached, replicas } = listening;
    let memory = human_bytes(args.engine.memory);
    let mode = if args.sync { ", each write durable before it is acknowledged" } else { "" };
    let mut text = format!("serving {} with {memory} of memory{mode}\n\n", place.display());
    // Writing to a string does not fail.
    let _ = match (volumes.first(), addresses.first()) {
        (Some(volume), Some(address)) => {
            write!(text, "{}{}", table(addresses, volumes), attaching(address, &volume.name))
        }
        _ if args.read_only => writeln!(text, "no volumes"),
        _ => write!(
            text,
            "no volumes yet; from another terminal:\n  tamis volume create {} NAME --size 40G\n",
            shell_path(place)
        ),
    };
    if !args.read_only {
        text.push_str(&new_volumes(place, addresses.first()));
    }
    for address in *s3 {
        let _ = write!(text, "buckets are served over S3 at\n  http://{address}\n");
    }
    for address in *memcached {
        let bucket = args.memcached_bucket.as_deref();
        let what = bucket.map_or("buckets are".to_owned(), |name| format!("bucket {name} is"));
        let _ = write!(text, "{what} served over memcached at\n  {address}\n");
    }
    for address in *replicas {
        let _ = write!(text, "replicas of other servers' buckets are taken at\n  {address}\n");
    }
    text.push_str("\nCtrl-C ends it.\n");
    text
}

/// What makes a volume, and where it is then.
fn new_volumes(place: &Path, address: Option<&Listen>) -> String {
    let served = address.map_or_else(String::new, |address| {
        format!("a new volume is served at once, as\n  {}\n", address.uri("NAME"))
    });
    format!(
        "put a disk image in, from another terminal:\n  tamis import {} NAME disk.qcow2\n{served}",
        shell_path(place)
    )
}

fn table(addresses: &[Listen], volumes: &[VolumeInfo]) -> Table {
    let mut table = Table::with_heading([
        ("VOLUME", Align::Left),
        ("SIZE", Align::Right),
        ("NBD URI", Align::Left),
    ]);
    for volume in volumes {
        for address in addresses {
            let size = human_bytes(volume.size_bytes);
            table.row([volume.name.clone(), size, address.uri(&volume.name)]);
        }
    }
    table
}

/// The lines that attach a volume, and what detaches it.
fn attaching(address: &Listen, volume: &str) -> String {
    let uri = shell_word(&address.uri(volume));
    let name = shell_word(volume);
    let attach = match address {
        Listen::Unix(path) => {
            format!("sudo nbd-client -unix {} -N {name} /dev/nbd0", shell_path(path))
        }
        Listen::Tcp(address) => {
            let (host, port) = address.rsplit_once(':').unwrap_or((address, "10809"));
            let host = shell_word(host.trim_matches(['[', ']']));
            format!("sudo nbd-client {host} {port} -N {name} /dev/nbd0")
        }
    };
    format!(
        "\nattach it as a disk (`sudo nbd-client -d /dev/nbd0` detaches it):\n  \
         sudo modprobe nbd\n  {attach}\n\
         or, without root, as the file mnt/nbd (`fusermount3 -u mnt` detaches it):\n  \
         mkdir -p mnt && nbdfuse mnt {uri} &\n"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use engine::{Dedup, VolumeInfo, VolumeKind};
    use nbd::Listen;

    use super::{Listening, banner};
    use crate::args::{Cli, Command, ServeArgs};

    fn args() -> ServeArgs {
        match Cli::parse_from(["tamis", "serve", "/s", "--sync"]).command {
            Command::Serve(args) => args,
            _ => panic!(),
        }
    }

    fn of(nbd: &[Listen]) -> Listening<'_> {
        Listening { nbd, s3: &[], memcached: &[], replicas: &[] }
    }

    #[test]
    fn it_shows_uris_and_the_lines_to_paste() {
        let addresses =
            ["unix:/s/nbd.sock", "tcp:[::1]:10809"].map(|text| Listen::parse(text).unwrap());
        let volume = VolumeInfo {
            name: "disk0".into(),
            id: 1,
            size_bytes: 400 << 30,
            mapped_bytes: 0,
            read_only: false,
            quota_bytes: None,
            kind: VolumeKind::Block,
            dedup: Dedup::On,
            compression: None,
            reservation_bytes: None,
            dedup_active: true,
            unindexed_chunks: 0,
            domain: None,
            taken_unix_s: None,
            parent: None,
            origin: None,
        };
        let text = banner(Path::new("/s"), &of(&addresses), &[volume], &args());
        for part in [
            "serving /s with 1 GiB of memory, each write durable before it is acknowledged\n",
            "disk0   400 GiB  nbd+unix:///disk0?socket=/s/nbd.sock\n",
            "disk0   400 GiB  nbd://[::1]:10809/disk0\n",
            "  sudo nbd-client -unix /s/nbd.sock -N disk0 /dev/nbd0\n",
            "  tamis import /s NAME disk.qcow2\n",
            "a new volume is served at once, as\n  nbd+unix:///NAME?socket=/s/nbd.sock\n",
            "`sudo nbd-client -d /dev/nbd0` detaches it",
            "`fusermount3 -u mnt` detaches it",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn without_volumes_it_shows_how_to_make_one() {
        let addresses = [Listen::parse("unix:/s/nbd.sock").unwrap()];
        let text = banner(Path::new("/s"), &of(&addresses), &[], &args());
        assert!(text.contains("  tamis volume create /s NAME --size 40G\n"), "{text}");
        assert!(text.contains("  nbd+unix:///NAME?socket=/s/nbd.sock\n"), "{text}");
    }

    #[test]
    fn a_store_that_is_only_read_shows_nothing_that_writes() {
        let addresses = [Listen::parse("unix:/s/nbd.sock").unwrap()];
        let args = ServeArgs { read_only: true, ..args() };
        let text = banner(Path::new("/s"), &of(&addresses), &[], &args);
        assert!(text.contains("\nno volumes\n"), "{text}");
        for writing in ["tamis volume create", "tamis import", "NAME"] {
            assert!(!text.contains(writing), "{writing}: {text}");
        }
    }
}
