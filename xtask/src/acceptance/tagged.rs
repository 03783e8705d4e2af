//! The client of the kill scenario: `tagged_writer.py`, told again and again to connect and write
//! until its server dies.

use crate::acceptance::Setting;
use crate::acceptance::ordered::Ordered;
use crate::acceptance::server::Store;
use crate::failure::Failure;

const SCRIPT: &str = "tagged_writer.py";
/// The line that says that all connections are broken.
const BROKEN: &str = "B";

/// One stretch of writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) seed: u64,
    pub(crate) first_number: u64,
    /// One waits for every answer; several have many writes in flight.
    pub(crate) connections: u64,
}

/// The running client. It ends when it is dropped and its server is dead.
#[derive(Debug)]
pub(crate) struct Writer {
    client: Ordered,
}

impl Writer {
    /// Starts the client; it connects to nothing yet.
    pub(crate) fn start(
        setting: &Setting,
        store: &Store,
        volumes: &[&str],
    ) -> Result<Writer, Failure> {
        let script = setting.script(SCRIPT);
        let script = volumes.iter().fold(script, |script, name| script.arg(store.uri(name)));
        Ok(Writer { client: Ordered::start(SCRIPT, script)? })
    }

    /// Tells it to connect and to write.
    pub(crate) fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let Order { seed, first_number, connections } = order;
        self.client.order(&format!("{seed} {first_number} {connections}"))
    }

    /// The next line of its log; None once all its connections are broken.
    pub(crate) fn line(&mut self) -> Result<Option<String>, Failure> {
        let line = self.client.line()?;
        Ok((line != BROKEN).then_some(line))
    }

    /// Ends it, and expects that it was never refused anything.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.client.end()
    }
}
