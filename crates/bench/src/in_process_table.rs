//! The Markdown of `in-process`.

use std::fmt::{self, Display, Formatter};

use crate::in_process::InProcess;
use crate::wanted::{Bound, Wanted};

/// Part of the time, and of the processor time, that the kernels are to have.
const KERNELS: f64 = 0.85;
/// What the core may take of a chunk.
const CORE_NS: f64 = 400.0;

impl InProcess {
    /// What this is held to.
    pub(crate) fn wanted(&self) -> [Wanted; 3] {
        let threads = self.client_thread_ns.plus(&self.workers_ns).plus(&self.core_thread_ns);
        [
            Wanted::new(
                "in process: the kernels' time by the engine's",
                Bound::AtLeast(KERNELS),
                self.ratio.clone(),
            ),
            Wanted::new(
                "in process: the kernels' part of the processor time",
                Bound::AtLeast(KERNELS),
                self.kernels_ns.over(&threads),
            ),
            Wanted::new(
                "in process: ns of the core for a chunk",
                Bound::AtMost(CORE_NS),
                self.core_thread_ns.clone(),
            ),
        ]
    }
}

impl Display for InProcess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rows = [
            ("engine, MiB/s", &self.engine_mib_per_second),
            ("kernels alone, MiB/s", &self.kernels_mib_per_second),
            ("**kernels' time / engine's time**", &self.ratio),
            ("kernel copy, ns of a core's clock per chunk", &self.copy_ns),
            ("kernel BLAKE3, ns of a core's clock per chunk", &self.fingerprint_ns),
            ("kernel LZ4 of unique chunks, ns of a core's clock per chunk", &self.compress_ns),
            ("kernels together, ns of processor time per chunk", &self.kernels_ns),
            ("engine: thread `core`, ns of processor time per chunk", &self.core_thread_ns),
            ("engine: worker threads, ns of processor time per chunk", &self.workers_ns),
            (
                "engine: writing thread with its copy, ns of processor time per chunk",
                &self.client_thread_ns,
            ),
            ("load average when a round began", &self.load_average),
        ];
        let (written, memory) = (self.written_bytes >> 20, self.memory_bytes >> 20);
        let cores = self.cores;
        let repeating = match self.unique {
            true => "No chunk repeats another",
            false => "Half of the chunks repeat one of the last 1024 unique ones",
        };
        writeln!(
            f,
            "{written} MiB in 1-MiB requests and a flush, into a new store; {memory} MiB of \
             memory, {cores} worker threads. {repeating}; each is half random, half zeros.\n\
             The kernels run on {cores} cores at once. Median (min to max).\n\n| | |\n|---|---|"
        )?;
        rows.iter().try_for_each(|(name, samples)| writeln!(f, "| {name} | {samples} |"))?;
        writeln!(
            f,
            "\nStage by stage, ns that passed for a written chunk, by any thread \
             meanwhile; jobs are those of all threads together. `tamis stats` says the same of a \
             store that is served.\n\n| | |\n|---|---|"
        )?;
        let mut stages = self.stages.iter();
        stages.try_for_each(|stage| writeln!(f, "| {} | {} |", stage.name, stage.ns))
    }
}

#[cfg(test)]
mod tests {
    use crate::in_process::InProcess;

    #[test]
    fn processor_time_is_divided_by_processor_time() {
        let mut figures = InProcess::default();
        // By the clock kernels have had what others took as well: more than the engine had in all.
        [&mut figures.copy_ns, &mut figures.fingerprint_ns, &mut figures.compress_ns]
            .into_iter()
            .for_each(|by_clock| by_clock.push(1000.0));
        figures.kernels_ns.push(600.0);
        figures.core_thread_ns.push(200.0);
        figures.workers_ns.push(500.0);
        figures.client_thread_ns.push(300.0);
        let [_, part, _] = figures.wanted();
        assert!(part.what.contains("part of the processor time"), "{}", part.what);
        assert_eq!(part.measured.median(), 0.6);
    }
}
