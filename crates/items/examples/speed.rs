//! How long requests take in process, without sockets, beside a store in memory: reads from hot
//! items, sets of values that are new and that are there, one at a time and sixteen together.
//!
//! ```text
//! cargo run --release -p items --example speed -- [items]
//! ```

use std::error::Error;
use std::time::Instant;

use buckets::{Buckets, BucketsOptions, NewBucket};
use items::{Items, ItemsConnection, ItemsOptions};
use memcached::{Connection, Limits, Next};
use store::{CreateOptions, Options, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW_S: u64 = 1_700_000_000;
const STORE_BYTES: u64 = 8 << 30;
const HOT_BYTES: u64 = 1 << 30;

/// A connection that is talked to without a socket.
struct Client {
    connection: Connection<ItemsConnection>,
    cache: ItemsConnection,
    answered_bytes: u64,
}

impl Client {
    fn say(&mut self, mut request: &[u8]) -> Result<(), Box<dyn Error>> {
        while !request.is_empty() {
            let room = self.connection.room();
            let length = room.len().min(request.len());
            room[..length].copy_from_slice(&request[..length]);
            self.connection.received(length);
            request = &request[length..];
            while self.connection.run(&mut self.cache, NOW_S) == Next::Send {
                loop {
                    let length = self.connection.chunk()?.len();
                    if length == 0 {
                        break;
                    }
                    self.answered_bytes += length as u64;
                    self.connection.sent(length);
                }
            }
        }
        Ok(())
    }

    /// Sends requests in batches, and says how long one takes.
    fn measure(
        &mut self,
        what: &str,
        batch: usize,
        count: usize,
        request: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), Box<dyn Error>> {
        let mut batches = Vec::with_capacity(count / batch);
        for first in (0..count).step_by(batch) {
            let mut bytes = Vec::new();
            (first..(first + batch).min(count)).for_each(|number| request(number, &mut bytes));
            batches.push(bytes);
        }
        let began = Instant::now();
        for bytes in &batches {
            self.say(bytes)?;
        }
        let ns = began.elapsed().as_nanos() as f64 / count as f64;
        println!("{what:28} batch {batch:2}: {ns:8.0} ns, {:9.0} a second", 1e9 / ns);
        Ok(())
    }
}

/// Appends bytes that a codec halves and that no other seed has.
fn push_value(length: usize, seed: usize, out: &mut Vec<u8>) {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let end = out.len() + length;
    while out.len() < end {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
        out.extend_from_slice(&[b'.'; 8]);
    }
    out.truncate(end);
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(40_000), |count| count.parse())?;
    let disk = store::create_in_memory(&CreateOptions::new(STORE_BYTES), 1)?;
    let store = Store::open_in_memory(&disk, Options::default())?;
    let buckets = Buckets::start(store.client().clone(), BucketsOptions::default())?;
    buckets.create("cache", &NewBucket::default())?;
    let options = ItemsOptions { hot_bytes: HOT_BYTES, ..ItemsOptions::default() };
    let items = Items::open(buckets.open("cache")?, options)?;
    let connection = Connection::new(Limits::default());
    let mut client = Client { connection, cache: items.connection(), answered_bytes: 0 };
    for bytes in [512, 4096] {
        for batch in [1, 16] {
            let name = format!("{bytes}-{batch}");
            let set = |content: usize, number: usize, out: &mut Vec<u8>| {
                out.extend(format!("set {name}-key{number} 0 0 {bytes}\r\n").into_bytes());
                push_value(bytes, content, out);
                out.extend_from_slice(b"\r\n");
            };
            let unique = batch * 100_000_000 + bytes * 1_000_000;
            client.measure(&format!("set {bytes} unique"), batch, count, |number, out| {
                set(unique + number, number, out);
            })?;
            client.measure(&format!("set {bytes} same again"), batch, count, |number, out| {
                set(unique + number, number, out);
            })?;
            client.measure(&format!("get {bytes} hot"), batch, count * 4, |number, out| {
                let number = number * 7919 % count;
                out.extend(format!("get {name}-key{number}\r\n").into_bytes());
            })?;
            client.measure(&format!("get {bytes} hot, one key"), batch, count * 4, |_, out| {
                out.extend(format!("get {name}-key7\r\n").into_bytes());
            })?;
        }
    }
    let (hot, hot_bytes) = items.hot_figures();
    println!("{hot} hot items, {hot_bytes} bytes; {} bytes answered", client.answered_bytes);
    drop((client, items));
    buckets.close()?;
    store.close()?;
    Ok(())
}
