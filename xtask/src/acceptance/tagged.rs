//! The client of the kill scenario: `tagged_writer.py`, told again and again to connect and write
//! until its server dies.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;

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
    child: Child,
    orders: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    /// Starts the client; it connects to nothing yet.
    pub(crate) fn start(
        setting: &Setting,
        store: &Store,
        volumes: &[&str],
    ) -> Result<Writer, Failure> {
        let script = setting.script("tagged_writer.py");
        let script = volumes.iter().fold(script, |script, name| script.arg(store.uri(name)));
        let mut command = script.into_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let silent = || Failure::unmet("a writer with pipes", "none");
        let orders = Some(child.stdin.take().ok_or_else(silent)?);
        let lines = BufReader::new(child.stdout.take().ok_or_else(silent)?).lines();
        Ok(Writer { child, orders, lines })
    }

    /// Tells it to connect and to write.
    pub(crate) fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let Order { seed, first_number, connections } = order;
        let line = format!("{seed} {first_number} {connections}\n");
        self.orders
            .as_mut()
            .map_or(Ok(()), |orders| orders.write_all(line.as_bytes()))
            .map_err(failed)
    }

    /// The next line of its log; None once all its connections are broken.
    pub(crate) fn line(&mut self) -> Result<Option<String>, Failure> {
        match self.lines.next() {
            Some(line) => line.map(|line| (line != BROKEN).then_some(line)).map_err(failed),
            None => Err(Failure::unmet("a writer that goes on", "one that ended; see above")),
        }
    }

    /// Ends it, and expects that it was never refused anything.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        drop(self.orders.take());
        let status = self.child.wait().map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::unmet("a writer that ends well", status.to_string()))
        }
    }
}

fn failed(source: std::io::Error) -> Failure {
    Failure::Start { command: "tagged_writer.py".to_owned(), source }
}
