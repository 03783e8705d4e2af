//! The same load on an engine in this process, without a socket: what any door could come to.
//!
//! A thread a connection, as in `client.rs`: it fills the depth with requests, and takes all that
//! has been answered together. Bytes that were read are put together (decompressed and checked) on
//! that thread, as a door does.

use std::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use engine::{
    Accepted, Client, Completions, Done, OpenVolume, Opener, ReadPieces, Reply, RequestError,
};

use super::client::ClientError;
use super::load::{Ask, Asks, Durability, Load, Volume};
use super::rate::{Limit, Rate, together};
use crate::failure::Failure;

/// Runs `load` on all its connections at once; `run` is a number that no other run has.
pub(super) fn run(
    client: &Client,
    name: &str,
    volume: &Volume,
    load: Load,
    run: u64,
    limit: Limit,
) -> Result<Rate, Failure> {
    let opened = client.open_volume(name, Opener::new("bench", 0))?;
    let ready = Barrier::new(load.connections as usize);
    thread::scope(|scope| {
        let one = |connection| {
            let (ready, volume, opened) = (&ready, volume, &opened);
            scope.spawn(move || {
                let caller = Caller::new(client, opened, Asks::new(load, volume, run, connection));
                ready.wait();
                caller.run(limit)
            })
        };
        let threads: Vec<_> = (0..load.connections).map(one).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        together(ended.map(|rate| rate.unwrap_or(Err(Failure::EngineVanished))))
    })
}

type Outcome = Result<Reply, RequestError>;

/// Answers that nobody has taken yet, by the number of their request.
#[derive(Default)]
struct Inbox {
    answers: Mutex<Vec<(u64, Outcome)>>,
    arrived: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Outcome)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All there are; waits for one if `waits`.
    fn take(&self, waits: bool, out: &mut Vec<(u64, Outcome)>) {
        let mut answers = self.lock();
        while waits && answers.is_empty() {
            answers = self.arrived.wait(answers).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *answers, out);
    }
}

impl Completions for Inbox {
    fn complete(&self, tag: u64, outcome: Outcome) {
        let mut answers = self.lock();
        answers.push((tag, outcome));
        if answers.len() == 1 {
            self.arrived.notify_one();
        }
    }
}

/// One connection's part of the load.
struct Caller<'a> {
    client: &'a Client,
    opened: &'a OpenVolume,
    asks: Asks,
    inbox: Arc<Inbox>,
    /// Requests that are not answered, by number.
    in_flight: Vec<Option<Ask>>,
    free: Vec<usize>,
    taken: Vec<(u64, Outcome)>,
    read: Vec<u8>,
    flushes_due: usize,
    done: u64,
}

impl<'a> Caller<'a> {
    fn new(client: &'a Client, opened: &'a OpenVolume, asks: Asks) -> Self {
        let Load { depth, block_bytes, .. } = asks.load;
        Self {
            client,
            opened,
            asks,
            inbox: Arc::default(),
            in_flight: vec![None; depth],
            free: (0..depth).collect(),
            taken: Vec::new(),
            read: vec![0; block_bytes as usize],
            flushes_due: 0,
            done: 0,
        }
    }

    fn run(mut self, limit: Limit) -> Result<Rate, Failure> {
        let begun = Instant::now();
        loop {
            let over = limit.is_over(begun, self.done, &self.asks.load);
            // As many requests as the depth, whether they are answered at once or not: then the
            // time is looked at.
            for _ in 0..self.in_flight.len() {
                if !self.ask(over, limit)? {
                    break;
                }
            }
            let waits = self.free.len() < self.in_flight.len();
            if over && !waits && self.flushes_due == 0 {
                break;
            }
            self.inbox.take(waits && (over || self.free.is_empty()), &mut self.taken);
            let mut taken = std::mem::take(&mut self.taken);
            for (number, outcome) in taken.drain(..) {
                self.answered(number as usize, outcome?, limit)?;
            }
            self.taken = taken;
        }
        Ok(Rate { operations: self.done, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Begins one more request; false where there is none to begin.
    fn ask(&mut self, over: bool, limit: Limit) -> Result<bool, Failure> {
        let Some(number) = self.free.pop() else { return Ok(false) };
        let ask = match (self.flushes_due, over) {
            (0, true) => {
                self.free.push(number);
                return Ok(false);
            }
            (0, false) => self.asks.next(),
            _ => {
                self.flushes_due -= 1;
                Ask::Flush
            }
        };
        if limit.verifies && self.touches(ask) {
            // Which of two at one place counts nobody could say.
            self.free.push(number);
            return Ok(false);
        }
        self.in_flight[number] = Some(ask);
        let (client, opened) = (self.client, self.opened);
        let block_bytes = self.asks.load.block_bytes;
        match ask {
            Ask::Write { offset_bytes, first_id } => {
                let durable = self.asks.load.durability == Durability::Fua;
                let mut buffer = client.buffer(offset_bytes, block_bytes as usize);
                self.asks.fill(first_id, buffer.bytes_mut());
                if client.write(opened, offset_bytes, buffer, durable, self.done(number))
                    == Accepted::Now
                {
                    self.answered(number, Reply::Done, limit)?;
                }
            }
            Ask::Read { offset_bytes } => {
                match client.read_held(opened, offset_bytes, block_bytes) {
                    Some(pieces) => self.answered(number, Reply::Read(pieces), limit)?,
                    None => client.read(opened, offset_bytes, block_bytes, self.done(number)),
                }
            }
            Ask::Flush => client.flush(self.done(number)),
        }
        Ok(true)
    }

    fn done<A: Into<Reply>>(&self, number: usize) -> Done<A> {
        Done::new(Arc::clone(&self.inbox), number as u64)
    }

    /// Whether a request in flight is about the same place.
    fn touches(&self, ask: Ask) -> bool {
        let place = |ask: &Ask| match *ask {
            Ask::Write { offset_bytes, .. } | Ask::Read { offset_bytes } => Some(offset_bytes),
            Ask::Flush => None,
        };
        place(&ask).is_some()
            && self.in_flight.iter().flatten().any(|one| place(one) == place(&ask))
    }

    fn answered(&mut self, number: usize, reply: Reply, limit: Limit) -> Result<(), Failure> {
        let Some(ask) = self.in_flight[number].take() else {
            unreachable!("the engine answers each request once");
        };
        self.free.push(number);
        let flushes = self.asks.load.durability == Durability::FlushEach;
        match (ask, reply) {
            (Ask::Write { .. }, _) => {
                self.asks.record(ask);
                self.flushes_due += usize::from(flushes);
                self.done += u64::from(!flushes);
            }
            (Ask::Read { offset_bytes }, Reply::Read(pieces)) => {
                self.assemble(offset_bytes, &pieces, limit)?;
                self.done += 1;
            }
            _ => self.done += 1,
        }
        Ok(())
    }

    fn assemble(
        &mut self,
        offset_bytes: u64,
        pieces: &ReadPieces,
        limit: Limit,
    ) -> Result<(), Failure> {
        pieces.assemble(&mut self.read)?;
        match limit.verifies && !self.asks.matches(offset_bytes, &self.read) {
            true => Err(ClientError::Differs { offset_bytes }.into()),
            false => Ok(()),
        }
    }
}
