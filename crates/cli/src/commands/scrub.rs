//! `tamis scrub`: everything stored is read and verified, and heals where it can.
//!
//! ```text
//! lock ── position of scrub.json, or the beginning ── recall ── step ── pace ── step ... ── result
//!                 a signal, or the end of the server: the position is kept, the next run goes on
//! ```
//!
//! The engine makes one step at a time, here or in the server of the store; the pace is set by
//! waiting between steps. So a scrub lasts as long as its command, and a paused one costs nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use admin::json::Json;
use engine::{DamagedChunk, ScrubPosition, ScrubRequest};
use serde::Serialize;

use crate::args::ScrubArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::pace::Pace;
use crate::progress::{Progress, Unit, human_duration};
use crate::recall::Remembered;
use crate::scrub_record::{Finding, ScrubLock, ScrubRecord, ScrubRun, unix_seconds};
use crate::size::{counted, human_bytes, human_count};
use crate::store;

/// Between two times that the position is kept: so much is read again after a crash.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    complete: bool,
    running: bool,
    sound: bool,
    problems: usize,
    healed: usize,
    position: Option<Json<ScrubPosition>>,
    fingerprints: bool,
    seconds: f64,
    begun_unix_s: u64,
    seen_unix_s: u64,
    read_bytes: u64,
    total_bytes: u64,
    pages: u64,
    containers: u64,
    frames: u64,
    findings: &'a [Finding],
    findings_left_out: u64,
    given_up_chunks: u64,
    /// Each finding as a sentence.
    sentences: Vec<String>,
    #[serde(serialize_with = "admin::json::serialize")]
    damaged: &'a [DamagedChunk],
    /// By a repair, since a scrub last came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    gave_up_chunks: Option<u64>,
}

pub(super) fn run(args: &ScrubArgs) -> Result<(), CliError> {
    store::check_there(&args.store)?;
    if args.status {
        return status(args);
    }
    // In this order: who sees that it runs may interrupt it.
    let interrupt = Interrupt::listen()?;
    let _lock = ScrubLock::take(&args.store)?;
    let mut record = ScrubRecord::load_to_change(&args.store)?;
    let run = take_up(&mut record, args);
    let outcome = Store::with(&args.store, |store| {
        let pace = Pace::new(args.rate, store.is_served());
        Scrubbing::new(args, record, run, pace).drive(store, &interrupt)
    });
    let (record, run) = outcome?;
    if args.format.json {
        output::print_json(&report(&run, &record, false))?;
    } else {
        print_text(&run)?;
    }
    match run.problems() {
        0 => Ok(()),
        problems => Err(CliError::DamageFound { problems }),
    }
}

/// The scrub that was interrupted, if it is what is asked for, or a new one.
fn take_up(record: &mut ScrubRecord, args: &ScrubArgs) -> ScrubRun {
    let earlier = record.run.take().filter(|run| run.position.is_some() && !args.restart);
    match earlier {
        Some(run) if run.fingerprints || !args.fingerprint => {
            output::say(format_args!(
                "going on at {} of {}; --restart begins again",
                human_bytes(run.bytes_read),
                human_bytes(run.bytes_total)
            ));
            run
        }
        _ => ScrubRun::begin(args.fingerprint),
    }
}

/// A scrub and where it is kept.
struct Scrubbing<'a> {
    path: &'a Path,
    record: ScrubRecord,
    run: ScrubRun,
    progress: Option<Progress>,
    saved: Instant,
    pace: Pace,
}

impl<'a> Scrubbing<'a> {
    fn new(args: &'a ScrubArgs, record: ScrubRecord, run: ScrubRun, pace: Pace) -> Self {
        let path = args.store.as_path();
        Self { path, record, run, progress: None, saved: Instant::now(), pace }
    }

    fn drive(
        mut self,
        store: &Store,
        interrupt: &Interrupt,
    ) -> Result<(ScrubRecord, ScrubRun), CliError> {
        if let Err(error) = self.recall(store, interrupt) {
            return Err(self.pause(error));
        }
        while let Some(position) = self.run.position {
            let request = ScrubRequest { position, fingerprints: self.run.fingerprints };
            let begun = Instant::now();
            let outcome = self.pace.wait(interrupt).and_then(|()| store.ask(request));
            let step = match outcome {
                Ok(step) => step,
                Err(error) => return Err(self.pause(error)),
            };
            self.run.add(&step, begun.elapsed().as_secs_f64());
            self.record.damaged.clone_from(&step.damaged);
            self.pace.spend(step.bytes_read);
            self.show();
            if self.saved.elapsed() >= SAVE_INTERVAL {
                self.save()?;
            }
        }
        self.progress = None;
        self.run.conclude(&self.record.damaged);
        self.record.ended(self.run.clone());
        self.record.save(self.path)?;
        Ok((self.record, self.run))
    }

    /// What the engine does not list in the end counts as healed, and is forgotten with the first
    /// step: so it has to know all that is remembered, which it may not since it was opened.
    fn recall(&mut self, store: &Store, interrupt: &Interrupt) -> Result<(), CliError> {
        let chunks = self.record.damaged.iter().copied().chain(self.run.damaged());
        Remembered::new(chunks).recall(|request| {
            self.pace.wait(interrupt)?;
            let step = store.ask(request)?;
            self.pace.spend(step.bytes_read);
            Ok(step)
        })
    }

    /// Keeps the position; the error that ends this command for now.
    fn pause(&mut self, error: CliError) -> CliError {
        self.progress = None;
        if let Err(unsaved) = self.save() {
            return unsaved;
        }
        // Before its first step it was not under way.
        if self.run.bytes_read > 0 {
            output::say(format_args!(
                "paused at {} of {}: `tamis scrub` goes on from there",
                human_bytes(self.run.bytes_read),
                human_bytes(self.run.bytes_total)
            ));
        }
        error
    }

    fn save(&mut self) -> Result<(), CliError> {
        self.saved = Instant::now();
        self.record.run = Some(self.run.clone());
        self.record.save(self.path)
    }

    fn show(&mut self) {
        let (done, total) = (self.run.bytes_read, self.run.bytes_total);
        let (problems, healed) = (self.run.problems(), self.run.healed());
        let progress = self
            .progress
            .get_or_insert_with(|| Progress::going_on("scrubbing", Unit::Bytes, done, total));
        progress.set_total(total);
        progress.set_done(done.min(total));
        progress.note_now_and_then(|| {
            (problems + healed > 0).then(|| format!("{problems} damaged, {healed} healed"))
        });
    }
}

fn status(args: &ScrubArgs) -> Result<(), CliError> {
    let record = ScrubRecord::load(&args.store);
    let running = ScrubLock::is_taken(&args.store)?;
    if args.format.json {
        let run = record.run.as_ref().or(record.last.as_ref()).cloned().unwrap_or_default();
        return output::print_json(&report(&run, &record, running));
    }
    output::print_line(match &record.run {
        Some(run) => format!(
            "{} at {} of {} after {}: {} damaged, {} healed so far",
            if running { "running," } else { "paused" },
            human_bytes(run.bytes_read),
            human_bytes(run.bytes_total),
            human_duration(Duration::from_secs_f64(run.seconds.max(0.0))),
            human_count(run.problems() as u64),
            human_count(run.healed() as u64),
        ),
        None if running => "running, just begun".to_owned(),
        None => "no scrub is under way".to_owned(),
    })?;
    output::print_sentence(match (&record.last, record.gave_up_chunks) {
        (Some(run), _) => format!("the last one ended {}: {}", ago(run), summary(run)),
        (None, Some(chunks)) => format!(
            "none has come to its end since `tamis check --repair` abandoned {}: `tamis \
             scrub` says which are lost still",
            counted(chunks, "chunk")
        ),
        (None, None) => "none has come to its end yet".to_owned(),
    })
}

fn ago(run: &ScrubRun) -> String {
    let seconds = unix_seconds().saturating_sub(run.seen_unix_seconds);
    format!("{} ago", human_duration(Duration::from_secs(seconds)))
}

fn report<'a>(run: &'a ScrubRun, record: &'a ScrubRecord, running: bool) -> Report<'a> {
    Report {
        complete: run.position.is_none() && run.begun_unix_seconds > 0,
        running,
        sound: run.problems() == 0 && record.gave_up_chunks.is_none(),
        problems: run.problems(),
        healed: run.healed(),
        position: run.position.map(Json),
        fingerprints: run.fingerprints,
        seconds: run.seconds,
        begun_unix_s: run.begun_unix_seconds,
        seen_unix_s: run.seen_unix_seconds,
        read_bytes: run.bytes_read,
        total_bytes: run.bytes_total,
        pages: run.pages,
        containers: run.containers,
        frames: run.frames,
        findings: &run.findings,
        findings_left_out: run.findings_left_out,
        given_up_chunks: run.given_up_chunks,
        sentences: sentences(run),
        damaged: &record.damaged,
        gave_up_chunks: record.gave_up_chunks,
    }
}

fn sentences(run: &ScrubRun) -> Vec<String> {
    let healed = |healed: bool| if healed { " (healed)" } else { "" };
    let findings = run.findings.iter();
    findings.map(|finding| format!("{finding}{}", healed(finding.is_healed()))).collect()
}

fn print_text(run: &ScrubRun) -> Result<(), CliError> {
    for sentence in sentences(run) {
        output::print_problem(sentence)?;
    }
    output::print_sentence(summary(run))
}

fn summary(run: &ScrubRun) -> String {
    let found = match (run.problems(), run.healed()) {
        (0, 0) => "all is sound".to_owned(),
        (0, healed) => format!("all is sound, {} healed", human_count(healed as u64)),
        (problems, healed) => format!(
            "{} damaged, {} healed",
            human_count(problems as u64),
            human_count(healed as u64)
        ),
    };
    let speed = run.bytes_read as f64 / run.seconds.max(1e-3);
    format!(
        "{found}: {} in {} and {} of tables, {} read in {} ({}/s)",
        counted(run.frames, "frame"),
        counted(run.containers, "container"),
        counted(run.pages, "page"),
        human_bytes(run.bytes_read),
        human_duration(Duration::from_secs_f64(run.seconds.max(0.0))),
        human_bytes(speed as u64),
    )
}
