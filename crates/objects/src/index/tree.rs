//! The map on disk: redb over [`Pages`], and what becomes of its handle when something fails.
//!
//! ```text
//! none ──first use──> open ──commit written out──> open
//!   ^                   └──an error, or a panic──┐
//!   └────────────────pages discarded─────────────┘
//! ```
//!
//! redb refuses everything after its first error, and a handle that has panicked holds anything. So
//! a handle is thrown away after either, together with what it had not written out, and the next
//! use opens the last commit. [`Tree::commit`] returns when the volume holds the commit.
//!
//! Invariant: at most one handle has pages that are not discarded. Who still reads with another one
//! gets errors from its pages, and asks again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use format::objects::log::Place;
use redb::{Builder, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use store::{RequestError, ReservedFor};

use crate::index::IndexError;
use crate::index::locks::lock;
use crate::index::memory::{NewValue, TableKey};
use crate::index::pages::{Pages, PagesOfRedb, is_damage};
use crate::volume::BucketVolume;

/// Number of a table and key, with its value.
const ENTRIES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new(ENTRIES_NAME);
pub(crate) const ENTRIES_NAME: &str = "entries";
/// Under [`MERGED`], where the log goes on.
const LOG: TableDefinition<'static, &str, &[u8]> = TableDefinition::new(LOG_NAME);
pub(crate) const LOG_NAME: &str = "log";
pub(crate) const MERGED: &str = "merged";

/// How often a request is tried again that met a handle which another one had broken.
const TRIES_MAX: usize = 4;

/// Why a request to redb failed.
enum Failure {
    /// The handle had been broken before.
    Stale,
    /// This request has met something.
    Index(IndexError),
}

impl Failure {
    fn told(self) -> IndexError {
        match self {
            Self::Stale => IndexError::Damaged("its pages cannot be read".to_owned()),
            Self::Index(error) => error,
        }
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        let damaged = |error: &dyn std::fmt::Display| {
            Self::Index(IndexError::Damaged(format!("its pages: {error}")))
        };
        match error {
            redb::Error::PreviousIo
            | redb::Error::DatabaseClosed
            | redb::Error::LockPoisoned(_) => Self::Stale,
            redb::Error::Io(error) => match error.downcast::<RequestError>() {
                Ok(error) if is_damage(&error) => damaged(&error),
                Ok(error) => Self::Index(error.into()),
                Err(error) => damaged(&error),
            },
            error => damaged(&error),
        }
    }
}

/// What redb says, whatever it does.
fn guarded<T>(call: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Ok(result?),
        Err(_) => Err(Failure::Index(IndexError::Damaged("its pages hold nonsense".to_owned()))),
    }
}

/// One opening of redb.
struct Handle {
    /// There until it is dropped.
    database: Option<Database>,
    pages: Arc<Pages>,
}

impl Handle {
    fn open(pages: Arc<Pages>, cache_bytes: usize) -> Result<Self, Failure> {
        let backend = PagesOfRedb(Arc::clone(&pages));
        let database = guarded(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(cache_bytes);
            Ok(builder.create_with_backend(backend)?)
        });
        if database.is_err() {
            pages.discard();
        }
        Ok(Self { database: Some(database?), pages })
    }

    fn database(&self) -> Result<&Database, redb::Error> {
        self.database.as_ref().ok_or(redb::Error::DatabaseClosed)
    }

    fn commit(
        &self,
        changes: &mut dyn Iterator<Item = (&TableKey, &NewValue)>,
        merged: Option<Place>,
        reserved_for: ReservedFor,
    ) -> Result<u64, Failure> {
        guarded(|| commit(self.database()?, changes, merged))?;
        let written = self.pages.write_out(reserved_for).map_err(IndexError::from)?;
        written.ok_or(Failure::Stale)
    }
}

impl Drop for Handle {
    /// What it has not written out does not happen.
    fn drop(&mut self) {
        self.pages.discard();
        let database = self.database.take();
        // It wants to close properly, which is refused, and a broken one may panic.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(database)));
    }
}

/// The map on disk.
pub(crate) struct Tree {
    volume: Arc<dyn BucketVolume>,
    uuid: [u8; 16],
    cache_bytes: usize,
    /// None until it is used, and after something has failed.
    handle: Mutex<Option<Arc<Handle>>>,
}

impl Tree {
    /// The one that the volume holds; it is opened when it is first used.
    pub(crate) fn new(volume: Arc<dyn BucketVolume>, uuid: [u8; 16], cache_bytes: usize) -> Self {
        Self { volume, uuid, cache_bytes, handle: Mutex::new(None) }
    }

    /// Writes an empty one.
    pub(crate) fn create(&self) -> Result<(), IndexError> {
        let pages = Arc::new(Pages::new(Arc::clone(&self.volume), self.uuid));
        let made = Handle::open(pages, self.cache_bytes).and_then(|handle| {
            handle.commit(&mut std::iter::empty(), Some(Place::default()), ReservedFor::Writes)
        });
        made.map(|_| ()).map_err(Failure::told)
    }

    /// What is committed now.
    pub(crate) fn view(&self) -> Result<View<'_>, IndexError> {
        self.with_handle(|handle| {
            let entries = guarded(|| Ok(handle.database()?.begin_read()?.open_table(ENTRIES)?))?;
            Ok(View { tree: self, handle: Arc::clone(handle), entries })
        })
    }

    /// Where the log goes on that is not in here.
    pub(crate) fn merged(&self) -> Result<Place, IndexError> {
        self.with_handle(|handle| {
            let place = guarded(|| merged_in(handle.database()?))?;
            let error = || IndexError::Damaged("it does not say where its log goes on".to_owned());
            Ok(place.ok_or_else(error)?)
        })
    }

    /// Makes `changes`, and says where the log goes on if all before that are in; returns how many
    /// chunks were written. All is on the volume, or nothing has happened.
    pub(crate) fn commit(
        &self,
        changes: &[(&TableKey, &NewValue)],
        merged: Option<Place>,
        reserved_for: ReservedFor,
    ) -> Result<u64, IndexError> {
        self.with_handle(|handle| handle.commit(&mut changes.iter().copied(), merged, reserved_for))
    }

    /// Verifies every page that is named, and counts the entries; `look` sees each of them. The
    /// handle is one of its own.
    pub(crate) fn verify(
        &self,
        mut look: impl FnMut(&[u8], &[u8]),
    ) -> Result<(bool, Arc<Pages>), IndexError> {
        let pages = Arc::new(Pages::open(Arc::clone(&self.volume), self.uuid)?);
        let verified = Handle::open(Arc::clone(&pages), self.cache_bytes).and_then(|mut handle| {
            guarded(|| {
                let Some(database) = &mut handle.database else { return Ok(false) };
                let sound = database.check_integrity()?;
                for entry in database.begin_read()?.open_table(ENTRIES)?.iter()? {
                    let (key, value) = entry?;
                    look(key.value(), value.value());
                }
                Ok(sound)
            })
        });
        verified.map(|sound| (sound, pages)).map_err(Failure::told)
    }

    /// Calls `call` with the handle, and with a new one where that one had been broken; breaks it
    /// where the call fails.
    fn with_handle<T>(
        &self,
        call: impl Fn(&Arc<Handle>) -> Result<T, Failure>,
    ) -> Result<T, IndexError> {
        for _ in 0..TRIES_MAX {
            let handle = self.open_handle()?;
            match call(&handle) {
                Ok(done) => return Ok(done),
                Err(failure) => {
                    self.discard(&handle);
                    if let Failure::Index(error) = failure {
                        return Err(error);
                    }
                }
            }
        }
        Err(Failure::Stale.told())
    }

    fn open_handle(&self) -> Result<Arc<Handle>, IndexError> {
        let mut slot = lock(&self.handle);
        if let Some(handle) = &*slot {
            return Ok(Arc::clone(handle));
        }
        let pages = Arc::new(Pages::open(Arc::clone(&self.volume), self.uuid)?);
        let handle = Handle::open(pages, self.cache_bytes).map_err(Failure::told)?;
        let handle = Arc::new(handle);
        *slot = Some(Arc::clone(&handle));
        Ok(handle)
    }

    /// Nobody uses this handle any more.
    fn discard(&self, handle: &Arc<Handle>) {
        handle.pages.discard();
        let mut slot = lock(&self.handle);
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, handle)) {
            *slot = None;
        }
    }
}

/// What was committed at one moment.
pub(crate) struct View<'a> {
    tree: &'a Tree,
    handle: Arc<Handle>,
    entries: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

/// What a request to a view comes to; none: ask again with a new view.
pub(crate) type Viewed<T> = Result<Option<T>, IndexError>;

impl View<'_> {
    pub(crate) fn get(&self, key: &[u8]) -> Viewed<Option<Vec<u8>>> {
        self.ask(|entries| Ok(entries.get(key)?.map(|value| value.value().to_vec())))
    }

    /// Calls `take` with the entries from `from` up to `until` in their order, as long as it says
    /// so.
    pub(crate) fn each(
        &self,
        from: &[u8],
        until: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Viewed<()> {
        self.ask(|entries| {
            for entry in entries.range::<&[u8]>(from..until)? {
                let (key, value) = entry?;
                if !take(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn ask<T>(
        &self,
        call: impl FnOnce(&ReadOnlyTable<&'static [u8], &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Viewed<T> {
        match guarded(|| call(&self.entries)) {
            Ok(found) => Ok(Some(found)),
            Err(failure) => {
                self.tree.discard(&self.handle);
                match failure {
                    Failure::Stale => Ok(None),
                    Failure::Index(error) => Err(error),
                }
            }
        }
    }
}

/// One transaction of redb.
fn commit(
    database: &Database,
    changes: &mut dyn Iterator<Item = (&TableKey, &NewValue)>,
    merged: Option<Place>,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    // Two phases, and the allocator's state with them: an opening after a kill looks at no page.
    transaction.set_quick_repair(true);
    {
        let mut entries = transaction.open_table(ENTRIES)?;
        for (key, value) in changes {
            match value {
                Some(value) => entries.insert(&**key, &**value)?,
                None => entries.remove(&**key)?,
            };
        }
    }
    if let Some(place) = merged {
        transaction.open_table(LOG)?.insert(MERGED, &place.encode()[..])?;
    }
    transaction.commit()?;
    Ok(())
}

fn merged_in(database: &Database) -> Result<Option<Place>, redb::Error> {
    let log = database.begin_read()?.open_table(LOG)?;
    let Some(place) = log.get(MERGED)? else { return Ok(None) };
    Ok(Place::decode(place.value()).ok())
}
