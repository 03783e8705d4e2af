//! Whether a client has given its connection up.
//!
//! What it was not answered by then it may send again over another connection, and more behind it.
//! Whatever of the old one is carried out after that would undo what was acknowledged since. So:
//!
//! - What the engine has is before all that in its queue. But what waits there, for room or a
//!   quota, may be overtaken: an unmap waits for nobody. So the engine asks when it could go on
//!   ([`engine::Completions::is_gone`]), and drops it if the client has gone.
//! - What is still on its way here is not carried out once its reader had to wait for anything:
//!   behind each wait it asks [`has_given_up`].
//!
//! This is what can be known. A unix socket tells at once that the other end was closed, and tells
//! it from one that only sends nothing more. With TCP the end comes behind all that was sent, and
//! looks the same for both: there a client that has ended its sending counts as gone, but for one
//! that said good-bye ([`Command::Disconnect`]), whose requests are to be carried out. Of a client
//! that lost its network or its power nothing is heard, and what came from it in full is carried
//! out. So is what finds no wait on its way: between a look and the queue lie microseconds. The end
//! of a TCP connection counts for the engine once its reader has woken to it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::net::{RecvFlags, recv};

use crate::socket::Socket;
use crate::wire::{Command, REQUEST_BYTES, Request};

/// Of the whole connection.
const CLOSED: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Whether nobody waits for answers at the other end any more. `unread` is what was received and
/// not looked at yet.
pub(crate) fn has_given_up(socket: &Socket, unread: &[u8]) -> bool {
    let ends = ends_of(socket);
    match socket {
        _ if ends.intersects(CLOSED) => true,
        Socket::Unix(_) => false,
        Socket::Tcp(_) => ends.contains(PollFlags::RDHUP) && !ends_with_a_good_bye(socket, unread),
    }
}

/// Whether the other end is closed, for all that is known without a look at what was received.
pub(crate) fn is_closed(socket: &Socket) -> bool {
    ends_of(socket).intersects(CLOSED)
}

/// What has ended of a connection.
fn ends_of(socket: &Socket) -> PollFlags {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    match poll(&mut polled, Some(&Timespec::default())) {
        Ok(_) => polled[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// The end of `unread`, as much as [`has_given_up`] looks at.
pub(crate) fn end_of(unread: &[u8]) -> Vec<u8> {
    unread[unread.len().saturating_sub(REQUEST_BYTES)..].to_vec()
}

/// Whether the last request of all that came is to disconnect. The end of it has come, so that the
/// rest is here, in no more than a socket holds.
fn ends_with_a_good_bye(socket: &Socket, unread: &[u8]) -> bool {
    let waiting = ioctl_fionread(socket).unwrap_or(0);
    let mut bytes = unread.to_vec();
    bytes.resize(unread.len() + usize::try_from(waiting).unwrap_or(0), 0);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = recv(socket, &mut bytes[unread.len()..], flags).map_or(0, |(length, _)| length);
    bytes.truncate(unread.len() + peeked);
    let last = bytes.last_chunk::<REQUEST_BYTES>().and_then(Request::decode);
    last.is_some_and(|request| request.command == Command::Disconnect)
}
