//! `tamis check`: every invariant of a closed store. It changes nothing.

use std::time::Duration;

use engine::CheckReport;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::error::CliError;
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::human_count;
use crate::store;

/// What `--json` prints.
#[derive(Serialize)]
struct Finding<'a> {
    sound: bool,
    seconds: f64,
    #[serde(flatten)]
    report: &'a CheckReport,
    /// Each problem as a sentence.
    sentences: Vec<String>,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), CliError> {
    if let Some(mut server) = store::connect(&args.store)? {
        let pid = server.status()?.pid;
        return Err(CliError::ServedNoCheck { store: args.store.clone(), pid });
    }
    let files = store::open_files(&args.store, &store::new_doorbell()?)?;
    let mut stages = Stages::default();
    let report = engine::check(files.disk, &mut |at| stages.show(at.stage, at.done, at.total))?;
    let elapsed = stages.finish();
    if args.format.json {
        print_json(&report, elapsed)?
    } else {
        print_text(&report, elapsed)?
    }
    match report.problems.len() {
        0 => Ok(()),
        problems => Err(CliError::DamageFound { problems }),
    }
}

/// The progress of one stage after another.
#[derive(Default)]
struct Stages {
    current: Option<(&'static str, Progress)>,
    elapsed: Duration,
}

impl Stages {
    fn show(&mut self, stage: &'static str, done: u64, total: u64) {
        let same = self.current.as_ref().is_some_and(|(name, _)| *name == stage);
        if !same {
            self.end_stage();
            self.current = Some((stage, Progress::new(stage, Unit::Steps, Some(total))));
        }
        if let Some((_, progress)) = &mut self.current {
            progress.set_done(done);
        }
    }

    fn end_stage(&mut self) {
        if let Some((_, progress)) = self.current.take() {
            self.elapsed += progress.finish();
        }
    }

    fn finish(mut self) -> Duration {
        self.end_stage();
        self.elapsed
    }
}

fn print_json(report: &CheckReport, elapsed: Duration) -> Result<(), CliError> {
    let sentences: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    let (sound, seconds) = (sentences.is_empty(), elapsed.as_secs_f64());
    output::print_json(&Finding { sound, seconds, report, sentences })
}

fn print_text(report: &CheckReport, elapsed: Duration) -> Result<(), CliError> {
    for problem in &report.problems {
        output::print_line(problem)?;
    }
    if report.problems.is_empty() {
        output::print_line(format_args!(
            "the store is sound: {} volumes with {} mapped chunks, {} chunks stored in {} \
             containers, {} frames verified ({})",
            human_count(report.volumes),
            human_count(report.mapped_chunks),
            human_count(report.stored_chunks),
            human_count(report.containers),
            human_count(report.frames_verified),
            human_duration(elapsed),
        ))?;
    }
    Ok(())
}
