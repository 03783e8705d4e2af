//! What a server says when all its doors are open.

use std::path::Path;

use engine::{VolumeInfo, VolumeKind};
use serde::Serialize;

use super::banner;
use super::listening::Listening;
use super::notices::Teller;
use crate::args::ServeArgs;
use crate::error::CliError;
use crate::output;
use crate::progress::human_duration;
use crate::size::human_count;
use crate::staging::{put_aside, unfinished};
use crate::store::OpenStore;

/// What `--json` prints when all doors are open.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    pid: u32,
    #[serde(serialize_with = "output::path_as_text")]
    store: &'a Path,
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    s3: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memcached: Vec<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    replicas: &'a [String],
    volumes: Vec<ReadyVolume<'a>>,
    recovered: bool,
    records_replayed: u64,
    opened_in_seconds: f64,
}

#[derive(Debug, Serialize)]
struct ReadyVolume<'a> {
    name: &'a str,
    size_bytes: u64,
    uri: String,
}

/// Says where the store is served, by whom it can be reached, and what its volumes are.
pub(super) fn announce(
    store: &OpenStore,
    args: &ServeArgs,
    place: &Path,
    listening: &Listening<'_>,
    teller: &Teller,
) -> Result<(), CliError> {
    for address in listening.nbd.iter().filter(|address| !address.is_loopback()) {
        teller.tell(format_args!(
            "warning: {address} can be reached from other machines, without encryption or \
             password: every client that connects can read and write every volume"
        ));
    }
    for address in listening.s3.iter().filter(|address| !address.ip().is_loopback()) {
        teller.tell(format_args!(
            "warning: http://{address} can be reached from other machines, without encryption: \
             a listener on the network can read what goes over it"
        ));
    }
    for address in listening.memcached.iter().filter(|address| !address.is_loopback()) {
        let everybody = if args.memcached_bucket.is_some() {
            ": every client that connects can read and change every item"
        } else {
            ": a listener on the network can read what goes over it, and secrets of accounts"
        };
        teller.tell(format_args!(
            "warning: memcached at {address} can be reached from other machines, without \
             encryption{everybody}"
        ));
    }
    if let Some(note) = store.slower() {
        teller.tell(format_args!("note: {note}"));
    }
    let mut volumes = store.client().volumes()?;
    for (volume, snapshot) in unfinished(&volumes) {
        teller.tell(format_args!(
            "warning: {volume} holds part of what leads to {snapshot}, since an import was killed; \
             when that is repeated it discards what is written to {volume} until then, unless \
             {volume} has been rolled back first (`tamis snapshot rollback`)"
        ));
    }
    for (volume, replaced) in put_aside(&volumes) {
        teller.tell(format_args!(
            "warning: what {volume} held before an import that was killed is {replaced}: `tamis \
             snapshot rollback` goes back to it"
        ));
    }
    volumes.retain(|volume| volume.taken_unix_s.is_none() && volume.kind == VolumeKind::Block);
    if args.json {
        return output::print_json_line(&ready(store, place, listening, &volumes));
    }
    if let Some(recovery) = recovery_sentence(store) {
        output::print_line(recovery)?;
    }
    output::print(banner::banner(place, listening, &volumes, args))
}

fn ready<'a>(
    store: &OpenStore,
    place: &'a Path,
    listening: &Listening<'a>,
    volumes: &'a [VolumeInfo],
) -> Ready<'a> {
    let Listening { nbd: addresses, s3, memcached, replicas } = listening;
    let uri = |name: &str| addresses.first().map(|address| address.uri(name)).unwrap_or_default();
    let of = |volume: &'a VolumeInfo| ReadyVolume {
        name: &volume.name,
        size_bytes: volume.size_bytes,
        uri: uri(&volume.name),
    };
    Ready {
        pid: std::process::id(),
        store: place,
        addresses: addresses.iter().map(ToString::to_string).collect(),
        s3: s3.iter().map(|address| format!("http://{address}")).collect(),
        memcached: memcached.iter().map(ToString::to_string).collect(),
        replicas,
        volumes: volumes.iter().map(of).collect(),
        recovered: !store.report().clean,
        records_replayed: store.report().records_replayed,
        opened_in_seconds: store.opened_in().as_secs_f64(),
    }
}

/// What opening had to do, when the store was not closed cleanly.
fn recovery_sentence(store: &OpenStore) -> Option<String> {
    (!store.report().clean).then(|| {
        format!(
            "recovered in {}: {} records replayed",
            human_duration(store.opened_in()),
            human_count(store.report().records_replayed)
        )
    })
}
