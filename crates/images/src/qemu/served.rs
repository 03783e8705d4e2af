//! The bytes of a disk, from a `qemu-nbd` that serves it to this process alone.
//!
//! ```text
//! started, its socket in a directory that nobody else may enter -> connected, directory removed
//!   -> reads -> killed and waited for, when this is dropped
//! ```
//!
//! It ends by itself when its only client is gone: also when this process is killed.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::asked::{Asked, last_line};
use crate::error::ImageError;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether it does.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// Names of directories that are tried.
const DIRECTORIES_MAX: u32 = 100;

// The protocol, as https://github.com/NetworkBlockDevice/nbd describes it; all numbers big-endian.
const GREETING: [u8; 16] = *b"NBDMAGICIHAVEOPT";
const FLAG_FIXED_NEWSTYLE: u16 = 1;
const CLIENT_FLAGS: u32 = 1;
const OPTION_GO: u32 = 7;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const INFO_EXPORT: [u8; 2] = [0, 0];
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
const READ: u32 = 0;
/// No information is longer.
const INFO_BYTES_MAX: u32 = 4096;

/// A disk that is being served.
#[derive(Debug)]
pub(crate) struct ServedDisk {
    server: Server,
    socket: UnixStream,
    size_bytes: u64,
    requests: u64,
}

/// The process, killed when this is dropped.
#[derive(Debug)]
struct Server(Child);

/// A directory of this process alone, removed when this is dropped.
#[derive(Debug)]
struct PrivateDirectory(PathBuf);

impl ServedDisk {
    pub(super) fn open(asked: Asked<'_>) -> Result<Self, ImageError> {
        let failed = |what| ImageError::Qemu { path: asked.path.to_owned(), what };
        let directory =
            PrivateDirectory::make().map_err(|error| failed(format!("no socket: {error}")))?;
        let socket_path = directory.0.join("socket");
        let mut command = Command::new("qemu-nbd");
        command
            .args(["--read-only", "--format", asked.qemu_name, "--socket"])
            .arg(&socket_path)
            .arg(asked.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A signal of the terminal is for us to hear.
            .process_group(0);
        let mut server = Server(command.spawn().map_err(|source| asked.unstarted(source))?);
        let socket = server.connect(&socket_path).map_err(failed)?;
        drop(directory);
        let (size_bytes, requests) = (0, 0);
        let mut disk = Self { server, socket, size_bytes, requests };
        match disk.greet() {
            Ok(size_bytes) => Ok(Self { size_bytes, ..disk }),
            Err(error) => Err(failed(disk.server.reason(error))),
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `out` with the bytes from `at_bytes` on, or says why not.
    pub(crate) fn read_at(&mut self, at_bytes: u64, out: &mut [u8]) -> Result<(), String> {
        let read = self.request(at_bytes, out);
        read.map_err(|error| format!("at byte {at_bytes}: {}", self.server.reason(error)))
    }

    /// Opens the only export; its size.
    fn greet(&mut self) -> io::Result<u64> {
        let mut greeting = [0; GREETING.len() + 2];
        self.socket.read_exact(&mut greeting)?;
        let (magic, flags) = greeting.split_at(GREETING.len());
        if magic != GREETING || number(flags) & u64::from(FLAG_FIXED_NEWSTYLE) == 0 {
            return Err(ErrorKind::InvalidData.into());
        }
        // The export without a name, and no information asked for.
        let mut go = CLIENT_FLAGS.to_be_bytes().to_vec();
        go.extend_from_slice(&GREETING[8..]);
        go.extend_from_slice(&OPTION_GO.to_be_bytes());
        go.extend_from_slice(&6_u32.to_be_bytes());
        go.extend_from_slice(&[0; 6]);
        self.socket.write_all(&go)?;
        let mut size_bytes = None;
        loop {
            let mut header = [0; 20];
            self.socket.read_exact(&mut header)?;
            let (kind, length) = (number(&header[12..16]), number(&header[16..]));
            let of_go = number(&header[..8]) == OPTION_REPLY
                && number(&header[8..12]) == u64::from(OPTION_GO);
            if !of_go || length > u64::from(INFO_BYTES_MAX) {
                return Err(ErrorKind::InvalidData.into());
            }
            let mut info = vec![0; usize::try_from(length).unwrap_or(0)];
            self.socket.read_exact(&mut info)?;
            match (u32::try_from(kind), size_bytes) {
                (Ok(REPLY_INFO), _) => {
                    let export = info.strip_prefix(&INFO_EXPORT);
                    size_bytes = export.and_then(|of| of.get(..8)).map(number).or(size_bytes);
                }
                (Ok(REPLY_ACK), Some(size_bytes)) => return Ok(size_bytes),
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
    }

    fn request(&mut self, at_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        self.requests += 1;
        let length = u32::try_from(out.len()).map_err(io::Error::other)?;
        let mut request = REQUEST.to_be_bytes().to_vec();
        request.extend_from_slice(&READ.to_be_bytes());
        request.extend_from_slice(&self.requests.to_be_bytes());
        request.extend_from_slice(&at_bytes.to_be_bytes());
        request.extend_from_slice(&length.to_be_bytes());
        self.socket.write_all(&request)?;
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply)?;
        let is_answer =
            number(&reply[..4]) == u64::from(REPLY) && number(&reply[8..]) == self.requests;
        match number(&reply[4..8]) {
            _ if !is_answer => Err(ErrorKind::InvalidData.into()),
            0 => self.socket.read_exact(out),
            errno => Err(io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0))),
        }
    }
}

impl Server {
    /// Connects to it as soon as it listens.
    fn connect(&mut self, socket: &Path) -> Result<UnixStream, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return Ok(stream),
                Err(_) if matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline => {
                    thread::sleep(LOOK_INTERVAL);
                }
                Err(error) => return Err(self.reason(error)),
            }
        }
    }

    /// What `error` came of: what the server complained of, if it has ended.
    fn reason(&mut self, error: io::Error) -> String {
        let has_hung_up = error.kind() == ErrorKind::UnexpectedEof;
        if !has_hung_up && matches!(self.0.try_wait(), Ok(None)) {
            return error.to_string();
        }
        // It ends by itself, or should have.
        let _ = self.0.kill();
        let _ = self.0.wait();
        let mut stderr = Vec::new();
        if let Some(mut from) = self.0.stderr.take() {
            let _ = from.read_to_end(&mut stderr);
        }
        if stderr.is_empty() { "qemu-nbd has ended".to_owned() } else { last_line(&stderr) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl PrivateDirectory {
    fn make() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..DIRECTORIES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // Short, wherever temporary files go: a socket's path has 108 bytes.
            let path = PathBuf::from(format!("/tmp/tamis-qemu-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What is connected stays so.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
