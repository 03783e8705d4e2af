//! The connection of a primary: it connects, connects again when it was cut, and carries messages.
//!
//! One thread connects and sends, another one receives while there is a connection. Both hold the
//! bucket's volume for a moment at a time only, so they end when the bucket is closed.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use replication::{LinkState, Mirrored, Patience, Standing};

use crate::address::Address;
use crate::patience::Clocked;
use crate::wire::{Socket, receive, send};

/// Pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How long the sender sleeps when nobody wakes it.
const SEND_PAUSE: Duration = Duration::from_millis(100);

/// What a link works on.
pub(crate) struct Link {
    pub(crate) mirrored: Weak<Mirrored>,
    pub(crate) patience: Arc<Clocked>,
    pub(crate) address: Address,
}

impl Link {
    /// Starts its thread.
    pub(crate) fn start(self) -> io::Result<()> {
        thread::Builder::new().name("replication".to_owned()).spawn(move || self.run()).map(drop)
    }

    fn run(&self) {
        while let Some(mirrored) = self.mirrored.upgrade() {
            if matches!(mirrored.primary().standing(), Standing::Fenced(_)) {
                return;
            }
            drop(mirrored);
            if let Ok(socket) = Socket::connect(&self.address) {
                let Some(mirrored) = self.mirrored.upgrade() else { return };
                mirrored.primary().connected(self.patience.now());
                drop(mirrored);
                self.serve(socket);
                let Some(mirrored) = self.mirrored.upgrade() else { return };
                mirrored.primary().cut(self.patience.now());
                self.patience.wake();
            }
            thread::sleep(CONNECT_PAUSE);
        }
    }

    /// Carries messages until the connection ends.
    fn serve(&self, mut socket: Socket) {
        let Ok(source) = socket.another() else { return };
        let (mirrored, patience) = (self.mirrored.clone(), Arc::clone(&self.patience));
        let receiver = thread::Builder::new().name("replication".to_owned());
        let received = receiver.spawn(move || receive_all(source, &mirrored, &patience));
        let Ok(received) = received else { return };
        while self.send_some(&mut socket).is_some_and(|sent| sent.is_ok()) {}
        socket.end();
        // A panic has been printed; the connection is over in any case.
        let _ = received.join();
    }

    /// Sends what there is, or waits for it; none: the link is over.
    fn send_some(&self, socket: &mut Socket) -> Option<io::Result<()>> {
        let mark = self.patience.mark();
        let mirrored = self.mirrored.upgrade()?;
        let message = {
            let mut primary = mirrored.primary();
            if primary.link() == LinkState::Away {
                return None;
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
        self.patience.wait_for(mark, SEND_PAUSE);
        Some(Ok(()))
    }
}

fn receive_all(source: Socket, mirrored: &Weak<Mirrored>, patience: &Clocked) {
    let mut source = io::BufReader::new(source);
    while let Ok(message) = receive(&mut source) {
        let Some(mirrored) = mirrored.upgrade() else { break };
        if mirrored.take(message).is_err() {
            break;
        }
    }
    if let Some(mirrored) = mirrored.upgrade() {
        mirrored.primary().cut(patience.now());
    }
    source.get_ref().end();
    patience.wake();
}
