//! Serving.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use engine::EmulatedSettings;
use nbd::Listen;

use super::options::EngineArgs;
use super::values::{
    parse_connections, parse_copies, parse_item_bytes, parse_memcached_address, parse_percent,
    parse_poll_us, parse_s3_address,
};
use crate::size::parse_size;

/// Serve the volumes of a store over NBD until a signal
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis serve ./store --create
      makes the store and a volume disk0 when they are not there, and serves it
      on a unix socket; says what the store takes now, and up to how much when
      it fills
  tamis serve /srv/store --nbd tcp:127.0.0.1:10809 --memory 8G
      serves it to NBD clients on this machine by TCP
  tamis serve /srv/store --s3 tcp:127.0.0.1:9000
      serves its buckets over S3 as well
  tamis serve /srv/store --memcached tcp:127.0.0.1:11211 --memcached-bucket cache
      serves its bucket cache as a memcached, to all who can connect
  tamis serve /mnt/backup/store --read-only --nbd unix:/run/backup.sock
      serves a store on a medium that takes no writes
  tamis serve /srv/store --sync
      acknowledges a write only when it is durable, as a disk without a write
      cache does

While a store is served all commands but check, replay and `grow --data` work on
it; they reach it through its control socket. Ctrl-C, SIGTERM, SIGQUIT and a
terminal that is closed (SIGHUP) write everything out and end; another one, when
a second has passed, ends at once, and the next start recovers.

A client that has not chosen a volume 10 seconds after it has connected is
disconnected; those that have not are counted apart from --max-connections, and
one too many takes the place of the oldest.

A client that reconnects by itself does not notice that a server has died:
writes that it was acknowledged and did not flush may be lost, and a flush after
reconnecting does not cover earlier writes. Serve such clients with --sync.")]
pub(crate) struct ServeArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Make the store if there is none, and a volume disk0 if there is no volume
    #[arg(long)]
    pub(crate) create: bool,
    /// Room for data when the store is made [default: 100G, or half of the free space when that
    /// is less]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "create")]
    pub(crate) capacity: Option<u64>,
    /// Size of disk0 when it is made; it is thin and takes no room until written [default: four
    /// times the capacity]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "create")]
    pub(crate) size: Option<u64>,
    /// When the store is made: take all the room of its data file now, instead of a step ahead of
    /// what is written
    #[arg(long, requires = "create")]
    pub(crate) preallocate: bool,
    /// Do not ask before a store is made in a directory that has other files in it
    #[arg(long, short, requires = "create")]
    pub(crate) yes: bool,
    /// Only read the store: all volumes are read-only, and what the journal changes stays in
    /// memory; works on read-only media and mounts, and beside others who only read
    #[arg(long, conflicts_with_all = ["create", "sync"])]
    pub(crate) read_only: bool,
    /// Address to serve at: unix:PATH, for this user and, if the umask leaves it to that, the
    /// group; tcp:HOST (port 10809) or tcp:HOST:PORT, for everybody who can reach it; may be given
    /// several times [default: unix:STORE/nbd.sock]
    #[arg(long, value_name = "ADDRESS", value_parser = Listen::parse)]
    pub(crate) nbd: Vec<Listen>,
    /// Address to serve buckets at by the protocol of S3: tcp:HOST (port 9000) or tcp:HOST:PORT;
    /// may be given several times. `tamis account` says who may use them [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_s3_address)]
    pub(crate) s3: Vec<SocketAddr>,
    /// Address to serve buckets at by the protocol of memcached: unix:PATH, tcp:HOST (port 11211)
    /// or tcp:HOST:PORT; may be given several times. A crash keeps what was stored up to some
    /// moment, all of it and nothing after it; with --sync all that was answered [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_memcached_address)]
    pub(crate) memcached: Vec<memcached_door::Address>,
    /// The bucket of all clients of memcached. Without it each says first who it is, with
    /// `set x 0 0 LENGTH` and as the value the access key of an account and its secret, or
    /// ACCESS-KEY@BUCKET and its secret where the account may write several buckets
    #[arg(long, value_name = "BUCKET", requires = "memcached")]
    pub(crate) memcached_bucket: Option<String>,
    /// Clients of memcached that are connected at one time; one more is told so. Each takes a file
    /// descriptor, and memory while it is at work
    #[arg(
        long,
        value_name = "N",
        requires = "memcached",
        default_value_t = 1024,
        value_parser = parse_connections
    )]
    pub(crate) memcached_connections: u16,
    /// The longest value that clients of memcached may store
    #[arg(
        long,
        value_name = "SIZE",
        requires = "memcached",
        default_value = "1M",
        value_parser = parse_item_bytes
    )]
    pub(crate) memcached_max_item: u64,
    /// What the bucket of memcached's clients may hold: bytes of values, and 64 for each item.
    /// Beyond it items go that nobody reads, objects that S3 has put among them [default: no
    /// bound; a full store refuses]
    #[arg(long, value_name = "SIZE", requires = "memcached_bucket", value_parser = parse_size)]
    pub(crate) memcached_max_bytes: Option<u64>,
    /// Address to wait at for servers whose buckets are replicated to this one (`tamis bucket
    /// replicate`): unix:PATH, or tcp:127.0.0.1:PORT, for nothing is encrypted yet; may be given
    /// several times [default: none]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "read_only")]
    pub(crate) replica_listen: Vec<replicas::Address>,
    /// Connections that are served at one time; a client that wants one more is told so, and the
    /// server says so on standard error. Each takes a file descriptor and up to 2M of memory
    /// [default: 128, or what the limit of file descriptors allows]
    #[arg(long, value_name = "N", value_parser = parse_connections)]
    pub(crate) max_connections: Option<u16>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Microseconds that a thread polls for work before it sleeps; it polls only where polling has
    /// shortened waits and the processor is otherwise idle. Clients that send one request at a time
    /// are answered sooner, for up to twice the processor time of each; up to 1000, 0 sleeps at
    /// once
    #[arg(long, value_name = "US", default_value_t = 100, value_parser = parse_poll_us)]
    pub(crate) poll_us: u32,
    /// Hand chunks to an accelerator that fingerprints all and compresses those it takes for new,
    /// in one submission. There is an emulated one, whose work the threads do; what is stored is
    /// the same. Its settings are chunks of a submission (64 to 512), submissions that it holds,
    /// and units that hash and that compress: emulated:batch=64,queue=8,hash=4,compress=4
    /// [default: none]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) accelerator: Option<EmulatedSettings>,
    /// Acknowledge a write only when it is durable: for clients that reconnect by themselves, and
    /// others that must not lose what they have not flushed
    #[arg(long)]
    pub(crate) sync: bool,
    /// How much of the room for data or tables is used when it is said on standard error, and said
    /// again when it is less; several are separated by commas
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_percent,
        value_delimiter = ',',
        default_values = ["80%", "95%"]
    )]
    pub(crate) warn: Vec<u8>,
    /// Store a chunk twice, in two places, when more addresses than that share it, so that one bad
    /// sector is not the loss of all of them; 0 stores nothing twice
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = engine::COPIES_ABOVE_DEFAULT,
        value_parser = parse_copies
    )]
    pub(crate) copies_above: u32,
    /// Say on standard error when a checkpoint or the collection of a container begins and ends
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print one line of JSON when the store is being served, for programs; an error is the last
    /// line of standard error, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
