//! The reader's half of a connection: requests in, to the engine or straight to their answers.
//!
//! What ends at once is answered here: writes that the write buffer took, short reads of what is in
//! memory, what needs nothing done. Before this thread waits for anything, what was answered is
//! sent ([`Reader::send_answers`]).
//!
//! Nothing is taken from the engine before it is needed: capacity of the connection first, then
//! credits or memory, then the payload, straight into the buffer that the engine keeps. A writer
//! whose volume holds it up for its quota waits for that before it takes credits.
//!
//! Behind each wait this thread looks whether the client is still there. For one that has given the
//! connection up nothing more is carried out: what was not answered it may send again over another
//! connection, and more behind it, and what is carried out late would undo that.

use std::sync::Arc;
use std::time::Duration;

use engine::{Client, Done, OpenVolume, Permit, Reply};

use crate::connection::Connection;
use crate::hangup::Hangup;
use crate::request::{Operation, Request};
use crate::transport::{Reader, Transport};

/// A read up to this length does not wait for memory that others hold, if it is alone: clients that
/// do not take their replies hold it for as long as they like. Each connection may take so much and
/// as much again beyond what is meant for reads.
const OWN_READ_BYTES_MAX: u32 = 128 << 10;
/// How often a writer at its volume's quota looks whether it may go on.
pub(crate) const QUOTA_PAUSE: Duration = Duration::from_millis(50);

/// Requests of one connection to one volume, from the reader's end.
pub struct Admission<'a, T: Transport> {
    pub(crate) client: &'a Client,
    pub(crate) volume: OpenVolume,
    pub(crate) connection: Arc<Connection<T>>,
    /// Requests without bytes of reads that may begin: as many as this thread has seen to fit and
    /// not begun since. Others only ever make it more.
    spare_requests: usize,
}

impl<'a, T: Transport> Admission<'a, T> {
    /// The volume is open until this is dropped.
    #[must_use]
    pub fn new(client: &'a Client, volume: OpenVolume, connection: Arc<Connection<T>>) -> Self {
        Self { client, volume, connection, spare_requests: 0 }
    }

    /// The volume.
    pub fn volume(&self) -> &OpenVolume {
        &self.volume
    }

    /// What is shared with the writer.
    pub fn connection(&self) -> &Arc<Connection<T>> {
        &self.connection
    }

    /// Carries out a request, or has the engine do so: its answer goes to `reader`, or its outcome
    /// to the writer. The engine checks its range, and a protocol has checked it before
    /// ([`check_range`](crate::check_range)).
    ///
    /// # Errors
    /// [`Hangup`] when the client has gone, or the connection was aborted, while this waited.
    pub fn serve(
        &mut self,
        reader: &mut impl Reader<T>,
        request: Request<T::Tag>,
    ) -> Result<(), Hangup> {
        match request.operation {
            Operation::Flush => {
                self.wait_for_capacity(reader, &request)?;
                let done = self.begin(request);
                self.client.flush(done);
            }
            Operation::Prefetch => reader.answer_done(&request),
            _ if request.length_bytes == 0 => reader.answer_done(&request),
            Operation::Read => self.read(reader, &request)?,
            Operation::Write => self.write(reader, request)?,
            _ => self.ask(reader, request)?,
        }
        Ok(())
    }

    fn read(
        &mut self,
        reader: &mut impl Reader<T>,
        request: &Request<T::Tag>,
    ) -> Result<(), Hangup> {
        let Request { offset_bytes, length_bytes, .. } = *request;
        match self.client.read_held(&self.volume, offset_bytes, length_bytes) {
            Some(pieces) => reader.answer_read(request, &pieces),
            None => {
                self.wait_for_capacity(reader, request)?;
                let memory = self.read_memory(reader, length_bytes)?;
                let done = self.begin(*request);
                self.client.read_in(memory, &self.volume, offset_bytes, length_bytes, done);
            }
        }
        Ok(())
    }

    fn read_memory(
        &self,
        reader: &mut impl Reader<T>,
        length_bytes: u32,
    ) -> Result<Permit, Hangup> {
        if let Some(memory) = self.client.try_read_memory(length_bytes) {
            return Ok(memory);
        }
        let is_short = length_bytes <= OWN_READ_BYTES_MAX;
        if is_short && !self.connection.has_reads_in_flight() {
            return Ok(self.client.own_memory());
        }
        reader.send_answers()?;
        if is_short {
            // A client may have the last reply before the writer has counted it: it waits for that,
            // and not for memory that others keep.
            self.wait(reader, || self.connection.wait_for_reads())?;
            let memory = self.client.try_read_memory(length_bytes);
            return Ok(memory.unwrap_or_else(|| self.client.own_memory()));
        }
        self.wait(reader, || Ok(self.client.read_memory(length_bytes)))
    }

    /// What the writer will answer.
    fn ask(&mut self, reader: &mut impl Reader<T>, request: Request<T::Tag>) -> Result<(), Hangup> {
        self.wait_for_capacity(reader, &request)?;
        let Request { operation, offset_bytes, length_bytes, durable, .. } = request;
        let wide = u64::from(length_bytes);
        match operation {
            Operation::Extents { extents_max } => {
                let done = self.begin(request);
                self.client.extents(&self.volume, offset_bytes, wide, extents_max, done);
            }
            Operation::Trim => {
                let done = self.begin(request);
                self.client.trim(&self.volume, offset_bytes, wide, durable, done);
            }
            _ => {
                let done = self.begin(request);
                self.client.write_zeroes(&self.volume, offset_bytes, wide, durable, done);
            }
        }
        Ok(())
    }

    /// Puts a request in flight that [`Admission::wait_for_capacity`] has let pass.
    pub(crate) fn begin<A: Into<Reply>>(&mut self, request: Request<T::Tag>) -> Done<A> {
        self.spare_requests = self.spare_requests.saturating_sub(1);
        self.connection.begin(request)
    }

    /// A request that ended with the call which began it.
    pub(crate) fn retire(&mut self, tag: u64) {
        self.connection.retire(tag);
        self.spare_requests += 1;
    }

    pub(crate) fn wait_for_capacity(
        &mut self,
        reader: &mut impl Reader<T>,
        request: &Request<T::Tag>,
    ) -> Result<(), Hangup> {
        if self.spare_requests > 0 && request.read_bytes() == 0 {
            return Ok(());
        }
        self.spare_requests = self.connection.spare_requests_for(request);
        if self.spare_requests > 0 {
            return Ok(());
        }
        reader.send_answers()?;
        self.wait(reader, || self.connection.wait_for_capacity(request))
    }

    /// Waits for what is no word of the client, and then looks for it.
    pub(crate) fn wait<V>(
        &self,
        reader: &impl Reader<T>,
        wait: impl FnOnce() -> Result<V, Hangup>,
    ) -> Result<V, Hangup> {
        self.connection.set_unread(Some(reader.unread()));
        let waited = wait();
        self.connection.set_unread(None);
        if reader.has_given_up() { Err(Hangup) } else { waited }
    }
}
