//! Both ends over real sockets, with services that need no engine; `tests/verbs.rs` has one.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::control::ListVolumes;
use engine::{
    CollectRequest, CollectStep, Dedup, DeleteRequest, RequestError, SnapshotRequest, VolumeInfo,
    VolumeKind,
};
use serde_json::{Value, json};

use crate::json::{FromJson, Json};
use crate::line::{self, REQUEST_BYTES_MAX};
use crate::outcome::Outcome;
use crate::server::CONNECTIONS_MAX;
use crate::spoken::LISTED_AT_ONCE;
use crate::{
    CallError, Client, ConnectError, Control, ControlError, GetStatus, Refusal, RefusalKind,
    SOCKET_NAME, ServeError, Server, Service, Spoken, Status,
};

/// A directory of its own for one test, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tamis-admin-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A service that lists volumes and refuses all else.
#[derive(Default)]
struct ListOfVolumes(Vec<VolumeInfo>);

fn volume(name: &str, id: u32) -> VolumeInfo {
    VolumeInfo {
        name: name.to_owned(),
        id,
        size_bytes: 1 << 20,
        mapped_bytes: 0,
        read_only: false,
        quota_bytes: None,
        dedup: Dedup::On,
        compression: None,
        reservation_bytes: None,
        dedup_active: true,
        unindexed_chunks: 0,
        domain: None,
        taken_unix_s: None,
        parent: None,
        kind: VolumeKind::Block,
        origin: None,
    }
}

impl Service for ListOfVolumes {
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError> {
        let asked = serde_json::to_value(Json(&verb)).unwrap();
        let answer = match V::NAME {
            "list_volumes" => {
                let after = asked["after"].as_str().unwrap_or_default();
                let most = asked["most"].as_u64().unwrap() as usize;
                let listed = self.0.iter().filter(|volume| volume.name.as_str() > after);
                serde_json::to_value(Json(listed.take(most).cloned().collect::<Vec<_>>()))
            }
            "status" => serde_json::to_value(Status::default()),
            _ => return Err(RequestError::NoSuchVolume { name: "ghost".to_owned() }.into()),
        };
        Ok(V::Answer::from_json(answer.unwrap()).unwrap())
    }
}

fn serve(directory: &Path) -> Server {
    Server::start(directory, ListOfVolumes::default()).unwrap()
}

fn connect(directory: &Path) -> Client {
    Client::connect(directory).unwrap().unwrap()
}

#[test]
fn what_the_engine_refuses_is_refused_in_its_own_words() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let refused = connect(&folder.0).ask(DeleteRequest::of("ghost")).unwrap_err();
    let ControlError::Request(error) = refused else { panic!("{refused}") };
    assert_eq!(error, RequestError::NoSuchVolume { name: "ghost".to_owned() });
}

/// What a client of [`slow_server`] waits for.
const SHORT_WHILE: Duration = Duration::from_millis(50);

fn pause() {
    thread::sleep(4 * SHORT_WHILE);
}

/// A client that is not patient, of a server that answers one request when `wait` has ended, in two
/// parts, and ends.
fn slow_server(outcome: &Value, wait: impl FnOnce() + Send + 'static) -> (Client, JoinHandle<()>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let protocol = crate::PROTOCOL_VERSION;
    let hello = format!("{{\"protocol\":{protocol},\"tamis\":\"0\",\"busy\":false}}\n");
    theirs.write_all(hello.as_bytes()).unwrap();
    let mut answer = Vec::new();
    line::send(&mut answer, outcome).unwrap();
    let server = thread::spawn(move || {
        BufReader::new(&theirs).read_line(&mut String::new()).unwrap();
        wait();
        let (front, rest) = answer.split_at(answer.len() / 2);
        theirs.write_all(front).unwrap();
        pause();
        theirs.write_all(rest).unwrap();
    });
    ours.set_read_timeout(Some(SHORT_WHILE)).unwrap();
    let client = Client::over(BufReader::new(ours.try_clone().unwrap()), ours).unwrap();
    (client, server)
}

#[test]
fn a_step_may_take_any_time_and_ends_with_its_server() {
    let step = CollectStep { containers: 7, ..CollectStep::default() };
    let outcome = json!({ "answer": serde_json::to_value(Json(&step)).unwrap() });
    let (mut client, server) = slow_server(&outcome, pause);
    assert_eq!(client.ask(CollectRequest::default()).unwrap(), step);
    server.join().unwrap();
    let next = client.ask(CollectRequest::default()).unwrap_err();
    let is_over = matches!(next, ControlError::Call(CallError::Closed | CallError::Connection(_)));
    assert!(is_over, "{next:?}");
}

#[test]
fn an_answer_that_comes_too_late_is_nobodys() {
    let (tell, told) = mpsc::channel();
    let wait = move || told.recv().unwrap();
    let (mut client, server) = slow_server(&json!({ "answer": [] }), wait);
    let late = client.volumes().unwrap_err();
    assert!(matches!(late, ControlError::Call(CallError::Connection(_))), "{late:?}");
    tell.send(()).unwrap();
    server.join().unwrap();
    let next = client.volumes().unwrap_err();
    assert!(matches!(next, ControlError::Call(CallError::Closed)), "{next:?}");
}

#[test]
fn nobody_serves_where_no_socket_is() {
    let folder = Folder::new();
    assert!(Client::connect(&folder.0).unwrap().is_none());
    assert!(Client::connect(&folder.0.join("absent")).unwrap().is_none());
}

#[test]
fn the_socket_of_a_dead_server_is_stale_and_is_replaced() {
    let folder = Folder::new();
    drop(UnixListener::bind(folder.0.join(SOCKET_NAME)).unwrap());
    assert!(folder.0.join(SOCKET_NAME).exists());
    assert!(Client::connect(&folder.0).unwrap().is_none());
    let _server = serve(&folder.0);
    connect(&folder.0).ask(GetStatus {}).unwrap();
}

#[test]
fn a_live_server_is_not_replaced() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let second = Server::start(&folder.0, ListOfVolumes::default());
    assert!(matches!(second, Err(ServeError::InUse { .. })), "{second:?}");
    connect(&folder.0).ask(GetStatus {}).unwrap();
}

#[test]
fn stop_closes_idle_connections_and_removes_the_socket() {
    let folder = Folder::new();
    let server = serve(&folder.0);
    let mut idle = connect(&folder.0);
    idle.ask(GetStatus {}).unwrap();
    server.stop();
    assert!(!folder.0.join(SOCKET_NAME).exists());
    assert!(idle.ask(GetStatus {}).is_err());
    assert!(Client::connect(&folder.0).unwrap().is_none());
}

#[test]
fn a_server_whose_directory_was_moved_stops_and_leaves_its_successor_alone() {
    let folder = Folder::new();
    let (store, moved) = (folder.0.join("store"), folder.0.join("moved"));
    std::fs::create_dir(&store).unwrap();
    let first = serve(&store);
    std::fs::rename(&store, &moved).unwrap();
    std::fs::create_dir(&store).unwrap();
    let _second = serve(&store);
    let (stopped, is_stopped) = mpsc::channel();
    let stops = thread::spawn(move || {
        first.stop();
        stopped.send(()).unwrap();
    });
    is_stopped.recv_timeout(Duration::from_secs(5)).unwrap();
    stops.join().unwrap();
    assert!(!moved.join(SOCKET_NAME).exists());
    connect(&store).ask(GetStatus {}).unwrap();
}

/// Answers only when it is told that the engine is being closed.
struct WaitsForClose {
    asked: mpsc::SyncSender<()>,
    closes: Mutex<mpsc::Receiver<()>>,
}

impl Service for WaitsForClose {
    fn answer<V: Spoken>(&self, _: V) -> Result<V::Answer, ControlError> {
        self.asked.send(()).unwrap();
        self.closes.lock().unwrap().recv().unwrap();
        Err(RequestError::Closing.into())
    }
}

#[test]
fn a_request_that_waits_for_the_end_does_not_hold_the_end_up() {
    let folder = Folder::new();
    let ((asked, is_asked), (close, closes)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
    let closes = Mutex::new(closes);
    let mut server = Server::start(&folder.0, WaitsForClose { asked, closes }).unwrap();
    let mut client = connect(&folder.0);
    let asks = thread::spawn(move || client.volumes());
    is_asked.recv().unwrap();
    server.shut();
    assert!(!folder.0.join(SOCKET_NAME).exists());
    assert!(asks.join().unwrap().is_err());
    close.send(()).unwrap();
    server.stop();
}

#[test]
fn only_the_owner_may_open_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let mode = std::fs::metadata(folder.0.join(SOCKET_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_store_may_lie_deeper_than_a_socket_path_is_long() {
    let folder = Folder::new();
    let deep = folder.0.join("d".repeat(200));
    std::fs::create_dir(&deep).unwrap();
    let server = serve(&deep);
    connect(&deep).ask(GetStatus {}).unwrap();
    server.stop();
    assert!(!deep.join(SOCKET_NAME).exists());
}

#[test]
fn one_connection_too_many_is_told_so_and_room_comes_back() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let mut open: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| connect(&folder.0)).collect();
    open.iter_mut().for_each(|client| drop(client.ask(GetStatus {}).unwrap()));
    assert!(matches!(Client::connect(&folder.0), Err(ConnectError::Busy)));
    drop(open.pop());
    let free = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Client::connect(&folder.0).is_ok()
    });
    assert!(free);
}

#[test]
fn connections_on_which_nothing_is_asked_keep_nobody_out() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let mut one = connect(&folder.0);
    one.ask(GetStatus {}).unwrap();
    // They stall before their request and inside it.
    let mut stalled: Vec<_> = (0..100).map(|_| raw_connection(&folder.0)).collect();
    for (_, stream) in stalled.iter_mut().step_by(2) {
        // Those that lost their place are told by that.
        let _ = stream.write_all(b"{\"verb\":");
    }
    for _ in 0..CONNECTIONS_MAX {
        connect(&folder.0).ask(GetStatus {}).unwrap();
    }
    one.ask(GetStatus {}).unwrap();
}

/// A connection that speaks bytes of its own choice.
fn raw_connection(directory: &Path) -> (BufReader<UnixStream>, UnixStream) {
    let stream = UnixStream::connect(directory.join(SOCKET_NAME)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut hello = String::new();
    reader.read_line(&mut hello).unwrap();
    let protocol = format!("\"protocol\":{}", crate::PROTOCOL_VERSION);
    assert!(hello.contains(&protocol), "{hello}");
    (reader, stream)
}

fn refusal(reader: &mut BufReader<UnixStream>) -> Refusal {
    match line::receive::<Outcome<()>>(reader, 1 << 20).unwrap().unwrap().into_result() {
        Err(ControlError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nonsense_is_refused_and_the_connection_goes_on() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let (mut reader, mut writer) = raw_connection(&folder.0);
    for nonsense in [
        "",
        "{",
        "[1,2]",
        "{\"verb\":\"make_coffee\",\"request\":{}}",
        "{\"verb\":\"list_volumes\",\"request\":{\"after\":7}}",
        "{\"verb\":\"stats\"}",
        "\u{0}\u{1}",
    ] {
        writeln!(writer, "{nonsense}").unwrap();
        assert_eq!(refusal(&mut reader).kind, RefusalKind::BadRequest, "{nonsense:?}");
    }
    writeln!(writer, "{{\"verb\":\"list_volumes\",\"request\":{{\"after\":null,\"most\":9}}}}")
        .unwrap();
    let outcome: Outcome<Vec<VolumeInfo>> = line::receive(&mut reader, 1 << 20).unwrap().unwrap();
    assert_eq!(outcome.into_result().unwrap(), []);
}

/// Far more than a line holds, with the longest names that there are.
#[test]
fn a_list_of_any_length_is_told() {
    let folder = Folder::new();
    let long = "\u{1F422}".repeat(63);
    let volume = |id: u32| VolumeInfo {
        parent: Some(format!("{long}@{long}{id:03}")),
        ..volume(&format!("{long}@{long}{id:03}"), id)
    };
    let count = 5 * LISTED_AT_ONCE as u32;
    let mut all: Vec<VolumeInfo> = (0..count).map(volume).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let _server = Server::start(&folder.0, ListOfVolumes(all.clone())).unwrap();
    let mut client = Client::connect(&folder.0).unwrap().unwrap();
    assert!(client.volumes().unwrap() == all);
    let listed = client.ask(ListVolumes { after: None, most: usize::MAX }).unwrap_err();
    let is_too_long = matches!(listed, ControlError::Call(CallError::TooLong { .. }));
    assert!(is_too_long, "{listed:?}");
}

/// Snapshots of one moment, of as many volumes as a large host has.
#[test]
fn a_request_names_many_volumes() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let volumes = (0..10_000).map(|number| format!("{number:0255}")).collect();
    let request = SnapshotRequest { volumes, name: "daily".to_owned(), taken_unix_s: 0 };
    let refused = connect(&folder.0).ask(request).unwrap_err();
    assert!(matches!(refused, ControlError::Request(_)), "{refused}");
}

#[test]
fn a_line_without_end_is_not_held_in_memory() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let (mut reader, mut writer) = raw_connection(&folder.0);
    writer.write_all(&vec![b'x'; REQUEST_BYTES_MAX + 1]).unwrap();
    assert_eq!(refusal(&mut reader).kind, RefusalKind::BadRequest);
    assert!(line::receive::<Value>(&mut reader, 1 << 20).unwrap().is_none());
}

#[test]
fn a_line_is_bounded_to_the_byte() {
    let exact = format!("\"{}\"\n", "x".repeat(6));
    assert!(line::receive::<String>(&mut exact.as_bytes(), 8).unwrap().is_some());
    let received = line::receive::<String>(&mut exact.as_bytes(), 7);
    assert!(matches!(received, Err(CallError::TooLong { limit_bytes: 7 })), "{received:?}");
    let cut = line::receive::<String>(&mut "\"xx".as_bytes(), 8);
    assert!(matches!(cut, Err(CallError::Closed)), "{cut:?}");
}

/// Answers one connection with `greeting` and closes it.
fn greet_once(directory: &Path, greeting: String) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(directory.join(SOCKET_NAME)).unwrap();
    std::thread::spawn(move || {
        listener.accept().unwrap().0.write_all(greeting.as_bytes()).unwrap();
    })
}

#[test]
fn a_server_of_another_protocol_is_named() {
    let folder = Folder::new();
    let next = crate::PROTOCOL_VERSION + 1;
    let greeting = format!("{{\"protocol\":{next},\"tamis\":\"3.0\",\"busy\":false}}\n");
    let server = greet_once(&folder.0, greeting);
    let error = Client::connect(&folder.0).unwrap_err();
    let is_named = matches!(
        error,
        ConnectError::OtherProtocol { server_protocol, .. } if server_protocol == next
    );
    assert!(is_named, "{error}");
    assert!(error.to_string().contains("3.0"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_greeting_that_is_none_is_an_error() {
    let folder = Folder::new();
    let server = greet_once(&folder.0, "SSH-2.0\n".to_owned());
    let error = Client::connect(&folder.0).unwrap_err();
    assert!(matches!(error, ConnectError::NoGreeting { .. }), "{error}");
    server.join().unwrap();
}
