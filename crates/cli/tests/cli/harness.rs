//! Stores in directories of their own, commands run on them, images to put in.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// The same, which must have succeeded.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// The same, which must have failed with this exit code and a sentence with these words.
    pub(crate) fn fails(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(words), "{words:?} in {self:?}");
        self
    }

    /// Its output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// The volumes or snapshots that a document lists.
pub(crate) fn listed(document: &Value) -> &[Value] {
    let list = document.get("volumes").or_else(|| document.get("snapshots"));
    list.and_then(Value::as_array).unwrap_or_else(|| panic!("no list: {document}"))
}

/// A command line, words separated by blanks.
pub(crate) fn tamis(line: &str) -> Outcome {
    run(command(line.split_whitespace()))
}

/// `tamis` with these arguments.
pub(crate) fn command<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.args(args);
    command
}

pub(crate) fn run(mut command: Command) -> Outcome {
    command.stdin(Stdio::null());
    run_with_input(command)
}

/// Runs a command whose standard input is given, or nothing.
pub(crate) fn run_with_input(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A directory of its own for one test, removed when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tamis-cli-test-{}-{number}", std::process::id());
        // Beside the build and not in /tmp, which may be a tmpfs.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path of `name` in it, for a command line.
    pub(crate) fn path(&self, name: &str) -> String {
        self.join(name).to_str().unwrap().to_owned()
    }

    /// A new store in it, of `capacity`; its path.
    pub(crate) fn store(&self, capacity: &str) -> String {
        let path = self.path("store");
        tamis(&format!("init {path} --capacity {capacity}")).ok();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that look random and are the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A sparse image of 64 MiB with noise, text, repeated chunks and single zero chunks in it.
pub(crate) fn sparse_image(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(64 * MIB).unwrap();
    let write = |offset_bytes: u64, bytes: &[u8]| file.write_all_at(bytes, offset_bytes).unwrap();
    write(0, &noise(1, 300_000));
    write(5 * MIB + 4096, &noise(2, 4096).repeat(200));
    write(9 * MIB, &b"all work and no play ".repeat(100_000));
    write(30 * MIB, &noise(1, 300_000));
    write(40 * MIB, &[noise(3, 8192), vec![0; 65536], noise(4, 8192)].concat());
    write(64 * MIB - 512, &noise(5, 512));
}

/// A qcow2 image of a disk of zeros, over the file `backing` if there is one.
pub(crate) fn blank_qcow2(size_bytes: u64, backing: Option<&str>) -> Vec<u8> {
    let mut file = vec![0; 3 << 16];
    let mut put = |at: usize, field: &[u8]| file[at..at + field.len()].copy_from_slice(field);
    put(0, b"QFI\xfb\0\0\0\x03");
    if let Some(name) = backing {
        put(8, &1024_u64.to_be_bytes());
        put(16, &u32::try_from(name.len()).unwrap().to_be_bytes());
        put(1024, name.as_bytes());
    }
    put(20, &16_u32.to_be_bytes());
    put(24, &size_bytes.to_be_bytes());
    put(36, &1_u32.to_be_bytes());
    put(40, &(1_u64 << 16).to_be_bytes());
    put(96, &4_u32.to_be_bytes());
    put(100, &104_u32.to_be_bytes());
    file
}

/// A qcow2 image of which `bytes` can be read, in whole clusters of 64 KiB, and the cluster behind
/// them cannot.
pub(crate) fn late_damage_qcow2(bytes: &[u8]) -> Vec<u8> {
    let clusters = bytes.len() >> 16;
    let mut file = blank_qcow2(bytes.len() as u64 + (1 << 20), None);
    let entry = |cluster: usize| ((cluster as u64) << 16 | 1 << 63).to_be_bytes();
    file[1 << 16..][..8].copy_from_slice(&entry(2));
    for number in 0..clusters {
        file[(2 << 16) + number * 8..][..8].copy_from_slice(&entry(3 + number));
    }
    file[(2 << 16) + clusters * 8..][..8].copy_from_slice(&entry(1 << 20));
    file.extend_from_slice(bytes);
    file
}

/// `tamis serve`, ready.
pub(crate) struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

impl Served {
    /// Serves with these further words on the command line.
    pub(crate) fn start(store: &str, words: &str) -> Self {
        Self::start_saying_to(store, words, Stdio::piped())
    }

    /// The same, with `stderr` as its standard error.
    pub(crate) fn start_saying_to(store: &str, words: &str, stderr: impl Into<Stdio>) -> Self {
        let line = format!("serve {store} --json --memory 64M {words}");
        Self::spawn(command(line.split_whitespace()), stderr.into())
    }

    /// Serves from a process that may write no file beyond `file_bytes_max`: the kernel refuses
    /// what lies behind, as a device does that fails from there on.
    pub(crate) fn start_failing(store: &str, file_bytes_max: u64) -> Self {
        let blocks = file_bytes_max / 512;
        Self::start_by(&format!("trap '' XFSZ; ulimit -f {blocks}; exec"), store)
    }

    /// Serves by what a shell says before the command.
    pub(crate) fn start_by(script: &str, store: &str) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("{script} \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_tamis")]);
        shell.args(["serve", store, "--json", "--memory", "64M"]);
        Self::spawn(shell, Stdio::piped())
    }

    /// Serves from `env`, which says what is to become of a hangup.
    pub(crate) fn start_with_hangups(store: &str, word: &str) -> Self {
        let mut env = Command::new("env");
        env.args([word, env!("CARGO_BIN_EXE_tamis"), "serve", store, "--json", "--memory", "64M"]);
        Self::spawn(env, Stdio::piped())
    }

    /// Serves by this command.
    pub(crate) fn spawn(mut command: Command, stderr: Stdio) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let ready = serde_json::from_str(&first).unwrap_or_else(|_| {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("not ready: {first:?} {said}")
        });
        Self { child, out, ready }
    }

    /// The NBD URI of its first volume.
    pub(crate) fn uri(&self) -> String {
        self.ready["volumes"][0]["uri"].as_str().unwrap().to_owned()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// Ends it as power loss would, but for the page cache.
    pub(crate) fn kill(mut self) {
        kill_process(self.pid(), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, as `kill` does.
    pub(crate) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Sends it a signal.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ends it as Ctrl-C would; returns its exit code.
    pub(crate) fn interrupt(self) -> Option<i32> {
        self.interrupt_and_hear().0
    }

    /// The same, with all that it said on standard error.
    pub(crate) fn interrupt_and_hear(self) -> (Option<i32>, String) {
        self.end_by(Signal::INT)
    }

    /// Ends it by a signal; returns its exit code, if it has one, and all that it said.
    pub(crate) fn end_by(mut self, signal: Signal) -> (Option<i32>, String) {
        self.send(signal);
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut said = String::new();
                if let Some(mut stderr) = self.child.stderr.take() {
                    stderr.read_to_string(&mut said).unwrap();
                }
                return (status.code(), said);
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = &self.out;
    }
}

/// Whether this process has opened the file at this path by now.
pub(crate) fn has_open(child: &Child, path: &str) -> bool {
    open_files(child).iter().any(|(_, target)| target.to_str() == Some(path))
}

/// What a process has open, by the numbers of its descriptors.
pub(crate) fn open_files(child: &Child) -> Vec<(u32, PathBuf)> {
    let links = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    let opened = links.filter_map(|link| {
        let number = link.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_link(link.path()).ok()?))
    });
    opened.collect()
}

/// Whether a program is installed; tests that need one say so when they do nothing.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("{program} is not installed: this test does nothing");
    }
    found
}

/// A file as a block device, given back at the end.
pub(crate) struct LoopDevice(pub(crate) String);

impl LoopDevice {
    /// Where that is allowed; the test does nothing and says so where it is not.
    pub(crate) fn of(file: &str) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show", file]).output();
        match made {
            Ok(made) if made.status.success() => {
                Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
            }
            _ => {
                eprintln!("there is no loop device to be had: this test does nothing");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}
