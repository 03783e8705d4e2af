//! `docs/reproduction.md`, as text, and its plots.

use std::fmt::Write;

use charts::PlotError;

use crate::flash::INCONSISTENCIES as EAD_INCONSISTENCIES;
use crate::parameter::Parameter;
use crate::row::{Basis, Paper, Row, Tolerance, Verdict};
use crate::{cidr, dedupcore, server, through_engine};

use super::open::INCONSISTENCIES;

const HEAD: &str = include_str!("head.md");

/// The page.
#[must_use]
pub fn page(rows: &[Row], parameters: &[&Parameter]) -> String {
    let mut text = String::from(HEAD);
    summary(&mut text, rows);
    for paper in Paper::ALL {
        let of_paper: Vec<&Row> = rows.iter().filter(|row| row.paper == paper).collect();
        table(&mut text, paper, &of_paper);
        notes(&mut text, &of_paper);
    }
    text.push_str(&through_engine::section());
    inconsistencies(&mut text);
    parameter_table(&mut text, parameters);
    text
}

/// Each with the name of its file in `docs/reproduction`.
///
/// # Errors
/// [`PlotError`] when one cannot be drawn.
pub fn plots() -> Result<Vec<(&'static str, String)>, PlotError> {
    Ok([cidr::plots()?, server::plots()?, dedupcore::plots()?].concat())
}

fn summary(text: &mut String, rows: &[Row]) {
    text.push_str(
        "\n| paper | exact | modelled | of them predicted | apart | physical | unknown |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    for paper in Paper::ALL {
        let count = |is_meant: &dyn Fn(&Row) -> bool| {
            rows.iter().filter(|row| row.paper == paper && is_meant(row)).count()
        };
        let of_kind = |name| count(&|row| row.kind.name() == name);
        let predicted =
            count(&|row| row.kind.name() == "modelled" && !matches!(row.basis, Basis::FittedOn(_)));
        let apart = count(&|row| row.verdict() == Verdict::Apart);
        line(
            text,
            format_args!(
                "| {} | {} | {} | {predicted} | {apart} | {} | {} |",
                paper.name(),
                of_kind("exact"),
                of_kind("modelled"),
                of_kind("physical"),
                of_kind("unknown"),
            ),
        );
    }
}

fn table(text: &mut String, paper: Paper, rows: &[&Row]) {
    line(text, format_args!("\n## {}\n", paper.name()));
    text.push_str("| | where | what | paper | ours | kind | tolerance | rests on | verdict |\n");
    text.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for row in rows {
        line(
            text,
            format_args!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.id,
                row.section,
                row.what,
                value(row, row.stated),
                value(row, row.ours),
                row.kind.name(),
                tolerance(row),
                basis(row),
                row.verdict().name(),
            ),
        );
    }
    for (name, title) in plots_of(paper) {
        line(text, format_args!("\n![{title}](reproduction/{name})"));
    }
}

fn notes(text: &mut String, rows: &[&Row]) {
    let noted: Vec<&&Row> = rows.iter().filter(|row| !row.note.is_empty()).collect();
    if noted.is_empty() {
        return;
    }
    text.push('\n');
    for row in noted {
        line(text, format_args!("- {}: {}.", row.id, row.note.trim_end_matches('.')));
    }
}

fn value(row: &Row, value: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    if row.is_statement() {
        return if value > 0.5 { "holds" } else { "does not hold" }.to_owned();
    }
    let decimals = match row.tolerance {
        Some(Tolerance::Decimals(decimals)) => decimals.max(2),
        _ if value.abs() >= 100.0 => 1,
        _ if value.abs() >= 10.0 => 2,
        _ => 3,
    };
    let digits = format!("{value:.decimals$}");
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits,
    };
    format!("{digits} {}", row.unit).trim_end().to_owned()
}

fn tolerance(row: &Row) -> String {
    match row.tolerance {
        None => String::new(),
        Some(Tolerance::Decimals(_)) => "equal".to_owned(),
        Some(Tolerance::Percent(percent)) => format!("±{percent}%"),
        Some(Tolerance::Points(points)) => match row.unit {
            "%" => format!("±{points} points"),
            unit => format!("±{points} {unit}").trim_end().to_owned(),
        },
        Some(Tolerance::AtLeast) => "at least".to_owned(),
        Some(Tolerance::AtMost) => "at most".to_owned(),
    }
}

fn basis(row: &Row) -> &'static str {
    if row.ours.is_none() {
        return "";
    }
    match row.basis {
        Basis::ClosedForm => "closed form",
        Basis::Engine => "the engine",
        Basis::Predicted(_) => "predicted",
        Basis::FittedOn(_) => "fitted",
    }
}

fn plots_of(paper: Paper) -> &'static [(&'static str, &'static str)] {
    match paper {
        Paper::Fidr => &[
            ("server-needs.svg", "cores and DRAM by throughput"),
            ("server-engine.svg", "the table cache alone by updates under way"),
            ("server-ladder.svg", "the ladder of designs"),
        ],
        Paper::DedupCore => &[
            ("dedupcore-machines.svg", "throughput by state machines, ordered and ready"),
            ("dedupcore-old-pages.svg", "throughput by share of old pages"),
        ],
        Paper::Cal => &[("cal-devices.svg", "duplicates found, each device for itself")],
        Paper::Cidr => &[
            ("cidr-large-chunks.svg", "blocks moved by chunks of 32 KiB"),
            ("cidr-predictor.svg", "guesses of the predictor that are right"),
        ],
        Paper::Multes | Paper::Ead => &[],
    }
}

fn inconsistencies(text: &mut String) {
    text.push_str("\n## Where the papers disagree with themselves\n\n");
    for (paper, what) in INCONSISTENCIES {
        line(text, format_args!("- {}: {what}", paper.name()));
    }
    for what in EAD_INCONSISTENCIES {
        line(text, format_args!("- {}: {what}", Paper::Ead.name()));
    }
}

fn parameter_table(text: &mut String, parameters: &[&Parameter]) {
    text.push_str("\n## Parameters\n\n| parameter | value | mark | source |\n|---|---|---|---|\n");
    for parameter in parameters {
        let value = format!("{:.4}", parameter.value);
        let value = value.trim_end_matches('0').trim_end_matches('.');
        line(
            text,
            format_args!(
                "| {} | {} | {} | {} |",
                parameter.name,
                format!("{value} {}", parameter.unit).trim_end(),
                parameter.mark.name(),
                parameter.source,
            ),
        );
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A string takes whatever is written to it.
    let _ = writeln!(text, "{arguments}");
}
