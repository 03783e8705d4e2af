//! A client script that goes on from order to order, while its server comes and goes.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::failure::Failure;
use crate::program::Program;

/// The running script. Its orders end when it is dropped, and with them the script.
#[derive(Debug)]
pub(crate) struct Ordered {
    name: &'static str,
    child: Child,
    orders: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Ordered {
    /// Starts `script`, which is called `name` when it fails.
    pub(crate) fn start(name: &'static str, script: Program) -> Result<Ordered, Failure> {
        let mut command = script.into_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed(name))?;
        let silent = || Failure::unmet("a client with pipes", name);
        let orders = Some(child.stdin.take().ok_or_else(silent)?);
        let lines = BufReader::new(child.stdout.take().ok_or_else(silent)?).lines();
        Ok(Ordered { name, child, orders, lines })
    }

    /// Gives it a line.
    pub(crate) fn order(&mut self, line: &str) -> Result<(), Failure> {
        let orders = self.orders.as_mut();
        orders.map_or(Ok(()), |orders| writeln!(orders, "{line}")).map_err(failed(self.name))
    }

    /// Its next line.
    pub(crate) fn line(&mut self) -> Result<String, Failure> {
        match self.lines.next() {
            Some(line) => line.map_err(failed(self.name)),
            None => Err(Failure::unmet(
                format!("{} that goes on", self.name),
                "one that ended; see above",
            )),
        }
    }

    /// Ends it, and expects that it has nothing to complain about.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        drop(self.orders.take());
        let status = self.child.wait().map_err(failed(self.name))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::unmet(format!("{} that ends well", self.name), status.to_string()))
        }
    }
}

fn failed(name: &str) -> impl Fn(std::io::Error) -> Failure {
    move |source| Failure::Start { command: name.to_owned(), source }
}
