//! A store in memory, served until a line or the end comes on standard input: something to aim an
//! NBD client at.
//!
//! ```text
//! cargo run -p nbd --example memory_server -- unix:/tmp/nbd.sock
//! nbdinfo --list 'nbd+unix:///?socket=/tmp/nbd.sock'
//! ```

use std::error::Error;
use std::time::Instant;
use std::{env, io};

use nbd::{Listen, Server, ServerOptions};
use store::{CreateOptions, Options, Store};

const CAPACITY_BYTES: u64 = 1 << 30;
const VOLUME_BYTES: u64 = 256 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let addresses = env::args().skip(1).map(|text| Listen::parse(&text));
    let listen = addresses.collect::<Result<Vec<_>, _>>()?;
    let disk = store::create_in_memory(&CreateOptions::new(CAPACITY_BYTES), 1)?;
    let engine =
        engine::Options { memory_bytes: 256 << 20, worker_threads: 1, ..Default::default() };
    let store = Store::open_in_memory(&disk, Options { engine, ..Default::default() })?;
    let client = store.client();
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
    Ok(store.close()?)
}
