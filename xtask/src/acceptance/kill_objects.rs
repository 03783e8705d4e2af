//! kill -9 at random moments under clients of S3: what was answered with success is there with its
//! bytes, what was under way happened or did not, and nothing else has changed.
//!
//! `s3_over_kills.py` is both the clients and the judge: it knows every change that it asked for.
//! Six clients put, overwrite, delete, copy, tag and upload in parts, in keys of their own and in
//! shared ones, and look at what they get meanwhile. After a number of answers that the seed
//! chooses the server is killed: there and then, or a moment after the next checkpoint or
//! collection has begun. Then the store is checked as the kill has left it, or the opening is
//! killed as well; everything is read and judged; and in every third round the idle server is
//! killed once more, and what the judge has read must be there again. The store goes on from round
//! to round.

use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::ordered::Ordered;
use crate::acceptance::phases::{Landed, has_begun};
use crate::acceptance::s3_door::Door;
use crate::acceptance::seed::Dice;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;

const SCRIPT: &str = "s3_over_kills.py";
const ROUNDS: u64 = 30;
const ROUNDS_SHORT: u64 = 3;
/// Answers until the kill.
const ANSWERS_MIN: u64 = 10;
const ANSWERS_MAX: u64 = 500;
/// And at most this many more, when the kill waits for a phase to begin.
const ANSWERS_OF_WAITING_MAX: u64 = 300;
/// How far into a phase the kill may come.
const PHASE_MICROSECONDS_MAX: u64 = 4_000;
/// The living data fill it to two thirds, so that collection has to move chunks.
const CAPACITY: &str = "96M";

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let rounds = setting.rounds.unwrap_or(if setting.short { ROUNDS_SHORT } else { ROUNDS });
    println!("seed {}, {rounds} rounds", setting.seed);
    let begun = Instant::now();
    let store = Store::init(setting, CAPACITY)?;
    let door = Door::of(setting, &store)?;
    let clients = Ordered::start(SCRIPT, door.script(setting, SCRIPT))?;
    let dice = Dice::new(setting.seed);
    let mut scene = Scene { store, door, clients, dice, landed: Landed::default(), answers: 0 };
    let mut server = scene.serve()?;
    for round in 1..=rounds {
        server = scene.round(round, server)?;
    }
    server.stop()?;
    scene.store.check()?;
    scene.clients.end()?;
    scene.landed.print();
    let seconds = begun.elapsed().as_secs();
    println!(
        "{} answered changes, {rounds} rounds in {seconds} s, seed {}",
        scene.answers, setting.seed
    );
    Ok(())
}

/// Those of the server.
fn options(listen: &str) -> [&str; 5] {
    ["--verbose", "--memory", "64M", "--s3", listen]
}

/// What goes on from kill to kill.
struct Scene {
    store: Store,
    door: Door,
    clients: Ordered,
    dice: Dice,
    landed: Landed,
    answers: u64,
}

impl Scene {
    fn serve(&self) -> Result<Server, Failure> {
        let mut server = self.store.serve(&options(&self.door.listen()))?;
        server.hear("serving ")?;
        Ok(server)
    }

    fn round(&mut self, round: u64, server: Server) -> Result<Server, Failure> {
        let (answers, told) = self.change_until_killed(round, server)?;
        let phases = self.landed.count(&told);
        if round.is_multiple_of(2) {
            self.store.check()?;
        } else {
            let longest = self.store.opening_took().as_micros().max(1) as u64;
            let pause = Duration::from_micros(self.dice.between(0, longest));
            let told = self.store.interrupt_opening(&options(&self.door.listen()), pause)?;
            self.landed.count(&told);
        }
        let mut server = self.serve()?;
        let found = self.judge()?;
        println!("round {round}: killed in {phases:?} after {answers} answers; {found}");
        if round.is_multiple_of(3) {
            self.landed.count(&server.kill()?);
            server = self.serve()?;
            self.judge()?;
        }
        self.answers += answers;
        Ok(server)
    }

    fn judge(&mut self) -> Result<String, Failure> {
        self.clients.order("judge")?;
        let line = self.clients.line()?;
        match line.strip_prefix("J ") {
            Some(found) => Ok(found.to_owned()),
            None => Err(Failure::unmet("what the judge found", line)),
        }
    }

    /// Returns how many changes were answered, and what the server had said.
    fn change_until_killed(
        &mut self,
        round: u64,
        server: Server,
    ) -> Result<(u64, String), Failure> {
        let seed = self.dice.next() >> 32;
        let wanted = self.dice.between(ANSWERS_MIN, ANSWERS_MAX);
        let awaited = ["", "checkpoint ", "collecting container "][(round % 3) as usize];
        let pause = Duration::from_micros(self.dice.between(0, PHASE_MICROSECONDS_MAX));
        self.clients.order(&format!("write {seed}"))?;
        let mut server = Some(server);
        let (mut answers, mut told_before, mut told) = (0, 0, String::new());
        while self.clients.line()? != "B" {
            answers += 1;
            let Some(running) = server.as_ref().filter(|_| answers >= wanted) else { continue };
            if answers == wanted {
                told_before = running.told()?.len();
            }
            let told_since = running.told()?.split_off(told_before);
            let is_overdue = answers >= wanted + ANSWERS_OF_WAITING_MAX;
            if awaited.is_empty() || is_overdue || has_begun(&told_since, awaited) {
                std::thread::sleep(pause);
                told = server.take().map_or_else(|| Ok(String::new()), Server::kill)?;
            }
        }
        if server.is_some() {
            return Err(Failure::unmet("clients that go on until the kill", "some that stop"));
        }
        Ok((answers, told))
    }
}
