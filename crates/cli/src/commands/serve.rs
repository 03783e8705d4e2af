//! `tamis serve`: the volumes of a store over NBD, its buckets over S3 and memcached, and its
//! control socket, until a signal.
//!
//! ```text
//! open (recovering if need be) ── control socket ── doors ── banner ── wait
//!                                  └ connections of data: to the NBD server as well
//!      a signal to end ── engine told that a close comes ── doors closed ── control socket shut
//!      ── engine closed, store clean ── requests of the control socket answered
//! ```
//!
//! The main thread sleeps; it is woken by a signal or by the end of the engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ::buckets::{Buckets, BucketsOptions};
use ::store::Hooks;
use accounts::{Accounts, AccountsError};
use admin::{
    Control, ControlError, DataDoor, GetStatus, Grower, Local, Remover, Server as ControlServer,
    SharedCaches, SharedStatus, Status,
};
use engine::{Client, Notice, Options};
use nbd::{Adopter, Listen, Notices as DoorNotices, Server as NbdServer, ServerOptions};
use tenants::{Follower, Tenants};

use super::{grow, init};
use crate::args::{Making, ServeArgs, StoreShape};
use crate::control;
use crate::error::{CliError, PlaceError, way_out};
use crate::held_directory::HeldDirectory;
use crate::interrupt::Interrupt;
use crate::removal::remove_zone;
use crate::shell::shell_path;
use crate::store::{self, OpenStore, engine_options};
use absolute_path::absolute_path;
use limits::Bounds;
use listening::Listening;
use memcached::MemcachedDoor;
use notices::{Notices, Teller};
use ready::announce;
use replication::ReplicationDoor;
pub(super) use replication::replica_from_anywhere;
use s3_door::S3Door;

mod absolute_path;
mod banner;
mod limits;
mod listening;
mod memcached;
mod notices;
mod ready;
mod replication;
mod s3_door;

/// Volume that `--create` makes.
const FIRST_VOLUME: &str = "disk0";
/// A thin volume is larger than the store, for it is to hold what shrinks.
const FIRST_VOLUME_TIMES_CAPACITY: u64 = 4;

/// Why the main thread wakes up.
enum Event {
    Signal,
    EngineEnded,
}

pub(super) fn run(args: ServeArgs) -> Result<(), CliError> {
    check_distinct(&args.nbd)?;
    if let Some(mut server) = control::connect(&args.store)? {
        let pid = server.ask(GetStatus {})?.pid;
        return Err(CliError::ServedAlready { store: args.store, pid });
    }
    // Before the store is opened: that takes some of them.
    let _ = threads::raise_descriptors();
    let (events, woken) = channel();
    hear_signals(events.clone())?;
    let notices = Notices::begin()?;
    let served = open_and_serve(args, events, &woken, &notices.teller());
    notices.end();
    served
}

fn open_and_serve(
    args: ServeArgs,
    events: Sender<Event>,
    woken: &Receiver<Event>,
    teller: &Teller,
) -> Result<(), CliError> {
    if args.create && !store::is_there(&args.store) {
        // A store that nobody could be served from is not made first.
        let place = absolute_path(&args.store);
        addresses(&args, &place).iter().try_for_each(Listen::check)?;
        let making = Making { preallocate: args.preallocate, yes: args.yes };
        let shape = StoreShape::with_capacity(args.capacity);
        let made = init::make(&args.store, &shape, &making)?;
        let full_bytes: u64 = made.geometry.zones().map(|(_, bytes)| bytes).sum();
        let takes = init::takes(made.allocated_bytes, full_bytes);
        teller.tell(format_args!("note: made a store at {}: {takes}", place.display()));
    }
    let options = Options {
        poll_us: args.poll_us,
        read_only: args.read_only,
        accelerator: args.accelerator,
        ..engine_options(&args.engine, args.sync)
    };
    let engine_ended = move || tell(&events, Event::EngineEnded);
    let verbose = args.verbose;
    if verbose {
        teller.tell("opening the store");
    }
    let (told, store) = (teller.clone(), shell_path(&absolute_path(&args.store)));
    let hooks = Hooks {
        observer: Some(Box::new(move |notice| observe(&told, notice, &store, verbose))),
        when_over: Some(Box::new(engine_ended)),
    };
    let opening = ::store::Options {
        engine: options.clone(),
        warn_percents: Some(args.warn.clone()),
        copies_above: Some(args.copies_above),
        hooks,
        ..Default::default()
    };
    let directory = HeldDirectory::hold(store::absolute(&args.store));
    let store = OpenStore::open(&args.store, opening)?;
    touch_memory(options);
    let served = serve(&store, directory, &args, woken, teller);
    let closed = store.close();
    if let Some(control) = served? {
        control.stop();
    }
    closed?;
    teller.tell("closed cleanly");
    Ok(())
}

/// Has the memory of writes touched while nobody waits for it.
fn touch_memory(options: Options) {
    let touch = move || {
        threads::lower_priority();
        options.touch_memory();
    };
    // Without the thread the first clients wait a little longer, which is no harm.
    let _ = thread::Builder::new().name("memory".to_owned()).spawn(touch);
}

fn hear_signals(events: Sender<Event>) -> Result<(), CliError> {
    // The flag is not asked here; listening is what makes a second signal end the process.
    Interrupt::hear()?.on_signal(move || tell(&events, Event::Signal))
}

fn tell(events: &Sender<Event>, event: Event) {
    // Nobody listens any more when the process is ending anyway.
    let _ = events.send(event);
}

/// Tells the operator what nobody else would: at once that writing has stopped or that room runs
/// out, and the rest when asked for. The core waits for this.
fn observe(teller: &Teller, notice: &Notice, store: &str, verbose: bool) {
    match notice {
        Notice::WritingStopped { .. } | Notice::DeviceFull { .. } => {
            teller.tell(format_args!("error: {notice}"));
        }
        Notice::WritesRefused => {
            teller.tell(format_args!("error: {notice}{}", way_out::no_space(store)));
        }
        Notice::RoomRunsOut { .. } => {
            teller.tell(format_args!("warning: {notice} with `tamis grow {store}`"));
        }
        Notice::TablesUnreadable { .. }
        | Notice::DiskDegraded { .. }
        | Notice::AllocationRefused { .. } => {
            teller.tell(format_args!("warning: {notice}"));
        }
        Notice::RoomCameBack { .. }
        | Notice::WritesFitAgain
        | Notice::DeviceHasRoom
        | Notice::AllocationGoesOn => {
            teller.tell(format_args!("note: {notice}"));
        }
        _ if verbose => teller.tell(notice),
        _ => {}
    }
}

/// Serves until it is to end. What the control socket was asked for last may wait for what comes
/// only when the engine is closed.
fn serve(
    store: &OpenStore,
    directory: HeldDirectory,
    args: &ServeArgs,
    woken: &Receiver<Event>,
    teller: &Teller,
) -> Result<Option<ControlServer>, CliError> {
    let client = store.client();
    if args.create {
        ensure_volume(client, args.size)?;
    }
    let place = directory.path().to_owned();
    let listen = addresses(args, &place);
    let status = SharedStatus::default();
    status.set(status_of(&listen));
    // Opening may have taken a while.
    directory.check()?;
    let directory = Arc::new(directory);
    let grower = grower(client.clone(), Arc::clone(&directory));
    let remover = remover(client.clone(), directory);
    let (tenants, _follower) = tenants_of(&place, teller);
    let buckets = Buckets::start(client.clone(), buckets_options(args, &tenants))
        .map_err(|error| CliError::from(ControlError::from(error)))?;
    let replication = ReplicationDoor::open(args, &buckets, client, teller);
    let mut doors = NbdServer::start(client.clone(), door_options(args, teller)?)?;
    let service = Local::served(client.clone(), status.clone(), grower);
    let service = service.with_remover(remover).with_data_door(data_door(doors.adopter()));
    let service = service.with_buckets(buckets.clone()).with_tenants(Some(Arc::clone(&tenants)));
    let caches = SharedCaches::default();
    let service = service.with_caches(caches.clone());
    let mut control = match ControlServer::start(&place, service) {
        // The store's directory takes no socket either; everything but commands works without.
        Err(error) if args.read_only => {
            teller.tell(format_args!("note: commands do not reach this server: {error}"));
            None
        }
        started => Some(started?),
    };
    listen.iter().try_for_each(|address| doors.listen(address))?;
    let replication = replication.listen(&args.replica_listen)?;
    let s3 = S3Door::open(&args.s3, &buckets, &tenants, &place, teller)?;
    status.set(status_of(doors.addresses()));
    let memcached = MemcachedDoor::open(args, &buckets, &tenants, &place, (&caches, teller))?;
    let (nbd, replicas) = (doors.addresses(), &replication.addresses());
    let listening =
        Listening { nbd, s3: s3.addresses(), memcached: memcached.addresses(), replicas };
    announce(store, args, &place, &listening, teller)?;
    if let Ok(Event::Signal) = woken.recv() {
        teller.tell(
            "closing: what is buffered is written out; another signal, in a second, ends at once",
        );
    }
    // What the doors wait for may wait for room.
    client.announce_close();
    doors.stop();
    s3.close();
    memcached.close();
    replication.close();
    if let Some(control) = &mut control {
        control.shut();
    }
    if let Err(error) = buckets.close() {
        teller.tell(format_args!(
            "note: a bucket was not closed well, and opens more slowly next: {error}"
        ));
    }
    Ok(control)
}

/// The tenants of the store, whose accounts are followed. Where those cannot be read the store is
/// served: the doors that need them say why they do not open.
fn tenants_of(place: &Path, teller: &Teller) -> (Arc<Tenants>, Option<Follower>) {
    let tenants = Arc::new(Tenants::unread(Arc::new(Accounts::in_directory(place))));
    let told = teller.clone();
    let warn = move |error: &AccountsError| {
        told.tell(format_args!("warning: tenants keep the limits that they had: {error}"));
    };
    if let Err(error) = tenants.refresh() {
        warn(&error);
    }
    // Without the thread a change is followed by the next request over S3.
    let follower = Follower::start(&tenants, warn).ok();
    (tenants, follower)
}

/// A quarter of the engine's memory is for buckets, beside it.
fn buckets_options(args: &ServeArgs, tenants: &Arc<Tenants>) -> BucketsOptions {
    BucketsOptions {
        memory_bytes: args.engine.memory / 4,
        is_read_only: args.read_only,
        domain_quotas: Some(control::quotas_of(tenants)),
        ..BucketsOptions::default()
    }
}

/// What serves the bytes of volumes to other commands, which come through the control socket.
fn data_door(adopter: Adopter) -> DataDoor {
    Box::new(move |stream, who| adopter.serve(stream, who))
}

/// What the doors are started with; the store is open by now, and has its file descriptors.
fn door_options(args: &ServeArgs, teller: &Teller) -> Result<ServerOptions, CliError> {
    let descriptors_max = threads::raise_descriptors();
    let open = threads::open_descriptors();
    let bounds = Bounds::within(args.max_connections, descriptors_max, open)?;
    if let Some(note) = bounds.note(args.max_connections, descriptors_max) {
        teller.tell(note);
    }
    let Bounds { connections_max, half_open_max } = bounds;
    let told = teller.clone();
    let notices = DoorNotices::to(move |notice, kept_back| {
        told.tell(limits::sentence(notice, kept_back));
    });
    let poll_us = args.poll_us;
    let options = ServerOptions {
        connections_max,
        half_open_max,
        poll_us,
        notices,
        ..ServerOptions::default()
    };
    Ok(options)
}

/// What makes the store in `directory` larger when a `tamis grow` asks for it.
fn grower(client: Client, directory: Arc<HeldDirectory>) -> Grower {
    Box::new(move |wish| {
        let checked = directory.check();
        let grown = checked.and_then(|()| grow::grow_served(directory.path(), &client, &wish));
        grown.map_err(CliError::into_refusal)
    })
}

/// What takes data files out of the store in `directory` when a `tamis data remove` asks for it.
fn remover(client: Client, directory: Arc<HeldDirectory>) -> Remover {
    Box::new(move |zone| {
        let checked = directory.check();
        let removed = checked.and_then(|()| remove_zone(directory.path(), &client, zone));
        removed.map_err(CliError::into_refusal)
    })
}

fn ensure_volume(client: &Client, size_bytes: Option<u64>) -> Result<(), CliError> {
    if !client.volumes()?.is_empty() {
        return Ok(());
    }
    let size_bytes = match size_bytes {
        Some(size_bytes) => size_bytes,
        None => {
            let capacity_bytes = client.stats()?.capacity_bytes;
            let wished_bytes = capacity_bytes.saturating_mul(FIRST_VOLUME_TIMES_CAPACITY);
            wished_bytes.min(engine::VOLUME_BYTES_MAX)
        }
    };
    client.create_volume(FIRST_VOLUME, size_bytes, false)?;
    Ok(())
}

fn addresses(args: &ServeArgs, place: &Path) -> Vec<Listen> {
    if args.nbd.is_empty() {
        return vec![Listen::Unix(place.join("nbd.sock"))];
    }
    args.nbd.iter().map(from_anywhere).collect()
}

/// Checks that no address is given twice.
fn check_distinct(addresses: &[Listen]) -> Result<(), CliError> {
    for (at, address) in addresses.iter().enumerate() {
        if addresses[..at].contains(address) {
            return Err(PlaceError::AddressTwice { address: address.to_string() }.into());
        }
    }
    Ok(())
}

fn from_anywhere(address: &Listen) -> Listen {
    match address {
        Listen::Unix(path) => Listen::Unix(absolute_path(path)),
        Listen::Tcp(_) => address.clone(),
    }
}

fn status_of(addresses: &[Listen]) -> Status {
    Status {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        addresses: addresses.iter().map(ToString::to_string).collect(),
    }
}
