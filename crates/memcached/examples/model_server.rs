//! Serves the model cache over TCP, a thread a connection: what conformance is tried with.
//!
//! `cargo run --release -p memcached --example model_server -- [PORT] [USER:PASSWORD]
//! [VALUE_BYTES_MAX]`
//!
//! `debugtime SECONDS` at the front of what is received moves the clock, as memcached's own build
//! for tests does.

use std::env::args;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use memcached::model::ModelCache;
use memcached::{Authentication, Authenticator, Connection, Limits, Next};

/// By how much the clock was moved.
static SKEW_S: AtomicU64 = AtomicU64::new(0);

struct Account(String, String);

impl Authenticator for Account {
    type Identity = ();

    fn check(&mut self, user: &[u8], password: &[u8]) -> Option<()> {
        (user == self.0.as_bytes() && password == self.1.as_bytes()).then_some(())
    }
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() + SKEW_S.load(Ordering::Relaxed)
}

fn serve(
    mut socket: TcpStream,
    cache: &Mutex<ModelCache>,
    account: Option<(String, String)>,
    value_bytes_max: u64,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let limits = Limits { value_bytes_max, ..Limits::default() };
    let mut connection = Connection::<ModelCache>::new(limits);
    let mut account = account.map(|(user, password)| Account(user, password));
    loop {
        let next = match &mut account {
            Some(known) => match connection.authenticate(known) {
                Authentication::Waiting(next) => next,
                Authentication::Accepted(()) => {
                    account = None;
                    continue;
                }
            },
            None => {
                let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
                connection.run(&mut cache, now_s())
            }
        };
        match next {
            Next::Close => return Ok(()),
            Next::Receive => {
                let room = connection.room();
                let length = socket.read(room)?;
                if length == 0 {
                    return Ok(());
                }
                if let Some(seconds) = moved(&room[..length]) {
                    SKEW_S.fetch_add(seconds, Ordering::Relaxed);
                    socket.write_all(b"OK\r\n")?;
                    continue;
                }
                connection.received(length);
            }
            Next::Send => loop {
                let chunk = connection.chunk().map_err(std::io::Error::other)?;
                if chunk.is_empty() {
                    break;
                }
                let sent = socket.write(chunk)?;
                connection.sent(sent);
            },
        }
    }
}

fn moved(received: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(received).ok()?;
    text.strip_prefix("debugtime ")?.trim_end().parse().ok()
}

fn main() -> std::io::Result<()> {
    let port = args().nth(1).unwrap_or_else(|| "11211".to_owned());
    let account = args().nth(2).and_then(|text| {
        text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
    });
    let value_bytes_max = args().nth(3).and_then(|text| text.parse().ok()).unwrap_or(1 << 20);
    let mut cache = ModelCache::default();
    let figures = cache.figures_mut();
    figures.pid = std::process::id();
    figures.version = "1.6.38-tamis".to_owned();
    figures.connections_max = 1024;
    figures.threads = 4;
    figures.value_bytes_max = value_bytes_max;
    let cache = Arc::new(Mutex::new(cache));
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap_or(11211)))?;
    for socket in listener.incoming() {
        let (socket, cache, account) = (socket?, Arc::clone(&cache), account.clone());
        std::thread::spawn(move || serve(socket, &cache, account, value_bytes_max));
    }
    Ok(())
}
