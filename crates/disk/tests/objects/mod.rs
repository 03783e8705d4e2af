//! A disk over objects by their names, written as somebody outside would: with this crate's public
//! face alone.
//!
//! A server keeps one object for each block that was ever written. It answers from a thread of its
//! own, after a while and out of order, and holds what was written in a cache until a sync uploads
//! it.

use std::collections::HashMap;
use std::mem::take;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use disk::conformance::Subject;
use disk::{Completion, Disk, Doorbell, ErrorClass, ForeignGrowth, Io, IoKind, ZoneGrowth};
use format::units::{BLOCK_BYTES, Zone};

const ROUND_TRIP: Duration = Duration::from_micros(300);

type Blocks = HashMap<(Zone, u64), Vec<u8>>;

/// What the server has.
#[derive(Default)]
struct Server {
    sizes: HashMap<Zone, u64>,
    uploaded: Blocks,
    cached: Blocks,
    refuses: Option<ErrorClass>,
}

impl Server {
    fn serve(&mut self, mut io: Io) -> Completion {
        if let Err(error) = io.check(self.sizes.get(&io.zone).copied().unwrap_or(0)) {
            return io.complete(Err(error));
        }
        let is_write = matches!(io.kind, IoKind::Write { .. });
        let refused = self.refuses.filter(|&class| is_write || class != ErrorClass::NoSpace);
        if let Some(class) = refused {
            return io.refuse(class, "the server was told to refuse it");
        }
        let (zone, first) = (io.zone, io.offset_bytes / BLOCK_BYTES as u64);
        match &mut io.kind {
            IoKind::Read { buf } => {
                for (block, bytes) in (first..).zip(buf.chunks_mut(BLOCK_BYTES)) {
                    let name = (zone, block);
                    match self.cached.get(&name).or_else(|| self.uploaded.get(&name)) {
                        Some(object) => bytes.copy_from_slice(object),
                        None => bytes.fill(0),
                    }
                }
            }
            IoKind::Write { buf, durable } => {
                for (block, bytes) in (first..).zip(buf.chunks(BLOCK_BYTES)) {
                    self.cached.insert((zone, block), bytes.to_vec());
                    if *durable {
                        self.upload(|name| name == (zone, block));
                    }
                }
            }
            IoKind::Sync => self.upload(|name| name.0 == zone),
        }
        io.complete(Ok(()))
    }

    fn upload(&mut self, is_meant: impl Fn((Zone, u64)) -> bool) {
        self.uploaded.extend(self.cached.extract_if(|&name, _| is_meant(name)));
    }
}

/// A connection to the server.
struct ObjectDisk {
    server: Arc<Mutex<Server>>,
    /// None when the connection is being closed.
    requests: Option<Sender<Io>>,
    answers: Receiver<Completion>,
    in_flight: usize,
    courier: Option<JoinHandle<()>>,
}

/// Names of objects that the server is to have.
#[derive(Clone)]
struct NewObjects(Vec<(Zone, u64)>);

impl ObjectDisk {
    fn connect(server: &Arc<Mutex<Server>>, doorbell: &Doorbell) -> Self {
        let (requests, received) = channel::<Io>();
        let (sent, answers) = channel();
        let (asked, doorbell) = (Arc::clone(server), doorbell.clone());
        let courier = thread::spawn(move || {
            while let Ok(first) = received.recv() {
                thread::sleep(ROUND_TRIP);
                let mut batch = vec![first];
                batch.extend(received.try_iter());
                for io in batch.into_iter().rev() {
                    let _ = sent.send(asked.lock().unwrap().serve(io));
                }
                doorbell.ring();
            }
        });
        let (server, requests) = (Arc::clone(server), Some(requests));
        Self { server, requests, answers, in_flight: 0, courier: Some(courier) }
    }

    fn take(&mut self, completion: Completion, done: &mut Vec<Completion>) {
        self.in_flight -= 1;
        done.push(completion);
    }
}

impl Disk for ObjectDisk {
    fn submit(&mut self, io: Io) {
        self.in_flight += 1;
        self.requests.as_ref().unwrap().send(io).unwrap();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        while let Ok(completion) = self.answers.try_recv() {
            self.take(completion, done);
        }
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if self.in_flight > 0 {
            let completion = self.answers.recv().unwrap();
            self.take(completion, done);
        }
        self.poll(done);
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        if let Some(NewObjects(zones)) = growth.take()? {
            self.server.lock().unwrap().sizes.extend(zones);
        }
        Ok(())
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        let is_kept =
            |zone| !matches!(zone, Zone::Data(number) if usize::from(number) >= data_zones);
        self.server.lock().unwrap().sizes.retain(|&zone, _| is_kept(zone));
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.server.lock().unwrap().sizes.get(&zone).copied().unwrap_or(0)
    }
}

impl Drop for ObjectDisk {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.courier.take().map(JoinHandle::join);
    }
}

/// The suite's view.
#[derive(Default)]
pub(crate) struct Objects {
    server: Arc<Mutex<Server>>,
}

impl Subject for Objects {
    fn make(&mut self, zones: &[(Zone, u64)], doorbell: &Doorbell) -> Box<dyn Disk> {
        let sizes = zones.iter().copied().collect();
        self.server = Arc::new(Mutex::new(Server { sizes, ..Server::default() }));
        Box::new(ObjectDisk::connect(&self.server, doorbell))
    }

    fn prepare_growth(&mut self, zones: &[(Zone, u64)]) -> Option<ZoneGrowth> {
        Some(ZoneGrowth::of(NewObjects(zones.to_vec())))
    }

    fn reopen(&mut self, doorbell: &Doorbell) -> Option<Box<dyn Disk>> {
        // The server's machine lost its power.
        drop(take(&mut self.server.lock().unwrap().cached));
        Some(Box::new(ObjectDisk::connect(&self.server, doorbell)))
    }

    fn refuse_with(&mut self, class: ErrorClass) -> bool {
        self.server.lock().unwrap().refuses = Some(class);
        true
    }

    fn heal(&mut self) {
        self.server.lock().unwrap().refuses = None;
    }
}
