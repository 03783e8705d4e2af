//! `tamis collect`: room is made now, container by container.
//!
//! ```text
//! figures ── step ── pace ── step ... until nothing is worth it, or --to is reached ── figures
//! ```
//!
//! As with a scrub the engine makes one step at a time, here or in the server of the store, and
//! keeps nothing in mind: when this ends, for whatever reason, what it has done is done.

use engine::control::GetStats;
use std::time::Duration;

use engine::{CollectPosition, CollectRequest, CollectStep, Stats};
use serde::{Serialize, Serializer};

use crate::args::CollectArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::pace::Pace;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::{human_bytes, human_count};
use crate::store;

/// What `--json` prints.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Whether it came to its end: nothing is left to be done, or `--to` is reached.
    complete: bool,
    containers_collected: u64,
    /// Containers with a damaged frame, which stay as they are.
    containers_kept: u64,
    read_bytes: u64,
    moved_bytes: u64,
    written_bytes: u64,
    /// Frames of the containers that are free now, less what was written of them elsewhere: what
    /// this collection gave back, whatever clients write or delete meanwhile.
    freed_bytes: u64,
    /// Of the room for data, what collection would reclaim included.
    #[serde(rename = "data_taken_ratio_before", serialize_with = "as_ratio")]
    taken_percent_before: f64,
    #[serde(rename = "data_taken_ratio", serialize_with = "as_ratio")]
    taken_percent: f64,
    seconds: f64,
    recompressed_with: Option<String>,
}

pub(super) fn run(args: &CollectArgs) -> Result<(), CliError> {
    store::check_there(&args.store)?;
    let interrupt = Interrupt::listen()?;
    let (report, outcome) = Store::with(&args.store, |store| collect(args, store, &interrupt))?;
    if args.format.json {
        output::print_json(&report)?;
    } else {
        output::print_sentence(summary(&report))?;
    }
    outcome?;
    match args.to {
        Some(to) if report.taken_percent > f64::from(to) => {
            Err(CliError::NothingToCollect { taken: report.taken_percent, asked: to })
        }
        _ => Ok(()),
    }
}

/// Ratios are from 0 to 1 in JSON, as those of `tamis stats`.
fn as_ratio<S: Serializer>(percent: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(percent / 100.0)
}

/// Collects; what was done, and why it ended early if it did.
fn collect(
    args: &CollectArgs,
    store: &Store,
    interrupt: &Interrupt,
) -> Result<(Report, Result<(), CliError>), CliError> {
    let before = store.ask(GetStats {})?;
    let taken_percent = |stats: &Stats| 100.0 * stats.data_taken_ratio;
    let mut report = Report {
        taken_percent_before: taken_percent(&before),
        taken_percent: taken_percent(&before),
        recompressed_with: args.recompress.map(|with| with.to_string()),
        ..Report::default()
    };
    let pace = Pace::new(args.rate, store.is_served());
    let progress = Progress::new("collecting", Unit::Bytes, None);
    let mut collecting = Collecting { args, pace, progress, freed_from_bytes: 0 };
    let mut outcome = collecting.drive(store, interrupt, &mut report);
    report.complete = outcome.is_ok();
    report.seconds = collecting.progress.finish().as_secs_f64();
    match store.ask(GetStats {}) {
        Ok(after) => report.taken_percent = taken_percent(&after),
        // What was done is done, by what the last step said. Why it ended comes first.
        Err(error) => outcome = outcome.and(Err(error)),
    }
    Ok((report, outcome))
}

struct Collecting<'a> {
    args: &'a CollectArgs,
    pace: Pace,
    progress: Progress,
    /// Frames that were in the containers which are free now.
    freed_from_bytes: u64,
}

impl Collecting<'_> {
    fn drive(
        &mut self,
        store: &Store,
        interrupt: &Interrupt,
        report: &mut Report,
    ) -> Result<(), CliError> {
        let mut position = None;
        while self.args.to.is_none_or(|to| report.taken_percent > f64::from(to)) {
            self.pace.wait(interrupt)?;
            let recompress = self.args.recompress;
            let step = store.ask(CollectRequest { position, recompress })?;
            self.count(&step, report);
            let taken = step.containers_used as f64 / step.containers.max(1) as f64;
            report.taken_percent = 100.0 * taken;
            self.show(&step, report);
            match step.next {
                Some(next) => position = Some(next),
                None => break,
            }
        }
        Ok(())
    }

    fn count(&mut self, step: &CollectStep, report: &mut Report) {
        let Some(collected) = step.collected else { return };
        let outcome = if collected.freed {
            &mut report.containers_collected
        } else {
            &mut report.containers_kept
        };
        *outcome += 1;
        report.read_bytes += collected.used_bytes;
        report.moved_bytes += collected.moved_bytes;
        report.written_bytes += collected.written_bytes;
        self.freed_from_bytes += if collected.freed { collected.used_bytes } else { 0 };
        report.freed_bytes = self.freed_from_bytes.saturating_sub(report.written_bytes);
        self.pace.spend(collected.used_bytes);
    }

    fn show(&mut self, step: &CollectStep, report: &Report) {
        if self.args.recompress.is_some()
            && let Some(CollectPosition { from_sequence, until_sequence }) = step.next
        {
            // Sequence numbers of containers that are gone are passed without being read.
            let share = f64::from(from_sequence) / f64::from(until_sequence.max(1));
            self.progress.set_total((report.read_bytes as f64 / share.max(1e-6)) as u64);
        }
        self.progress.set_done(report.read_bytes);
        self.progress.note_now_and_then(|| {
            let saved = saved_note(report).map_or_else(String::new, |saved| format!(", {saved}"));
            Some(format!("{:.0}% taken{saved}", report.taken_percent))
        });
    }
}

/// What a recompression saves of the frames that it moved; none before it moved any.
fn saved_note(report: &Report) -> Option<String> {
    report.recompressed_with.as_ref()?;
    let saved_bytes = report.moved_bytes.saturating_sub(report.written_bytes);
    let percent = (saved_bytes * 100).checked_div(report.moved_bytes)?;
    Some(format!("{percent}% saved"))
}

fn summary(report: &Report) -> String {
    let kept = match report.containers_kept {
        0 => String::new(),
        kept => format!(", {} kept for damage in them (see `tamis scrub`)", human_count(kept)),
    };
    let smaller = match &report.recompressed_with {
        Some(name) => {
            let saved = saved_note(report).map_or_else(String::new, |saved| format!(" ({saved})"));
            format!(", now {} with {name}{saved}", human_bytes(report.written_bytes))
        }
        None => String::new(),
    };
    format!(
        "{} containers collected in {}{kept}: {} freed, {} moved{smaller}; {:.0}% of the room for \
         data is taken ({:.0}% before)",
        human_count(report.containers_collected),
        human_duration(Duration::from_secs_f64(report.seconds.max(0.0))),
        human_bytes(report.freed_bytes),
        human_bytes(report.moved_bytes),
        report.taken_percent,
        report.taken_percent_before,
    )
}
