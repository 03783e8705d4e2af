//! A thread that owns connections, and waits for them with epoll.
//!
//! Nothing on it waits for a disk or a lock that is held for long. It drives a connection whose
//! client has sent something, and sorts it by what comes next.
//!
//! Once a second, where that is of use, it looks through its connections: clients that do nothing
//! with their seats lose them while seats are scarce, and those whose account may not come in any
//! more are closed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memcached::Buffers;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::host::Host;
use crate::mailbox::{Letter, Mailbox};
use crate::session::{Clock, Interest, Outcome, Session};
use crate::sessions::{Key, Sessions};
use crate::shared::{RECEIVED_BYTES, Shared, hand_over};

/// Events that are taken at once.
const EVENTS: usize = 256;
/// How often all connections are looked through.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// How long clients may take to read what they are owed when the server stops.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The thread's state.
pub(crate) struct EventThread<H: Host> {
    shared: Arc<Shared<H>>,
    number: usize,
    epoll: OwnedFd,
    mailbox: Arc<Mailbox<H>>,
    sessions: Sessions<H>,
    /// Connections that are not read until a time.
    pauses: BinaryHeap<Reverse<(Instant, Key)>>,
    /// Connections that have had a turn, and go on without an event.
    turns: Vec<Key>,
    in_pool: usize,
    buffers: Buffers,
    looked: Instant,
    /// When the thread was woken last.
    clock: Clock,
    /// When the last connections are cut; set when the server stops.
    cut_at: Option<Instant>,
}

impl<H: Host> EventThread<H> {
    pub(crate) fn new(
        shared: Arc<Shared<H>>,
        number: usize,
        mailbox: Arc<Mailbox<H>>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(Key::NONE.number());
        epoll::add(&epoll, &mailbox, data, EventFlags::IN)?;
        Ok(Self {
            shared,
            number,
            epoll,
            mailbox,
            sessions: Sessions::new(),
            pauses: BinaryHeap::new(),
            turns: Vec::new(),
            in_pool: 0,
            buffers: Buffers::receiving(RECEIVED_BYTES),
            looked: Instant::now(),
            clock: Clock::read(),
            cut_at: None,
        })
    }

    /// Serves connections until the server stops.
    pub(crate) fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = self.timeout();
            let space = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, space, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    (self.shared.observer)(&format!("memcached stops: epoll fails: {error}"));
                    return;
                }
            }
            self.clock = Clock::read();
            let turns = std::mem::take(&mut self.turns);
            for event in &events {
                match event.data.u64() {
                    number if number == Key::NONE.number() => self.open_letters(),
                    number => self.hear(Key::from_number(number), event.flags),
                }
            }
            turns.into_iter().for_each(|key| self.drive(key));
            let now = self.clock.now;
            self.resume(now);
            if now.duration_since(self.looked) >= LOOK_TIME {
                self.look(now);
            }
            if self.shared.is_closing() && self.is_over(now) {
                return;
            }
        }
    }

    /// How long nothing happens by itself.
    fn timeout(&self) -> Option<Timespec> {
        if !self.turns.is_empty() {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let pause = self.pauses.peek().map(|Reverse((until, _))| *until);
        // The first thread looks for all.
        let has_to_look = !self.sessions.is_empty() || self.number == 0;
        let look = has_to_look.then_some(self.looked + LOOK_TIME);
        let next = [pause, look, self.cut_at].into_iter().flatten().min()?;
        let left = next.saturating_duration_since(self.clock.now);
        Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() })
    }

    fn open_letters(&mut self) {
        for letter in self.mailbox.take() {
            match letter {
                Letter::New(socket, seat) => {
                    let Shared { limits, host, facts, .. } = &*self.shared;
                    let session = Session::new((socket, seat), *limits, host, facts, self.number);
                    let key = self.sessions.add(Box::new(session));
                    self.settle(key, Outcome::Read);
                }
                Letter::Back(session, outcome) => {
                    self.in_pool -= 1;
                    let key = self.sessions.add(session);
                    self.settle(key, outcome);
                }
            }
        }
    }

    /// Something has happened to a socket.
    fn hear(&mut self, key: Key, flags: EventFlags) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.armed == Some(Interest::End) {
            // It is not read, so that nothing but its end or an error is told.
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.settle(key, Outcome::Close);
            }
            return;
        }
        self.drive(key);
    }

    fn drive(&mut self, key: Key) {
        let is_shared = self.sessions.are_of_several();
        let Some(session) = self.sessions.get(key) else { return };
        let turn = self.shared.turn(self.clock, false, is_shared);
        let outcome = session.drive(&turn, &mut self.buffers);
        self.settle(key, outcome);
    }

    /// Sorts a connection by what it waits for.
    fn settle(&mut self, key: Key, outcome: Outcome) {
        match outcome {
            Outcome::Read if self.shared.is_closing() => self.close(key),
            Outcome::Read => self.arm(key, Interest::Input),
            Outcome::Write => self.arm(key, Interest::Room),
            Outcome::Turn => {
                self.arm(key, Interest::End);
                self.turns.push(key);
            }
            Outcome::Pause(until) => {
                self.arm(key, Interest::End);
                self.pauses.push(Reverse((until, key)));
            }
            Outcome::Close => self.close(key),
            Outcome::Pool => {
                self.disarm(key);
                if let Some(session) = self.sessions.lend(key) {
                    self.in_pool += 1;
                    hand_over(&self.shared, session, Arc::clone(&self.mailbox));
                }
            }
        }
    }

    /// Has epoll wait for this.
    fn arm(&mut self, key: Key, interest: Interest) {
        let Some(session) = self.sessions.get(key) else { return };
        let before = session.armed.replace(interest);
        if before == Some(interest) {
            return;
        }
        let flags = match interest {
            Interest::Input => EventFlags::IN,
            Interest::Room => EventFlags::OUT,
            Interest::End => EventFlags::empty(),
        };
        let data = EventData::new_u64(key.number());
        let armed = match before {
            None => epoll::add(&self.epoll, session.socket(), data, flags),
            Some(_) => epoll::modify(&self.epoll, session.socket(), data, flags),
        };
        if armed.is_err() {
            // The system has no memory for one more.
            self.close(key);
        }
    }

    fn disarm(&mut self, key: Key) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.armed.take().is_some() {
            // What is in there can be taken out.
            let _ = epoll::delete(&self.epoll, session.socket());
        }
    }

    fn close(&mut self, key: Key) {
        // Its socket leaves epoll as it is closed.
        self.sessions.close(key);
    }

    /// Goes on with connections whose pause is over.
    fn resume(&mut self, now: Instant) {
        while let Some(Reverse((until, key))) = self.pauses.peek().copied()
            && until <= now
        {
            self.pauses.pop();
            self.drive(key);
        }
    }

    /// Looks through all connections.
    fn look(&mut self, now: Instant) {
        self.looked = now;
        let mut known = HashMap::new();
        let host = &self.shared.host;
        if self.number == 0 {
            host.give_back_unused(now);
        }
        let is_scarce = self.shared.seats.are_scarce();
        let stalled_s = self.shared.stalled_time.as_secs();
        let age_s = self.shared.facts.age_s(now);
        let keys = self.sessions.keys(|session| {
            let is_stalled = u64::from(age_s.saturating_sub(session.moved_s)) >= stalled_s;
            let may_stay = session.name().is_none_or(|name| {
                *known.entry(Arc::clone(name)).or_insert_with(|| host.may_stay(name))
            });
            !may_stay || (is_scarce && is_stalled && session.is_half())
        });
        keys.into_iter().for_each(|key| self.close(key));
    }

    /// Closes what has nothing under way, when the server stops; whether that is all.
    fn is_over(&mut self, now: Instant) -> bool {
        let cut_at = *self.cut_at.get_or_insert(now + STOP_TIME);
        let is_late = now >= cut_at;
        let has_turns = !self.turns.is_empty();
        for key in self.sessions.keys(|session| is_late || (session.is_idle() && !has_turns)) {
            self.close(key);
        }
        self.in_pool == 0 && self.sessions.is_empty()
    }
}
