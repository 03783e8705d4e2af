//! A store in memory, served until a line or the end comes on standard input: something to aim an
//! NBD client at.
//!
//! ```text
//! cargo run -p nbd --example memory_server -- unix:/tmp/nbd.sock
//! nbdinfo --list 'nbd+unix:///?socket=/tmp/nbd.sock'
//! ```

use std::error::Error;
use std::time::Instant;
use std::{env, io, thread};

use disk::{Doorbell, MemoryDisk, SUPERBLOCK_BYTES};
use engine::{Codec, Compression, CreateOptions, Options, Zone};
use nbd::{Listen, Server, ServerOptions};

const CAPACITY_BYTES: u64 = 1 << 30;
const VOLUME_BYTES: u64 = 256 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let addresses = env::args().skip(1).map(|text| Listen::parse(&text));
    let listen = addresses.collect::<Result<Vec<_>, _>>()?;
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    let geometry = engine::plan(&CreateOptions {
        capacity_bytes: vec![CAPACITY_BYTES],
        chunk_bytes: 4096,
        compression,
        detection: Default::default(),
        tables_bytes: None,
        journal_bytes: None,
        uuid: [1; 16],
        bucket_seed: [2; 16],
    })?;
    let disk = MemoryDisk::new(
        &[
            (Zone::Superblock, SUPERBLOCK_BYTES),
            (Zone::Journal, geometry.journal_bytes),
            (Zone::Tables, geometry.tables_bytes),
            (Zone::Data(0), CAPACITY_BYTES),
        ],
        1,
    );
    engine::create(Box::new(disk.clone()), &geometry, compression)?;
    let doorbell = Doorbell::new()?;
    disk.set_doorbell(&doorbell);
    let options =
        Options { memory_bytes: 256 << 20, worker_threads: 1, sync: false, ..Default::default() };
    let (engine, client, _) = engine::open(Box::new(disk), doorbell, &options)?;
    let running = thread::spawn(move || engine.run());

    client.create_volume("disk0", VOLUME_BYTES, false)?;
    client.create_volume("ro", VOLUME_BYTES, true)?;
    let server = Server::start(client.clone(), ServerOptions { listen, ..Default::default() })?;
    for address in server.addresses() {
        println!("{}", address.uri("disk0"));
    }
    io::stdin().read_line(&mut String::new())?;

    let begun = Instant::now();
    server.stop();
    println!("stopped in {:?}", begun.elapsed());
    client.close()?;
    running.join().map_err(|_| "the engine panicked")??;
    Ok(())
}
