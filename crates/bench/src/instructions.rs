//! Instructions that the engine takes for a chunk, counted by callgrind.
//!
//! Each kind of work is done by a process of its own under `valgrind --tool=callgrind`, once over
//! N chunks and once over 2N (`instructions/workload.rs`). The difference divided by N is what a
//! chunk takes; what a run takes once cancels out. Only the function `workload::counted` counts:
//! opening and filling the store do not.
//!
//! A count is no time, but two counts on one machine by one compiler differ by less than a percent
//! where the code is the same, however busy the machine is. Kernels that choose their instructions
//! by the processor (BLAKE3, CRC, LZ4) take what valgrind offers them, which is AVX2.

pub(crate) mod workload;

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::program::patiently;
use workload::Work;

/// The function within which callgrind counts.
const COUNTED: &str = "*workload::counted*";

/// What was counted.
#[derive(Debug, Serialize)]
pub(crate) struct Instructions {
    /// N: one run works on so many chunks, the other on twice as many.
    pub(crate) chunks: u64,
    pub(crate) works: Vec<WorkCount>,
}

/// Of one kind of work.
#[derive(Debug, Serialize)]
pub(crate) struct WorkCount {
    pub(crate) work: &'static str,
    /// Of the runs over N and over 2N chunks.
    pub(crate) counted: [u64; 2],
    pub(crate) instructions_per_chunk: f64,
}

/// All kinds of work; callgrind's files are written to `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Instructions, Failure> {
    let chunks = args.counted_chunks;
    let mut works = Vec::new();
    for work in Work::ALL {
        let counted = [count(work, chunks, folder)?, count(work, 2 * chunks, folder)?];
        let difference = counted[1] as f64 - counted[0] as f64;
        let instructions_per_chunk = difference / chunks as f64;
        works.push(WorkCount { work: work.name(), counted, instructions_per_chunk });
    }
    Ok(Instructions { chunks, works })
}

/// Runs this program under callgrind; how many instructions counted.
fn count(work: Work, chunks: u64, folder: &Path) -> Result<u64, Failure> {
    let program = std::env::current_exe().map_err(Failure::file(Path::new("/proc/self/exe")))?;
    let file = folder.join(format!("callgrind-{}", work.name()));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet"]);
    command.arg(format!("--toggle-collect={COUNTED}"));
    command.arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(&program).args(["instructions", "--counted", work.name()]);
    command.args(["--counted-chunks", &chunks.to_string()]);
    patiently(&mut command)?;
    let written = std::fs::read_to_string(&file).map_err(Failure::file(&file))?;
    std::fs::remove_file(&file).map_err(Failure::file(&file))?;
    total(&written).filter(|total| *total > 0).ok_or_else(|| Failure::Answer {
        command: crate::program::words(&command),
        missing: "instructions of the counted function",
    })
}

/// The count in what callgrind writes.
fn total(written: &str) -> Option<u64> {
    let mut lines = written.lines();
    let line = lines.find_map(|line| line.strip_prefix("totals: "))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Display for Instructions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Counted by callgrind in process, on a memory disk, by one thread that is client, core \
             and worker: 2 x {0} chunks of 4 KiB less {0}, divided by {0}.\n\n\
             | work | instructions a chunk | {0} chunks | 2 x {0} |\n|---|---|---|---|",
            self.chunks,
        )?;
        for WorkCount { work, counted: [once, twice], instructions_per_chunk } in &self.works {
            writeln!(f, "| {work} | {instructions_per_chunk:.0} | {once} | {twice} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_found_in_what_callgrind_writes() {
        assert_eq!(total("events: Ir\nfn=(1) x\n1 2\n\ntotals: 123456\n"), Some(123_456));
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }
}
