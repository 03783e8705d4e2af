use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::{Completions, Reply, RequestError};
use rustix::net::sockopt::set_socket_send_buffer_size;

use super::{Batch, Forbearance, Hangup, Link, Load, READ_BYTES_MAX, REQUESTS_MAX};
use crate::given_up::has_given_up;
use crate::reply::Replies;
use crate::socket::Socket;
use crate::wire::{Command, Request, simple_reply};
use crate::writer;

fn link() -> (Arc<Link>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let socket = Arc::new(Socket::Unix(ours));
    let forbearance = Forbearance { time_max: Duration::MAX, is_memory_wanted: Box::new(|| false) };
    (Arc::new(Link::new(socket, READ_BYTES_MAX, false, forbearance)), theirs)
}

fn request(command: Command, length_bytes: u32) -> Request {
    Request { flags: 0, command, cookie: 1, offset_bytes: 0, length_bytes }
}

fn release_all(link: &Link, batch: &mut Batch) {
    let mut load = Load::default();
    batch.outcomes.drain(..).for_each(|(request, _)| load.add(&request));
    link.release(load);
}

#[test]
fn a_connection_has_so_many_requests_and_no_more() {
    let (link, _client) = link();
    let flush = request(Command::Flush, 0);
    let tags: Vec<u64> = (0..REQUESTS_MAX)
        .map(|_| {
            assert!(link.has_room_for(&flush));
            link.begin(flush)
        })
        .collect();
    assert!(!link.has_room_for(&flush));
    link.complete(tags[3], Ok(Reply::Done));
    // Its reply is not sent yet.
    assert!(!link.has_room_for(&flush));
    let mut batch = Batch::default();
    assert!(link.take(&mut batch));
    assert_eq!(batch.outcomes.len(), 1);
    release_all(&link, &mut batch);
    assert!(link.has_room_for(&flush));
}

#[test]
fn a_connection_has_so_many_bytes_of_reads_and_no_more() {
    let (link, _client) = link();
    let half = request(Command::Read, u32::try_from(READ_BYTES_MAX / 2).unwrap());
    let tag = link.begin(half);
    link.begin(half);
    assert!(!link.has_room_for(&request(Command::Read, 512)));
    assert!(link.has_room_for(&request(Command::Write, u32::MAX)));
    link.retire(tag);
    assert!(link.has_room_for(&half));
}

#[test]
fn the_reader_is_woken_when_a_reply_has_been_sent() {
    let (link, _client) = link();
    let flush = request(Command::Flush, 0);
    for _ in 0..REQUESTS_MAX {
        link.begin(flush);
    }
    let reader = {
        let link = Arc::clone(&link);
        thread::spawn(move || link.wait_for_room(&flush))
    };
    thread::sleep(Duration::from_millis(20));
    link.complete(0, Err(RequestError::NoSpace));
    let mut batch = Batch::default();
    assert!(link.take(&mut batch));
    release_all(&link, &mut batch);
    assert_eq!(reader.join().unwrap(), Ok(()));
}

/// A request ends with `outcome` while the writer sleeps and nothing more is read: what the client
/// was sent by then, and how many outcomes were left to the writer.
fn last_request(command: Command, outcome: Result<Reply, RequestError>) -> (Vec<u8>, usize) {
    let (link, mut client) = link();
    let tag = link.begin(request(command, 0));
    link.end_reading();
    let writer = {
        let link = Arc::clone(&link);
        thread::spawn(move || {
            let (mut batch, mut answered) = (Batch::default(), 0);
            while link.take(&mut batch) {
                answered += batch.outcomes.len();
                release_all(&link, &mut batch);
            }
            answered
        })
    };
    while !link.state().writer_sleeps {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(link.is_busy());
    link.complete(tag, outcome);
    let answered = writer.join().unwrap();
    assert!(!link.is_busy());
    link.break_off();
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
fn nobody_waits_on_a_broken_connection() {
    let (link, _client) = link();
    let flush = request(Command::Flush, 0);
    let tags: Vec<u64> = (0..REQUESTS_MAX).map(|_| link.begin(flush)).collect();
    link.complete(tags[0], Ok(Reply::Done));
    link.break_off();
    assert_eq!(link.wait_for_room(&flush), Err(Hangup));
    assert!(!link.take(&mut Batch::default()));
    assert_eq!(link.send(b"x"), Err(Hangup));
    // The engine does not know yet.
    link.complete(tags[1], Ok(Reply::Done));
    link.complete(9999, Ok(Reply::Done));
}

#[test]
fn a_pause_ends_with_the_connection() {
    let (link, _client) = link();
    assert_eq!(link.pause(Duration::from_millis(1)), Ok(()));
    let pauses = {
        let link = Arc::clone(&link);
        thread::spawn(move || link.pause(Duration::from_secs(600)))
    };
    thread::sleep(Duration::from_millis(20));
    link.break_off();
    assert_eq!(pauses.join().unwrap(), Err(Hangup));
    assert_eq!(link.pause(Duration::from_secs(600)), Err(Hangup));
}

#[test]
fn outcomes_that_are_put_back_are_the_first_that_are_taken() {
    let (link, _client) = link();
    let tags = [3, 4, 5].map(|length_bytes| link.begin(request(Command::Flush, length_bytes)));
    link.complete(tags[0], Err(RequestError::NoSpace));
    link.complete(tags[1], Err(RequestError::NoSpace));
    let mut batch = Batch::default();
    assert!(link.take(&mut batch));
    link.complete(tags[2], Err(RequestError::NoSpace));
    batch.outcomes.pop_front();
    link.leave(&mut batch.outcomes);
    assert!(batch.outcomes.is_empty() && link.take(&mut batch));
    let left: Vec<u32> = batch.outcomes.iter().map(|(of, _)| of.length_bytes).collect();
    assert_eq!(left, [4, 5]);
    link.break_off();
    link.leave(&mut batch.outcomes);
    assert_eq!(batch.outcomes.len(), 2, "nothing waits on a broken connection");
}

#[test]
fn acknowledgements_are_left_to_a_writer_that_is_sending() {
    let (link, mut client) = link();
    link.send_or_hand_over(b"now").unwrap();
    let mut batch = Batch::default();
    {
        let _sending = link.sending.lock().unwrap();
        link.send_or_hand_over(b"later").unwrap();
        assert!(link.take(&mut batch));
    }
    assert_eq!(batch.replies, b"later");
    link.break_off();
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
        if let Socket::Unix(stream) = &*link.socket {
            set_socket_send_buffer_size(stream, 1).unwrap();
        }
        {
            let (mut state, mut rest) = (link.state(), link.sending.lock().unwrap());
            state.answer.append(&answer);
            link.send_answer(&mut state, &mut rest);
            assert!(!rest.is_empty() && rest.len() < answer.len(), "{}", rest.len());
        }
        let took = thread::spawn(move || {
            let mut sent = Vec::new();
            client.read_to_end(&mut sent).unwrap();
            sent
        });
        let mut expected = answer.clone();
        if reader_sends {
            link.send_or_hand_over(b"acknowledged").unwrap();
            expected.extend_from_slice(b"acknowledged");
        }
        link.end_reading();
        writer::run(&link, Replies::new(Box::new([0; 1024]), false));
        link.socket.shutdown(Shutdown::Both);
        assert!(took.join().unwrap() == expected, "{reader_sends}");
    }
}

#[test]
fn who_has_closed_a_unix_socket_is_gone_and_who_only_sends_no_more_is_not() {
    let (link, client) = link();
    assert!(!link.is_gone());
    client.shutdown(Shutdown::Write).unwrap();
    link.leave_unread(Some(Vec::new()));
    link.end_without_a_word(&[]);
    assert!(!link.is_gone());
    drop(client);
    assert!(link.is_gone());
    let (link, _client) = self::link();
    link.break_off();
    assert!(link.is_gone(), "nothing can be sent any more");
}

/// Both ends of a TCP connection.
fn tcp_link() -> (Arc<Link>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = Arc::new(Socket::tcp(listener.accept().unwrap().0).unwrap());
    let forbearance = Forbearance { time_max: Duration::MAX, is_memory_wanted: Box::new(|| false) };
    (Arc::new(Link::new(socket, READ_BYTES_MAX, false, forbearance)), theirs)
}

/// A connection whose client has ended its sending, and that is known.
fn ended() -> (Arc<Link>, TcpStream) {
    let (link, client) = tcp_link();
    client.shutdown(Shutdown::Write).unwrap();
    while !has_given_up(&link.socket, &[]) {
        thread::sleep(Duration::from_millis(1));
    }
    (link, client)
}

#[test]
fn who_has_ended_a_tcp_connection_is_gone_but_for_a_good_bye() {
    let mut good_bye = Vec::new();
    request(Command::Disconnect, 0).encode(&mut good_bye);
    let (link, _client) = ended();
    assert!(!link.is_gone(), "its reader may have come to a good-bye");
    link.leave_unread(Some(good_bye.clone()));
    assert!(!link.is_gone());
    link.leave_unread(Some(Vec::new()));
    assert!(link.is_gone(), "while its reader waits");
    let (link, _client) = ended();
    link.end_without_a_word(&[]);
    assert!(link.is_gone(), "when its reader has come to the end");
    let (link, _client) = ended();
    link.drain();
    link.leave_unread(Some(Vec::new()));
    link.end_without_a_word(&[]);
    assert!(!link.is_gone(), "the server has ended it");
}
