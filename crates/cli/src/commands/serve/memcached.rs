//! The door of memcached, where the operator wants one.

use std::path::Path;
use std::sync::{Arc, Weak};

use ::buckets::Buckets;
use ::store::Durability;
use admin::{CacheShown, ControlError, SharedCaches};
use items::ItemsOptions;
use memcached_door::{
    Address, BucketsHost, CacheFigures, HostError, HostOptions, MemcachedOptions, MemcachedServer,
};
use tenants::Tenants;

use super::absolute_path::absolute_path;
use super::notices::Teller;
use crate::args::ServeArgs;
use crate::error::CliError;
use crate::shell::shell_path;

/// The part of `--memory` that items which are read often take, for each bucket beside it.
const HOT_PARTS: u64 = 4;

/// A door that listens, or none.
pub(super) struct MemcachedDoor {
    server: Option<MemcachedServer>,
}

impl MemcachedDoor {
    /// Listens at all of `--memcached`; without one there is no door and no thread of it.
    pub(super) fn open(
        args: &ServeArgs,
        buckets: &Buckets,
        tenants: &Arc<Tenants>,
        place: &Path,
        (caches, teller): (&SharedCaches, &Teller),
    ) -> Result<Self, CliError> {
        if args.memcached.is_empty() {
            return Ok(Self { server: None });
        }
        let is_authenticated = args.memcached_bucket.is_none();
        if is_authenticated && tenants.accounts().list()?.is_empty() {
            teller.tell(format_args!(
                "note: no account may use memcached yet: make one with `tamis account create {} \
                 NAME --write BUCKET`, or name a bucket for all with --memcached-bucket",
                shell_path(place)
            ));
        }
        let observer = || {
            let told = teller.clone();
            Box::new(move |note: &str| told.tell(format_args!("warning: {note}")))
        };
        let durability = if args.sync { Durability::Durable } else { Durability::Acknowledged };
        let hot_bytes = args.engine.memory / HOT_PARTS;
        let bytes_max = args.memcached_max_bytes;
        let items = ItemsOptions { hot_bytes, durability, bytes_max, ..ItemsOptions::default() };
        let bucket = args.memcached_bucket.clone();
        let options = HostOptions { bucket, items, observer: observer() };
        let host =
            BucketsHost::new(buckets.clone(), Arc::clone(tenants), options).map_err(of_host)?;
        let host = Arc::new(host);
        let known = Arc::downgrade(&host);
        caches.set(Box::new(move || shown(&known)));
        let options = MemcachedOptions {
            listen: args.memcached.iter().map(from_anywhere).collect(),
            connections_max: usize::from(args.memcached_connections),
            value_bytes_max: args.memcached_max_item,
            is_authenticated,
            observer: observer(),
            ..MemcachedOptions::default()
        };
        Ok(Self { server: Some(MemcachedServer::start(host, options)?) })
    }

    /// Where it listens, with the ports that were chosen.
    pub(super) fn addresses(&self) -> &[Address] {
        self.server.as_ref().map_or(&[], MemcachedServer::addresses)
    }

    /// Answers what is under way, and ends.
    pub(super) fn close(self) {
        if let Some(server) = self.server {
            server.stop();
        }
    }
}

/// The caches of a door, as long as it is open.
fn shown(host: &Weak<BucketsHost>) -> Vec<CacheShown> {
    let caches = host.upgrade().map_or_else(Vec::new, |host| host.caches());
    let one = |CacheFigures { bucket, figures, hot: (hot_items, hot_bytes) }| CacheShown {
        bucket,
        connections: figures.connections,
        connections_total: figures.connections_total,
        items: figures.items,
        item_bytes: figures.bytes,
        item_bytes_max: (figures.bytes_max > 0).then_some(figures.bytes_max),
        hot_items,
        hot_bytes,
        hits: figures.counts.get_hits,
        misses: figures.counts.get_misses,
        stores: figures.counts.cmd_set,
        deletes: figures.counts.delete_hits,
        evictions: figures.evictions,
        in_bytes: figures.counts.bytes_read,
        out_bytes: figures.counts.bytes_written,
    };
    caches.into_iter().map(one).collect()
}

/// What is wrong with a bucket is said as for other commands.
fn of_host(error: HostError) -> CliError {
    match error {
        HostError::Bucket(error) => ControlError::from(error).into(),
        error => error.into(),
    }
}

fn from_anywhere(address: &Address) -> Address {
    match address {
        Address::Unix(path) => Address::Unix(absolute_path(path)),
        Address::Tcp(_) => address.clone(),
    }
}
