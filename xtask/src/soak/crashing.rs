//! A file system on a volume whose server is killed, and that comes back.
//!
//! When the server dies, nbdfuse fails everything, so the loop device does, so the file system sees
//! a disk that has gone: what was dirty in memory is lost with it, as in a power cut. Its remains
//! are unmounted, the store is checked as the kill has left it, and everything is built up again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;

use crate::acceptance::Setting;
use crate::acceptance::mounts::{Disk, Mount};
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;
use crate::program::Program;
use crate::soak::rounds::KillAt;

/// A file system: how it is made, and how it is judged without being changed.
pub(crate) struct Kind {
    pub(crate) make: &'static [&'static str],
    pub(crate) judge: &'static [&'static str],
}

pub(crate) const EXT4: Kind =
    Kind { make: &["mkfs.ext4", "-q"], judge: &["fsck.ext4", "-f", "-n"] };

const VOLUME: &str = "disk";
const VOLUME_SIZE: &str = "2G";
const CAPACITY: &str = "1G";
const SERVE: [&str; 2] = ["--memory", "128M"];

/// The layers, in the order in which they are let go of.
pub(crate) struct Crashing {
    mount: Option<Mount>,
    disk: Option<Disk>,
    server: Option<Server>,
    store: Store,
    fuse: PathBuf,
    place: PathBuf,
}

impl Crashing {
    /// A new store with a new file system, mounted.
    pub(crate) fn make(setting: &Setting, kind: &Kind) -> Result<Crashing, Failure> {
        let store = Store::init(setting, CAPACITY)?;
        let server = store.serve(&SERVE)?;
        store.create_volume(VOLUME, VOLUME_SIZE)?;
        let (fuse, place) = (setting.work.join("fuse"), setting.work.join("mounted"));
        let disk = Disk::attach(&store.uri(VOLUME), &fuse)?;
        on_device(kind.make, &disk).run()?;
        let mount = Mount::new(disk.device(), &place)?;
        let (mount, disk, server) = (Some(mount), Some(disk), Some(server));
        Ok(Crashing { mount, disk, server, store, fuse, place })
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.place
    }

    /// Lets `work` write until the moment of the kill, and returns what it reported to the end.
    /// It ends by itself: on a disk that has gone nothing can be written.
    pub(crate) fn kill_under(&mut self, work: Program, at: KillAt) -> Result<Vec<String>, Failure> {
        let command = work.to_string();
        let started = |source| Failure::Start { command: command.clone(), source };
        let mut child = work.into_command().stdout(Stdio::piped()).spawn().map_err(started)?;
        let mut reported = Vec::new();
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            reported.push(line.map_err(started)?);
            if reported.len() as u64 == at.lines {
                sleep(at.pause);
                self.kill()?;
            }
        }
        child.wait().map_err(started)?;
        if self.server.is_some() {
            let last = reported.last().cloned().unwrap_or_default();
            return Err(Failure::unmet("a program that writes until the kill", last));
        }
        Ok(reported)
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.server.take().map_or(Ok(()), |server| server.kill().map(drop))
    }

    /// Clears the remains away, checks the store, and mounts the file system again.
    pub(crate) fn come_back(&mut self) -> Result<(), Failure> {
        self.mount.take().map_or(Ok(()), Mount::abandon)?;
        self.disk.take().map_or(Ok(()), Disk::abandon)?;
        self.store.check()?;
        self.server = Some(self.store.serve(&SERVE)?);
        let disk = self.disk.insert(Disk::attach(&self.store.uri(VOLUME), &self.fuse)?);
        self.mount = Some(Mount::new(disk.device(), &self.place)?);
        Ok(())
    }

    /// Unmounts, lets the file system's own tool judge it, and mounts it again.
    pub(crate) fn judge(&mut self, kind: &Kind) -> Result<(), Failure> {
        self.mount.take().map_or(Ok(()), Mount::unmount)?;
        if let Some(disk) = &self.disk {
            on_device(kind.judge, disk).run()?;
            self.mount = Some(Mount::new(disk.device(), &self.place)?);
        }
        Ok(())
    }

    /// Ends well, layer by layer.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.mount.take().map_or(Ok(()), Mount::unmount)?;
        self.disk.take().map_or(Ok(()), Disk::detach)?;
        self.server.take().map_or(Ok(()), Server::stop)?;
        self.store.check()
    }
}

/// One of the command lines above, on a device.
fn on_device(words: &[&'static str], disk: &Disk) -> Program {
    let (name, options) = words.split_first().unwrap_or((&"false", &[]));
    Program::new(*name).args(options.iter().copied()).path(disk.device())
}
