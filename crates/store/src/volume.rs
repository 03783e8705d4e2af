//! One volume of a running store, with the client that reaches it.

use std::sync::Arc;

use engine::{Client, OpenVolume, RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

/// An open volume; cheap to clone, for any number of threads, and open until its last clone is
/// dropped. Offsets and lengths are in bytes, any; requests of whole chunks cost least.
///
/// Each request has a blocking form, for a thread to spare, and one that returns a future, for any
/// executor ([`crate::futures`] says what a poll and a drop do):
///
/// ```
/// # use std::pin::pin;
/// # use std::sync::Arc;
/// # use std::task::{Context, Poll, Wake, Waker};
/// # use store::{CreateOptions, Options, RequestError, Store, Volume};
/// # struct Unpark(std::thread::Thread);
/// # impl Wake for Unpark {
/// #     fn wake(self: Arc<Self>) { self.0.unpark(); }
/// # }
/// # fn block_on<T>(future: impl Future<Output = T>) -> T {
/// #     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
/// #     let (mut future, mut cx) = (pin!(future), Context::from_waker(&waker));
/// #     loop {
/// #         match future.as_mut().poll(&mut cx) {
/// #             Poll::Ready(value) => return value,
/// #             Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// async fn copy_sector(volume: &Volume) -> Result<(), RequestError> {
///     let bytes = volume.read(0, 512).await?;
///     volume.write(512, bytes, false).await?;
///     volume.flush().await
/// }
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1).unwrap();
/// # let store = Store::open_in_memory(&disk, Options::default()).unwrap();
/// # block_on(copy_sector(&store.create_volume("v", 1 << 20).unwrap())).unwrap();
/// # store.close().unwrap();
/// ```
#[derive(Clone)]
pub struct Volume {
    pub(crate) client: Client,
    pub(crate) open: Arc<OpenVolume>,
}

impl Volume {
    /// The volume that `client` has opened.
    #[must_use]
    pub fn new(client: Client, open: OpenVolume) -> Self {
        Self { client, open: Arc::new(open) }
    }

    /// The way to its engine.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the engine knows it by.
    #[must_use]
    pub fn handle(&self) -> &OpenVolume {
        &self.open
    }

    /// Its size now.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.open.size_bytes()
    }

    /// Whether a range is inside the volume: what is sent in pieces is refused before the first of
    /// them.
    pub(crate) fn check_range(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), RequestError> {
        let size_bytes = self.size_bytes();
        match offset_bytes.checked_add(length_bytes) {
            Some(end_bytes) if end_bytes <= size_bytes => Ok(()),
            _ => Err(RequestError::OutOfRange { offset_bytes, length_bytes, size_bytes }),
        }
    }
}

/// The blocking forms.
///
/// # Errors
/// Each returns the [`RequestError`] of its request; [`RequestError::OutOfRange`] when the range is
/// not inside the volume.
impl Volume {
    /// Writes, and waits for the acknowledgement: a later read sees it, a crash may undo it until
    /// the next flush.
    pub fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> Result<(), RequestError> {
        self.client.write_at(&self.open, offset_bytes, bytes)
    }

    /// Writes as `options` say, and waits for the answer: with [`engine::Durability::Durable`]
    /// until no crash can take it back.
    pub fn write_at_with(
        &self,
        offset_bytes: u64,
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.client.write_at_with(&self.open, offset_bytes, bytes, options)
    }

    /// Writes several ranges in the order in which they are listed: a crash leaves a prefix of the
    /// vector ([`Client::write_vectored`]).
    pub fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.client.write_vectored_at(&self.open, writes, options)
    }

    /// Whether a write of `length_bytes`, whole chunks, would wait for room in the write buffer: a
    /// thread with other work does that first ([`Client::would_wait`]).
    #[must_use]
    pub fn would_wait(&self, length_bytes: usize) -> bool {
        self.client.would_wait(&self.open, length_bytes)
    }

    /// Reserves room for writes, given back when the reservation is dropped
    /// ([`Client::reserve_with`]).
    pub fn reserve_blocking(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.client.reserve(&self.open, room, reserved_for)
    }

    /// As [`Volume::write_vectored_at`], to the volume of `reservation` and with the room that it
    /// holds.
    pub fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.client.write_reserved_at(reservation, writes, options)
    }

    /// Fills `out` with what the volume holds from `offset_bytes` on.
    pub fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.client.read_at(&self.open, offset_bytes, out)
    }

    /// Unmaps whole chunks of the range and zeroes the rest of it.
    pub fn trim_blocking(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.client.trim_blocking(&self.open, offset_bytes, length_bytes)
    }

    /// Maps the chunks of a range of `from` in this volume as well and waits until that is done; no
    /// bytes move. All places are in bytes and whole chunks, and both volumes are of one domain.
    ///
    /// # Errors
    /// Those of [`Client::copy_range`].
    ///
    /// # Examples
    /// ```
    /// # use store::{CreateOptions, Options, Store};
    /// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1).unwrap();
    /// # let store = Store::open_in_memory(&disk, Options::default()).unwrap();
    /// let object = store.create_volume("object", 1 << 30)?;
    /// let part = store.create_volume("part", 1 << 30)?;
    /// part.write_at(0, &[7; 1 << 20])?;
    /// object.copy_from_blocking(64 << 20, &part, 0, 1 << 20, true)?;
    /// # let mut bytes = [0; 512];
    /// # object.read_at(65 << 20, &mut bytes)?;
    /// # assert_eq!(bytes, [0; 512]);
    /// # object.read_at((65 << 20) - 512, &mut bytes)?;
    /// # assert_eq!(bytes, [7; 512]);
    /// # drop((object, part));
    /// # store.close().unwrap();
    /// # Ok::<(), store::RequestError>(())
    /// ```
    pub fn copy_from_blocking(
        &self,
        offset_bytes: u64,
        from: &Self,
        from_bytes: u64,
        length_bytes: u64,
        durable: bool,
    ) -> Result<(), RequestError> {
        let (to, from) = (&self.open, &from.open);
        self.client.copy_range_blocking(from, from_bytes, to, offset_bytes, length_bytes, durable)
    }

    /// Makes durable everything that was acknowledged before, on every volume of the store.
    pub fn flush_blocking(&self) -> Result<(), RequestError> {
        self.client.flush_blocking()
    }
}
