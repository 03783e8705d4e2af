//! What clients ask of the cache: one key each, typed, borrowed from the connection's input.
//!
//! What a command means is said here and in `decisions/`, once: a cache finds the item, lets the
//! operation decide with it, and does what it decides. So a command and its meta form are one.

use crate::expiry::Expiry;
use crate::layout::{Layout, Part, Place};

/// One thing that a client asks of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Read an item, and perhaps change when it ends: `get`, `gets`, `gat`, `gats`, `mg`.
    Get(Get<'a>),
    /// Store a value: `set`, `add`, `replace`, `append`, `prepend`, `cas`, `ms`.
    Store(Store<'a>),
    /// Remove an item or mark it as old: `delete`, `md`.
    Delete(Delete<'a>),
    /// Count up or down: `incr`, `decr`, `ma`.
    Arithmetic(Arithmetic<'a>),
    /// Change when an item ends: `touch`.
    Touch(Touch<'a>),
    /// Say what is known about an item, without its being read: `me`.
    Inspect {
        /// Which item.
        key: &'a [u8],
    },
    /// Remove all that is there, now or at a time: `flush_all`.
    Flush {
        /// When, in seconds since 1970; `None` is at once. Another flush replaces this one.
        at_s: Option<u64>,
    },
}

impl<'a> Operation<'a> {
    /// The key that it is about; a flush has none.
    pub fn key(&self) -> Option<&'a [u8]> {
        match self {
            Operation::Get(get) => Some(get.key),
            Operation::Store(store) => Some(store.key),
            Operation::Delete(delete) => Some(delete.key),
            Operation::Arithmetic(arithmetic) => Some(arithmetic.key),
            Operation::Touch(touch) => Some(touch.key),
            Operation::Inspect { key } => Some(key),
            Operation::Flush { .. } => None,
        }
    }

    /// Whether it is there to change its item. A read that is answered may leave a mark on its own.
    pub fn is_change(&self) -> bool {
        match self {
            Operation::Get(get) => get.touch.is_some(),
            Operation::Inspect { .. } | Operation::Flush { .. } => false,
            Operation::Store(_)
            | Operation::Delete(_)
            | Operation::Arithmetic(_)
            | Operation::Touch(_) => true,
        }
    }
}

/// Reads an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// Which item.
    pub key: &'a [u8],
    /// Whether the answer has the value; without it the cache need not read it.
    pub wants_value: bool,
    /// Whether the item counts as read by this: `mg` with `u` says no.
    pub marks_access: bool,
    /// When the item ends from now on.
    pub touch: Option<Expiry>,
    /// Where there is no item, an empty one is stored that ends then, and the client wins.
    pub vivify: Option<Expiry>,
    /// A client wins if the item ends before this.
    pub recache: Option<Recache>,
    /// The version of an item that is stored by this.
    pub new_cas: Option<u64>,
    /// The part of the value that the answer has; `None` is the whole.
    pub part: Option<Part>,
    /// Whether the answer says how many elements there are.
    pub wants_count: bool,
}

impl<'a> Get<'a> {
    /// A plain `get` of a key.
    pub fn new(key: &'a [u8]) -> Self {
        Get {
            key,
            wants_value: true,
            marks_access: true,
            touch: None,
            vivify: None,
            recache: None,
            new_cas: None,
            part: None,
            wants_count: false,
        }
    }
}

/// When a client is to store a value anew before the item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recache {
    /// One client wins if the item ends before this.
    pub before: Expiry,
    /// Whether that is asked of the item as [`Get::touch`] leaves it: flags work in their order.
    pub is_after_touch: bool,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Whether the item is there or not.
    Set,
    /// Only if it is not there.
    Add,
    /// Only if it is there.
    Replace,
    /// Behind the value that is there.
    Append,
    /// Before the value that is there.
    Prepend,
}

/// Stores a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// Which item.
    pub key: &'a [u8],
    /// The value; empty where [`Store::value_bytes`] says more, and the value comes in parts.
    pub value: &'a [u8],
    /// How long the value is, in bytes.
    pub value_bytes: u64,
    /// How it is stored.
    pub mode: StoreMode,
    /// The client's number.
    pub flags: u32,
    /// When the item ends.
    pub expires: Expiry,
    /// Only if the item's version is this one.
    pub compare: Option<u64>,
    /// With [`Store::compare`]: an older version stores as well, and the item is stale.
    pub invalidate: bool,
    /// Where there is nothing to append to, the value is stored, and ends then.
    pub vivify: Option<Expiry>,
    /// The version that the item gets; never 0.
    pub new_cas: Option<u64>,
    /// Where the value is written in the one that is there; `None` replaces it or joins the two.
    pub place: Option<Place>,
    /// How the value is divided. What is written into a value or behind it leaves its layout.
    pub layout: Layout,
    /// The longest value that the item may have after this, in bytes.
    pub value_bytes_max: u64,
}

impl Store<'_> {
    /// Whether the item that is there decides what becomes of this. Where it does not, a cache need
    /// not look for it, and may pass `None` to [`Store::decide`].
    ///
    /// ```
    /// # use memcached::Store;
    /// fn found(store: &Store<'_>, look: impl Fn(&[u8]) -> Option<u64>) -> Option<u64> {
    ///     if store.needs_item() { look(store.key) } else { None }
    /// }
    /// ```
    pub fn needs_item(&self) -> bool {
        self.mode != StoreMode::Set || self.compare.is_some() || self.place.is_some()
    }
}

/// Removes an item, or marks it as old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// Which item.
    pub key: &'a [u8],
    /// Only if the item's version is this one.
    pub compare: Option<u64>,
    /// The item stays and is stale: the next client wins, others may go on using it.
    pub invalidate: bool,
    /// The item stays, without its value and its client's flags.
    pub removes_value: bool,
    /// When an item that stays ends.
    pub expires: Option<Expiry>,
    /// The client's number of an item that loses its value.
    pub flags: u32,
    /// The version of an item that stays.
    pub new_cas: Option<u64>,
}

impl<'a> Delete<'a> {
    /// A plain `delete` of a key.
    pub fn new(key: &'a [u8]) -> Self {
        Delete {
            key,
            compare: None,
            invalidate: false,
            removes_value: false,
            expires: None,
            flags: 0,
            new_cas: None,
        }
    }
}

/// Counts an item up or down. Its value is a number in decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic<'a> {
    /// Which item.
    pub key: &'a [u8],
    /// Down stops at 0; up begins again behind the largest number.
    pub is_down: bool,
    /// By how much.
    pub delta: u64,
    /// Only if the item's version is this one.
    pub compare: Option<u64>,
    /// Where there is no item, [`Arithmetic::initial`] is stored, and ends then.
    pub vivify: Option<Expiry>,
    /// The number of an item that is made by this.
    pub initial: u64,
    /// When the item ends from now on.
    pub touch: Option<Expiry>,
    /// The version that the item gets; never 0.
    pub new_cas: Option<u64>,
}

/// Changes when an item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch<'a> {
    /// Which item.
    pub key: &'a [u8],
    /// When it ends.
    pub expires: Expiry,
}
