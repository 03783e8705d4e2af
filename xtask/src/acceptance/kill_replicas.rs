//! kill -9 of either of two servers that have a bucket together, under clients of memcached: what
//! was answered with STORED is there, whichever of them is left.
//!
//! One server has the bucket and its clients, the other one the replica. In each round the clients
//! store, each in keys of its own, until a number of answers that the seed chooses; then one of the
//! servers is killed. A replica comes back, and the clients go on. When it was the primary, the
//! replica is promoted as it stands, with what it has in memory, and the other one becomes its
//! replica: the servers change places from kill to kill. In every round all keys are read from the
//! server that has the bucket: each holds what was acknowledged last, or what was sent after that.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::seed::Dice;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;
use crate::program::Program;

const BUCKET: &str = "cache";
const ROUNDS: u64 = 50;
const ROUNDS_SHORT: u64 = 3;
const CLIENTS: u64 = 4;
/// Keys of each client.
const KEYS: u64 = 60;
/// Answers until the kill.
const ANSWERS_MIN: u64 = 20;
const ANSWERS_MAX: u64 = 600;
/// Longest value.
const VALUE_BYTES_MAX: u64 = 30_000;
/// A replica that is not in step after this never will be.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a key may hold: the version that was acknowledged last, and the last that was sent.
type Sent = BTreeMap<String, (u64, u64)>;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let rounds = setting.rounds.unwrap_or(if setting.short { ROUNDS_SHORT } else { ROUNDS });
    println!("seed {}, {rounds} rounds", setting.seed);
    let begun = Instant::now();
    let mut scene = Scene::new(setting)?;
    for round in 1..=rounds {
        scene.round(round, rounds)?;
    }
    let Scene { sides, primary, replica, answers, promotions, .. } = scene;
    drop((primary, replica));
    sides.iter().try_for_each(|side| side.store.check())?;
    println!(
        "{answers} answered changes, {rounds} kills, {promotions} promotions in {} s, seed {}",
        begun.elapsed().as_secs(),
        setting.seed
    );
    Ok(())
}

/// One of the two servers.
struct Side {
    store: Store,
    /// Where its clients come in, and where its primary does.
    clients: PathBuf,
    peers: PathBuf,
}

impl Side {
    fn new(setting: &Setting, name: &str) -> Result<Self, Failure> {
        let store = Store::init_with(setting, name, "2G", &[])?;
        // The path of a socket is short wherever the clone is.
        let socket = |what: &str| {
            let file = format!("tamis-{}-{name}-{what}.sock", std::process::id());
            std::env::temp_dir().join(file)
        };
        Ok(Self { store, clients: socket("clients"), peers: socket("peers") })
    }

    fn serve_clients(&self) -> Result<Server, Failure> {
        let clients = format!("unix:{}", self.clients.display());
        let options = ["--memory", "64M", "--memcached", &clients, "--memcached-bucket", BUCKET];
        let mut server = self.store.serve(&options)?;
        server.hear("served over memcached")?;
        Ok(server)
    }

    fn serve_peers(&self) -> Result<Server, Failure> {
        let peers = self.peers_address();
        self.store.serve(&["--memory", "64M", "--replica-listen", &peers])
    }

    fn peers_address(&self) -> String {
        format!("unix:{}", self.peers.display())
    }
}

/// What goes on from kill to kill.
struct Scene {
    tamis: PathBuf,
    sides: [Side; 2],
    /// Which of them has the bucket.
    at: usize,
    primary: Option<Server>,
    replica: Option<Server>,
    dice: Dice,
    sent: Vec<Sent>,
    answers: u64,
    promotions: u64,
}

impl Scene {
    fn new(setting: &Setting) -> Result<Self, Failure> {
        let sides = [Side::new(setting, "a")?, Side::new(setting, "b")?];
        let mut scene = Self {
            tamis: setting.tamis().to_owned(),
            sides,
            at: 0,
            primary: None,
            replica: None,
            dice: Dice::new(setting.seed),
            sent: (0..CLIENTS).map(|_| Sent::new()).collect(),
            answers: 0,
            promotions: 0,
        };
        scene.bucket("create", 0).run()?;
        scene.begin()?;
        Ok(scene)
    }

    /// `tamis bucket VERB` of one side's bucket.
    fn bucket(&self, verb: &str, side: usize) -> Program {
        let store = self.sides[side].store.folder();
        Program::new(&self.tamis).args(["bucket", verb]).path(store).arg(BUCKET)
    }

    /// Starts both, the primary's store being closed.
    fn begin(&mut self) -> Result<(), Failure> {
        let (at, other) = (self.at, 1 - self.at);
        self.replica = Some(self.sides[other].serve_peers()?);
        self.bucket("replicate", at).args(["--to", &self.sides[other].peers_address()]).run()?;
        self.primary = Some(self.sides[at].serve_clients()?);
        self.wait_until_in_step()
    }

    fn wait_until_in_step(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let shown = self.bucket("show", self.at).arg("--json").json()?;
            let link = shown["replication"]["link"].as_str().unwrap_or_default().to_owned();
            if link == "in step" {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure::unmet("a replica in step", link));
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn round(&mut self, round: u64, rounds: u64) -> Result<(), Failure> {
        let wanted = self.dice.between(ANSWERS_MIN, ANSWERS_MAX);
        let kills_primary = self.dice.between(0, 2) == 0;
        let seed = self.dice.next();
        let victim = if kills_primary { self.primary.take() } else { self.replica.take() };
        let (clients, sides) = (&self.sides[self.at].clients, &self.sides);
        let other = 1 - self.at;
        let answers = AtomicU64::new(0);
        let goal = if kills_primary { u64::MAX } else { wanted + ANSWERS_MIN };
        let mut back = None;
        let told = thread::scope(|scope| -> Result<(), Failure> {
            let mut threads = Vec::new();
            for (client, sent) in self.sent.iter_mut().enumerate() {
                let (answers, mut dice) = (&answers, Dice::new(seed ^ client as u64));
                threads.push(scope.spawn(move || {
                    // It ends when its server does.
                    let _ = store_all(clients, client, sent, &mut dice, answers, goal);
                }));
            }
            while answers.load(Ordering::Relaxed) < wanted {
                if threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                    return Err(Failure::unmet(
                        "clients that go on until the kill",
                        "some that stop",
                    ));
                }
                sleep(Duration::from_millis(1));
            }
            victim.map_or(Ok(String::new()), Server::kill)?;
            if !kills_primary {
                back = Some(sides[other].serve_peers()?);
            }
            Ok(())
        });
        told?;
        let answered = answers.into_inner();
        self.answers += answered;
        if kills_primary {
            self.take_over()?;
        } else {
            self.replica = back;
            self.wait_until_in_step()?;
        }
        let found = self.judge()?;
        let who = if kills_primary { "primary" } else { "replica" };
        println!("round {round} of {rounds}: {who} killed after {answered} answers; {found}");
        Ok(())
    }

    /// The replica has the bucket from now on, and the server that was killed its replica.
    fn take_over(&mut self) -> Result<(), Failure> {
        let (old, new) = (self.at, 1 - self.at);
        self.promotions += 1;
        self.bucket("promote", new).run()?;
        self.replica.take().map_or(Ok(()), Server::stop)?;
        self.bucket("demote", old).arg("--yes").run()?;
        self.at = new;
        self.begin()
    }

    /// Reads every key from the server that has the bucket.
    fn judge(&mut self) -> Result<String, Failure> {
        let mut connection = Connection::to(&self.sides[self.at].clients)?;
        let (mut kept, mut newer) = (0, 0);
        for sent in &mut self.sent {
            for (key, (acknowledged, last)) in sent {
                let found = connection.get(key)?;
                if found < *acknowledged || found > *last {
                    let expected = format!("{key} in version {acknowledged} to {last}");
                    return Err(Failure::unmet(expected, format!("version {found}")));
                }
                kept += 1;
                newer += u64::from(found > *acknowledged);
                (*acknowledged, *last) = (found, found);
            }
        }
        Ok(format!("{kept} keys are there, {newer} of them newer than acknowledged"))
    }
}

/// Stores versions of keys until the server is gone, or there were as many answers.
fn store_all(
    socket: &PathBuf,
    client: usize,
    sent: &mut Sent,
    dice: &mut Dice,
    answers: &AtomicU64,
    goal: u64,
) -> Result<(), Failure> {
    let mut connection = Connection::to(socket)?;
    while answers.load(Ordering::Relaxed) < goal {
        let key = format!("k{client}-{}", dice.between(0, KEYS));
        let longest = if dice.between(0, 4) == 0 { VALUE_BYTES_MAX } else { 200 };
        let length = dice.between(20, longest);
        let versions = sent.entry(key.clone()).or_default();
        versions.1 += 1;
        if connection.set(&key, versions.1, length as usize)? {
            versions.0 = versions.1;
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// A client of memcached.
struct Connection(BufReader<UnixStream>);

impl Connection {
    fn to(socket: &PathBuf) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).map_err(Failure::file(socket))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Whether it was stored; the value says its version, over and over.
    fn set(&mut self, key: &str, version: u64, length: usize) -> Result<bool, Failure> {
        let word = format!("{version:08} ");
        let value: String = word.chars().cycle().take(length).collect();
        let request = format!("set {key} 0 0 {length}\r\n{value}\r\n");
        self.0.get_mut().write_all(request.as_bytes()).map_err(broken)?;
        Ok(self.line()? == "STORED")
    }

    /// The version that the key has; 0: none.
    fn get(&mut self, key: &str) -> Result<u64, Failure> {
        self.0.get_mut().write_all(format!("get {key}\r\n").as_bytes()).map_err(broken)?;
        let head = self.line()?;
        let Some(length) = head.strip_prefix("VALUE ").and_then(|rest| rest.split(' ').nth(2))
        else {
            return if head == "END" { Ok(0) } else { Err(Failure::unmet("a value", head)) };
        };
        let length: usize = length.parse().map_err(|_| Failure::unmet("a length", &head))?;
        let mut value = vec![0; length + 2];
        self.0.read_exact(&mut value).map_err(broken)?;
        self.line()?;
        let value = String::from_utf8_lossy(&value[..length]).into_owned();
        let word = value.get(..9).unwrap_or_default().to_owned();
        let whole: String = word.chars().cycle().take(length).collect();
        let version = word.trim().parse().ok().filter(|_| whole == value);
        version.ok_or_else(|| Failure::unmet(format!("{key} as it was stored"), "other bytes"))
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.0.read_line(&mut line).map_err(broken)?;
        match line.is_empty() {
            true => Err(Failure::unmet("an answer", "a closed connection")),
            false => Ok(line.trim_end().to_owned()),
        }
    }
}

fn broken(source: std::io::Error) -> Failure {
    Failure::Start { command: "a client of memcached".to_owned(), source }
}
