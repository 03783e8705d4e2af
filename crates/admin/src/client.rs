//! The caller's end: one connection, one request at a time.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use engine::{
    Address, CollectRequest, CollectStep, Dedup, DeleteRequest, DifferenceRequest, DifferenceStep,
    Explanation, NewVolume, ScrubRequest, ScrubStep, SnapshotRequest, Stats, VolumeInfo,
    VolumeKind, WeightRequest, WeightStep,
};
use format::units::Compression;

use crate::error::{CallError, ConnectError};
use crate::line::{self, RESPONSE_BYTES_MAX};
use crate::protocol::{
    CompressionSetting, Grown, GrowthWish, Hello, PROTOCOL_VERSION, Request, Response, Status,
};
use crate::socket::{self, SOCKET_NAME};

/// A server that says nothing for so long is taken for hung, unless what it was asked for may take
/// longer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// Volumes that are asked for at once, and snapshots: whatever they are called, a line holds them.
pub(crate) const VOLUMES_PER_LINE_MAX: u32 = 4096;

/// A connection to the server of a store: over its control socket, unless told otherwise.
#[derive(Debug)]
pub struct Client<R = BufReader<UnixStream>, W = UnixStream> {
    reader: R,
    writer: W,
    /// A call has failed: its answer may still come, and would be taken for the next one's.
    failed: bool,
}

impl Client {
    /// Connects to whoever serves the store in `directory`; `None` when nobody does.
    ///
    /// # Errors
    /// [`ConnectError`] when a server is there but cannot be spoken to.
    pub fn connect(directory: &Path) -> Result<Option<Self>, ConnectError> {
        let socket_error =
            |source| ConnectError::Socket { path: directory.join(SOCKET_NAME), source };
        let Some(stream) = socket::connect(directory).map_err(socket_error)? else {
            return Ok(None);
        };
        let (reader, writer) = ends_of(stream).map_err(socket_error)?;
        Self::over(reader, writer).map(Some)
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

    /// Sends one request and waits for its response; a refusal is an error. After any other error
    /// the connection is not used again.
    ///
    /// # Errors
    /// [`CallError::Refused`] in the engine's words, others when the connection failed.
    pub fn call(&mut self, request: &Request) -> Result<Response, CallError> {
        if self.failed {
            return Err(CallError::Closed);
        }
        match self.exchange(request).inspect_err(|_| self.failed = true)? {
            Response::Refused(refusal) if refusal.is_of_an_unknown_request() => {
                Err(CallError::EarlierServer)
            }
            Response::Refused(refusal) => Err(refusal.into()),
            response => Ok(response),
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, CallError> {
        line::send(&mut self.writer, request)?;
        let response = match request.is_answered_soon() {
            true => line::receive(&mut self.reader, RESPONSE_BYTES_MAX),
            // A server that ends closes the connection.
            false => line::receive_at_last(&mut self.reader, RESPONSE_BYTES_MAX),
        };
        response?.ok_or(CallError::Closed)
    }

    fn call_for_volume(&mut self, request: &Request) -> Result<VolumeInfo, CallError> {
        match self.call(request)? {
            Response::Volume { volume } => Ok(volume),
            _ => Err(CallError::WrongResponse),
        }
    }

    fn call_for_nothing(&mut self, request: &Request) -> Result<(), CallError> {
        match self.call(request)? {
            Response::Done => Ok(()),
            _ => Err(CallError::WrongResponse),
        }
    }
}

/// The requests by name.
///
/// # Errors
/// Each returns the [`CallError`] of [`Client::call`].
impl<R: BufRead, W: Write> Client<R, W> {
    /// Who serves the store, and where.
    pub fn status(&mut self) -> Result<Status, CallError> {
        match self.call(&Request::Status)? {
            Response::Status(status) => Ok(status),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// All volumes and snapshots.
    pub fn volumes(&mut self) -> Result<Vec<VolumeInfo>, CallError> {
        let mut all: Vec<VolumeInfo> = Vec::new();
        loop {
            let after = all.last().map(|volume| volume.name.clone());
            let most = Some(VOLUMES_PER_LINE_MAX);
            match self.call(&Request::ListVolumes { after, most })? {
                Response::Volumes { volumes, more } if more && !volumes.is_empty() => {
                    all.extend(volumes);
                }
                Response::Volumes { volumes, .. } => {
                    all.extend(volumes);
                    return Ok(all);
                }
                _ => return Err(CallError::WrongResponse),
            }
        }
    }

    /// Makes a thin volume.
    pub fn create_volume(&mut self, volume: NewVolume) -> Result<VolumeInfo, CallError> {
        let NewVolume { name, size_bytes, read_only, domain, kind } = volume;
        self.call_for_volume(&match (kind, domain) {
            (VolumeKind::Block, None) => Request::CreateVolume { name, size_bytes, read_only },
            (VolumeKind::Block, Some(domain)) => {
                Request::CreateVolumeIn { name, size_bytes, read_only, domain }
            }
            (_, domain) => {
                Request::CreateVolumeOfKind { name, size_bytes, read_only, domain, kind }
            }
        })
    }

    /// Gives a volume another size; a smaller one only if that is meant.
    pub fn resize_volume(
        &mut self,
        name: &str,
        size_bytes: u64,
        may_shrink: bool,
    ) -> Result<VolumeInfo, CallError> {
        let name = name.to_owned();
        self.call_for_volume(&match may_shrink {
            true => Request::ResizeVolume { name, size_bytes, may_shrink },
            false => Request::EnlargeVolume { name, size_bytes },
        })
    }

    /// Gives a volume another name.
    pub fn rename_volume(&mut self, name: &str, new_name: &str) -> Result<VolumeInfo, CallError> {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.call_for_volume(&Request::RenameVolume { name, new_name })
    }

    /// Lets a volume map so many bytes and no more, or any amount.
    pub fn set_quota(
        &mut self,
        name: &str,
        quota_bytes: Option<u64>,
    ) -> Result<VolumeInfo, CallError> {
        self.call_for_volume(&Request::SetQuota { name: name.to_owned(), quota_bytes })
    }

    /// Whether duplicates are looked for among what is written to a volume from now on.
    pub fn set_dedup(&mut self, name: &str, dedup: Dedup) -> Result<VolumeInfo, CallError> {
        self.call_for_volume(&Request::SetDedup { name: name.to_owned(), dedup })
    }

    /// Deletes a volume or a snapshot; a volume's snapshots only if that is meant.
    pub fn delete_volume(&mut self, request: DeleteRequest) -> Result<(), CallError> {
        self.call_for_nothing(&match (request.id, request.newest) {
            (None, None) => Request::DeleteVolume(request),
            _ => Request::DeleteThis(request),
        })
    }

    /// Takes snapshots, all at one moment.
    pub fn take_snapshots(&mut self, request: SnapshotRequest) -> Result<(), CallError> {
        self.call_for_nothing(&Request::TakeSnapshots(request))
    }

    /// Makes a volume that begins as a snapshot.
    pub fn clone_volume(&mut self, snapshot: &str, name: &str) -> Result<VolumeInfo, CallError> {
        let (snapshot, name) = (snapshot.to_owned(), name.to_owned());
        self.call_for_volume(&Request::CloneVolume { snapshot, name })
    }

    /// Lets a volume hold again what a snapshot of it holds.
    pub fn roll_back(&mut self, snapshot: &str, id: Option<u32>) -> Result<VolumeInfo, CallError> {
        let snapshot = snapshot.to_owned();
        self.call_for_volume(&match id {
            None => Request::Rollback { snapshot, id },
            Some(id) => Request::RollBackToThis { snapshot, id },
        })
    }

    /// What new frames are compressed with.
    pub fn compression(&mut self) -> Result<CompressionSetting, CallError> {
        match self.call(&Request::Compression)? {
            Response::Compression { compression } => Ok(compression),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// Sets what new frames are compressed with.
    pub fn set_compression(&mut self, compression: Compression) -> Result<(), CallError> {
        self.call_for_nothing(&Request::SetCompression { compression: compression.into() })
    }

    /// Makes the store larger; durable when it returns.
    pub fn grow(&mut self, wish: GrowthWish) -> Result<Grown, CallError> {
        match self.call(&Request::Grow(wish))? {
            Response::Grown(grown) => Ok(grown),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// One address, walked through the tables.
    pub fn explain(&mut self, volume: &str, address: Address) -> Result<Explanation, CallError> {
        match self.call(&Request::Explain { volume: volume.to_owned(), address })? {
            Response::Explanation { explanation } => Ok(*explanation),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// One step of a comparison of two versions.
    pub fn difference(&mut self, step: DifferenceRequest) -> Result<DifferenceStep, CallError> {
        match self.call(&Request::Difference { step })? {
            Response::Difference { step } => Ok(*step),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// One step of a volume's weighing.
    pub fn weigh(&mut self, step: WeightRequest) -> Result<WeightStep, CallError> {
        match self.call(&Request::Weigh { step })? {
            Response::Weight { step } => Ok(*step),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// One step of a scrub.
    pub fn scrub(&mut self, step: ScrubRequest) -> Result<ScrubStep, CallError> {
        match self.call(&Request::Scrub { step })? {
            Response::Scrub { step } => Ok(*step),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// Collects one container.
    pub fn collect(&mut self, step: CollectRequest) -> Result<CollectStep, CallError> {
        let CollectRequest { position, recompress } = step;
        let recompress = recompress.map(CompressionSetting::from);
        match self.call(&Request::Collect { position, recompress })? {
            Response::Collected { step } => Ok(*step),
            _ => Err(CallError::WrongResponse),
        }
    }

    /// Figures of the store.
    pub fn stats(&mut self) -> Result<Stats, CallError> {
        match self.call(&Request::Stats)? {
            Response::Stats { stats } => Ok(*stats),
            _ => Err(CallError::WrongResponse),
        }
    }
}
