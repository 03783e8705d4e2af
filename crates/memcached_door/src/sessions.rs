//! The connections of an event thread, by keys that epoll keeps, and whose they are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tenants::PartyId;

use crate::host::Host;
use crate::session::Session;

/// Of a connection; no other of the thread's life has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Of no connection.
    pub(crate) const NONE: Key = Key(u64::MAX);

    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// Places of connections; one that is free is used again, with another key.
pub(crate) struct Sessions<H: Host> {
    places: Vec<Place<H>>,
    free: Vec<u32>,
    /// How many connections of the thread each party has, those in the pool too: they come back. Of
    /// nobody's none is counted.
    parties: HashMap<PartyId, usize>,
}

struct Place<H: Host> {
    key: Key,
    session: Option<Box<Session<H>>>,
}

impl<H: Host> Sessions<H> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), parties: HashMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Whether more than one party has connections of this thread.
    pub(crate) fn are_of_several(&self) -> bool {
        self.parties.len() > 1
    }

    /// A new connection, or one that comes back. Its party may have become known meanwhile, and
    /// does not change while it is here.
    pub(crate) fn add(&mut self, mut session: Box<Session<H>>) -> Key {
        let (before, party) = (session.counted_for, session.party());
        if party != before {
            self.forget(before);
            *self.parties.entry(party).or_default() += 1;
            session.counted_for = party;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            let place = self.places.len();
            assert!(place < u32::MAX as usize, "there are fewer connections than descriptors");
            self.places.push(Place { key: Key(place as u64), session: None });
            place as u32
        });
        let place = &mut self.places[place as usize];
        assert!(place.session.is_none(), "a free place has no connection");
        place.session = Some(session);
        place.key
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Box<Session<H>>> {
        let place = self.places.get_mut(key.place())?;
        place.session.as_mut().filter(|_| place.key == key)
    }

    /// A connection leaves for the pool, and is to come back.
    pub(crate) fn lend(&mut self, key: Key) -> Option<Box<Session<H>>> {
        let place = self.places.get_mut(key.place()).filter(|place| place.key == key)?;
        let session = place.session.take()?;
        place.key = Key(key.0.wrapping_add(1 << 32));
        self.free.push(key.place() as u32);
        Some(session)
    }

    /// A connection ends.
    pub(crate) fn close(&mut self, key: Key) {
        if let Some(session) = self.lend(key) {
            self.forget(session.counted_for);
        }
    }

    fn forget(&mut self, party: PartyId) {
        if party == PartyId::NOBODY {
            return;
        }
        let Entry::Occupied(mut connections) = self.parties.entry(party) else {
            panic!("the party of each connection is counted");
        };
        *connections.get_mut() -= 1;
        if *connections.get() == 0 {
            connections.remove();
        }
    }

    /// The keys of connections for which `is_so` holds.
    pub(crate) fn keys(&self, mut is_so: impl FnMut(&Session<H>) -> bool) -> Vec<Key> {
        let used =
            self.places.iter().filter(|place| place.session.as_ref().is_some_and(|it| is_so(it)));
        used.map(|place| place.key).collect()
    }
}
