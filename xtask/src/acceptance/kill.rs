//! kill -9 at random moments: what survives is exactly a prefix, with everything flushed in it.
//!
//! A libnbd client writes numbered chunks to several volumes and logs what it sends and what is
//! answered; after a number of log lines that the seed chooses, the server is killed: there and
//! then, or a moment after the next checkpoint or the next collection has begun. It starts again,
//! all volumes are read back over NBD, and the judge (`prefix.rs`) decides; then the client is told
//! to connect again and goes on. Rounds with one connection that waits for every answer take turns
//! with rounds of several connections with many writes in flight. Every recovery is read twice,
//! with a clean or a second violent end in between, most of them in the middle of the recovery
//! itself: what a client has once read after a crash must not vanish with the next one.
//!
//! The store is so small that collection moves living chunks all the time, and the memory so small
//! that checkpoints are frequent. It goes on from kill to kill, and is checked after every one:
//! as the kill has left it, or as the next recovery has. Which phase each kill cut off is read from
//! the server's log (`phases.rs`); a full run fails when one was never hit.

use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::phases::{Landed, has_begun};
use crate::acceptance::prefix::{History, State, read_content};
use crate::acceptance::seed::Dice;
use crate::acceptance::server::{Server, Store};
use crate::acceptance::tagged::{Order, Writer};
use crate::failure::Failure;

/// A round has one to three of them.
const KILLS: u64 = 40;
const KILLS_SHORT: u64 = 6;
/// From so many on every phase must have been hit.
const KILLS_THAT_HIT_ALL: u64 = 40;
/// A round is ended by its kill, after somewhere in this many lines of the client's log ...
const LINES_MIN: u64 = 50;
const LINES_MAX: u64 = 12_000;
/// ... and at most this many more, when it waits for a phase to begin.
const LINES_OF_WAITING_MAX: u64 = 40_000;
/// How far into a phase the kill may come.
const PHASE_MICROSECONDS_MAX: u64 = 4_000;
/// Each round takes its numbers from a range of its own, so that a number names one write for ever.
const NUMBERS_PER_ROUND: u64 = 1_000_000;
const VOLUMES: [&str; 3] = ["left", "middle", "right"];
const VOLUME_SIZE: &str = "10G";
/// What the living data fill to a third, so that collection has to move chunks.
const CAPACITY: &str = "64M";
const SERVE: [&str; 3] = ["--verbose", "--memory", "64M"];
/// Every so many rounds the server is asked, just before its end, what collection has done.
const ROUNDS_PER_STATS: u64 = 10;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let kills = setting.kills.unwrap_or(if setting.short { KILLS_SHORT } else { KILLS });
    println!("seed {}, {kills} kills", setting.seed);
    let begun = Instant::now();
    let store = Store::init(setting, CAPACITY)?;
    let mut server = store.serve(&SERVE)?;
    for volume in VOLUMES {
        store.create_volume(volume, VOLUME_SIZE)?;
    }
    let mut scene = Scene {
        writer: Writer::start(setting, &store, &VOLUMES)?,
        setting,
        store,
        dice: Dice::new(setting.seed),
        state: State::new(),
        landed: Landed::default(),
        chunks_moved: 0,
    };
    let mut round: u64 = 0;
    while scene.landed.kills() < kills {
        round += 1;
        scene.round(round, server)?;
        server = scene.recover(round)?;
    }
    server.stop()?;
    scene.store.check()?;
    scene.writer.end()?;
    scene.landed.print();
    println!(
        "chunks moved by collection, in every {ROUNDS_PER_STATS}th round: {}",
        scene.chunks_moved
    );
    println!("{round} rounds in {} s, seed {}", begun.elapsed().as_secs(), setting.seed);
    let missed = scene.landed.missed();
    if kills >= KILLS_THAT_HIT_ALL && !missed.is_empty() {
        return Err(Failure::unmet("kills in every phase", format!("none in {missed:?}")));
    }
    Ok(())
}

/// What goes on from kill to kill.
struct Scene<'a> {
    setting: &'a Setting,
    store: Store,
    writer: Writer,
    dice: Dice,
    /// What the volumes held when they were last read.
    state: State,
    landed: Landed,
    chunks_moved: u64,
}

impl Scene<'_> {
    /// Writes until the kill, starts again, reads, judges.
    fn round(&mut self, round: u64, server: Server) -> Result<(), Failure> {
        let connections = if round % 2 == 1 { 1 } else { 8 };
        let (history, told) = self.write_until_killed(round, connections, server)?;
        let phases = self.landed.count(&told);
        if round.is_multiple_of(2) {
            self.store.check()?;
        }
        let server = self.store.serve(&SERVE)?;
        let found = self.read()?;
        let verdict = history.judge(&found)?;
        println!(
            "round {round}: {connections} connections, killed in {phases:?}, {} answered, \
             prefix proven up to {} of {} events",
            verdict.answered, verdict.evidence, verdict.ticks
        );
        if verdict.answered == 0 {
            return Err(Failure::unmet("writes that are answered before the kill", "none"));
        }
        self.state = found;
        // Between two rounds the server ends in either way, idle.
        if round.is_multiple_of(2) {
            server.stop()?
        } else {
            self.kill(server)?
        }
        if round % 2 == 1 { self.store.check() } else { Ok(()) }
    }

    /// Starts again after a kill, mostly with one more kill on the way, in the middle of the
    /// recovery or right after it; the same must be read.
    fn recover(&mut self, round: u64) -> Result<Server, Failure> {
        match round % 4 {
            0 => {
                let server = self.store.serve(&SERVE)?;
                self.kill(server)?;
            }
            // The end before was violent, so this opening is a recovery.
            1 | 3 => {
                let longest = self.store.opening_took().as_micros().max(1) as u64;
                let pause = Duration::from_micros(self.dice.between(0, longest));
                let told = self.store.interrupt_opening(&SERVE, pause)?;
                self.landed.count(&told);
            }
            _ => {}
        }
        let server = self.store.serve(&SERVE)?;
        let again = self.read()?;
        if again == self.state {
            return Ok(server);
        }
        let differs = again.iter().find(|(place, content)| self.state.get(place) != Some(content));
        Err(Failure::unmet("what was read before the second crash", format!("{differs:?}")))
    }

    fn kill(&mut self, server: Server) -> Result<(), Failure> {
        let told = server.kill()?;
        self.landed.count(&told);
        Ok(())
    }

    fn write_until_killed(
        &mut self,
        round: u64,
        connections: u64,
        server: Server,
    ) -> Result<(History, String), Failure> {
        let seed = self.dice.next() >> 32;
        let lines = self.dice.between(LINES_MIN, LINES_MAX);
        let awaited = ["", "checkpoint ", "collecting container "][(round % 3) as usize];
        let pause = Duration::from_micros(self.dice.between(0, PHASE_MICROSECONDS_MAX));
        let first_number = round * NUMBERS_PER_ROUND;
        self.writer.order(&Order { seed, first_number, connections })?;
        let mut history = History::after(std::mem::take(&mut self.state));
        let mut server = Some(server);
        let (mut seen, mut told_before, mut told) = (0, 0, String::new());
        while let Some(line) = self.writer.line()? {
            history.log(&line)?;
            seen += 1;
            let Some(running) = server.as_ref().filter(|_| seen >= lines) else { continue };
            if seen == lines {
                told_before = running.told()?.len();
            }
            let told_since = running.told()?.split_off(told_before);
            let overdue = seen >= lines + LINES_OF_WAITING_MAX;
            if awaited.is_empty() || overdue || has_begun(&told_since, awaited) {
                if !awaited.is_empty() {
                    std::thread::sleep(pause);
                }
                self.ask_for_moved(round)?;
                told = server.take().map_or_else(|| Ok(String::new()), Server::kill)?;
            }
        }
        if server.is_some() {
            return Err(Failure::unmet("a writer that writes until the kill", "one that stops"));
        }
        Ok((history, told))
    }

    fn ask_for_moved(&mut self, round: u64) -> Result<(), Failure> {
        if round.is_multiple_of(ROUNDS_PER_STATS) {
            self.chunks_moved += self.store.stats()?.counter("chunks_moved")?;
        }
        Ok(())
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
