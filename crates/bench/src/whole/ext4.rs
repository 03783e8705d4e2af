//! ext4 on a target, for programs that want files: on the file itself, or on a volume of a server,
//! which `nbdfuse` shows as a file; a loop device makes either a disk of the kernel.
//!
//! Every system with a server pays for nbdfuse alike. What was made is undone in the reverse order
//! when the value is dropped.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::mounted::{Mounted, persist};
use crate::failure::Failure;
use crate::fio::Target;
use crate::program::{bound, output, words};

/// No holes are made in a file that was written once, and nothing is left to be done behind the
/// mount's back.
const FEATURES: &str = "nodiscard,lazy_itable_init=0,lazy_journal_init=1";

/// A mounted ext4.
pub(super) struct Ext4 {
    folder: PathBuf,
    mounted: Option<Mounted>,
    shown: Option<Shown>,
}

/// A volume as a file.
struct Shown {
    folder: PathBuf,
    nbdfuse: Child,
    runs: bool,
}

impl Ext4 {
    /// Makes it on `target` and mounts it on `folder`, which must not be there yet.
    pub(super) fn make(target: &Target, folder: &Path) -> Result<Self, Failure> {
        fs::create_dir(folder).map_err(Failure::file(folder))?;
        let mut ext4 = Self { folder: folder.to_owned(), mounted: None, shown: None };
        let image = match target {
            Target::Nbd { uri } => {
                let shown = Shown::make(uri, &folder.with_extension("shown"))?;
                ext4.shown.insert(shown).file()
            }
            Target::Direct { path } | Target::Buffered { path } => path.clone(),
        };
        output(Command::new("mkfs.ext4").args(["-q", "-F", "-E", FEATURES]).arg(&image))?;
        ext4.mounted = Some(Mounted::new(&image, folder, "noatime")?);
        Ok(ext4)
    }

    /// Unmounts it; all that was written is with the target afterwards.
    pub(super) fn remove(mut self) -> Result<(), Failure> {
        self.mounted.take().map_or(Ok(()), Mounted::unmount)?;
        self.shown.take().map_or(Ok(()), Shown::remove)?;
        fs::remove_dir(&self.folder).map_err(Failure::file(&self.folder))
    }
}

impl Shown {
    fn make(uri: &str, folder: &Path) -> Result<Self, Failure> {
        fs::create_dir(folder).map_err(Failure::file(folder))?;
        let mut command = bound("nbdfuse");
        command.arg(folder.join(FILE)).arg(uri).process_group(0);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let nbdfuse = quiet.spawn();
        let nbdfuse =
            nbdfuse.map_err(|source| Failure::Start { command: words(&command), source })?;
        let shown = Self { folder: folder.to_owned(), nbdfuse, runs: true };
        persist(|| output(Command::new("test").arg("-f").arg(shown.file())))?;
        Ok(shown)
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn remove(mut self) -> Result<(), Failure> {
        // The kernel releases a loop device a little after its mount has gone.
        persist(|| output(Command::new("fusermount3").arg("-u").arg(&self.folder)))?;
        self.runs = false;
        let status = self.nbdfuse.wait().map_err(Failure::file(&self.folder))?;
        if !status.success() {
            let (command, said) = ("nbdfuse".to_owned(), "what was written may be lost".to_owned());
            return Err(Failure::Command { command, status, said });
        }
        fs::remove_dir(&self.folder).map_err(Failure::file(&self.folder))
    }
}

const FILE: &str = "disk";

impl Drop for Shown {
    fn drop(&mut self) {
        if self.runs {
            // After a failure, which is what is told.
            let _ = output(Command::new("fusermount3").arg("-uz").arg(&self.folder));
            let _ = self.nbdfuse.kill();
            let _ = self.nbdfuse.wait();
        }
    }
}
