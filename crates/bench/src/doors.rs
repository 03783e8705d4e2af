//! Tamis through NBD beside what bounds it: a server that does nothing, asked by the same client,
//! and the engine in this process, asked for the same without a socket.
//!
//! ```text
//! doors.rs           rounds; in each, every load is given to all three in turn, one at a time
//!   ├─ load.rs       what is asked for, with what bytes; what a volume holds
//!   ├─ client.rs     our client: sends what is ready at once, takes what has come at once
//!   │   └─ replies.rs    what a server says, taken apart and not believed
//!   ├─ in_process.rs the same load, without a socket
//!   ├─ rate.rs       when a run ends, and what it came to
//!   └─ page.rs       the table, and what is held to what
//! ```
//!
//! fio's engine for NBD sends and receives each request by itself, and was the bound of what it
//! measured. It stays beside: it is what others measure with. What the engine *could take* through
//! NBD is the lower of the two bounds, and Tamis's speed is shown as a part of that.

mod client;
mod in_process;
mod load;
mod page;
mod rate;
mod replies;

use std::path::Path;
use std::thread;
use std::time::Duration;

use engine::Options;
use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::machine::load_average;
use crate::nothing::Nothing;
use crate::samples::Samples;
use crate::served::{Mode, Tamis, VOLUME};
use crate::store::{CAPACITY_BYTES, Store, write_data_once};
use client::Door;
use load::{Load, Volume};
use rate::{Limit, Rate};

/// As long as the server looks for its next work before it sleeps, unless told otherwise.
const POLL_US: u32 = 100;
/// Time in which memory is filled with what is then read.
const WARM: Duration = Duration::from_millis(300);

/// Figures of all rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Doors {
    pub(crate) volume_bytes: u64,
    /// Of one run, at most; it ends sooner when as much as the volume has been written or read.
    pub(crate) seconds: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) verified: bool,
    pub(crate) rows: Vec<Row>,
    /// Of the last minute, when a round began.
    pub(crate) load_average: Samples,
}

/// What a load came to, in operations a second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) load: &'static str,
    pub(crate) block_bytes: u32,
    /// Tamis through NBD.
    pub(crate) tamis: Samples,
    /// A server that does nothing, by the same client.
    pub(crate) nothing: Samples,
    /// The engine in this process.
    pub(crate) engine: Samples,
    /// Tamis through NBD, by fio.
    pub(crate) fio: Samples,
    /// Tamis by the others, round by round, and by the slower of both: by what the engine could
    /// take through NBD.
    pub(crate) of_nothing: Samples,
    pub(crate) of_engine: Samples,
    pub(crate) of_reachable: Samples,
}

impl Row {
    fn new(load: Load) -> Self {
        let none = Samples::default;
        Self {
            load: load.name,
            block_bytes: load.block_bytes,
            tamis: none(),
            nothing: none(),
            engine: none(),
            fio: none(),
            of_nothing: none(),
            of_engine: none(),
            of_reachable: none(),
        }
    }

    fn add(&mut self, [tamis, nothing, engine]: [Rate; 3]) {
        let [tamis, nothing, engine] = [tamis, nothing, engine].map(Rate::per_second);
        self.tamis.push(tamis);
        self.nothing.push(nothing);
        self.engine.push(engine);
        self.of_nothing.push(tamis / nothing);
        self.of_engine.push(tamis / engine);
        self.of_reachable.push(tamis / nothing.min(engine));
    }
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Doors, Failure> {
    let is_wanted =
        |load: &Load| args.load.as_ref().is_none_or(|text| load.name.contains(text.as_str()));
    let loads: Vec<Load> = Load::ALL.into_iter().filter(is_wanted).collect();
    let mut doors = Doors {
        volume_bytes: args.size_bytes(),
        seconds: args.seconds,
        memory_bytes: args.memory_bytes(),
        verified: args.verify,
        rows: loads.iter().copied().map(Row::new).collect(),
        load_average: Samples::default(),
    };
    let mut stand = Stand::start(args, folder)?;
    for round in 0..args.rounds {
        doors.load_average.push(load_average());
        for (&load, row) in loads.iter().zip(&mut doors.rows) {
            row.add(stand.turns(load, round)?);
            if !args.verify {
                row.fio.push(stand.fio(load, round, args)?);
            }
        }
    }
    stand.stop()?;
    Ok(doors)
}

/// The three that are asked, all of them running.
struct Stand {
    tamis: Tamis,
    nothing: Nothing,
    engine: Store,
    /// What Tamis's volume and the engine's hold.
    held: [Volume; 2],
    limit: Limit,
    /// Runs made.
    run: u64,
}

/// Who is asked.
#[derive(Copy, Clone)]
enum Who {
    Tamis,
    Nothing,
    Engine,
}

impl Who {
    const ALL: [Self; 3] = [Self::Tamis, Self::Nothing, Self::Engine];
}

impl Stand {
    /// Makes two stores with a volume each, and fills those.
    fn start(args: &Args, folder: &Path) -> Result<Self, Failure> {
        let volume_bytes = args.size_bytes();
        // In a round three loads write up to the volume's size, half of it new, half of that noise.
        let written_bytes = (args.rounds + 1) * volume_bytes;
        let store = folder.join("doors-tamis");
        let mut tamis = Tamis::make(args, store, Mode::default(), CAPACITY_BYTES, written_bytes)?;
        tamis.create_volume(VOLUME, volume_bytes)?;
        tamis.serve()?;
        let path = folder.join("doors-engine");
        Store::make(&path, CAPACITY_BYTES)?;
        write_data_once(&path, written_bytes)?;
        let worker_threads = thread::available_parallelism().map_or(1, usize::from);
        let memory_bytes = args.memory_bytes();
        let options =
            Options { memory_bytes, worker_threads, poll_us: POLL_US, ..Options::default() };
        let engine = Store::open(&path, &options)?;
        engine.client().create_volume(VOLUME, volume_bytes, false)?;
        let nothing = Nothing::start(volume_bytes)?;
        let held = [Volume::new(volume_bytes), Volume::new(volume_bytes)];
        let time = Duration::from_secs(args.seconds);
        let limit = Limit { volume_bytes, time, bytes_max: volume_bytes, verifies: args.verify };
        let mut stand = Self { tamis, nothing, engine, held, limit, run: 0 };
        let all = Limit { time: Duration::MAX, ..limit };
        stand.run(Who::Tamis, Load::SEQUENTIAL_WRITE, all)?;
        stand.run(Who::Engine, Load::SEQUENTIAL_WRITE, all)?;
        Ok(stand)
    }

    /// Lets each do the load, beginning with another one each round.
    fn turns(&mut self, load: Load, round: u64) -> Result<[Rate; 3], Failure> {
        let mut rates = [Rate::default(); 3];
        for turn in 0..Who::ALL.len() {
            let at = (turn + round as usize) % Who::ALL.len();
            let who = Who::ALL[at];
            if load.random && load.read_percent == 100 {
                self.run(who, load, Limit { time: WARM, ..self.limit })?;
            }
            rates[at] = self.run(who, load, self.limit)?;
            if load.read_percent < 100 {
                self.settle(who)?;
            }
        }
        Ok(rates)
    }

    /// What is acknowledged becomes durable now, and not while another is measured.
    fn settle(&mut self, who: Who) -> Result<(), Failure> {
        let bytes_max = u64::from(Load::FLUSHED.block_bytes);
        self.run(who, Load::FLUSHED, Limit { bytes_max, ..self.limit }).map(drop)
    }

    fn run(&mut self, who: Who, load: Load, limit: Limit) -> Result<Rate, Failure> {
        crate::interrupt::check()?;
        self.run += 1;
        let [tamis, engine] = &self.held;
        match who {
            Who::Tamis => {
                let socket = self.tamis.socket();
                let door = Door { socket: &socket, export: VOLUME };
                client::run(door, tamis, load, self.run, limit)
            }
            Who::Nothing => {
                let door = Door { socket: self.nothing.socket(), export: "" };
                let unseen = Limit { verifies: false, ..limit };
                client::run(door, &Volume::new(limit.volume_bytes), load, self.run, unseen)
            }
            Who::Engine => {
                in_process::run(self.engine.client(), VOLUME, engine, load, self.run, limit)
            }
        }
    }

    /// Operations a second by fio, of Tamis.
    fn fio(&self, load: Load, round: u64, args: &Args) -> Result<f64, Failure> {
        let rate = load.as_fio(self.limit.volume_bytes, round, args.seconds);
        let speed = rate.run(&self.tamis.target())?;
        Ok(match load.random {
            true => speed.thousands_per_second * 1000.0,
            false => speed.mib_per_second * f64::from(1 << 20) / f64::from(load.block_bytes),
        })
    }

    fn stop(self) -> Result<(), Failure> {
        self.tamis.remove()?;
        self.nothing.stop()?;
        self.engine.close()
    }
}

#[cfg(test)]
mod tests;
