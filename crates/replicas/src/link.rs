//! The connection of a primary: it connects, connects again when it was cut, and carries messages.
//!
//! One thread connects and sends, another one receives while there is a connection. Both hold the
//! bucket's volume for a moment at a time only, so they end when the bucket is closed.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use replication::{LinkState, Mirrored, MirroredError, ReplyWait, Standing};

use crate::address::Address;
use crate::notice::{Absence, Notices};
use crate::reply_wait::Clocked;
use crate::wire::{Socket, receive, send};

/// Pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How long the sender sleeps when nobody wakes it.
const SEND_PAUSE: Duration = Duration::from_millis(100);

/// What a link works on.
pub(crate) struct Link {
    pub(crate) mirrored: Weak<Mirrored>,
    pub(crate) reply_wait: Arc<Clocked>,
    pub(crate) address: Address,
    pub(crate) notices: Notices,
}

impl Link {
    /// Starts its thread.
    pub(crate) fn start(self) -> io::Result<()> {
        thread::Builder::new().name("replication".to_owned()).spawn(move || self.run()).map(drop)
    }

    fn run(mut self) {
        while let Some(mirrored) = self.mirrored.upgrade() {
            if matches!(mirrored.primary().standing(), Standing::Fenced(_)) {
                return;
            }
            drop(mirrored);
            let absence = match Socket::connect(&self.address) {
                Ok(socket) => {
                    let Some(mirrored) = self.mirrored.upgrade() else { return };
                    mirrored.primary().connected(self.reply_wait.now());
                    drop(mirrored);
                    let absence = self.serve(socket);
                    let Some(mirrored) = self.mirrored.upgrade() else { return };
                    mirrored.primary().cut(self.reply_wait.now());
                    self.reply_wait.wake();
                    absence
                }
                Err(error) => Absence::Unreachable(error.to_string()),
            };
            self.notices.is_away(absence);
            thread::sleep(CONNECT_PAUSE);
        }
    }

    /// Carries messages until the connection ends, and says why it did.
    fn serve(&mut self, mut socket: Socket) -> Absence {
        let unreachable = |error: io::Error| Absence::Unreachable(error.to_string());
        let source = match socket.another() {
            Ok(source) => source,
            Err(error) => return unreachable(error),
        };
        let (mirrored, reply_wait) = (self.mirrored.clone(), Arc::clone(&self.reply_wait));
        let receiver = thread::Builder::new().name("replication".to_owned());
        let received = match receiver.spawn(move || receive_all(source, &mirrored, &reply_wait)) {
            Ok(received) => received,
            Err(error) => return unreachable(error),
        };
        while self.send_some(&mut socket).is_some_and(|sent| sent.is_ok()) {}
        socket.end();
        match received.join() {
            Ok(Some(MirroredError::Peer(reason))) => Absence::Refusal(reason),
            Ok(Some(MirroredError::Volume(error))) => Absence::Unreachable(error.to_string()),
            // A panic has been printed.
            Ok(None) | Err(_) => Absence::Unreachable("the connection has ended".to_owned()),
        }
    }

    /// Sends what there is, or waits for it; none: the link is over.
    fn send_some(&mut self, socket: &mut Socket) -> Option<io::Result<()>> {
        let mark = self.reply_wait.mark();
        let mirrored = self.mirrored.upgrade()?;
        let message = {
            let mut primary = mirrored.primary();
            match primary.link() {
                LinkState::Away => return None,
                LinkState::InStep => self.notices.is_in_step(),
                _ => {}
            }
            primary.next_message()
        };
        if let Some(message) = message {
            drop(mirrored);
            return Some(send(socket, &[message]));
        }
        match mirrored.compare_some() {
            Ok(true) => return Some(Ok(())),
            Ok(false) => {}
            Err(_) => return None, // The store says what is wrong; they meet again.
        }
        drop(mirrored);
        self.reply_wait.wait_for(mark, SEND_PAUSE);
        Some(Ok(()))
    }
}

/// Takes messages until the connection ends, by an error of the bucket or without one.
fn receive_all(
    source: Socket,
    mirrored: &Weak<Mirrored>,
    reply_wait: &Clocked,
) -> Option<MirroredError> {
    let mut source = io::BufReader::new(source);
    let mut failed = None;
    while let Ok(message) = receive(&mut source) {
        let Some(mirrored) = mirrored.upgrade() else { break };
        failed = mirrored.take(message).err();
        if failed.is_some() {
            break;
        }
    }
    if let Some(mirrored) = mirrored.upgrade() {
        mirrored.primary().cut(reply_wait.now());
    }
    source.get_ref().end();
    reply_wait.wake();
    failed
}
