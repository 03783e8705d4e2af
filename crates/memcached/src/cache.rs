//! The seam: what a cache does for connections.
//!
//! A connection gives the cache a batch of requests at once, in the order in which they came: what
//! a client has pipelined, or the keys of one `get`. The cache answers each of them, in that order,
//! through [`Answers`], which writes into the connection's output: a value is copied once, from
//! where it is stored to where it is sent from. Nothing else is known here of text or flags.
//!
//! Values that are longer than a connection takes whole come in parts into a [`Cache::Writer`], and
//! go out in parts from a [`ValueReader`].

use std::borrow::Cow;

use crate::answers::Answers;
use crate::decisions::Hit;
use crate::item::Item;
use crate::operation::{Operation, Store};
use crate::parser::Form;
use crate::stats::{Counts, Figures};

/// An operation, and how its answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What the client asks.
    pub operation: Operation<'a>,
    pub(crate) form: Form<'a>,
}

/// What is answered where no value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is no such item.
    NotFound,
    /// The item has another version than the client's.
    Exists,
    /// The item is there, or is not, and the client asked for the contrary.
    NotStored,
    /// The value is stored.
    Stored {
        /// The item's version.
        cas: u64,
        /// How long its value is now, in bytes.
        value_bytes: u64,
    },
    /// The item is removed, or is stale.
    Deleted,
    /// The item ends at another time.
    Touched,
    /// The item has another number.
    Number {
        /// The item before and after.
        hit: Hit,
        /// Its number.
        number: u64,
    },
    /// The value is no number.
    NotANumber,
    /// What is known about an item.
    Inspected {
        /// The item.
        item: Item,
        /// What it takes, in bytes: key, value and what is kept with them.
        size_bytes: u64,
    },
    /// All items are gone, or will be.
    Flushed,
}

/// Why the cache cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No place, and nothing that could go.
    #[error("SERVER_ERROR out of memory storing object")]
    NoRoom,
    /// The value is too long for this cache.
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
    /// Something else, in words of the cache's.
    #[error("SERVER_ERROR {0}")]
    Other(Cow<'static, str>),
}

/// Takes the parts of a long value.
pub trait ValueWriter {
    /// The next part.
    ///
    /// # Errors
    /// If it cannot be kept. The rest of the value is dropped, and the client hears the fault.
    fn write(&mut self, part: &[u8]) -> Result<(), Fault>;
}

/// Gives the parts of a long value.
pub trait ValueReader {
    /// Fills the front of `out` with what follows, and says how much that is. 0 is the end.
    ///
    /// # Errors
    /// If it cannot be read. The connection is closed: its client has the front of the value, and
    /// nothing else can be said in its place.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault>;
}

/// What a connection asks items of.
pub trait Cache {
    /// Where a long value goes; dropped if the value does not come to its end.
    type Writer: ValueWriter;
    /// Where a long value comes from.
    type Reader: ValueReader;

    /// Carries out each request, in their order, and answers each of them once.
    ///
    /// # Panics
    /// The connection panics if a request is left without an answer.
    fn run(
        &mut self,
        requests: &[Request<'_>],
        now_s: u64,
        answers: &mut Answers<'_, Self::Reader>,
    );

    /// Begins a value that comes in parts. The conditions count when it ends.
    ///
    /// # Errors
    /// If it cannot be kept. The value is dropped, and the client hears the fault.
    fn begin_store(&mut self, store: &Store<'_>, now_s: u64) -> Result<Self::Writer, Fault>;

    /// Ends a value that came in parts: decides whether it is stored, as for one that came whole.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn finish_store(
        &mut self,
        writer: Self::Writer,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault>;

    /// What `stats` tells.
    fn figures(&mut self, now_s: u64) -> Figures;

    /// What the connection has counted since it said so last.
    fn count(&mut self, counts: &Counts) {
        let _ = counts;
    }

    /// `cache_memlimit`: the items are to take so much at most, in bytes. `false` refuses, as a
    /// cache does whose operator says how much.
    fn limit_bytes(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// `stats reset`: counts begin at 0.
    fn reset_counts(&mut self) {}
}
