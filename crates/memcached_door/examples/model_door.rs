//! Serves the model cache through the door: what the sockets are tried and measured with.
//!
//! `cargo run --release -p memcached_door --example model_door -- [PORT] [USER:PASSWORD]`

use std::env::args;

use memcached_door::{Address, MemcachedOptions, MemcachedServer};

#[path = "../tests/door/model_host.rs"]
mod model_host;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = args().nth(1).as_deref().unwrap_or("11211").parse()?;
    let mut host = model_host::ModelHost::default();
    host.gate.open();
    if let Some((user, password)) = args().nth(2).as_deref().and_then(|it| it.split_once(':')) {
        host.passwords.insert(user.to_owned(), password.to_owned());
    }
    let options = MemcachedOptions {
        listen: vec![Address::Tcp(([127, 0, 0, 1], port).into())],
        connections_max: 16_384,
        is_authenticated: !host.passwords.is_empty(),
        observer: Box::new(|note| println!("{note}")),
        ..MemcachedOptions::default()
    };
    let server = MemcachedServer::start(host, options)?;
    println!("serving {}", server.addresses()[0]);
    loop {
        std::thread::park();
    }
}
