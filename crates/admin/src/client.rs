//! The caller's end: one connection, one request at a time.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::{CallError, ConnectError, ControlError};
use crate::json::Json;
use crate::line::{self, RESPONSE_BYTES_MAX};
use crate::outcome::Outcome;
use crate::protocol::{DataOpened, Hello, OpenData, PROTOCOL_VERSION, RequestLine};
use crate::socket::{self, SOCKET_NAME};
use crate::spoken::{Control, Spoken};

/// A server that says nothing for so long is taken for hung, unless what it was asked for may take
/// longer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection to the server of a store: over its control socket, unless told otherwise.
#[derive(Debug)]
pub struct Client<R = BufReader<UnixStream>, W = UnixStream> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    /// A call has failed: its answer may still come, and would be taken for the next one's.
    pub(crate) failed: bool,
}

impl Client {
    /// Connects to the server of the store in `directory`; `None` when nobody does.
    ///
    /// # Errors
    /// [`ConnectError`] when a server is there but cannot be spoken to.
    pub fn connect(directory: &Path) -> Result<Option<Self>, ConnectError> {
        let socket_error =
            |source| ConnectError::Socket { path: directory.join(SOCKET_NAME), source };
        let Some(stream) = socket::connect(directory).map_err(socket_error)? else {
            return Ok(None);
        };
        if let Some(uid) = socket::strange_peer(&stream).map_err(socket_error)? {
            return Err(ConnectError::Stranger { path: directory.join(SOCKET_NAME), uid });
        }
        let (reader, writer) = ends_of(stream).map_err(socket_error)?;
        Self::over(reader, writer).map(Some)
    }

    /// Turns the connection into one of NBD for `who`: the server's greeting is what comes next,
    /// and some of it may have come already.
    ///
    /// # Errors
    /// [`ControlError`] when the server gives out no bytes, or the connection fails.
    pub fn open_data(mut self, who: String) -> Result<BufReader<UnixStream>, ControlError> {
        let DataOpened {} = self.ask(OpenData { who })?;
        Ok(self.reader)
    }
}

fn ends_of(stream: UnixStream) -> std::io::Result<(BufReader<UnixStream>, UnixStream)> {
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
    let writer = stream.try_clone()?;
    Ok((BufReader::new(stream), writer))
}

impl<R: BufRead, W: Write> Client<R, W> {
    /// Speaks to the server that writes what `reader` reads; takes its greeting.
    ///
    /// # Errors
    /// [`ConnectError`] when the greeting is none of this release.
    pub fn over(reader: R, writer: W) -> Result<Self, ConnectError> {
        let mut client = Self { reader, writer, failed: false };
        client.greet()?;
        Ok(client)
    }

    fn greet(&mut self) -> Result<(), ConnectError> {
        let hello = line::receive(&mut self.reader, RESPONSE_BYTES_MAX);
        let hello: Hello = hello
            .and_then(|hello| hello.ok_or(CallError::Closed))
            .map_err(|source| ConnectError::NoGreeting { source })?;
        if hello.protocol != PROTOCOL_VERSION {
            return Err(ConnectError::OtherProtocol {
                server_version: hello.tamis,
                server_protocol: hello.protocol,
            });
        }
        if hello.busy { Err(ConnectError::Busy) } else { Ok(()) }
    }

    fn exchange<V: Spoken>(&mut self, verb: &V) -> Result<Outcome<V::Answer>, CallError> {
        line::send(
            &mut self.writer,
            &RequestLine { verb: V::NAME.to_owned(), request: Json(verb) },
        )?;
        let outcome = match V::IS_ANSWERED_SOON {
            true => line::receive(&mut self.reader, RESPONSE_BYTES_MAX),
            // A server that ends closes the connection.
            false => line::receive_at_last(&mut self.reader, RESPONSE_BYTES_MAX),
        };
        outcome?.ok_or(CallError::Closed)
    }
}

impl<R: BufRead, W: Write> Control for Client<R, W> {
    /// After an error of the connection it is not used again.
    fn ask<V: Spoken>(&mut self, verb: V) -> Result<V::Answer, ControlError> {
        if self.failed {
            return Err(CallError::Closed.into());
        }
        self.exchange(&verb).inspect_err(|_| self.failed = true)?.into_result()
    }
}
