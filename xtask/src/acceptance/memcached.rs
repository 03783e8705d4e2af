//! Programs that speak memcached find in a bucket what they put there, and so does S3.

use std::net::TcpListener;

use crate::acceptance::Setting;
use crate::acceptance::s3_door::Door;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;
use crate::program::Program;

/// The bucket of those who do not say who they are.
const BUCKET: &str = "cache";
/// Another one, of the same account.
const OTHER: &str = "other";
const IDLE_CONNECTIONS: &str = "5000";
/// What an idle connection may take of the server's memory.
const IDLE_BYTES_MAX: &str = "4096";
/// Items that are stored before a server is killed.
const ITEMS: &str = "20000";

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, if setting.short { "1G" } else { "8G" })?;
    let door = Door::of(setting, &store)?;
    for bucket in [BUCKET, OTHER] {
        let create = Program::new(setting.tamis()).args(["bucket", "create"]);
        create.path(store.folder()).arg(bucket).run()?;
    }
    let (address, port) = free_address()?;
    let listen = format!("tcp:{address}");
    let mut options = vec!["--memory", "256M", "--memcached", &listen];
    options.extend(["--memcached-connections", "6000", "--memcached-bucket", BUCKET]);
    let server = serve(&store, &options)?;
    memccapable(&port)?;
    let clients = setting.script("memcached_clients.py").args(["127.0.0.1", &port]);
    println!("{}", clients.output()?.trim());
    gomemcache(setting, &address)?;
    idle(setting, &port, &server)?;
    kept(setting, &port, "fill")?;
    server.kill()?;

    let server = serve(&store, &options)?;
    kept(setting, &port, "check")?;
    server.stop()?;

    let s3 = door.listen();
    let options = ["--memory", "256M", "--memcached", &listen, "--s3", &s3];
    let server = serve(&store, &options)?;
    let accounts = door.script(setting, "memcached_accounts.py").args(["127.0.0.1", &port]);
    println!("{}", accounts.args([BUCKET, OTHER]).output()?.trim());
    server.stop()?;
    store.check()
}

/// A server whose doors are all open: the one of NBD is open first.
fn serve(store: &Store, options: &[&str]) -> Result<Server, Failure> {
    let mut server = store.serve(options)?;
    server.hear("served over memcached")?;
    Ok(server)
}

/// An address that nobody listens at, and its port.
fn free_address() -> Result<(String, String), Failure> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let free = free.map_err(|error| Failure::unmet("a free port", error.to_string()))?;
    Ok((free.to_string(), free.port().to_string()))
}

/// The tests that libmemcached has of servers: all that memcached itself passes.
fn memccapable(port: &str) -> Result<(), Failure> {
    let told = Program::new("memccapable").args(["-a", "-h", "127.0.0.1", "-p", port]).output()?;
    let passed = told.lines().filter(|line| line.contains("[pass]")).count();
    let is_all = told.contains("All tests passed") && !told.contains("[FAIL]");
    if !is_all {
        return Err(Failure::unmet("a server that memccapable passes", told));
    }
    println!("memccapable: {passed} tests of the text protocol pass");
    Ok(())
}

fn gomemcache(setting: &Setting, address: &str) -> Result<(), Failure> {
    let folder = setting.work.join("gomemcache");
    if !Program::new("go").arg("version").succeeds() {
        println!("skipped: gomemcache needs go");
        return Ok(());
    }
    let sources = setting.root.join("xtask/scripts/gomemcache");
    Program::new("cp").arg("-r").path(&sources).path(&folder).run()?;
    let build = Program::new("go").folder(&folder).args(["mod", "tidy"]);
    if !build.succeeds() {
        println!("skipped: gomemcache is not in Go's cache, and no proxy of modules answers");
        return Ok(());
    }
    let run = Program::new("go").folder(&folder).args(["run", ".", address]);
    println!("{}", run.output()?.trim());
    Ok(())
}

fn idle(setting: &Setting, port: &str, server: &Server) -> Result<(), Failure> {
    let process = server.process().to_string();
    let idle = setting.script("memcached_idle.py").args(["127.0.0.1", port, IDLE_CONNECTIONS]);
    println!("{}", idle.args([process.as_str(), IDLE_BYTES_MAX]).output()?.trim());
    Ok(())
}

fn kept(setting: &Setting, port: &str, verb: &str) -> Result<(), Failure> {
    let script = setting.script("memcached_kept.py").args([verb, "127.0.0.1", port, ITEMS]);
    print!("{}", script.output()?);
    Ok(())
}
