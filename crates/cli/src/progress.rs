//! How far a long operation has come: a bar at a terminal, a plain line every few seconds where
//! there is none (a log, a pipe). All of it goes to standard error; results go to standard output.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::size::{human_bytes, human_count};

/// Between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Between two looks at what costs a little, such as the statistics of a store.
const NOTE_INTERVAL: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Steps,
}

/// The progress of one operation.
pub(crate) struct Progress {
    verb: &'static str,
    unit: Unit,
    total: Option<u64>,
    /// Done before this operation began.
    before: u64,
    done: u64,
    started: Instant,
    bar: Option<ProgressBar>,
    last_line: Instant,
    last_note: Option<Instant>,
    note: String,
}

impl Progress {
    /// Of an operation named by `verb` ("importing") over `total` units, when that is known.
    pub(crate) fn new(verb: &'static str, unit: Unit, total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| terminal_bar(verb, unit, total));
        let started = Instant::now();
        Self {
            verb,
            unit,
            total,
            before: 0,
            done: 0,
            started,
            bar,
            last_line: started,
            last_note: None,
            note: String::new(),
        }
    }

    /// Of an operation of which `done` of `total` units were done earlier.
    pub(crate) fn going_on(verb: &'static str, unit: Unit, done: u64, total: u64) -> Self {
        let done = done.min(total);
        let mut progress = Self::new(verb, unit, Some(total));
        (progress.before, progress.done) = (done, done);
        if let Some(bar) = &progress.bar {
            bar.set_position(done);
            bar.reset_eta();
        }
        progress
    }

    /// There is more to do, or less, than was thought.
    pub(crate) fn set_total(&mut self, units: u64) {
        self.total = Some(units);
        if let Some(bar) = &self.bar {
            bar.set_length(units);
        }
    }

    /// Goes on by `units`.
    pub(crate) fn advance(&mut self, units: u64) {
        self.set_done(self.done + units);
    }

    /// `units` in all are done.
    pub(crate) fn set_done(&mut self, units: u64) {
        self.done = units;
        if let Some(bar) = &self.bar {
            bar.set_position(units);
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            // Who cannot be told of progress is not kept from making it.
            let _ = writeln!(std::io::stderr(), "{}", self.line(self.started.elapsed()));
        }
    }

    /// Shows what `note` makes, at most twice a second: it is not called more often.
    pub(crate) fn note_now_and_then(&mut self, note: impl FnOnce() -> Option<String>) {
        if self.last_note.is_some_and(|last| last.elapsed() < NOTE_INTERVAL) {
            return;
        }
        self.last_note = Some(Instant::now());
        let Some(note) = note() else { return };
        if let Some(bar) = &self.bar {
            bar.set_message(note.clone());
        }
        self.note = note;
    }

    /// Takes the bar away and returns how long it all took.
    pub(crate) fn finish(self) -> Duration {
        self.started.elapsed()
    }

    fn amount(&self, units: u64) -> String {
        match self.unit {
            Unit::Bytes => human_bytes(units),
            Unit::Steps => human_count(units),
        }
    }

    /// The plain line after `elapsed`.
    fn line(&self, elapsed: Duration) -> String {
        let mut line = format!("{} {}", self.verb, self.amount(self.done));
        if let Some(total) = self.total.filter(|total| *total > 0) {
            let percent = u128::from(self.done) * 100 / u128::from(total);
            line.push_str(&format!(" of {} ({percent}%)", self.amount(total)));
        }
        // What is left may have become less than had been done before.
        let here = self.done.saturating_sub(self.before);
        let speed = here as f64 / elapsed.as_secs_f64().max(1e-3);
        line.push_str(&format!(", {}/s", self.amount(speed as u64)));
        if let Some(total) = self.total.filter(|total| *total > self.done && speed >= 1.0) {
            let left = Duration::from_secs_f64((total - self.done) as f64 / speed);
            line.push_str(&format!(", {} left", human_duration(left)));
        }
        if !self.note.is_empty() {
            line.push_str(&format!(", {}", self.note));
        }
        line
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Before anything else is printed, whether the operation came to its end or failed.
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn terminal_bar(verb: &'static str, unit: Unit, total: Option<u64>) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    // A template that does not parse costs the looks of the bar, no more; a test holds it.
    if let Ok(style) = ProgressStyle::with_template(template(unit, total.is_some())) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(verb)
}

fn template(unit: Unit, total_known: bool) -> &'static str {
    match (unit, total_known) {
        (Unit::Bytes, true) => {
            "{prefix} {wide_bar} {percent:>3}%  {binary_bytes_per_sec}, {eta} left  {msg}"
        }
        (Unit::Bytes, false) => "{prefix} {spinner} {binary_bytes}, {binary_bytes_per_sec}  {msg}",
        (Unit::Steps, _) => {
            "{prefix} {wide_bar} {percent:>3}%  {human_pos} of {human_len}, {eta} left"
        }
    }
}

/// `duration` for a person.
pub(crate) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.2} s", duration.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use indicatif::ProgressStyle;

    use super::{Progress, Unit, human_duration};

    #[test]
    fn a_line_tells_amount_speed_time_left_and_savings() {
        let mut progress = Progress::new("importing", Unit::Bytes, Some(40 << 30));
        progress.set_done(10 << 30);
        progress.note_now_and_then(|| Some("75% saved".to_owned()));
        assert_eq!(
            progress.line(Duration::from_secs(20)),
            "importing 10 GiB of 40 GiB (25%), 512 MiB/s, 60 s left, 75% saved"
        );
    }

    #[test]
    fn a_line_tells_only_what_is_known() {
        let mut progress = Progress::new("importing", Unit::Bytes, None);
        progress.advance(512);
        assert_eq!(progress.line(Duration::from_secs(1)), "importing 512 B, 512 B/s");
        let empty = Progress::new("checking", Unit::Steps, Some(0));
        assert_eq!(empty.line(Duration::ZERO), "checking 0, 0/s");
    }

    #[test]
    fn what_goes_on_may_have_become_less() {
        let mut progress = Progress::going_on("scrubbing", Unit::Bytes, 90 << 30, 100 << 30);
        progress.set_total(40 << 30);
        progress.set_done(40 << 30);
        let line = progress.line(Duration::from_secs(1));
        assert_eq!(line, "scrubbing 40 GiB of 40 GiB (100%), 0 B/s");
        let mut progress = Progress::going_on("scrubbing", Unit::Bytes, 90 << 30, 40 << 30);
        progress.set_done(40 << 30);
        assert_eq!(progress.line(Duration::from_secs(1)), line);
    }

    #[test]
    fn notes_are_made_now_and_then() {
        let mut progress = Progress::new("importing", Unit::Bytes, None);
        let mut made = 0;
        for _ in 0..1000 {
            progress.note_now_and_then(|| {
                made += 1;
                None
            });
        }
        assert!(made < 10, "{made}");
    }

    #[test]
    fn durations_are_short_words() {
        for (ms, text) in [
            (120, "0.12 s"),
            (9_999, "10.00 s"),
            (59_000, "59 s"),
            (125_000, "2 min 5 s"),
            (7_260_000, "2 h 1 min"),
        ] {
            assert_eq!(human_duration(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn templates_parse() {
        for unit in [Unit::Bytes, Unit::Steps] {
            for total_known in [true, false] {
                assert!(ProgressStyle::with_template(super::template(unit, total_known)).is_ok());
            }
        }
    }
}
