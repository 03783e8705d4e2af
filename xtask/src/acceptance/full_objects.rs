//! A store that is filled through the S3 door until it has no room, and emptied by deletions, again
//! and again: no deletion is refused, all room comes back, and each filling takes as much.
//!
//! `s3_until_full.py` is the client: it puts objects of five lengths until even the shortest is
//! refused, leaves uploads unfinished, reads on the full store, and deletes. Nobody says how long
//! the bucket's upkeep takes to give room back; it is waited for. In every other round the server
//! is killed while the store is full.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::ordered::Ordered;
use crate::acceptance::s3_door::Door;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;

const SCRIPT: &str = "s3_until_full.py";
const ROUNDS: u64 = 10;
const ROUNDS_SHORT: u64 = 2;
/// Bytes that may be stored when all is deleted beyond those at the start: the index keeps the
/// pages that it once had, and its log what was not merged.
const LEFT_BYTES_MAX: u64 = 6 << 20;
/// A filling takes this much of the first one at least, in percent.
const FILLING_PERCENT_MIN: u64 = 90;
/// After this, room that has not come back is taken for lost.
const PATIENCE: Duration = Duration::from_secs(120);
const GLANCE: Duration = Duration::from_millis(200);

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let rounds = setting.rounds.unwrap_or(if setting.short { ROUNDS_SHORT } else { ROUNDS });
    let store = Store::init(setting, if setting.short { "96M" } else { "256M" })?;
    let door = Door::of(setting, &store)?;
    let mut server = serve(&store, &door)?;
    let client = Ordered::start(SCRIPT, door.script(setting, SCRIPT))?;
    let mut scene = Scene { store, door, client, first_bytes: 0, start_bytes: None };
    for round in 1..=rounds {
        server = scene.round(round, server)?;
    }
    server.stop()?;
    scene.client.end()?;
    scene.store.check()
}

fn serve(store: &Store, door: &Door) -> Result<Server, Failure> {
    let mut server = store.serve(&["--memory", "64M", "--s3", &door.listen()])?;
    server.hear("serving ")?;
    Ok(server)
}

struct Scene {
    store: Store,
    door: Door,
    client: Ordered,
    /// What the first filling took.
    first_bytes: u64,
    /// What was stored before the first filling.
    start_bytes: Option<u64>,
}

impl Scene {
    fn round(&mut self, round: u64, server: Server) -> Result<Server, Failure> {
        let start_bytes = match self.start_bytes {
            Some(bytes) => bytes,
            None => *self.start_bytes.insert(self.store.stats()?.number("stored_bytes")?),
        };
        let filled = self.ask(&format!("fill {round}"))?;
        let stored_bytes = self.store.stats()?.number("stored_bytes")?;
        let bytes = filled.rsplit(' ').next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        if round == 1 {
            self.first_bytes = bytes;
        }
        let least = self.first_bytes * FILLING_PERCENT_MIN / 100;
        if bytes < least || bytes == 0 {
            let found = format!("{bytes} bytes in filling {round}");
            return Err(Failure::unmet(format!("at least {least} bytes"), found));
        }
        self.ask("judge")?;
        let server = if round.is_multiple_of(2) { self.restart(server)? } else { server };
        self.ask("empty")?;
        let begun = Instant::now();
        let left_bytes = loop {
            let left_bytes = self.store.stats()?.number("stored_bytes")?;
            let is_over = begun.elapsed() > PATIENCE;
            match left_bytes <= start_bytes + LEFT_BYTES_MAX {
                true => break left_bytes,
                false if is_over => {
                    let expected = format!("{start_bytes} stored bytes as at the start");
                    return Err(Failure::unmet(expected, format!("{left_bytes}")));
                }
                false => sleep(GLANCE),
            }
        };
        println!(
            "round {round}: filled with {filled} bytes, {stored_bytes} stored; all deleted, \
             {left_bytes} stored {} ms later",
            begun.elapsed().as_millis()
        );
        Ok(server)
    }

    /// kill -9 on the full store, which is then checked and served again.
    fn restart(&mut self, server: Server) -> Result<Server, Failure> {
        server.kill()?;
        self.store.check()?;
        let server = serve(&self.store, &self.door)?;
        self.ask("judge")?;
        Ok(server)
    }

    /// Gives an order and returns what the client says of it behind the first letter.
    fn ask(&mut self, order: &str) -> Result<String, Failure> {
        self.client.order(order)?;
        let line = self.client.line()?;
        Ok(line
            .split_once(' ')
            .map_or_else(String::new, |(_, rest)| rest.replace(' ', " objects of ")))
    }
}
