//! A connection to a replica of this store: its volume is made if need be, and written as the
//! primary says.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::control::NewVolume;
use engine::{Client, Opener, VolumeKind};
use replication::{
    Message, RING_BYTES_MAX, ReplicaRole, ReplicaState, Secondary, identity_of, read_state,
    write_state,
};
use store::{RequestError, Volume};

use crate::wire::{Socket, receive, send};

/// A bucket's volume, as `buckets` makes them.
const BUCKET_VOLUME_BYTES: u64 = 1 << 50;
/// How long who has connected is waited for to say who it is.
const HELLO_TIME_MAX: Duration = Duration::from_secs(10);
/// Chunks of a store that has buckets.
const CHUNK_BYTES: u32 = 4096;

/// A replica that a connection writes.
struct Served {
    /// It outlives connections: the records that it keeps are for a primary that has lost them.
    secondary: Secondary,
    socket: Socket,
    /// Number of the connection that may write; another one has been taken over from.
    connection: u64,
    is_connected: bool,
}

/// The thread that has the lock writes the volume, while a primary is served.
#[derive(Default)]
struct Place {
    served: Option<Served>,
    /// The role of the copy changes meanwhile: no primary is served.
    is_suspended: bool,
}

impl Place {
    fn of_connection(&mut self, connection: u64) -> Option<&mut Served> {
        self.served.as_mut().filter(|served| served.connection == connection)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The replicas of a store.
pub(crate) struct Places {
    client: Client,
    places: Mutex<HashMap<String, Arc<Mutex<Place>>>>,
    connections: AtomicU64,
}

impl Places {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, places: Mutex::default(), connections: AtomicU64::new(0) }
    }

    fn place(&self, bucket: &str) -> Arc<Mutex<Place>> {
        Arc::clone(lock(&self.places).entry(bucket.to_owned()).or_default())
    }

    /// Whether a primary writes the replica of this name; none: none has since the server started.
    pub(crate) fn is_connected(&self, bucket: &str) -> Option<bool> {
        let place = lock(&self.places).get(bucket).map(Arc::clone)?;
        lock(&place).served.as_ref().map(|served| served.is_connected)
    }

    /// Ends the connection that writes the replica of this name, if one does, and takes no other
    /// one until [`Places::resume`].
    pub(crate) fn suspend(&self, bucket: &str) {
        let place = self.place(bucket);
        let mut place = lock(&place);
        place.is_suspended = true;
        if let Some(served) = place.served.take() {
            served.socket.end();
        }
    }

    pub(crate) fn resume(&self, bucket: &str) {
        lock(&self.place(bucket)).is_suspended = false;
    }

    /// Ends all of them.
    pub(crate) fn suspend_all(&self) {
        let names: Vec<String> = lock(&self.places).keys().cloned().collect();
        names.iter().for_each(|name| self.suspend(name));
    }
}

/// Serves a connection until it ends. It calls `fence` for a bucket whose primary is here and which
/// another copy has taken over, with the reason as a sentence.
pub(crate) fn serve(
    places: &Places,
    socket: &Socket,
    fence: &dyn Fn(&str, &str),
) -> io::Result<()> {
    let mut source = BufReader::new(socket.another()?);
    let mut sink = socket.another()?;
    socket.wait_at_most(Some(HELLO_TIME_MAX))?;
    let Message::Hello { version, set, position, bucket } = receive(&mut source)? else {
        return Ok(());
    };
    socket.wait_at_most(None)?;
    let (place, connection) = match begin(places, &bucket, set, position.epoch, socket, fence) {
        Ok(begun) => begun,
        Err(Refusal { epoch, reason }) => {
            return send(&mut sink, &[Message::Refused { epoch, reason }]);
        }
    };
    let welcome = match lock(&place).of_connection(connection) {
        Some(served) => served.secondary.welcome(version, set, &position),
        None => return Ok(()),
    };
    let goes_on = matches!(welcome, Message::Welcome { .. });
    send(&mut sink, &[welcome])?;
    if !goes_on {
        return Ok(());
    }
    let ended = carry_out(&place, connection, &mut source, &mut sink);
    if let Some(served) = lock(&place).of_connection(connection) {
        served.is_connected = false;
    }
    ended
}

/// Does what the primary says until the connection ends.
fn carry_out(
    place: &Mutex<Place>,
    connection: u64,
    source: &mut BufReader<Socket>,
    sink: &mut Socket,
) -> io::Result<()> {
    let mut answers = Vec::new();
    loop {
        let message = receive(source)?;
        let mut held = lock(place);
        let Some(served) = held.of_connection(connection) else { return Ok(()) };
        match served.secondary.take(message) {
            Ok(some) => answers.extend(some),
            Err(error) => {
                let refused = Message::Refused { epoch: 0, reason: error.to_string() };
                return send(sink, &[refused]);
            }
        }
        drop(held);
        // A primary that sends many messages gets one answer for them.
        if source.buffer().is_empty() {
            send(sink, &std::mem::take(&mut answers))?;
        }
    }
}

struct Refusal {
    epoch: u64,
    reason: String,
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        Self { epoch: 0, reason: error.to_string() }
    }
}

fn refuse(reason: &str) -> Refusal {
    Refusal { epoch: 0, reason: reason.to_owned() }
}

fn taken_over(epoch: u64) -> Refusal {
    Refusal { epoch, reason: "the replica was promoted, and has taken over".to_owned() }
}

/// Takes the bucket's place, from an older connection if there is one.
fn begin(
    places: &Places,
    bucket: &str,
    set: u64,
    epoch: u64,
    socket: &Socket,
    fence: &dyn Fn(&str, &str),
) -> Result<(Arc<Mutex<Place>>, u64), Refusal> {
    let place = places.place(bucket);
    let socket = socket.another().map_err(|error| refuse(&error.to_string()))?;
    let connection = places.connections.fetch_add(1, Ordering::Relaxed);
    let mut held = lock(&place);
    if held.is_suspended {
        return Err(refuse("the bucket there is being promoted, demoted or deleted"));
    }
    if let Some(served) = &mut held.served {
        let state = served.secondary.state();
        if state.set != set {
            return Err(refuse("the bucket there is a replica of another"));
        }
        if state.position.epoch > epoch {
            return Err(taken_over(state.position.epoch));
        }
        served.socket.end();
        served.socket = socket;
        served.connection = connection;
        served.is_connected = true;
        drop(held);
        return Ok((place, connection));
    }
    let (volume, state) = volume_of(&places.client, bucket, set)?;
    match state.role {
        ReplicaRole::Secondary | ReplicaRole::Syncing => {}
        ReplicaRole::Alone | ReplicaRole::Primary | ReplicaRole::Fenced => {
            let ours = state.position.epoch;
            if ours > epoch {
                return Err(taken_over(ours));
            }
            if epoch > ours && set == state.set {
                fence(bucket, "its replica was promoted, and has taken over");
            }
            return Err(refuse("the bucket there is no replica: demote it first"));
        }
    }
    let secondary = Secondary::new(Arc::new(volume), state, RING_BYTES_MAX);
    held.served = Some(Served { secondary, socket, connection, is_connected: true });
    drop(held);
    Ok((place, connection))
}

/// The bucket's volume and what it says; one that is not there is made.
fn volume_of(client: &Client, bucket: &str, set: u64) -> Result<(Volume, ReplicaState), Refusal> {
    if client.geometry()?.chunk_bytes != CHUNK_BYTES {
        return Err(refuse("the store there has chunks of another length than buckets need"));
    }
    let opener = || Opener::new("replication", buckets::now_unix_ms() / 1000);
    let opened = match client.open_volume(bucket, opener()) {
        Err(RequestError::NoSuchVolume { .. }) => {
            buckets::check_bucket_name(bucket).map_err(|error| refuse(&error.to_string()))?;
            client.ask(NewVolume {
                name: bucket.to_owned(),
                size_bytes: BUCKET_VOLUME_BYTES,
                kind: VolumeKind::Bucket,
                ..NewVolume::default()
            })?;
            let volume = Volume::new(client.clone(), client.open_volume(bucket, opener())?);
            let state = Secondary::empty_state(set, identity_of(&volume)?);
            write_state(&volume, &state)?;
            volume.flush_blocking()?;
            return Ok((volume, state));
        }
        opened => opened?,
    };
    if opened.kind() != VolumeKind::Bucket {
        return Err(refuse("a volume there has the bucket's name"));
    }
    let volume = Volume::new(client.clone(), opened);
    let state = read_state(&volume, identity_of(&volume)?);
    match state.map_err(|error| refuse(&error.to_string()))? {
        Some(state) => Ok((volume, state)),
        None => Err(refuse("a bucket there has its name, and is no replica of it")),
    }
}
