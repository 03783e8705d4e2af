//! The section of `docs/reproduction.md` on what the real engine counted.

use std::fmt::Write;

use super::{DeviceRun, Measured, WorkloadRun};

const HEAD: &str = include_str!("head.md");

/// The section, with its heading; empty without figures.
#[must_use]
pub fn section() -> String {
    let measured = Measured::committed().unwrap_or_default();
    let mut text = String::from(HEAD);
    workloads(&mut text, &measured.workloads);
    devices(&mut text, &measured.devices);
    text
}

fn workloads(text: &mut String, runs: &[WorkloadRun]) {
    text.push_str("\n| workload | requests | pages cached; young | duplicates | look-ups | hits: ");
    text.push_str("FIDR's table | hits: engine; model | pages read a new chunk: engine; model | ");
    text.push_str("pages written: engine; model |\n|---|---|---|---|---|---|---|---|---|\n");
    for run in runs {
        let WorkloadRun { engine, model, .. } = run;
        line(
            text,
            format_args!(
                "| {} | {} | {}; {} | {:.1}% | {}; {} | {:.1}% | {:.1}; {:.1}% | {:.3}; {:.3} | \
                 {:.3}; {:.3} |",
                run.workload,
                run.requests,
                run.cache_pages,
                run.young_max,
                engine.duplicate_percent,
                engine.lookups,
                model.lookups,
                run.bucket_hit_percent,
                engine.hit_percent,
                model.hit_percent,
                engine.pages_read_per_new,
                model.pages_read_per_new,
                engine.pages_written_per_new,
                model.pages_written_per_new,
            ),
        );
    }
}

fn devices(text: &mut String, runs: &[DeviceRun]) {
    text.push_str("\n| data | chunks | engine stores | duplicates found | by the law |\n");
    text.push_str("|---|---|---|---|---|\n");
    for DeviceRun { data, chunks, devices, found_percent, law_percent } in runs {
        line(
            text,
            format_args!(
                "| {data} | {chunks} | {devices} | {found_percent:.2}% | {law_percent:.2}% |"
            ),
        );
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A string takes whatever is written to it.
    let _ = writeln!(text, "{arguments}");
}
