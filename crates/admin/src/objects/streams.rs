//! The bytes of objects: in this process, at the server's end of a connection, and at the caller's.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use buckets::Buckets;
use rustix::net::{RecvFlags, recv};

use super::carry_out::{begin_put, finish_put, open_object, read_object, shown, write_object};
use super::frames::{FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameHead};
use super::verbs::{GetObject, ObjectPut, ObjectShown, PutBegun, PutObject};
use crate::client::Client;
use crate::error::{CallError, ControlError};
use crate::json::{FromJson, ToJson};
use crate::line;
use crate::local::Local;
use crate::outcome::Outcome;
use crate::protocol::RequestLine;
use crate::spoken::{Service, Spoken};

/// How often a peer may let the time of a transfer pass in which not a byte comes or goes: about as
/// long as a connection may be idle.
const STALLS_MAX: u32 = 1440;

/// Takes an object.
pub trait ObjectSink {
    /// What it fails with; what the bucket or the connection fails with becomes one.
    type Error: From<ControlError>;

    /// The object is there, and is this; its bytes follow.
    ///
    /// # Errors
    /// Its own: nothing more is read.
    fn begin(&mut self, object: &ObjectShown) -> Result<(), Self::Error>;

    /// Takes the next bytes.
    ///
    /// # Errors
    /// Its own: nothing more is read.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// Gives the bytes of an object.
pub trait ObjectSource {
    /// What it fails with; what the bucket or the connection fails with becomes one.
    type Error: From<ControlError>;

    /// Fills the front of `out`; none: the object ends.
    ///
    /// # Errors
    /// Its own: nothing is put.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Self::Error>;
}

impl Local {
    /// Puts an object; durable when this returns, if the wish says so.
    ///
    /// # Errors
    /// Those of the source, and [`ControlError`] of the bucket: nothing has changed.
    pub fn put_object<S: ObjectSource>(
        &self,
        wish: &PutObject,
        source: &mut S,
    ) -> Result<ObjectPut, S::Error> {
        let mut writer = begin_put(&self.buckets()?, wish)?;
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        loop {
            match source.fill(&mut bytes)? {
                0 => return Ok(finish_put(writer, wish)?),
                length => write_object(&mut writer, wish, &bytes[..length])?,
            }
        }
    }

    /// Reads an object into `sink`.
    ///
    /// # Errors
    /// Those of the sink, and [`ControlError`] of the bucket: what the sink has is a part.
    pub fn get_object<S: ObjectSink>(
        &self,
        wish: &GetObject,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        get(&self.buckets()?, wish, sink)
    }
}

fn get<S: ObjectSink>(buckets: &Buckets, wish: &GetObject, sink: &mut S) -> Result<(), S::Error> {
    let mut reader = open_object(buckets, wish)?;
    let object = shown(wish.key.clone(), reader.info());
    sink.begin(&object)?;
    let (mut bytes, mut offset_bytes) = (vec![0; FRAME_BYTES_MAX], 0);
    loop {
        match read_object(&mut reader, wish, offset_bytes, &mut bytes)? {
            0 => return Ok(()),
            length => {
                sink.take(&bytes[..length])?;
                offset_bytes += length as u64;
            }
        }
    }
}

/// Serves a line that asks for a stream; false when it does not, or the service has no buckets.
///
/// # Errors
/// [`CallError`] when the connection fails.
pub(crate) fn serve_stream(
    service: &impl Service,
    asked: &RequestLine,
    reader: &mut impl BufRead,
    writer: &mut impl Write,
) -> Result<bool, CallError> {
    let Some(buckets) = service.buckets() else { return Ok(false) };
    if asked.verb == PutObject::NAME
        && let Ok(wish) = PutObject::from_json(asked.request.clone())
    {
        serve_put(buckets, &wish, reader, writer).map(|()| true)
    } else if asked.verb == GetObject::NAME
        && let Ok(wish) = GetObject::from_json(asked.request.clone())
    {
        serve_get(buckets, &wish, writer).map(|()| true)
    } else {
        Ok(false) // It is answered as every line.
    }
}

fn say<A: ToJson>(to: &mut impl Write, outcome: Result<A, ControlError>) -> Result<(), CallError> {
    line::send(to, &Outcome::of(outcome))
}

fn serve_put(
    buckets: Result<Buckets, ControlError>,
    wish: &PutObject,
    reader: &mut impl BufRead,
    writer: &mut impl Write,
) -> Result<(), CallError> {
    let mut put = match buckets.and_then(|buckets| begin_put(&buckets, wish)) {
        Ok(put) => Some(put),
        Err(error) => return say::<PutBegun>(writer, Err(error)),
    };
    say(writer, Ok(PutBegun {}))?;
    let mut bytes = Vec::new();
    loop {
        match receive_frame(reader, &mut bytes)? {
            FrameHead::Bytes(_) => {
                let Some(written) = put.as_mut().map(|put| write_object(put, wish, &bytes)) else {
                    continue; // The sender has not heard yet that it failed.
                };
                if let Err(error) = written {
                    put = None;
                    say::<ObjectPut>(writer, Err(error))?;
                }
            }
            FrameHead::End => match put {
                Some(put) => return say(writer, finish_put(put, wish)),
                None => return Ok(()),
            },
            // Its sender gives it up; nothing is put.
            FrameHead::Failed => return Err(CallError::Closed),
        }
    }
}

/// Sends an object over a connection.
struct Sending<'a, W> {
    writer: &'a mut W,
    has_begun: bool,
}

impl<W: Write> ObjectSink for Sending<'_, W> {
    type Error = ControlError;

    fn begin(&mut self, object: &ObjectShown) -> Result<(), ControlError> {
        self.has_begun = true;
        Ok(say(self.writer, Ok(object))?)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        Ok(send_bytes(self.writer, bytes)?)
    }
}

fn serve_get(
    buckets: Result<Buckets, ControlError>,
    wish: &GetObject,
    writer: &mut impl Write,
) -> Result<(), CallError> {
    let mut sending = Sending { writer, has_begun: false };
    let sent = buckets.and_then(|buckets| get(&buckets, wish, &mut sending));
    let Sending { writer, has_begun } = sending;
    match sent {
        Ok(()) => send_all(writer, &FrameHead::End.encode()),
        Err(ControlError::Call(error)) => Err(error),
        Err(error) => {
            if has_begun {
                send_all(writer, &FrameHead::Failed.encode())?;
            }
            say::<()>(writer, Err(error))
        }
    }
}

impl Client {
    /// Puts an object; durable when this returns, if the wish says so. When the source fails the
    /// connection is closed, and the server puts nothing.
    ///
    /// # Errors
    /// Those of the source, and [`ControlError`] of the server: nothing has changed, unless the
    /// connection failed behind the last byte.
    pub fn put_object<S: ObjectSource>(
        &mut self,
        wish: PutObject,
        source: &mut S,
    ) -> Result<ObjectPut, S::Error> {
        let PutBegun {} = crate::spoken::Control::ask(self, wish)?;
        let sent = self.send_object(source);
        if sent.is_err() {
            self.failed = true;
            // The server sees the end of the connection either way.
            let _ = self.writer.shutdown(Shutdown::Both);
        }
        sent?;
        let received = line::receive_at_last(&mut self.reader, line::RESPONSE_BYTES_MAX);
        let outcome: Result<Outcome<ObjectPut>, CallError> =
            received.and_then(|outcome| outcome.ok_or(CallError::Closed));
        let outcome = outcome.inspect_err(|_| self.failed = true).map_err(ControlError::from)?;
        Ok(outcome.into_result()?)
    }

    fn send_object<S: ObjectSource>(&mut self, source: &mut S) -> Result<(), S::Error> {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let sent = |sent: Result<(), CallError>| sent.map_err(ControlError::from);
        // A server that has failed says so before the object has ended.
        while !has_spoken(&self.reader) {
            let length = source.fill(&mut bytes)?;
            if length == 0 {
                break;
            }
            sent(send_bytes(&mut self.writer, &bytes[..length]))?;
        }
        Ok(sent(send_all(&mut self.writer, &FrameHead::End.encode()))?)
    }
}

impl<R: BufRead, W: Write> Client<R, W> {
    /// Reads an object into `sink`. When the sink fails the connection is not used again.
    ///
    /// # Errors
    /// Those of the sink, and [`ControlError`] of the server: what the sink has is a part.
    pub fn get_object<S: ObjectSink>(
        &mut self,
        wish: GetObject,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let object = crate::spoken::Control::ask(self, wish)?;
        let taken = sink.begin(&object).and_then(|()| self.take_object(sink));
        match taken {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => Err(refused.into()),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        }
    }

    /// Takes all frames; some error: the server could not read all of the object.
    fn take_object<S: ObjectSink>(
        &mut self,
        sink: &mut S,
    ) -> Result<Option<ControlError>, S::Error> {
        let mut bytes = Vec::new();
        loop {
            let head = receive_frame(&mut self.reader, &mut bytes).map_err(ControlError::from)?;
            match head {
                FrameHead::Bytes(_) => sink.take(&bytes)?,
                FrameHead::End => return Ok(None),
                FrameHead::Failed => {
                    let received = line::receive(&mut self.reader, line::RESPONSE_BYTES_MAX);
                    let outcome: Outcome<()> = received
                        .and_then(|outcome| outcome.ok_or(CallError::Closed))
                        .map_err(ControlError::from)?;
                    let refused = outcome.into_result().err();
                    return Ok(Some(refused.unwrap_or_else(|| CallError::Closed.into())));
                }
            }
        }
    }
}

/// Whether something has come that nobody has read yet.
fn has_spoken(reader: &BufReader<UnixStream>) -> bool {
    let mut byte = [0; 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !reader.buffer().is_empty() || recv(reader.get_ref(), &mut byte[..], flags).is_ok()
}

fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> Result<(), CallError> {
    for piece in bytes.chunks(FRAME_BYTES_MAX) {
        send_all(to, &FrameHead::Bytes(piece.len()).encode())?;
        send_all(to, piece)?;
    }
    Ok(())
}

/// Sends everything, however long the other side takes nothing: who reads an object may pause.
fn send_all(to: &mut impl Write, mut bytes: &[u8]) -> Result<(), CallError> {
    let mut stalls = 0;
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(CallError::Closed),
            Ok(length) => {
                bytes = &bytes[length..];
                stalls = 0;
            }
            Err(error) if is_stall(&error) && stalls < STALLS_MAX => stalls += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads a frame; its bytes take the place of what `bytes` holds.
fn receive_frame(from: &mut impl Read, bytes: &mut Vec<u8>) -> Result<FrameHead, CallError> {
    let mut head = [0; FRAME_HEAD_BYTES];
    receive_all(from, &mut head)?;
    let head = FrameHead::decode(head)?;
    bytes.clear();
    if let FrameHead::Bytes(length) = head {
        bytes.resize(length, 0);
        receive_all(from, bytes)?;
    }
    Ok(head)
}

fn receive_all(from: &mut impl Read, mut out: &mut [u8]) -> Result<(), CallError> {
    let mut stalls = 0;
    while !out.is_empty() {
        match from.read(out) {
            Ok(0) => return Err(CallError::Closed),
            Ok(length) => {
                out = &mut out[length..];
                stalls = 0;
            }
            Err(error) if is_stall(&error) && stalls < STALLS_MAX => stalls += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_stall(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
