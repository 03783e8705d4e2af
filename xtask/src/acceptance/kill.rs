//! kill -9 at random moments: what survives is exactly a prefix, with everything flushed in it.
//!
//! A libnbd client writes numbered chunks and logs what it sends and what is answered; after a
//! number of log lines that the seed chooses, the server is killed. It starts again, all volumes
//! are read back over NBD, and the judge (`prefix.rs`) decides. Rounds with one connection that
//! waits for every answer take turns with rounds of several connections with many writes in flight.
//! Every recovery is read twice, with a clean or a second violent end in between, some in the
//! middle of the recovery itself: what a client has once read after a crash must not vanish with
//! the next one. The store is small, so that collection and checkpoints are among what gets
//! interrupted; it goes on from kill to kill and must pass `tamis check`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::acceptance::Setting;
use crate::acceptance::prefix::{History, State, read_content};
use crate::acceptance::seed::Dice;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;

const KILLS: u64 = 20;
const KILLS_SHORT: u64 = 3;
/// A round is ended by its kill, somewhere in this many lines of the client's log.
const LINES_MIN: u64 = 50;
const LINES_MAX: u64 = 12_000;
/// How far into a start its interruption may come.
const START_MICROSECONDS_MAX: u64 = 60_000;
/// Each round takes its numbers from a range of its own, so that a number names one write for ever.
const NUMBERS_PER_ROUND: u64 = 1_000_000;
const VOLUMES: [&str; 2] = ["left", "right"];
const VOLUME_SIZE: &str = "10G";

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let kills = setting.kills.unwrap_or(if setting.short { KILLS_SHORT } else { KILLS });
    println!("seed {}, {kills} kills", setting.seed);
    let store = Store::init(setting, "256M")?;
    let mut server = store.serve(&[])?;
    for volume in VOLUMES {
        store.create_volume(volume, VOLUME_SIZE)?;
    }
    let mut scene = Scene { setting, store, dice: Dice::new(setting.seed), state: State::new() };
    for round in 1..=kills {
        scene.round(round, server)?;
        server = scene.recover(round)?;
    }
    server.stop()?;
    scene.store.check()
}

/// What goes on from kill to kill.
struct Scene<'a> {
    setting: &'a Setting,
    store: Store,
    dice: Dice,
    /// What the volumes held when they were last read.
    state: State,
}

impl Scene<'_> {
    /// Writes until the kill, starts again, reads, judges.
    fn round(&mut self, round: u64, server: Server) -> Result<(), Failure> {
        let connections = if round % 2 == 1 { 1 } else { 8 };
        let lines = self.dice.between(LINES_MIN, LINES_MAX);
        let history = self.write_until_killed(round, connections, lines, server)?;
        let server = self.store.serve(&[])?;
        let found = self.read()?;
        let verdict = history.judge(&found)?;
        println!(
            "round {round}: {connections} connections, {} answered, \
             prefix proven up to {} of {} events",
            verdict.answered, verdict.evidence, verdict.ticks
        );
        if verdict.answered == 0 {
            return Err(Failure::unmet("writes that are answered before the kill", "none"));
        }
        self.state = found;
        // Between two rounds the server ends in either way, idle.
        if round % 2 == 1 { server.stop() } else { server.kill() }
    }

    /// Starts again after a kill, every other time with one more kill on the way, in the middle of
    /// the recovery or right after it; the same must be read.
    fn recover(&mut self, round: u64) -> Result<Server, Failure> {
        match round % 4 {
            0 => self.store.serve(&[])?.kill()?,
            2 => {
                let pause = Duration::from_micros(self.dice.between(0, START_MICROSECONDS_MAX));
                self.store.interrupt_start(pause)?;
            }
            _ => {}
        }
        let server = self.store.serve(&[])?;
        let again = self.read()?;
        if again == self.state {
            return Ok(server);
        }
        let differs = again.iter().find(|(place, content)| self.state.get(place) != Some(content));
        Err(Failure::unmet("what was read before the second crash", format!("{differs:?}")))
    }

    fn write_until_killed(
        &mut self,
        round: u64,
        connections: u64,
        lines: u64,
        server: Server,
    ) -> Result<History, Failure> {
        let script = self.setting.script("tagged_writer.py");
        let seed = self.dice.next() >> 32;
        let facts = [seed, round * NUMBERS_PER_ROUND, connections].map(|fact| fact.to_string());
        let script = script.args(facts.iter().map(String::as_str));
        let script = VOLUMES.iter().fold(script, |script, name| script.arg(self.store.uri(name)));
        let text = script.to_string();
        let failed = |source| Failure::Start { command: text.clone(), source };
        let mut writer = script.into_command().stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut history = History::after(std::mem::take(&mut self.state));
        let mut server = Some(server);
        let output = writer.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
        for (seen, line) in output.enumerate() {
            history.log(&line.map_err(failed)?)?;
            if seen as u64 >= lines
                && let Some(server) = server.take()
            {
                server.kill()?;
            }
        }
        // The writer ends when its server does, and says how.
        let status = writer.wait().map_err(failed)?;
        match server {
            None if status.success() => Ok(history),
            _ => Err(Failure::unmet("a writer that writes until the kill", status.to_string())),
        }
    }

    fn read(&self) -> Result<State, Failure> {
        let script = self.setting.script("tagged_reader.py");
        let script = VOLUMES.iter().fold(script, |script, name| script.arg(self.store.uri(name)));
        let mut state = State::new();
        for line in script.output()?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = match words.as_slice() {
                [volume, chunk, content] => {
                    chunk.parse().ok().zip(read_content(content)).map(|(chunk, content)| {
                        state.insert(((*volume).to_owned(), chunk), content)
                    })
                }
                _ => None,
            };
            read.ok_or_else(|| Failure::unmet("a line of the reader", line))?;
        }
        Ok(state)
    }
}
