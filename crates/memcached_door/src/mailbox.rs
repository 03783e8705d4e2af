//! What other threads hand to an event thread: new connections, and those that come back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::host::Host;
use crate::seats::Seat;
use crate::session::{Outcome, Session};
use crate::socket::Socket;

/// Something for an event thread.
pub(crate) enum Letter<H: Host> {
    /// A client has connected.
    New(Socket, Seat),
    /// The pool has gone on with a connection; this is next.
    Back(Box<Session<H>>, Outcome),
}

/// Letters, and a descriptor that is readable while there are some.
pub(crate) struct Mailbox<H: Host> {
    letters: Mutex<Vec<Letter<H>>>,
    ready: OwnedFd,
}

impl<H: Host> Mailbox<H> {
    pub(crate) fn new() -> io::Result<Self> {
        let ready = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { letters: Mutex::default(), ready })
    }

    pub(crate) fn post(&self, letter: Letter<H>) {
        let is_first = {
            let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
            letters.push(letter);
            letters.len() == 1
        };
        if is_first {
            self.ring();
        }
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        // It fails when it has been rung 2^64 - 2 times and not heard: it is readable then.
        let _ = rustix::io::write(&self.ready, &1_u64.to_ne_bytes());
    }

    /// All letters, in their order.
    pub(crate) fn take(&self) -> Vec<Letter<H>> {
        // Silenced first: a letter that comes behind this rings again.
        let _ = rustix::io::read(&self.ready, &mut [0; 8]);
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<H: Host> AsFd for Mailbox<H> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
