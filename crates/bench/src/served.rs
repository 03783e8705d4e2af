//! The contestant Tamis: a store made for one round, served by the built program.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::args::Args;
use crate::failure::Failure;
use crate::fio::Target;
use crate::program::{Beside, Server, bound, output, socket_path, uri, words};
use crate::store::{CAPACITY_BYTES, write_data_once};

/// The measured volume.
pub(crate) const VOLUME: &str = "bench";

/// A served store.
pub(crate) struct Tamis {
    program: PathBuf,
    store: PathBuf,
    mode: Mode,
    memory: String,
    server: Option<Server>,
    /// In use before anything was written.
    empty_bytes: u64,
}

/// How the store is made and served, in words of the command line.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) init: &'static [&'static str],
    pub(crate) serve: &'static [&'static str],
}

impl Tamis {
    /// Makes a store with a volume of `size_bytes` and serves it.
    pub(crate) fn start(
        args: &Args,
        store: PathBuf,
        size_bytes: u64,
        mode: Mode,
    ) -> Result<Self, Failure> {
        // Every round writes about a quarter of the volume, compressed, and its random runs.
        let written_bytes = size_bytes;
        let mut tamis = Self::make(args, store, mode, CAPACITY_BYTES, written_bytes)?;
        tamis.create_volume(VOLUME, size_bytes)?;
        tamis.serve()?;
        tamis.empty_bytes = tamis.used_bytes()?;
        Ok(tamis)
    }

    /// Makes a store that is not served, with room for `capacity_bytes`, the first of which have
    /// been written.
    pub(crate) fn make(
        args: &Args,
        store: PathBuf,
        mode: Mode,
        capacity_bytes: u64,
        written_bytes: u64,
    ) -> Result<Self, Failure> {
        let memory = format!("{}M", args.memory_mib);
        let tamis =
            Self { program: args.tamis.clone(), store, mode, memory, server: None, empty_bytes: 0 };
        let capacity = capacity_bytes.to_string();
        output(tamis.command("init").args(["--capacity", &capacity]).args(mode.init))?;
        write_data_once(&tamis.store, written_bytes)?;
        Ok(tamis)
    }

    /// Makes a volume.
    pub(crate) fn create_volume(&self, name: &str, size_bytes: u64) -> Result<(), Failure> {
        let size = size_bytes.to_string();
        output(self.command("volume create").args([name, "--size", &size])).map(drop)
    }

    /// Clones the measured volume so often.
    pub(crate) fn clones(&self, count: u32) -> Result<Vec<Target>, Failure> {
        let snapshot = format!("{VOLUME}@cloned");
        output(self.command("snapshot create").arg(&snapshot))?;
        let clone = |number| {
            let name = format!("clone{number}");
            output(self.command("clone").args([&snapshot, &name]))?;
            Ok(self.volume(&name))
        };
        (0..count).map(clone).collect()
    }

    /// Begins a command of the program on the store, which goes on beside what is measured.
    pub(crate) fn beside(&self, words: &str, arguments: &[&str]) -> Result<Beside, Failure> {
        let mut command = bound(&self.program);
        command.args(words.split(' ')).arg(&self.store).args(arguments);
        Beside::begin(&mut command, self.store.with_extension("beside.log"))
    }

    /// Ends the server and starts it again: nothing it knew is in memory any more.
    pub(crate) fn restart(&mut self) -> Result<(), Failure> {
        self.stop()?;
        self.serve()
    }

    /// Ends the server and removes the store.
    pub(crate) fn remove(mut self) -> Result<(), Failure> {
        self.stop()?;
        std::fs::remove_dir_all(&self.store).map_err(Failure::file(&self.store))
    }

    /// Where clients find the volume.
    pub(crate) fn target(&self) -> Target {
        self.volume(VOLUME)
    }

    /// Where clients find the volume of this name.
    pub(crate) fn volume(&self, name: &str) -> Target {
        Target::Nbd { uri: uri(&self.socket(), name) }
    }

    /// Where its server listens.
    pub(crate) fn socket(&self) -> PathBuf {
        socket_path("tamis")
    }

    /// A figure of `tamis stats`, by its name.
    pub(crate) fn figure(&self, name: &'static str) -> Result<f64, Failure> {
        let stats = self.stats()?;
        stats.get(name).and_then(Value::as_f64).ok_or_else(|| Failure::Answer {
            command: words(&self.command("stats")),
            missing: name,
        })
    }

    /// What the device holds of it now and did not when it was new: containers, with their
    /// directories and with what is dead in them, and pages of tables. The ring of the journal was
    /// there from the beginning.
    pub(crate) fn stored_bytes(&self) -> Result<u64, Failure> {
        Ok(self.used_bytes()?.saturating_sub(self.empty_bytes))
    }

    fn used_bytes(&self) -> Result<u64, Failure> {
        Ok(self.figure("device_bytes")? as u64)
    }

    fn stats(&self) -> Result<Value, Failure> {
        let mut command = self.command("stats");
        let answer = output(command.arg("--json"))?;
        serde_json::from_str(&answer)
            .map_err(|_| Failure::Answer { command: words(&command), missing: "all JSON" })
    }

    /// Starts the server.
    pub(crate) fn serve(&mut self) -> Result<(), Failure> {
        let socket = self.socket();
        let mut command = bound(&self.program);
        command.arg("serve").arg(&self.store);
        command.args(["--memory", &self.memory]).args(self.mode.serve);
        command.arg("--nbd").arg(format!("unix:{}", socket.display()));
        let log = self.store.with_extension("log");
        self.server = Some(Server::start("tamis", &mut command, socket, log)?);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.server.take().map_or(Ok(()), Server::stop)
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words.split(' ')).arg(&self.store);
        command
    }
}
