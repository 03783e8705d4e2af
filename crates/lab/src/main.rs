//! `cargo run -p lab -- simulate --seed N --steps M`: runs of the real engine on a simulated disk.
//!
//! Each seed is one run (`lab`'s head says of what). A seed that fails is made short and printed as
//! a script, which `lab replay` runs again.
//!
//! A debug build also has `canary`: known bugs, each of which must be found.

mod buckets;
#[cfg(debug_assertions)]
mod canary;
mod fill;
mod night;
mod pairs;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::{DamageTable, Look, Script, Simulation, image};

/// Proves, or breaks, what the engine promises.
#[derive(Parser)]
#[command(name = "lab", after_help = "Example: lab simulate --seeds 50 --jobs 2")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write, crash at every write, recover, compare: again and again.
    Simulate(night::Arguments),
    /// Fill stores until they refuse, relieve them, and fill them again.
    Fill(fill::Arguments),
    /// Put, copy, delete, merge and roll back in buckets; crash at every write, recover, compare.
    Objects(buckets::Arguments),
    /// Keep a bucket on two stores: kill either, cut them apart, promote, compare.
    Replicas(pairs::Arguments),
    /// Run a script that a failing seed was shrunk to.
    Replay {
        /// The script, as it was printed.
        file: PathBuf,
    },
    /// Make the stored image of a format version that today's program writes, for the tests of all
    /// later ones.
    Image {
        /// Which: 2, with BLAKE3, 3, with SHA-256 and a domain, or 4, with a bucket as well.
        #[arg(long, default_value_t = format::FORMAT_VERSION)]
        version: u32,
        /// Where `vN.image` and `vN.txt` go.
        folder: PathBuf,
    },
    /// Let known bugs live, one at a time: the simulator must find each.
    #[cfg(debug_assertions)]
    Canary(canary::Arguments),
    /// Damage stores, check, open and repair them: what is read is right or an error.
    Damage {
        /// Of everything; the same seed gives the same hits.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many.
        #[arg(long, default_value_t = 1000)]
        hits: u64,
        /// Hit two places of each store, with the store open in between or not.
        #[arg(long)]
        twice: bool,
        /// Hit 4 KiB to 1 MiB of one file at a time, wherever that is.
        #[arg(long, conflicts_with = "twice")]
        wide: bool,
        /// With --twice: the number of the first.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Print the table as JSON.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Simulate(arguments) => night::simulate(&arguments),
        Command::Fill(arguments) => fill::fill(&arguments),
        Command::Objects(arguments) => buckets::objects(&arguments),
        Command::Replicas(arguments) => pairs::replicas(&arguments),
        Command::Replay { file } => replay(&file),
        Command::Image { version, folder } => make_image(version, &folder),
        #[cfg(debug_assertions)]
        Command::Canary(arguments) => canary::run(&arguments),
        Command::Damage { seed, hits, twice, wide, from, json } => {
            let numbers = from..from + hits;
            let table = match (twice, wide) {
                (true, _) => DamageTable::run_twice(seed, numbers, progress(from + hits)),
                (_, true) => DamageTable::run_wide(seed, hits, progress(hits)),
                _ => DamageTable::run(seed, from + hits, progress(from + hits)),
            };
            damage(table, json)
        }
    }
}

fn replay(file: &std::path::Path) -> ExitCode {
    let script = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))
        .and_then(|text| text.parse::<Script>().map_err(|error| error.to_string()));
    let run = script.and_then(|script| {
        let run = Simulation::of_script(script, Look::Everywhere).and_then(Simulation::run);
        run.map_err(|failure| failure.to_string())
    });
    match run {
        Ok(summary) => {
            println!(
                "nothing is wrong: {} crash points, {} requests failed by the disk",
                summary.points.total(),
                summary.failed
            );
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            println!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn make_image(version: u32, folder: &std::path::Path) -> ExitCode {
    let Some(recipe) = image::Recipe::of_version(version) else {
        println!("this program does not write version {version}");
        return ExitCode::FAILURE;
    };
    let path = folder.join(format!("v{version}.image"));
    let made = image::make(recipe).and_then(|disk| {
        let packed = image::pack(&disk)?;
        let recorded = image::record(&disk)?;
        std::fs::write(&path, &packed)?;
        std::fs::write(path.with_extension("txt"), recorded)?;
        Ok(packed.len())
    });
    match made {
        Ok(bytes) => println!("{}: {bytes} bytes", path.display()),
        Err(error) => {
            println!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn progress(end: u64) -> impl FnMut(u64) {
    move |done| {
        if done.is_multiple_of(100) {
            eprintln!("{done} of {end} hits");
        }
    }
}

fn damage(table: Result<DamageTable, String>, json: bool) -> ExitCode {
    let table = match table {
        Ok(table) => table,
        Err(sentence) => {
            println!("no store could be made: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", if json { table.json() } else { table.to_string() });
    for (refusal, times) in &table.refusals {
        eprintln!("{times} times: {refusal}");
    }
    for failure in &table.failures {
        eprintln!("{failure}");
    }
    if table.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
