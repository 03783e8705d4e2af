//! Signals over cycles, drawn as SVG from a simulation's trace.
//!
//! A signal of one bit is a line, low or high; any other is a row of boxes with its values, which
//! for the state of a machine are the names that its source gives them. A name is cut where its box
//! ends, and a number that does not fit is left out.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::trace::{self, Changes};

const LABEL_WIDTH: u64 = 170;
const CYCLE_WIDTH: u64 = 18;
const ROW_HEIGHT: u64 = 26;
const WAVE_HEIGHT: u64 = 16;
const LETTER_WIDTH: u64 = 7;
const TOP: u64 = 24;
/// Cycles between two numbers at the top.
const TICK: u64 = 5;

/// A picture: what is drawn, and from where on.
#[derive(Debug)]
pub(super) struct Picture {
    /// The trace, and the name of the picture's file.
    pub(super) name: &'static str,
    /// The first cycle in which this signal is not 0 is number 2 of the picture.
    pub(super) begins_with: &'static str,
    pub(super) cycles: u64,
    pub(super) rows: &'static [Row],
}

/// A signal in a picture.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: &'static str,
    /// The end of its path.
    pub(super) signal: &'static str,
    pub(super) shown: Shown,
}

/// How a signal is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// This bit of it, as a line.
    Bit(u32),
    Number,
    /// As the `localparam`s of the source that goes with the pictures.
    State,
}

/// Draws a picture of a trace; `source` names states.
pub(super) fn draw(picture: &Picture, vcd: &str, source: &str) -> String {
    let mut wanted: Vec<&str> = picture.rows.iter().map(|row| row.signal).collect();
    wanted.push(picture.begins_with);
    let signals = trace::read(vcd, &wanted);
    let none = Changes::new();
    let changes_of = |signal: &str| signals.get(signal).unwrap_or(&none);
    let trigger = changes_of(picture.begins_with).iter().find(|(_, value)| *value != 0);
    let first = trigger.map_or(0, |(cycle, _)| cycle.saturating_sub(2));
    let states = states_of(source);
    let width = LABEL_WIDTH + picture.cycles * CYCLE_WIDTH + 10;
    let height = TOP + picture.rows.len() as u64 * ROW_HEIGHT + 6;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for tick in (0..picture.cycles).step_by(TICK as usize) {
        let x = LABEL_WIDTH + tick * CYCLE_WIDTH;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"14\" fill=\"#777\">{tick}</text>\n\
             <line x1=\"{x}\" y1=\"18\" x2=\"{x}\" y2=\"{height}\" stroke=\"#ddd\"/>"
        );
    }
    for (place, row) in (0..).zip(picture.rows) {
        let y = TOP + place * ROW_HEIGHT;
        let _ = writeln!(svg, "<text x=\"6\" y=\"{}\">{}</text>", y + 12, row.label);
        let runs = runs(changes_of(row.signal), row.shown, first, picture.cycles);
        match row.shown {
            Shown::Bit(_) => svg += &line(&runs, y),
            Shown::Number => svg += &boxes(&runs, y, whole_number),
            Shown::State => {
                let name = |value: u64, letters| {
                    let name = states.get(&value).map(String::as_str).unwrap_or_default();
                    name.chars().take(letters).collect()
                };
                svg += &boxes(&runs, y, name);
            }
        }
    }
    svg += "</svg>\n";
    svg
}

/// Values with the cycles that they last, in the window.
fn runs(changes: &Changes, shown: Shown, first: u64, cycles: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for cycle in first..first + cycles {
        let value = match shown {
            Shown::Bit(bit) => trace::value_at(changes, cycle) >> bit & 1,
            Shown::Number | Shown::State => trace::value_at(changes, cycle),
        };
        match runs.last_mut() {
            Some((last, length)) if *last == value => *length += 1,
            _ => runs.push((value, 1)),
        }
    }
    runs
}

fn line(runs: &[(u64, u64)], y: u64) -> String {
    let mut points = String::new();
    let mut x = LABEL_WIDTH;
    for (value, cycles) in runs {
        let level = if *value == 0 { y + WAVE_HEIGHT } else { y };
        let end = x + cycles * CYCLE_WIDTH;
        let _ = write!(points, "{x},{level} {end},{level} ");
        x = end;
    }
    let points = points.trim_end();
    format!(
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"1.5\"/>\n"
    )
}

/// A number of which a part is shown would be another one.
fn whole_number(value: u64, letters: usize) -> String {
    let digits = value.to_string();
    if digits.len() <= letters { digits } else { String::new() }
}

/// Each value as `name` writes it, in at most the letters that fit.
fn boxes(runs: &[(u64, u64)], y: u64, name: impl Fn(u64, usize) -> String) -> String {
    let mut svg = String::new();
    let mut x = LABEL_WIDTH;
    for (value, cycles) in runs {
        let width = cycles * CYCLE_WIDTH;
        let fill = if *value == 0 { "#f4f4f4" } else { "#e3eef8" };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{WAVE_HEIGHT}\" rx=\"3\" \
             fill=\"{fill}\" stroke=\"#1f5fa8\"/>"
        );
        let name = name(*value, ((width - 4) / LETTER_WIDTH) as usize);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 3, y + 12);
        x += width;
    }
    svg
}

/// `localparam logic [3:0] IDLE = 4'd0;` and its like, by number.
fn states_of(source: &str) -> BTreeMap<u64, String> {
    let state = |line: &str| {
        let (name, value) =
            line.trim().strip_prefix("localparam logic [3:0] ")?.split_once(" = 4'd")?;
        Some((value.trim_end_matches(';').parse().ok()?, name.to_owned()))
    };
    source.lines().filter_map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::{Picture, Row, Shown, draw};

    const PICTURE: Picture = Picture {
        name: "any",
        begins_with: "go",
        cycles: 6,
        rows: &[
            Row { label: "go", signal: "go", shown: Shown::Bit(0) },
            Row { label: "phase", signal: "phase", shown: Shown::State },
        ],
    };

    #[test]
    fn a_picture_begins_two_cycles_before_its_signal_and_names_states() {
        let vcd = "$scope module TOP $end\n$var wire 1 # go $end\n$var wire 4 $ phase [3:0] $end\n\
                   $upscope $end\n#0\n0#\nb0000 $\n#7\n1#\n#9\nb0001 $\n";
        let source =
            "  localparam logic [3:0] IDLE = 4'd0;\n  localparam logic [3:0] LOCK = 4'd1;\n";
        let svg = draw(&PICTURE, vcd, source);
        // Low for cycles 5 and 6, high from 7 on.
        assert!(svg.contains("points=\"170,40 206,40 206,24 278,24\""), "{svg}");
        assert!(svg.contains(">IDLE</text>") && svg.contains(">LOCK</text>"), "{svg}");
    }
}
