//! A raw or qcow2 image: written past the page cache, or served by nbdkit or qemu-nbd.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::system::System;
use crate::failure::Failure;
use crate::fio::{Job, Target, preallocate, write_once};
use crate::nbdkit::Nbdkit;
use crate::program::{Server, bound, output, socket_path, uri};

/// What `st_blocks` counts.
const BLOCK_BYTES: u64 = 512;

/// The filter that compresses takes whole clusters only, and says so to its clients.
const CLUSTER_BYTES: u64 = 64 << 10;

/// Who serves it, and how it is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Nbdkit,
    QemuRaw,
    Qcow2,
    /// Every cluster that is written is compressed.
    Qcow2Compressed,
}

/// An image, and its server.
pub(super) struct Image {
    path: PathBuf,
    served: Option<Served>,
    server: Running,
}

enum Running {
    None,
    Nbdkit(Nbdkit),
    Qemu(Server),
}

impl Image {
    /// Makes it and serves it, or not.
    pub(super) fn make(
        path: PathBuf,
        size_bytes: u64,
        served: Option<Served>,
    ) -> Result<Self, Failure> {
        match served {
            Some(Served::Qcow2 | Served::Qcow2Compressed) => {
                let mut create = Command::new("qemu-img");
                create.args(["create", "-q", "-f", "qcow2"]).arg(&path);
                output(create.arg(size_bytes.to_string()))?;
            }
            _ => {
                preallocate(&path, size_bytes)?;
                write_once(&path, size_bytes)?;
            }
        }
        let mut image = Self { path, served, server: Running::None };
        image.serve()?;
        Ok(image)
    }

    fn serve(&mut self) -> Result<(), Failure> {
        self.server = match self.served {
            None => Running::None,
            Some(Served::Nbdkit) => Running::Nbdkit(Nbdkit::start(&self.path)?),
            Some(by) => Running::Qemu(qemu_nbd(&self.path, by)?),
        };
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.server, Running::None) {
            Running::None => Ok(()),
            Running::Nbdkit(nbdkit) => nbdkit.stop(),
            Running::Qemu(server) => server.stop(),
        }
    }
}

impl System for Image {
    fn takes(&self, job: &Job) -> bool {
        self.served != Some(Served::Qcow2Compressed) || job.block_bytes >= CLUSTER_BYTES
    }

    fn target(&self) -> Target {
        match &self.server {
            Running::None => Target::direct(&self.path),
            Running::Nbdkit(nbdkit) => nbdkit.target(),
            Running::Qemu(_) => Target::Nbd { uri: uri(&socket_path("qemu"), "") },
        }
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.stop()?;
        self.serve()
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        let metadata = fs::metadata(&self.path).map_err(Failure::file(&self.path))?;
        Ok(metadata.blocks() * BLOCK_BYTES)
    }

    fn remove(mut self: Box<Self>) -> Result<(), Failure> {
        self.stop()?;
        fs::remove_file(&self.path).map_err(Failure::file(&self.path))
    }
}

/// Past the page cache, as hypervisors are told to.
fn qemu_nbd(path: &Path, by: Served) -> Result<Server, Failure> {
    let socket = socket_path("qemu");
    let mut command = bound("qemu-nbd");
    command.args(["--persistent", "--shared=16", "--cache=none", "--socket"]).arg(&socket);
    match by {
        Served::Qcow2 => command.arg("--format=qcow2").arg(path),
        Served::Qcow2Compressed => {
            let layers = "driver=compress,file.driver=qcow2,file.file.driver=file";
            let file = format!("{layers},file.file.filename={}", path.display());
            command.arg("--image-opts").arg(file)
        }
        Served::QemuRaw | Served::Nbdkit => command.arg("--format=raw").arg(path),
    };
    Server::start("qemu-nbd", &mut command, socket, path.with_extension("log"))
}
