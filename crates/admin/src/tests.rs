//! Both ends over real sockets, with a service that needs no engine.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::{
    CollectRequest, CollectStep, Dedup, DeleteRequest, NewVolume, RequestError, SnapshotRequest,
    Stats, VolumeInfo, VolumeKind,
};
use format::units::{Codec, Compression};

use crate::client::VOLUMES_PER_LINE_MAX;
use crate::line::{self, REQUEST_BYTES_MAX};
use crate::server::CONNECTIONS_MAX;
use crate::{
    CallError, Client, CompressionSetting, ConnectError, Refusal, RefusalKind, Request, Response,
    SOCKET_NAME, ServeError, Server, Service, Status,
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

/// Volumes in a list, as the plainest store there is.
#[derive(Default)]
struct ListOfVolumes(Mutex<Vec<VolumeInfo>>);

fn volume(name: &str, id: u32) -> VolumeInfo {
    VolumeInfo {
        name: name.to_owned(),
        id,
        size_bytes: 1 << 20,
        mapped_bytes: 0,
        read_only: false,
        quota_bytes: None,
        kind: VolumeKind::Block,
        dedup: Dedup::On,
        looks_up: true,
        unsought_chunks: 0,
        domain: None,
        taken_unix_s: None,
        parent: None,
        origin: None,
    }
}

impl Service for ListOfVolumes {
    fn answer(&self, request: Request) -> Response {
        let mut volumes = self.0.lock().unwrap();
        match request {
            Request::Status => Response::Status(Status {
                pid: 7,
                version: "0".to_owned(),
                addresses: vec!["unix:/s/nbd.sock".to_owned()],
            }),
            Request::ListVolumes { after, most } => Response::page(volumes.clone(), after, most),
            Request::CreateVolume { name, size_bytes, read_only } => {
                let id = u32::try_from(volumes.len()).unwrap();
                let volume = VolumeInfo { size_bytes, read_only, ..volume(&name, id) };
                volumes.push(volume.clone());
                Response::Volume { volume }
            }
            Request::CreateVolumeIn { name, domain, .. } => {
                let refused = RequestError::BadName { name: format!("{name} in {domain}") };
                Response::Refused(refused.into())
            }
            Request::DeleteVolume(DeleteRequest { name, .. }) => {
                Response::Refused(RequestError::NoSuchVolume { name }.into())
            }
            Request::Stats => {
                Response::Stats { stats: Box::new(Stats { dedup_ratio: 2.5, ..Stats::default() }) }
            }
            Request::Compression => {
                Response::Compression { compression: CompressionSetting { codec: 2, level: -3 } }
            }
            _ => Response::Done,
        }
    }
}

fn serve(directory: &Path) -> Server {
    Server::start(directory, ListOfVolumes::default()).unwrap()
}

fn connect(directory: &Path) -> Client {
    Client::connect(directory).unwrap().unwrap()
}

fn new_volume(domain: Option<&str>) -> NewVolume {
    let (name, domain) = ("disk0".to_owned(), domain.map(str::to_owned));
    NewVolume { name, size_bytes: 1 << 40, read_only: true, domain, ..NewVolume::default() }
}

#[test]
fn a_volume_in_a_domain_is_another_request() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let refused = connect(&folder.0).create_volume(new_volume(Some("tenant"))).unwrap_err();
    assert!(refused.to_string().contains("disk0 in tenant"), "{refused}");
}

#[test]
fn requests_come_back_as_their_responses() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let mut client = connect(&folder.0);
    assert_eq!(client.status().unwrap().pid, 7);
    let made = client.create_volume(new_volume(None)).unwrap();
    assert_eq!(client.volumes().unwrap(), [made]);
    assert!((client.stats().unwrap().dedup_ratio - 2.5).abs() < f64::EPSILON);
    let setting = client.compression().unwrap().to_compression();
    assert_eq!(setting, Some(Compression { codec: Codec::Zstd, level: -3 }));
    client.set_compression(Compression { codec: Codec::Raw, level: 0 }).unwrap();
}

#[test]
fn a_refusal_keeps_its_kind_and_its_words() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let refused = connect(&folder.0).delete_volume(DeleteRequest::of("ghost")).unwrap_err();
    let CallError::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!(refusal.kind, RefusalKind::NoSuchVolume);
    assert!(refusal.sentence.contains("ghost"), "{refusal}");
}

#[test]
fn an_answer_to_another_question_is_an_error() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let answered = connect(&folder.0).resize_volume("disk0", 512, true);
    assert!(matches!(answered, Err(CallError::WrongResponse)), "{answered:?}");
}

/// What a client of [`slow_server`] waits for.
const SHORT_WHILE: Duration = Duration::from_millis(50);

fn pause() {
    thread::sleep(4 * SHORT_WHILE);
}

/// A client that is not patient, of a server that answers one request when `wait` has ended, in two
/// parts, and ends.
fn slow_server(
    response: &Response,
    wait: impl FnOnce() + Send + 'static,
) -> (Client, JoinHandle<()>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"{\"protocol\":1,\"tamis\":\"0\",\"busy\":false}\n").unwrap();
    let mut answer = Vec::new();
    line::send(&mut answer, response).unwrap();
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
    let response = Response::Collected { step: Box::new(step.clone()) };
    let (mut client, server) = slow_server(&response, pause);
    assert_eq!(client.collect(CollectRequest::default()).unwrap(), step);
    server.join().unwrap();
    let next = client.collect(CollectRequest::default());
    assert!(matches!(next, Err(CallError::Closed | CallError::Connection(_))), "{next:?}");
}

#[test]
fn an_answer_that_comes_too_late_is_nobodys() {
    let (tell, told) = mpsc::channel();
    let wait = move || told.recv().unwrap();
    let (mut client, server) = slow_server(&Response::Stats { stats: Box::default() }, wait);
    let late = client.stats();
    assert!(matches!(late, Err(CallError::Connection(_))), "{late:?}");
    tell.send(()).unwrap();
    server.join().unwrap();
    let next = client.volumes();
    assert!(matches!(next, Err(CallError::Closed)), "{next:?}");
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
    connect(&folder.0).status().unwrap();
}

#[test]
fn a_live_server_is_not_replaced() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let second = Server::start(&folder.0, ListOfVolumes::default());
    assert!(matches!(second, Err(ServeError::InUse { .. })), "{second:?}");
    connect(&folder.0).status().unwrap();
}

#[test]
fn stop_closes_idle_connections_and_removes_the_socket() {
    let folder = Folder::new();
    let server = serve(&folder.0);
    let mut idle = connect(&folder.0);
    idle.status().unwrap();
    server.stop();
    assert!(!folder.0.join(SOCKET_NAME).exists());
    assert!(idle.status().is_err());
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
    connect(&store).status().unwrap();
}

/// Answers only when it is told that the engine is being closed.
struct WaitsForClose {
    asked: mpsc::SyncSender<()>,
    closes: Mutex<mpsc::Receiver<()>>,
}

impl Service for WaitsForClose {
    fn answer(&self, _: Request) -> Response {
        self.asked.send(()).unwrap();
        self.closes.lock().unwrap().recv().unwrap();
        Response::Done
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
    connect(&deep).status().unwrap();
    server.stop();
    assert!(!deep.join(SOCKET_NAME).exists());
}

#[test]
fn one_connection_too_many_is_told_so_and_room_comes_back() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let mut open: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| connect(&folder.0)).collect();
    assert!(matches!(Client::connect(&folder.0), Err(ConnectError::Busy)));
    drop(open.pop());
    let free = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Client::connect(&folder.0).is_ok()
    });
    assert!(free);
}

/// A connection that speaks bytes of its own choice.
fn raw_connection(directory: &Path) -> (BufReader<UnixStream>, UnixStream) {
    let stream = UnixStream::connect(directory.join(SOCKET_NAME)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut hello = String::new();
    reader.read_line(&mut hello).unwrap();
    assert!(hello.contains("\"protocol\":1"), "{hello}");
    (reader, stream)
}

fn refusal(reader: &mut BufReader<UnixStream>) -> Refusal {
    match line::receive(reader, 1 << 20).unwrap().unwrap() {
        Response::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nonsense_is_refused_and_the_connection_goes_on() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let (mut reader, mut writer) = raw_connection(&folder.0);
    for nonsense in ["", "{", "[1,2]", "{\"request\":\"make_coffee\"}", "\u{0}\u{1}"] {
        writeln!(writer, "{nonsense}").unwrap();
        assert_eq!(refusal(&mut reader).kind, RefusalKind::BadRequest, "{nonsense:?}");
    }
    writeln!(writer, "{{\"request\":\"list_volumes\"}}").unwrap();
    let response: Response = line::receive(&mut reader, 1 << 20).unwrap().unwrap();
    assert_eq!(response, Response::Volumes { volumes: Vec::new(), more: false });
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
    let count = 5 * VOLUMES_PER_LINE_MAX;
    let mut all: Vec<VolumeInfo> = (0..count).map(volume).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let _server = Server::start(&folder.0, ListOfVolumes(Mutex::new(all.clone()))).unwrap();
    let mut client = Client::connect(&folder.0).unwrap().unwrap();
    assert!(client.volumes().unwrap() == all);
    // As a client of an earlier release asks.
    let listed = client.call(&Request::ListVolumes { after: None, most: None });
    assert!(matches!(listed, Err(CallError::TooLong { .. })), "{listed:?}");
}

/// Snapshots of one moment, of as many volumes as a large host has.
#[test]
fn a_request_names_many_volumes() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let volumes = (0..10_000).map(|number| format!("{number:0255}")).collect();
    let request = SnapshotRequest { volumes, name: "daily".to_owned(), taken_unix_s: 0 };
    connect(&folder.0).take_snapshots(request).unwrap();
}

#[test]
fn a_line_without_end_is_not_held_in_memory() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let (mut reader, mut writer) = raw_connection(&folder.0);
    writer.write_all(&vec![b'x'; REQUEST_BYTES_MAX + 1]).unwrap();
    assert_eq!(refusal(&mut reader).kind, RefusalKind::BadRequest);
    assert!(line::receive::<Response>(&mut reader, 1 << 20).unwrap().is_none());
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
fn greet_once(directory: &Path, greeting: &'static str) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(directory.join(SOCKET_NAME)).unwrap();
    std::thread::spawn(move || {
        listener.accept().unwrap().0.write_all(greeting.as_bytes()).unwrap();
    })
}

#[test]
fn a_server_of_another_protocol_is_named() {
    let folder = Folder::new();
    let server = greet_once(&folder.0, "{\"protocol\":9,\"tamis\":\"3.0\",\"busy\":false}\n");
    let error = Client::connect(&folder.0).unwrap_err();
    assert!(matches!(error, ConnectError::OtherProtocol { server_protocol: 9, .. }), "{error}");
    assert!(error.to_string().contains("3.0"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_greeting_that_is_none_is_an_error() {
    let folder = Folder::new();
    let server = greet_once(&folder.0, "SSH-2.0\n");
    let error = Client::connect(&folder.0).unwrap_err();
    assert!(matches!(error, ConnectError::NoGreeting { .. }), "{error}");
    server.join().unwrap();
}

#[test]
fn a_kind_of_a_newer_server_is_a_failure() {
    let refusal: Refusal =
        serde_json::from_str(r#"{"kind":"on_fire","sentence":"the store is on fire"}"#).unwrap();
    assert_eq!(refusal.kind, RefusalKind::Failed);
}

/// Whatever this server says of it: those of earlier releases say the same.
#[test]
fn what_a_server_has_no_name_for_tells_that_it_is_of_an_earlier_release() {
    let folder = Folder::new();
    let _server = serve(&folder.0);
    let (mut reader, mut writer) = raw_connection(&folder.0);
    writeln!(writer, "{{\"request\":\"make_coffee\"}}").unwrap();
    let refused = Response::Refused(refusal(&mut reader));
    let mut said = b"{\"protocol\":1,\"tamis\":\"0\",\"busy\":false}\n".to_vec();
    line::send(&mut said, &refused).unwrap();
    let mut client = Client::over(said.as_slice(), std::io::sink()).unwrap();
    let error = client.status().unwrap_err();
    assert!(matches!(error, CallError::EarlierServer), "{error}");
}

#[test]
fn a_deletion_that_an_older_client_asks_for_leaves_snapshots_alone() {
    let request: Request =
        serde_json::from_str(r#"{"request":"delete_volume","name":"v"}"#).unwrap();
    assert_eq!(request, Request::DeleteVolume(DeleteRequest::of("v")));
}

/// Earlier servers pass over fields that they do not know: what is guarded has names of its own.
#[test]
fn what_is_guarded_is_asked_for_in_words_that_earlier_servers_refuse() {
    #[derive(serde::Deserialize)]
    #[serde(tag = "request", rename_all = "snake_case")]
    #[expect(dead_code, reason = "what 0.1.0 takes of these requests")]
    enum Earlier {
        ResizeVolume { name: String, size_bytes: u64 },
        DeleteVolume { name: String },
        Rollback { snapshot: String },
    }
    type ToNobody<'a> = Client<&'a [u8], &'a mut Vec<u8>>;
    let asked_by = |ask: &dyn Fn(&mut ToNobody<'_>)| {
        let hello = b"{\"protocol\":1,\"tamis\":\"0\",\"busy\":false}\n";
        let mut asked = Vec::new();
        ask(&mut Client::over(hello.as_slice(), &mut asked).unwrap());
        serde_json::from_slice::<Earlier>(&asked)
    };
    let deletion = DeleteRequest::of("v");
    let numbered = DeleteRequest { id: Some(3), ..deletion.clone() };
    let bounded = DeleteRequest { newest: Some(3), ..deletion.clone() };
    for guarded in [numbered, bounded] {
        let asked = asked_by(&|client| drop(client.delete_volume(guarded.clone())));
        assert!(asked.is_err_and(|error| error.to_string().contains("unknown variant")));
    }
    assert!(asked_by(&|client| drop(client.roll_back("v@a", Some(3)))).is_err());
    assert!(asked_by(&|client| drop(client.resize_volume("v", 512, false))).is_err());
    // Whoever asks for whatever has the name is understood as ever.
    asked_by(&|client| drop(client.delete_volume(deletion.clone()))).unwrap();
    asked_by(&|client| drop(client.roll_back("v@a", None))).unwrap();
    asked_by(&|client| drop(client.resize_volume("v", 512, true))).unwrap();
}

#[test]
fn older_clients_resize_and_roll_back_what_has_the_name() {
    let request = |line| serde_json::from_str::<Request>(line).unwrap();
    let resize = request(r#"{"request":"resize_volume","name":"v","size_bytes":512}"#);
    let (name, size_bytes, may_shrink) = ("v".to_owned(), 512, true);
    assert_eq!(resize, Request::ResizeVolume { name, size_bytes, may_shrink });
    let rollback = request(r#"{"request":"rollback","snapshot":"v@a"}"#);
    assert_eq!(rollback, Request::Rollback { snapshot: "v@a".into(), id: None });
}

#[test]
fn what_is_refused_of_snapshots_has_its_kind() {
    let name = || "v".to_owned();
    for (error, kind) in [
        (RequestError::NotAVolume { name: name() }, RefusalKind::BadRequest),
        (RequestError::NotASnapshot { name: name() }, RefusalKind::BadRequest),
        (RequestError::HasSnapshots { name: name(), count: 2 }, RefusalKind::BadRequest),
        (RequestError::NewSnapshots { name: name() }, RefusalKind::BadRequest),
        (RequestError::OtherVolume { name: name() }, RefusalKind::NoSuchVolume),
        (RequestError::TooManySnapshots { count: 2, count_max: 1 }, RefusalKind::BadRequest),
        (RequestError::InUse { name: name(), opens: Vec::new() }, RefusalKind::InUse),
        (RequestError::RollingBack { name: name() }, RefusalKind::InUse),
        (RequestError::RequestsUnderWay { name: name() }, RefusalKind::InUse),
        (RequestError::SnapshotUnderWay { name: name() }, RefusalKind::InUse),
    ] {
        assert_eq!(Refusal::from(error.clone()).kind, kind, "{error}");
    }
}

#[test]
fn codecs_go_there_and_back_and_unknown_ones_are_none() {
    for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
        let compression = Compression { codec, level: 5 };
        assert_eq!(CompressionSetting::from(compression).to_compression(), Some(compression));
    }
    assert_eq!(CompressionSetting { codec: 99, level: 0 }.to_compression(), None);
}
