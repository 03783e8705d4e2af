use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use door::{Load, READ_BYTES_MAX, SharedGrace, SlowClientPolicy};
use engine::{Completions, Reply, RequestError};
use rustix::net::sockopt::set_socket_send_buffer_size;

use super::{Batch, Link, send_or_hand_over};
use crate::given_up::has_given_up;
use crate::reply::Replies;
use crate::request::{operation, typed};
use crate::socket::Socket;
use crate::wire::{self, Command, simple_reply};
use crate::writer;

fn link() -> (Arc<Link>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let socket = Arc::new(Socket::Unix(ours));
    (over(socket), theirs)
}

fn over(socket: Arc<Socket>) -> Arc<Link> {
    let slow_clients = SlowClientPolicy {
        reply_grace: Arc::new(SharedGrace::of_replies(Duration::MAX)),
        is_memory_wanted: Box::new(|| false),
        payload_grace: Arc::new(SharedGrace::of_payloads()),
    };
    Arc::new(super::link(socket, READ_BYTES_MAX, false, slow_clients))
}

fn request(command: Command) -> wire::Request {
    wire::Request { flags: 0, command, cookie: 1, offset_bytes: 0, length_bytes: 0 }
}

fn release_all(link: &Link, batch: &mut Batch) {
    let mut load = Load::default();
    batch.outcomes.drain(..).for_each(|(request, _)| load.add(&request));
    link.release(load);
}

/// A request ends with `outcome` while the writer sleeps and nothing more is read: what the client
/// was sent by then, and how many outcomes were left to the writer.
fn last_request(command: Command, outcome: Result<Reply, RequestError>) -> (Vec<u8>, usize) {
    let (link, mut client) = link();
    let request = request(command);
    let done = link.begin::<()>(typed(&request, operation(&request).unwrap()));
    link.end_reading();
    let writer = {
        let link = Arc::clone(&link);
        thread::spawn(move || {
            let (mut batch, mut answered) = (Batch::default(), 0);
            while link.next_batch(&mut batch) {
                answered += batch.outcomes.len();
                release_all(&link, &mut batch);
            }
            answered
        })
    };
    while !link.writer_waits() {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(link.is_busy());
    link.complete(done.tag, outcome);
    let answered = writer.join().unwrap();
    assert!(!link.is_busy());
    link.abort();
    let mut sent = Vec::new();
    client.read_to_end(&mut sent).unwrap();
    (sent, answered)
}

#[test]
fn it_is_over_when_reading_has_ended_and_everything_is_sent() {
    assert_eq!(last_request(Command::Flush, Err(RequestError::NoSpace)), (Vec::new(), 1));
    assert_eq!(last_request(Command::BlockStatus, Ok(Reply::Done)), (Vec::new(), 1));
}

#[test]
fn an_answer_without_data_goes_out_at_once_while_the_writer_sleeps() {
    assert_eq!(last_request(Command::Flush, Ok(Reply::Done)), (simple_reply(0, 1).to_vec(), 0));
}

#[test]
fn acknowledgements_are_left_to_a_writer_that_is_sending() {
    let (link, mut client) = link();
    send_or_hand_over(&link, b"now").unwrap();
    let mut batch = Batch::default();
    {
        let _sending = link.transport().sending.lock().unwrap();
        send_or_hand_over(&link, b"later").unwrap();
        assert!(link.next_batch(&mut batch));
    }
    assert_eq!(batch.encoded, b"later");
    link.abort();
    let mut sent = Vec::new();
    client.read_to_end(&mut sent).unwrap();
    assert_eq!(sent, b"now");
}

/// A socket that takes a part of an answer: the rest comes next, and once, whether the reader or
/// the writer is the next to send.
#[test]
fn an_answer_that_is_sent_in_part_goes_on_where_it_stopped() {
    let answer: Vec<u8> = (0..16_000_u32).map(|at| (at % 251) as u8).collect();
    for reader_sends in [false, true] {
        let (link, mut client) = link();
        let wire = link.transport();
        if let Socket::Unix(stream) = &*wire.socket {
            set_socket_send_buffer_size(stream, 1).unwrap();
        }
        {
            let mut rest = wire.sending.lock().unwrap();
            link.with_outbox(|outbox| {
                outbox.answer.append(&answer);
                wire.send_answer(outbox, &mut rest);
                true
            });
            assert!(!rest.is_empty() && rest.len() < answer.len(), "{}", rest.len());
        }
        let took = thread::spawn(move || {
            let mut sent = Vec::new();
            client.read_to_end(&mut sent).unwrap();
            sent
        });
        let mut expected = answer.clone();
        if reader_sends {
            send_or_hand_over(&link, b"acknowledged").unwrap();
            expected.extend_from_slice(b"acknowledged");
        }
        link.end_reading();
        writer::run(&link, Replies::new(Box::new([0; 1024]), false));
        wire.socket.shutdown(Shutdown::Both);
        assert!(took.join().unwrap() == expected, "{reader_sends}");
    }
}

#[test]
fn who_has_closed_a_unix_socket_is_gone_and_who_only_sends_no_more_is_not() {
    let (link, client) = link();
    assert!(!link.is_gone());
    client.shutdown(Shutdown::Write).unwrap();
    link.set_unread(Some(Vec::new()));
    link.note_end(&Vec::new());
    assert!(!link.is_gone());
    drop(client);
    assert!(link.is_gone());
    let (link, _client) = self::link();
    link.abort();
    assert!(link.is_gone(), "nothing can be sent any more");
}

/// Both ends of a TCP connection.
fn tcp_link() -> (Arc<Link>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = Arc::new(Socket::tcp(listener.accept().unwrap().0).unwrap());
    (over(socket), theirs)
}

/// A connection whose client has ended its sending, and that is known.
fn ended() -> (Arc<Link>, TcpStream) {
    let (link, client) = tcp_link();
    client.shutdown(Shutdown::Write).unwrap();
    while !has_given_up(&link.transport().socket, &[]) {
        thread::sleep(Duration::from_millis(1));
    }
    (link, client)
}

#[test]
fn who_has_ended_a_tcp_connection_is_gone_but_for_a_good_bye() {
    let mut good_bye = Vec::new();
    request(Command::Disconnect).encode(&mut good_bye);
    let (link, _client) = ended();
    assert!(!link.is_gone(), "its reader may have come to a good-bye");
    link.set_unread(Some(good_bye.clone()));
    assert!(!link.is_gone());
    link.set_unread(Some(Vec::new()));
    assert!(link.is_gone(), "while its reader waits");
    let (link, _client) = ended();
    link.note_end(&Vec::new());
    assert!(link.is_gone(), "when its reader has come to the end");
    let (link, _client) = ended();
    link.drain();
    link.set_unread(Some(Vec::new()));
    link.note_end(&Vec::new());
    assert!(!link.is_gone(), "the server has ended it");
}
