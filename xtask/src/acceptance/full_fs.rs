//! ext4 on a volume that is much larger than its store, filled until the store has no room: what
//! the file system has promised is there, and when room was made it goes on.
//!
//! A file system whose disk has no room cannot even replay its own journal, so the room has to come
//! from outside, as it does for an operator: here from a TRIM of another volume. In between the
//! server is stopped, or killed, while the store is full. In the last rounds, as in the first,
//! everything that was promised since the beginning and not removed is compared.

use std::path::{Path, PathBuf};

use crate::acceptance::Setting;
use crate::acceptance::mounts::{Disk, Mount};
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;
use crate::program::Program;

const VOLUME: &str = "files";
const SPARE: &str = "spare";
/// Of the other volume, written anew in each round and trimmed when the store is full.
const SPARE_MIB: &str = "48";
/// Written after each relief: nothing of it may be refused.
const AGAIN_MIB: &str = "40";
/// What a new file system takes before it is full, at least: half of the store.
const FIRST_MIB: &str = "512";
const FIRST_MIB_SHORT: &str = "128";
/// And one of which every other file was removed, and whose store has given that room back.
const LATER_MIB: &str = "1";
const SERVE: [&str; 2] = ["--memory", "128M"];
const ROUNDS: u64 = 10;
const ROUNDS_SHORT: u64 = 2;

/// A round's files and where they are.
struct Filling<'a> {
    setting: &'a Setting,
    store: Store,
    reports: PathBuf,
    place: PathBuf,
}

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, if setting.short { "256M" } else { "1G" })?;
    let (reports, place) = (setting.work.join("reports"), setting.work.join("mounted"));
    let filling = Filling { setting, store, reports, place };
    let mut server = filling.store.serve(&SERVE)?;
    filling.store.create_volume(VOLUME, "16G")?;
    filling.store.create_volume(SPARE, "1G")?;
    let disk = filling.attach()?;
    Program::new("mkfs.ext4").arg("-q").path(disk.device()).run()?;
    disk.detach()?;
    for round in 1..=if setting.short { ROUNDS_SHORT } else { ROUNDS } {
        server = filling.round(round, server)?;
    }
    server.stop()?;
    filling.store.check()
}

impl Filling<'_> {
    fn round(&self, round: u64, server: Server) -> Result<Server, Failure> {
        let number = round.to_string();
        self.on_spare("spare")?;
        let (disk, mount) = self.mount()?;
        let least = match (round, self.setting.short) {
            (1, true) => FIRST_MIB_SHORT,
            (1, false) => FIRST_MIB,
            _ => LATER_MIB,
        };
        println!("round {round}: {}", self.script("fill", &[&number, least])?);
        println!("  full: {}", self.script("judge", &[])?);
        let server = self.restart(round, server, disk, mount)?;

        self.on_spare("trim")?;
        let (disk, mount) = self.mount()?;
        println!("  with room: {}", self.script("judge", &[])?);
        println!("  {}", self.script("thin", &[])?);
        Program::new("fstrim").path(mount.folder()).run()?;
        println!("  {}", self.script("write", &[&number, AGAIN_MIB])?);
        mount.unmount()?;
        Program::new("fsck.ext4").args(["-f", "-n"]).path(disk.device()).run()?;
        let mount = Mount::new(disk.device(), &self.place)?;
        println!("  judged by fsck.ext4: {}", self.script("judge", &[])?);
        mount.unmount()?;
        disk.detach()?;
        Ok(server)
    }

    /// The server ends while the store is full, well or by kill -9 in turn; the store is whole.
    fn restart(
        &self,
        round: u64,
        server: Server,
        disk: Disk,
        mount: Mount,
    ) -> Result<Server, Failure> {
        if round.is_multiple_of(2) {
            server.kill()?;
            mount.abandon()?;
            disk.abandon()?;
        } else {
            mount.unmount()?;
            disk.abandon()?;
            server.stop()?;
        }
        self.store.check()?;
        self.store.serve(&SERVE)
    }

    fn attach(&self) -> Result<Disk, Failure> {
        Disk::attach(&self.store.uri(VOLUME), &self.setting.work.join("fuse"))
    }

    fn mount(&self) -> Result<(Disk, Mount), Failure> {
        let disk = self.attach()?;
        let mount = Mount::new(disk.device(), &self.place)?;
        Ok((disk, mount))
    }

    fn script(&self, verb: &str, rest: &[&str]) -> Result<String, Failure> {
        let script = self.setting.script("files_until_full.py").arg(verb);
        let script = script.path(&self.place).path(Path::new(&self.reports));
        Ok(script.args(rest.iter().copied()).output()?.trim().to_owned())
    }

    fn on_spare(&self, verb: &str) -> Result<(), Failure> {
        let script = self.setting.script("files_until_full.py").arg(verb);
        script.arg(self.store.uri(SPARE)).arg(SPARE_MIB).run()
    }
}
