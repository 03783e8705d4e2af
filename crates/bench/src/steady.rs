//! Requests at a steady rate that come when they are due, whatever became of those before.
//!
//! How long one waited is counted from the moment it was due. Who sends the next when one is
//! answered asks nothing of a server that stalls, and so leaves out nearly all who would have
//! waited (coordinated omission): a server that stood still for a twentieth of the time had a
//! slowest hundredth of 0.6 ms by fio, with eight requests under way at most.
//!
//! One thread sends, by a schedule that follows from the seed; another takes the answers. The
//! cookie of a request says when it was due.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nbd::wire::{Command, Fields, Request, SIMPLE_REPLY_BYTES};

use crate::connecting::{connect, disconnect};
use crate::failure::Failure;
use crate::fio::Waits;
use crate::interrupt;
use crate::source::{CHUNK_BYTES, Chance, fill};

/// Of ten requests so many are reads.
const READS_OF_TEN: u64 = 7;
/// After this a server that does not answer has failed.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How much later than asked the kernel may wake the main thread, and who is started by it.
const TIMER_SLACK: &str = "/proc/self/timerslack_ns";

/// One run, within the first `size_bytes` of a volume.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Steady {
    /// Requests a second, on average; they come at random moments.
    pub(crate) rate: u64,
    pub(crate) seconds: u64,
    pub(crate) size_bytes: u64,
    pub(crate) seed: u64,
}

/// For as long as this lives, who sleeps is woken when it asked to be. Servers that are started
/// later are to be as they always are.
struct Punctual;

impl Punctual {
    fn begin() -> Self {
        // In ns. Where it cannot be said, the client's own lateness counts.
        let _ = fs::write(TIMER_SLACK, "1");
        Self
    }
}

impl Drop for Punctual {
    fn drop(&mut self) {
        // The default; what could not be changed need not be changed back.
        let _ = fs::write(TIMER_SLACK, "0");
    }
}

/// One request.
#[derive(Copy, Clone, Debug)]
struct Due {
    /// After the beginning.
    at_ns: u64,
    write: bool,
    chunk: u64,
}

impl Steady {
    /// How long requests to `export` of the server at `socket` waited; reads first.
    pub(crate) fn run(&self, socket: &Path, export: &str) -> Result<[Waits; 2], Failure> {
        let _punctual = Punctual::begin();
        let asked = self.schedule();
        let waited = connect(socket, export).and_then(|(stream, _)| self.exchange(stream, &asked));
        interrupt::check()?;
        Ok(waited.map_err(Failure::file(socket))?.map(waits))
    }

    fn schedule(&self) -> Vec<Due> {
        let (mut chance, mut asked) = (Chance::new(self.seed), Vec::new());
        let (mean_ns, end_ns) = (1e9 / self.rate as f64, 1e9 * self.seconds as f64);
        let chunks = self.size_bytes / CHUNK_BYTES as u64;
        let mut at_ns = 0.0;
        loop {
            at_ns -= mean_ns * chance.part().ln();
            if at_ns >= end_ns {
                return asked;
            }
            let write = chance.roll() % 10 >= READS_OF_TEN;
            asked.push(Due { at_ns: at_ns as u64, write, chunk: chance.roll() % chunks });
        }
    }

    /// How many ns the answers to all that is asked took, each from when it was due.
    fn exchange(&self, mut stream: UnixStream, asked: &[Due]) -> io::Result<[Vec<u64>; 2]> {
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        let (answers, begun) = (stream.try_clone()?, Instant::now());
        let (sent, taken) = thread::scope(|scope| {
            let taking = scope.spawn(|| {
                let taken = take(&answers, asked.len(), begun);
                // Who waits for room in the socket would wait for ever.
                taken.inspect_err(|_| drop(answers.shutdown(Shutdown::Both)))
            });
            let sent = self.send(&mut stream, asked, begun);
            // As well, the other way round.
            let sent = sent.inspect_err(|_| drop(stream.shutdown(Shutdown::Both)));
            let taken = taking.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            (sent, taken)
        });
        let taken = taken?;
        sent.and_then(|()| disconnect(&mut stream))?;
        Ok(taken)
    }

    /// Half of what is written repeats the write before, as fio's does.
    fn send(&self, stream: &mut UnixStream, asked: &[Due], begun: Instant) -> io::Result<()> {
        let (mut out, mut bytes) = (Vec::new(), vec![0; CHUNK_BYTES]);
        let mut chance = Chance::new(!self.seed);
        for (number, due) in (0_u64..).zip(asked) {
            if interrupt::has_come() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let command = if due.write { Command::Write } else { Command::Read };
            let offset_bytes = due.chunk * CHUNK_BYTES as u64;
            let (cookie, length_bytes) = (due.cookie(), CHUNK_BYTES as u32);
            out.clear();
            Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut out);
            if due.write {
                if number == 0 || chance.roll().is_multiple_of(2) {
                    fill(self.seed << 32 | number, &mut bytes);
                }
                out.extend_from_slice(&bytes);
            }
            thread::sleep(Duration::from_nanos(due.at_ns).saturating_sub(begun.elapsed()));
            stream.write_all(&out)?;
        }
        Ok(())
    }
}

impl Due {
    fn cookie(self) -> u64 {
        self.at_ns << 1 | u64::from(self.write)
    }
}

/// Takes so many answers; how long each took after it was due, reads first.
fn take(stream: &UnixStream, count: usize, begun: Instant) -> io::Result<[Vec<u64>; 2]> {
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let (mut head, mut bytes) = ([0; SIMPLE_REPLY_BYTES], vec![0; CHUNK_BYTES]);
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..count {
        stream.read_exact(&mut head)?;
        let mut fields = Fields::new(&head);
        let (_, errno, cookie) = (fields.u32(), fields.u32(), fields.u64().unwrap_or_default());
        if errno != Some(0) {
            let sentence = format!("the server answered with error {}", errno.unwrap_or(0));
            return Err(io::Error::other(sentence));
        }
        let side = (cookie & 1) as usize;
        if side == 0 {
            stream.read_exact(&mut bytes)?;
        }
        took[side].push((begun.elapsed().as_nanos() as u64).saturating_sub(cookie >> 1));
    }
    Ok(took)
}

fn waits(mut took_ns: Vec<u64>) -> Waits {
    took_ns.sort_unstable();
    // The shortest of the slowest so many thousandths.
    let us = |thousandths: usize| {
        let at = (took_ns.len() * (1000 - thousandths)).div_ceil(1000).saturating_sub(1);
        took_ns.get(at).copied().unwrap_or_default() as f64 / 1e3
    };
    Waits { half_us: us(500), hundredth_us: us(10), thousandth_us: us(1), slowest_us: us(0) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Duration;

    use nbd::wire::{Command, REQUEST_BYTES, Request, simple_reply};

    use super::{Steady, waits};
    use crate::connecting::tests::{chosen, greeting};

    /// Answers at once, but that it stands still once, before the request of this number.
    fn serve(mut stream: UnixStream, still: (u64, Duration)) -> u64 {
        let mut option = vec![0; 4 + 16 + 8];
        stream.write_all(&greeting()).unwrap();
        stream.read_exact(&mut option).unwrap();
        stream.write_all(&chosen()).unwrap();
        for number in 0.. {
            let mut head = [0; REQUEST_BYTES];
            stream.read_exact(&mut head).unwrap();
            let request = Request::decode(&head).unwrap();
            if number == still.0 {
                std::thread::sleep(still.1);
            }
            let mut answer = simple_reply(0, request.cookie).to_vec();
            let mut bytes = vec![0; request.length_bytes as usize];
            match request.command {
                Command::Disconnect => return number,
                Command::Write => stream.read_exact(&mut bytes).unwrap(),
                _ => answer.extend(bytes),
            }
            stream.write_all(&answer).unwrap();
        }
        unreachable!("requests end")
    }

    #[test]
    fn who_would_have_come_while_the_server_stood_still_has_waited() {
        let socket = std::env::temp_dir().join(format!("bench-{}-still", std::process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let steady = Steady { rate: 2000, seconds: 1, size_bytes: 1 << 30, seed: 1 };
        let still = Duration::from_millis(300);
        let slack = std::fs::read(super::TIMER_SLACK).ok();
        let (waited, served) = std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(listener.accept().unwrap().0, (200, still)));
            (steady.run(&socket, ""), server.join().unwrap())
        });
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(std::fs::read(super::TIMER_SLACK).ok(), slack, "servers would differ");
        assert!((1800..2200).contains(&served), "{served} requests");
        for waits in waited.unwrap() {
            // Three tenths of all requests waited, evenly, up to three tenths of a second.
            assert!(waits.hundredth_us > 250_000.0 && waits.slowest_us > 280_000.0, "{waits:?}");
        }
    }

    #[test]
    fn parts_are_counted_from_the_slowest() {
        let waits = waits((1..=1000).rev().map(|us| us * 1000).collect());
        let found = [waits.half_us, waits.hundredth_us, waits.thousandth_us, waits.slowest_us];
        assert_eq!(found, [500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(super::waits(Vec::new()).slowest_us, 0.0);
    }
}
