//! A thread that accepts connections and hands them to the event threads, one after the other.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::host::Host;
use crate::listen::Listener;
use crate::mailbox::{Letter, Mailbox};
use crate::shared::Shared;

/// What a client hears for whom there is no seat, as memcached says it.
const NO_SEAT: &[u8] = b"ERROR Too many open connections\r\n";
/// Pause after the system has refused a connection: no descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a kind of notice is not repeated.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// The thread's state.
pub(crate) struct Acceptor<H: Host> {
    pub(crate) shared: Arc<Shared<H>>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) mailboxes: Vec<Arc<Mailbox<H>>>,
    /// Readable when the server stops.
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) told: Option<Instant>,
}

impl<H: Host> Acceptor<H> {
    /// Accepts connections until the server stops.
    pub(crate) fn run(mut self) {
        let mut turn = 0;
        loop {
            let mut waited: Vec<PollFd<'_>> =
                self.listeners.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
            waited.push(PollFd::new(&*self.stop, PollFlags::IN));
            // Whether it was interrupted or not, what is ready is looked for.
            let _ = poll(&mut waited, None);
            if self.shared.is_closing() {
                return;
            }
            let ready: Vec<usize> = waited
                .iter()
                .enumerate()
                .filter_map(|(at, fd)| (!fd.revents().is_empty()).then_some(at))
                .collect();
            for at in ready {
                self.accept_all(at, &mut turn);
            }
        }
    }

    /// Accepts all that wait at one listener.
    fn accept_all(&mut self, at: usize, turn: &mut usize) {
        loop {
            match self.listeners[at].accept() {
                Ok(socket) => match self.shared.seats.take() {
                    Some(seat) => {
                        *turn = (*turn + 1) % self.mailboxes.len();
                        self.mailboxes[*turn].post(Letter::New(socket, seat));
                    }
                    None => {
                        // It may not be there any more, or not read.
                        let _ = socket.send(NO_SEAT);
                        self.shared.facts.connections_rejected.fetch_add(1, Ordering::Relaxed);
                        self.tell(
                            "a connection to memcached's door was refused: there are as many as \
                             --memcached-connections allows",
                        );
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    self.tell(&format!("memcached's door cannot accept a connection: {error}"));
                    thread::sleep(PAUSE);
                    return;
                }
            }
        }
    }

    /// Tells the operator, unless that was done a moment ago.
    fn tell(&mut self, note: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= QUIET_TIME) {
            self.told = Some(Instant::now());
            (self.shared.observer)(note);
        }
    }
}
