//! One client that keeps a server of memcached's protocol busy, and says how that went.
//!
//! `memcached_load ADDRESS VERB BYTES DEPTH REQUESTS [KEYS]`
//!
//! VERB is `get`, `set-unique` (no two values share a 4-KiB chunk), `set-duplicate` (all values are
//! the same), or `fill` (every key once). It sends DEPTH requests at once, reads all their answers,
//! and goes on. It prints requests a second, and how long half and 99 of a hundred of the exchanges
//! took, in microseconds. It authenticates first as `MEMCACHED_ACCOUNT` says, `ACCESS-KEY SECRET`.

use std::env::{args, var};
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A generator of bytes that nothing compresses: xorshift.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            eight.copy_from_slice(&number[..eight.len()]);
        }
    }
}

struct Load {
    socket: TcpStream,
    said: Vec<u8>,
    answer: Vec<u8>,
    value: Vec<u8>,
    noise: Noise,
}

impl Load {
    fn say_get(&mut self, key: u64) {
        self.said.extend_from_slice(format!("get key-{key:08}\r\n").as_bytes());
    }

    fn say_set(&mut self, key: u64) {
        let head = format!("set key-{key:08} 0 0 {}\r\n", self.value.len());
        self.said.extend_from_slice(head.as_bytes());
        self.said.extend_from_slice(&self.value);
        self.said.extend_from_slice(b"\r\n");
    }

    /// Sends what is said, and reads as many bytes as the answers have.
    fn exchange(&mut self, answer_bytes: usize) -> Result<(), Box<dyn Error>> {
        self.socket.write_all(&self.said)?;
        self.said.clear();
        self.answer.resize(answer_bytes, 0);
        let mut read = 0;
        while read < answer_bytes {
            match self.socket.read(&mut self.answer[read..])? {
                0 => return Err("the server has closed the connection".into()),
                bytes => read += bytes,
            }
        }
        let expected: &[u8] =
            if self.answer.starts_with(b"S") { b"STORED\r\n" } else { b"END\r\n" };
        match self.answer.ends_with(expected) {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&self.answer)
                .chars()
                .take(200)
                .collect::<String>()
                .into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = args().skip(1).collect();
    let [address, verb, rest @ ..] = words.as_slice() else {
        return Err("ADDRESS VERB ...".into());
    };
    let numbers: Result<Vec<u64>, _> = rest.iter().map(|word| word.parse()).collect();
    let numbers = numbers?;
    let [value_bytes, depth, requests, ..] = numbers[..] else {
        return Err("BYTES DEPTH REQUESTS".into());
    };
    let keys = numbers.get(3).copied().unwrap_or(10_000);
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut value = vec![0; value_bytes as usize];
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    noise.fill(&mut value);
    // Values of another run are others.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut load = Load {
        socket,
        said: Vec::new(),
        answer: Vec::new(),
        value,
        noise: Noise(now.as_nanos() as u64 | 1),
    };
    if let Ok(account) = var("MEMCACHED_ACCOUNT") {
        let said = format!("set auth 0 0 {}\r\n{account}\r\n", account.len());
        load.said.extend_from_slice(said.as_bytes());
        load.exchange("STORED\r\n".len())?;
    }
    let hit_bytes =
        format!("VALUE key-00000000 0 {value_bytes}\r\n\r\nEND\r\n").len() + value_bytes as usize;
    let requests = if verb == "fill" { keys } else { requests };
    let mut took_ns = Vec::with_capacity((requests / depth) as usize);
    let begun = Instant::now();
    for exchange in 0..requests / depth {
        for at in 0..depth {
            match verb.as_str() {
                "get" => {
                    let key = load.noise.next() % keys;
                    load.say_get(key);
                }
                "set-unique" => {
                    let mut value = std::mem::take(&mut load.value);
                    load.noise.fill(&mut value);
                    load.value = value;
                    let key = load.noise.next() % keys;
                    load.say_set(key);
                }
                "set-duplicate" => {
                    let key = load.noise.next() % keys;
                    load.say_set(key);
                }
                "fill" => {
                    let mut value = std::mem::take(&mut load.value);
                    load.noise.fill(&mut value);
                    load.value = value;
                    load.say_set(exchange * depth + at);
                }
                _ => return Err("VERB is get, set-unique, set-duplicate or fill".into()),
            }
        }
        let sent = Instant::now();
        let each = if verb == "get" { hit_bytes } else { "STORED\r\n".len() };
        load.exchange(each * depth as usize)?;
        took_ns.push(sent.elapsed().as_nanos() as u64);
    }
    let seconds = begun.elapsed().as_secs_f64();
    took_ns.sort_unstable();
    let at = |part: f64| took_ns[((took_ns.len() - 1) as f64 * part) as usize] as f64 / 1e3;
    println!(
        "{{\"per_second\": {:.0}, \"p50_us\": {:.2}, \"p99_us\": {:.2}}}",
        (took_ns.len() as u64 * depth) as f64 / seconds,
        at(0.5),
        at(0.99)
    );
    Ok(())
}
