//! Two stores in memory with a bucket on both, and a wire between them that can be cut.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use format::objects::replica::{ReplicaRole, ReplicaState};
use format::replication::{Change, Message, Position};
use objects::bucket::{Bucket, BucketOptions, Condition, FinishOptions, OpenOptions, PutOptions};
use objects::volume::BucketVolume;
use store::{CreateOptions, Options, RequestError, Store, Volume};

use crate::{
    LinkState, Mirrored, PROTOCOL_VERSION, Primary, PromoteError, RING_BYTES_MAX, ReplyWait,
    Secondary, VolumeIdentity, identity_of, read_state, write_state,
};

/// A connection: who waits moves what is said.
#[derive(Default)]
struct Wire {
    primary: OnceLock<Weak<Mirrored>>,
    secondary: Mutex<Option<Secondary>>,
    is_there: AtomicBool,
    mark: AtomicU64,
    /// What the primary said, by its kinds.
    told: Mutex<Vec<String>>,
}

impl Wire {
    /// Carries all that is to be said, both ways; true when something was.
    fn carry(&self) -> bool {
        let Some(primary) = self.primary.get().and_then(Weak::upgrade) else { return false };
        if !self.is_there.load(Ordering::SeqCst) {
            return false;
        }
        let mut secondary = self.secondary.lock().unwrap();
        let Some(secondary) = secondary.as_mut() else { return false };
        if primary.primary().link() == LinkState::Away {
            primary.primary().connected(0);
        }
        let mut has_moved = false;
        loop {
            let message = primary.primary().next_message();
            let Some(message) = message else {
                if !primary.compare_some().unwrap() && !primary.primary().has_more() {
                    return has_moved;
                }
                continue;
            };
            has_moved = true;
            let kind = format!("{message:?}");
            self.told.lock().unwrap().push(kind.split(' ').next().unwrap_or("").to_owned());
            let answers = match message {
                Message::Hello { version, set, position, .. } => {
                    vec![secondary.welcome(version, set, &position)]
                }
                message => secondary.take(message).unwrap(),
            };
            for answer in answers {
                if primary.take(answer).is_err() {
                    primary.primary().cut(0);
                    self.is_there.store(false, Ordering::SeqCst);
                    return true;
                }
            }
        }
    }

    fn cut(&self) {
        self.is_there.store(false, Ordering::SeqCst);
        let primary = self.primary.get().and_then(Weak::upgrade).unwrap();
        primary.primary().cut(0);
    }

    fn mend(&self) {
        self.is_there.store(true, Ordering::SeqCst);
        self.carry();
    }

    fn has_told(&self, kind: &str) -> bool {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        told.iter().any(|one| one == kind)
    }
}

impl ReplyWait for Wire {
    fn mark(&self) -> u64 {
        self.mark.load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        0
    }

    fn wait(&self, _mark: u64, _since: u64) -> bool {
        self.carry()
    }

    fn wake(&self) {
        self.mark.fetch_add(1, Ordering::SeqCst);
    }
}

struct Side {
    _store: Store,
    volume: Volume,
}

impl Side {
    fn new(seed: u64) -> Self {
        let disk = store::create_in_memory(&CreateOptions::new(64 << 20), seed).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let volume = store.create_volume("bucket", 1 << 50).unwrap();
        Self { _store: store, volume }
    }

    fn identity(&self) -> VolumeIdentity {
        identity_of(&self.volume).unwrap()
    }

    fn state(&self) -> ReplicaState {
        read_state(&self.volume, self.identity()).unwrap().unwrap()
    }

    fn secondary(&self) -> Secondary {
        Secondary::new(Arc::new(self.volume.clone()), self.state(), RING_BYTES_MAX)
    }

    fn bucket(&self) -> Bucket {
        Bucket::open(Arc::new(self.volume.clone()), &OpenOptions::default()).unwrap()
    }
}

/// A bucket in the first store whose replica is to be in the second.
fn sides() -> (Side, Side) {
    let (one, other) = (Side::new(1), Side::new(2));
    Bucket::create(Arc::new(one.volume.clone()), &BucketOptions::new([7; 16])).unwrap();
    let empty = Secondary::empty_state(99, other.identity());
    write_state(&other.volume, &empty).unwrap();
    let position = Position { epoch: 1, life: 0, sequence: 0 };
    let role = ReplicaRole::Primary;
    let state = ReplicaState { role, volume: one.identity(), position, ..empty };
    write_state(&one.volume, &state).unwrap();
    (one, other)
}

fn open(one: &Side, life: u64, ring_bytes: u64) -> (Arc<Wire>, Arc<Mirrored>) {
    let wire = Arc::new(Wire::default());
    let primary = Primary::new("bucket", one.state(), life, ring_bytes);
    let reply_wait = Arc::clone(&wire) as Arc<dyn ReplyWait>;
    let mirrored = Arc::new(Mirrored::new(Arc::new(one.volume.clone()), primary, reply_wait));
    wire.primary.set(Arc::downgrade(&mirrored)).unwrap();
    (wire, mirrored)
}

fn open_bucket(mirrored: &Arc<Mirrored>) -> Bucket {
    mirrored.wait_until_met().unwrap();
    Bucket::open(Arc::clone(mirrored) as Arc<dyn BucketVolume>, &OpenOptions::default()).unwrap()
}

fn put(bucket: &Bucket, key: &str, bytes: &[u8]) -> Result<(), String> {
    let mut writer = bucket.put(key.as_bytes(), PutOptions::new(1)).unwrap();
    writer.write(bytes).map_err(|error| error.to_string())?;
    writer.finish(FinishOptions::new([0; 16])).map(drop).map_err(|error| error.to_string())
}

fn get(bucket: &Bucket, key: &str) -> Option<Vec<u8>> {
    let mut reader = bucket.get(key.as_bytes(), &Condition::None, 1).unwrap()?;
    let mut bytes = vec![0; reader.info().size_bytes as usize];
    reader.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

#[test]
fn what_is_answered_is_on_both_and_the_replica_takes_over() {
    let (one, other) = sides();
    let (wire, mirrored) = open(&one, 10, RING_BYTES_MAX);
    let bucket = open_bucket(&mirrored);
    put(&bucket, "alone", &[1; 5000]).unwrap();
    *wire.secondary.lock().unwrap() = Some(other.secondary());
    assert!(matches!(
        wire.secondary.lock().unwrap().as_mut().unwrap().promote(),
        Err(PromoteError::Mixture)
    ));
    wire.mend();
    assert_eq!(mirrored.primary().link(), LinkState::InStep);
    put(&bucket, "both", &[2; 300_000]).unwrap();
    put(&bucket, "short", b"hello").unwrap();
    // The primary dies: what it held in memory is nobody's.
    let mut secondary = wire.secondary.lock().unwrap().take().unwrap();
    assert_eq!(secondary.promote().unwrap().position.epoch, 2);
    let taken_over = other.bucket();
    assert_eq!(get(&taken_over, "alone").unwrap(), [1; 5000]);
    assert_eq!(get(&taken_over, "both").unwrap(), [2; 300_000]);
    assert_eq!(get(&taken_over, "short").unwrap(), b"hello");
    // The old one comes back, and is fenced by what it meets.
    *wire.secondary.lock().unwrap() = Some(secondary);
    wire.cut();
    wire.mend();
    let refused = put(&bucket, "late", b"no").unwrap_err();
    assert!(refused.contains("was promoted"), "{refused}");
    assert_eq!(one.state().role, ReplicaRole::Fenced);
    assert_eq!(get(&bucket, "late"), None);
}

#[test]
fn a_replica_that_was_away_catches_up_or_is_compared() {
    let (one, other) = sides();
    let (wire, mirrored) = open(&one, 10, 1 << 20);
    let bucket = open_bucket(&mirrored);
    *wire.secondary.lock().unwrap() = Some(other.secondary());
    wire.mend();
    wire.has_told("");
    wire.cut();
    let refused = put(&bucket, "a", b"1").unwrap_err();
    assert!(refused.contains("does not answer"), "{refused}");
    wire.mend();
    put(&bucket, "a", b"2").unwrap();
    // More than the ring holds, alone.
    mirrored.primary().set_may_go_on_alone(true);
    wire.cut();
    put(&bucket, "b", &[3; 4 << 20]).unwrap();
    assert!(one.state().went_on_alone);
    wire.mend();
    assert_eq!(mirrored.primary().link(), LinkState::InStep);
    assert!(!mirrored.primary().state().went_on_alone);
    let mut secondary = wire.secondary.lock().unwrap().take().unwrap();
    secondary.promote().unwrap();
    let taken_over = other.bucket();
    assert_eq!(get(&taken_over, "a").unwrap(), b"2");
    assert_eq!(get(&taken_over, "b").unwrap(), vec![3; 4 << 20]);
}

#[test]
fn a_primary_takes_back_what_its_crash_has_lost() {
    let (one, other) = sides();
    let (wire, mirrored) = open(&one, 10, RING_BYTES_MAX);
    let bucket = open_bucket(&mirrored);
    *wire.secondary.lock().unwrap() = Some(other.secondary());
    wire.mend();
    put(&bucket, "kept", b"1").unwrap();
    bucket.clone().close().unwrap();
    // A crash would leave this; what follows is on the replica alone.
    let disk = copy(&one);
    put(&bucket, "lost", &[5; 70_000]).unwrap();
    let secondary = wire.secondary.lock().unwrap().take();
    let (wire, mirrored) = open(&disk, 11, RING_BYTES_MAX);
    *wire.secondary.lock().unwrap() = secondary;
    wire.mend();
    let bucket = open_bucket(&mirrored);
    assert_eq!(get(&bucket, "lost").unwrap(), [5; 70_000]);
    assert!(wire.has_told("Want"));
    put(&bucket, "more", b"2").unwrap();
    assert_eq!(disk.state().position.life, 11);
    // One that keeps nothing to give back makes the primary wait for the operator.
    drop(bucket);
    let disk = copy(&disk);
    mirrored.trim(20 << 40, 4096).unwrap();
    mirrored.flush().unwrap();
    let (wire, mirrored) = open(&disk, 12, RING_BYTES_MAX);
    *wire.secondary.lock().unwrap() = Some(other.secondary());
    wire.mend();
    let refused = mirrored.wait_until_met().unwrap_err();
    assert!(
        matches!(&refused, RequestError::NotReplicated { reason } if reason.contains("promote"))
    );
}

#[test]
fn part_of_a_record_is_told_unless_the_primary_sends_it_again() {
    let side = Side::new(1);
    let at = |life, sequence| Position { epoch: 1, life, sequence };
    let role = ReplicaRole::Secondary;
    let empty = Secondary::empty_state(7, side.identity());
    let state = ReplicaState { role, position: at(5, 10), begun: 11, ..empty };
    let mut secondary = Secondary::new(Arc::new(side.volume.clone()), state, 1 << 20);
    let mut is_consistent = |primary| match secondary.welcome(PROTOCOL_VERSION, 7, &primary) {
        Message::Welcome { is_consistent, .. } => is_consistent,
        other => panic!("{other:?}"),
    };
    assert!(is_consistent(at(5, 11)), "it has the record");
    assert!(!is_consistent(at(5, 10)), "it has lost it");
    assert!(!is_consistent(at(6, 11)), "it has another one");
}

#[test]
fn what_a_peer_was_sent_before_it_is_compared_is_no_copy() {
    let position = Position { epoch: 1, life: 0, sequence: 0 };
    let role = ReplicaRole::Primary;
    let empty = Secondary::empty_state(7, VolumeIdentity { store: [1; 16], number: 1 });
    let state = ReplicaState { role, position, was_in_step: true, ..empty };
    let mut primary = Primary::new("bucket", state, 5, 1 << 20);
    primary.begin_life();
    primary.begin_record();
    let (sequence, state) = primary.end_record(Change::InStep);
    let meet = |primary: &mut Primary, is_consistent| {
        primary.connected(0);
        let position = state.position.at(0);
        primary.take(Message::Welcome { position, is_consistent }).unwrap();
        primary.begun(0);
    };
    meet(&mut primary, false);
    assert!(!primary.has_received(sequence));
    primary.cut(0);
    assert!(!primary.has_received(sequence), "it holds a mixture still");
    meet(&mut primary, true);
    while primary.next_message().is_some() {}
    assert!(!primary.has_received(sequence));
    primary.take(Message::Received { sequence }).unwrap();
    assert!(primary.has_received(sequence));
}

/// Another store with the same bytes in its volume: what a crash there and then would leave.
fn copy(side: &Side) -> Side {
    use crate::ReplicaVolume;
    let copy = Side::new(3);
    let (mut at, size) = (0, side.volume.size_bytes());
    while at < size {
        let run = side.volume.run_at(at, size - at).unwrap();
        if !run.is_hole {
            let mut bytes = vec![0; run.length_bytes as usize];
            side.volume.read_at(at, &mut bytes).unwrap();
            copy.volume.write_at(at, &bytes).unwrap();
        }
        at += run.length_bytes;
    }
    assert_eq!(copy.volume.handle().id(), side.volume.handle().id());
    let state = read_state(&copy.volume, copy.identity()).unwrap();
    assert_eq!(state, None, "another store's volume of the same number is replicated");
    let state = ReplicaState { volume: copy.identity(), ..side.state() };
    write_state(&copy.volume, &state).unwrap();
    copy
}
