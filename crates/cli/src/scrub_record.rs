//! What is remembered of scrubs: the file `scrub.json` in the store's directory.
//!
//! It holds where an interrupted scrub goes on, what the last complete one found, and which chunks
//! are known to be damaged. It is advice and no part of the store: the engine never reads it, a
//! format version does not cover it, and without it the next scrub begins at the beginning. That is
//! why it is a file: the tables would need a new kind of change to hold it, and would have to be
//! right about it after every crash, where a position that is a few seconds old costs a few seconds
//! of reading, and damage that is read again is known for certain. A repair that loses something
//! has it forget what earlier scrubs said; the engine finds what is lost (`scrub_losses.rs`).
//!
//! A scrub holds a lock on the store's directory, so there is one scrub of a store at a
//! time, served or not. The file is written beside itself and renamed, durably: it is there whole
//! or not, and what a repair has made untrue does not come back.
//!
//! Damage that only fingerprints show is known from nowhere else, so a file of a later release must
//! not cost it: a finding of a kind that is not known here is kept word for word, and a file that
//! cannot be understood is put aside before another is written ([`ScrubRecord::load_to_change`]).

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use disk::NamingError;
use engine::{DAMAGED_LISTED_MAX, DamagedChunk, Problem, ScrubFinding, ScrubPosition, ScrubStep};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{CliError, way_out};
use crate::output;

const FILE_NAME: &str = "scrub.json";
/// Findings kept word for word; more are counted.
const FINDINGS_MAX: usize = 10_000;

/// How long a lock that somebody has is tried for.
const LOCK_RETRY: Duration = Duration::from_millis(10);
const LOCK_TRIES: u32 = 20;

/// What has been found, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Finding {
    Known(#[serde(with = "admin::json")] ScrubFinding),
    /// Of a later release.
    Unknown(Value),
}

impl Finding {
    fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Known(finding) => Some(&finding.problem),
            Self::Unknown(_) => None,
        }
    }

    /// Whether it is sound again. What does not say so is not.
    pub(crate) fn is_healed(&self) -> bool {
        match self {
            Self::Known(finding) => finding.healed,
            Self::Unknown(value) => value["healed"] == true,
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(finding) => f.write_str(&way_out::problem(&finding.problem)),
            Self::Unknown(value) => write!(f, "found by a later release of Tamis: {value}"),
        }
    }
}

/// The file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScrubRecord {
    /// The scrub under way, or interrupted.
    pub(crate) run: Option<ScrubRun>,
    /// The last that came to its end.
    pub(crate) last: Option<ScrubRun>,
    /// Chunks known to be damaged.
    #[serde(with = "admin::json")]
    pub(crate) damaged: Vec<DamagedChunk>,
    /// Chunks that the last repair that lost any abandoned, if no scrub has come to its end
    /// since.
    pub(crate) gave_up_chunks: Option<u64>,
}

/// One scrub, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScrubRun {
    /// Where it goes on; none when it is complete.
    #[serde(default, with = "admin::json")]
    pub(crate) position: Option<ScrubPosition>,
    pub(crate) fingerprints: bool,
    pub(crate) seconds: f64,
    pub(crate) begun_unix_seconds: u64,
    pub(crate) seen_unix_seconds: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_total: u64,
    pub(crate) pages: u64,
    pub(crate) containers: u64,
    pub(crate) frames: u64,
    pub(crate) findings: Vec<Finding>,
    /// Findings that are not among these, and not healed.
    pub(crate) findings_left_out: u64,
    /// As the last step said it.
    #[serde(default)]
    pub(crate) given_up_chunks: u64,
}

impl ScrubRun {
    /// A scrub that begins.
    pub(crate) fn begin(fingerprints: bool) -> Self {
        let now = unix_seconds();
        Self {
            position: Some(ScrubPosition::default()),
            fingerprints,
            begun_unix_seconds: now,
            seen_unix_seconds: now,
            ..Self::default()
        }
    }

    /// Takes in what a step did.
    pub(crate) fn add(&mut self, step: &ScrubStep, seconds: f64) {
        self.position = step.next;
        self.seconds += seconds;
        self.seen_unix_seconds = unix_seconds();
        self.bytes_read += step.bytes_read;
        self.bytes_total = step.bytes_total;
        self.given_up_chunks = step.given_up_chunks;
        self.pages += step.pages;
        self.containers += step.containers;
        self.frames += step.frames;
        for finding in &step.findings {
            if self.findings.len() < FINDINGS_MAX {
                self.findings.push(Finding::Known(finding.clone()));
            } else {
                self.findings_left_out += u64::from(!finding.healed);
            }
        }
    }

    /// The chunks that were found damaged, and not healed.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = DamagedChunk> {
        let left = self.findings.iter().filter(|finding| !finding.is_healed());
        left.filter_map(Finding::problem).filter_map(|problem| match *problem {
            Problem::DamagedFrame { pbn, container } => {
                Some(DamagedChunk { pbn, container, checksum_fits: self.fingerprints })
            }
            Problem::WrongFingerprint { pbn, container } => {
                Some(DamagedChunk { pbn, container, checksum_fits: true })
            }
            _ => None,
        })
    }

    /// The scrub is complete: chunks that are not damaged any more have healed meanwhile. `damaged`
    /// comes from an engine that has recalled all of [`Self::damaged`]. Of very many not all are
    /// listed, and then nothing is concluded.
    pub(crate) fn conclude(&mut self, damaged: &[DamagedChunk]) {
        if damaged.len() >= DAMAGED_LISTED_MAX {
            return;
        }
        for finding in &mut self.findings {
            if let Finding::Known(finding) = finding
                && let Problem::DamagedFrame { pbn, .. } | Problem::WrongFingerprint { pbn, .. } =
                    finding.problem
            {
                finding.healed |= !damaged.iter().any(|chunk| chunk.pbn == pbn);
            }
        }
    }

    /// Addresses that nothing could be read from, as far as they were found one by one.
    pub(crate) fn lost_chunks(&self) -> u64 {
        let counts =
            self.findings.iter().filter_map(Finding::problem).map(|problem| match problem {
                Problem::LostChunks { count, .. } => *count,
                _ => 0,
            });
        counts.sum()
    }

    /// What was found and is damaged still.
    pub(crate) fn problems(&self) -> usize {
        let left = self.findings.iter().filter(|finding| !finding.is_healed()).count();
        left + usize::try_from(self.findings_left_out).unwrap_or(usize::MAX)
    }

    /// What was found and is sound again.
    pub(crate) fn healed(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_healed()).count()
    }
}

impl ScrubRecord {
    /// What is remembered of the store at `path`; a file that cannot be understood is none, and is
    /// told of.
    pub(crate) fn load(path: &Path) -> Self {
        Self::read(path).unwrap_or_else(|reason| {
            say_unread(&reason, FILE_NAME);
            Self::default()
        })
    }

    /// The same for a caller that will save it: a file that cannot be understood is put aside, and
    /// never written over.
    ///
    /// # Errors
    /// [`CliError::System`] when it cannot be put aside.
    pub(crate) fn load_to_change(path: &Path) -> Result<Self, CliError> {
        Self::read(path).or_else(|reason| {
            say_unread(&reason, &put_aside(path)?);
            Ok(Self::default())
        })
    }

    fn read(path: &Path) -> io::Result<Self> {
        match fs::read(path.join(FILE_NAME)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// A repair has abandoned this number of chunks, earlier repairs' among them. What earlier
    /// scrubs said is true no longer.
    pub(crate) fn repaired(&mut self, gave_up_chunks: u64) {
        self.gave_up_chunks = Some(gave_up_chunks);
        (self.last, self.run) = (None, None);
    }

    /// A scrub has come to its end.
    pub(crate) fn ended(&mut self, run: ScrubRun) {
        (self.last, self.run, self.gave_up_chunks) = (Some(run), None, None);
    }

    /// Remembers it for the store at `path`.
    pub(crate) fn save(&self, path: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::System {
            action: "what the scrub found cannot be kept in scrub.json of the store",
            source,
        };
        let beside = path.join(format!("{FILE_NAME}.new"));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            disk::give_name(&beside, &path.join(FILE_NAME), true).map_err(io::Error::other)
        };
        write().map_err(failed)
    }
}

/// Says that what is called `name` now is not understood.
fn say_unread(reason: &io::Error, name: &str) {
    output::say(format_args!(
        "what scrubs have found is kept in {name} of the store, which cannot be understood \
         ({reason}); `tamis scrub --fingerprint` finds it again"
    ));
}

/// Gives the file a name that nothing has, and returns that.
fn put_aside(path: &Path) -> Result<String, CliError> {
    let mut number = 1_u32;
    loop {
        let name = format!("{FILE_NAME}.unread-{number}");
        match disk::give_name(&path.join(FILE_NAME), &path.join(&name), false) {
            Err(NamingError::Refused(error)) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(NamingError::Refused(source)) => {
                let action = "scrub.json of the store, which is not understood, cannot be renamed";
                return Err(CliError::System { action, source });
            }
            _ => return Ok(name),
        }
        number += 1;
    }
}

/// Held by the process that scrubs the store.
pub(crate) struct ScrubLock {
    _directory: File,
}

impl ScrubLock {
    /// Takes the lock; an error when somebody has it.
    pub(crate) fn take(path: &Path) -> Result<Self, CliError> {
        let directory = open_directory(path)?;
        for _ in 1..LOCK_TRIES {
            // Who only looks whether it is taken has it for a moment.
            match directory.try_lock() {
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY),
                _ => break,
            }
        }
        match directory.try_lock() {
            Ok(()) => Ok(Self { _directory: directory }),
            Err(TryLockError::WouldBlock) => Err(CliError::ScrubRunning { store: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(unlockable(source)),
        }
    }

    /// Whether somebody scrubs the store at `path` now.
    pub(crate) fn is_taken(path: &Path) -> Result<bool, CliError> {
        match open_directory(path)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(unlockable(source)),
        }
    }
}

fn open_directory(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => CliError::NoStore { store: PathBuf::from(path) },
        _ => unlockable(source),
    })
}

fn unlockable(source: io::Error) -> CliError {
    CliError::System { action: "the directory of the store cannot be locked", source }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;
    use std::time::Duration;

    use engine::{DamagedChunk, Problem, ScrubFinding, ScrubPosition, ScrubStep};

    use serde_json::{Value, json};

    use super::{ScrubLock, ScrubRecord, ScrubRun};
    use crate::testing::Folder;

    #[test]
    fn what_is_saved_is_loaded_and_nonsense_is_nothing() {
        let folder = Folder::new();
        assert_eq!(ScrubRecord::load(folder.path()), ScrubRecord::default());
        let mut run = ScrubRun::begin(true);
        let problem = Problem::DamagedFrame { pbn: 7, container: 2 };
        let next = Some(ScrubPosition::Tables { tree: 1 << 31, level: Some(2), index: 9 });
        let findings = vec![ScrubFinding { problem, healed: false }];
        run.add(&ScrubStep { next, findings, frames: 4, ..ScrubStep::default() }, 1.5);
        let damaged: Vec<DamagedChunk> = run.damaged().collect();
        assert_eq!(damaged, [DamagedChunk { pbn: 7, container: 2, checksum_fits: true }]);
        let record = ScrubRecord { run: Some(run.clone()), damaged, ..ScrubRecord::default() };
        record.save(folder.path()).unwrap();
        assert_eq!(ScrubRecord::load(folder.path()), record);
        std::fs::write(folder.path().join("scrub.json"), "{\"run\": 3").unwrap();
        assert_eq!(ScrubRecord::load(folder.path()), ScrubRecord::default());

        run.conclude(&record.damaged);
        assert_eq!((run.problems(), run.healed()), (1, 0));
        run.conclude(&[]);
        assert_eq!((run.problems(), run.healed()), (0, 1));
        assert_eq!(run.damaged().count(), 0);
    }

    #[test]
    fn a_finding_of_a_later_release_is_kept_word_for_word() {
        let folder = Folder::new();
        let mut run = ScrubRun::begin(true);
        let problem = Problem::DamagedFrame { pbn: 7, container: 2 };
        let findings = vec![ScrubFinding { problem, healed: true }];
        run.add(&ScrubStep { findings, ..ScrubStep::default() }, 1.5);
        let damaged = vec![DamagedChunk { pbn: 9, container: 2, checksum_fits: true }];
        let record = ScrubRecord { last: Some(run), damaged, ..ScrubRecord::default() };
        let mut saved = serde_json::to_value(&record).unwrap();
        let findings = saved["last"]["findings"].as_array_mut().unwrap();
        findings.push(json!({"problem": "of_a_later_release", "block": 7, "healed": false}));
        findings.push(json!({"problem": "of_a_later_release", "block": 8, "healed": true}));
        std::fs::write(folder.path().join("scrub.json"), saved.to_string()).unwrap();

        let loaded = ScrubRecord::load_to_change(folder.path()).unwrap();
        assert_eq!(loaded.damaged, record.damaged);
        let run = loaded.last.as_ref().unwrap();
        assert_eq!((run.problems(), run.healed()), (1, 2));
        loaded.save(folder.path()).unwrap();
        let again = std::fs::read(folder.path().join("scrub.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&again).unwrap(), saved);
    }

    #[test]
    fn a_file_that_is_not_understood_is_not_written_over() {
        let folder = Folder::new();
        let file = |name: &str| folder.path().join(name);
        for (number, nonsense) in [(1, "{\"run\": 3"), (2, "{\"run\": {\"position\": 9}}")] {
            std::fs::write(file("scrub.json"), nonsense).unwrap();
            // Who only looks changes nothing.
            assert_eq!(ScrubRecord::load(folder.path()), ScrubRecord::default());
            let record = ScrubRecord::load_to_change(folder.path()).unwrap();
            record.save(folder.path()).unwrap();
            let aside = file(&format!("scrub.json.unread-{number}"));
            assert_eq!(std::fs::read_to_string(aside).unwrap(), nonsense);
        }
        ScrubRecord::load_to_change(folder.path()).unwrap();
        assert!(file("scrub.json").exists() && !file("scrub.json.unread-3").exists());
    }

    #[test]
    fn a_chunk_of_an_earlier_release_may_be_damaged_beneath_its_checksum() {
        let folder = Folder::new();
        let saved = r#"{"run": null, "last": null, "damaged": [{"pbn": 7, "container": 2}]}"#;
        std::fs::write(folder.path().join("scrub.json"), saved).unwrap();
        let damaged = ScrubRecord::load(folder.path()).damaged;
        assert_eq!(damaged, [DamagedChunk { pbn: 7, container: 2, checksum_fits: true }]);
    }

    #[test]
    fn one_scrub_at_a_time() {
        let folder = Folder::new();
        let lock = ScrubLock::take(folder.path()).unwrap();
        assert!(ScrubLock::is_taken(folder.path()).unwrap());
        assert!(ScrubLock::take(folder.path()).is_err());
        drop(lock);
        assert!(!ScrubLock::is_taken(folder.path()).unwrap());
    }

    #[test]
    fn who_asks_whether_one_runs_is_in_no_ones_way() {
        let folder = Folder::new();
        let looking = File::open(folder.path()).unwrap();
        looking.lock_shared().unwrap();
        assert!(!ScrubLock::is_taken(folder.path()).unwrap());
        let looks_away = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            drop(looking);
        });
        assert!(ScrubLock::take(folder.path()).is_ok());
        looks_away.join().unwrap();
    }
}
