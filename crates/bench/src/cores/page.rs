//! The figures as Markdown.

use std::fmt::{self, Display, Formatter};

use super::{Cores, StreamFigures};

impl Display for Cores {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.method(f)?;
        self.costs(f)?;
        self.modelled(f)?;
        self.measured(f)
    }
}

impl Cores {
    fn method(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (written, memory) = (self.written_bytes >> 20, self.engine_memory_bytes >> 20);
        writeln!(
            f,
            "{written} MiB in 1-MiB requests and a flush, into a new store; {memory} MiB of \
             memory; no sockets: a client's thread copies its bytes into the write buffer, which \
             stands for a door. Half of every chunk is noise and half zeros. This machine has {} \
             processors for it; its memory reads and writes {} GB/s, copying with all of them \
             (`--bandwidth-gb` says otherwise); the disk is taken to write {:.1} GB/s \
             (`--disk-gb`). Median (min to max); \
             load when a round began: {}.",
            self.processors,
            self.memory_bytes_per_second.over_number(1e9),
            self.device_bytes_per_second / 1e9,
            self.load_average,
        )
    }

    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## What a chunk costs\n\n\
             With the fewest threads that were measured. Core: the lesser of what its stages took \
             by the clock, sleep left out, and of its processor time. Workers and clients: \
             processor time, hand-over included. Memory: what would be read and written if no \
             cache held anything: the most it can be, so where memory is named first, look at what \
             was measured.\n\n\
             | stream | core, ns | workers, ns | client, ns | device, B | memory, B | one core's \
             thread can do, MiB/s |\n|---|---|---|---|---|---|---|"
        )?;
        for of in &self.streams {
            let Some(costs) = of.costs() else { continue };
            writeln!(
                f,
                "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
                of.stream.name(),
                costs.core_ns,
                costs.workers_ns,
                costs.clients_ns,
                costs.device_bytes,
                costs.memory_bytes,
                costs.core_mib_per_second(),
            )?;
        }
        Ok(())
    }

    fn modelled(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## Modelled: MiB/s, and what is saturated first\n\n\
             As many workers and clients as processors, all costs as above, this machine's memory \
             and the disk as said. In brackets: how busy the core's thread is, and all processors \
             together.\n"
        )?;
        write!(f, "| processors |")?;
        self.streams.iter().try_for_each(|of| write!(f, " {} |", of.stream.name()))?;
        write!(f, "\n|---|")?;
        self.streams.iter().try_for_each(|_| write!(f, "---|"))?;
        let lines = self.streams.iter().map(|of| of.modelled.len()).max().unwrap_or_default();
        for line in 0..lines {
            for (column, of) in self.streams.iter().enumerate() {
                let Some(modelled) = of.modelled.get(line) else { continue };
                if column == 0 {
                    write!(f, "\n| {} |", modelled.processors)?;
                }
                write!(
                    f,
                    " {:.0}, {} ({:.0}%, {:.0}%) |",
                    modelled.mib_per_second,
                    modelled.saturated,
                    100.0 * modelled.core_busy,
                    100.0 * modelled.processors_busy,
                )?;
            }
        }
        writeln!(f)
    }

    fn measured(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## Measured on this machine, beside the model of it\n\n\
             So many workers, as many clients, and the core, on {} processors. The columns of \
             costs show what more threads make of them; the model keeps to those of the fewest.\n\n\
             | stream | workers | measured, MiB/s | modelled, MiB/s | measured / modelled | \
             saturated by the model | core, ns | workers, ns | client, ns |\n\
             |---|---|---|---|---|---|---|---|---|",
            self.processors,
        )?;
        self.streams.iter().try_for_each(|of| lines(f, of))
    }
}

fn lines(f: &mut Formatter<'_>, of: &StreamFigures) -> fmt::Result {
    for measured in &of.measured {
        let Some(modelled) = measured.modelled else { continue };
        writeln!(
            f,
            "| {} | {} | {} | {:.0} | {:.2} | {} | {} | {} | {} |",
            of.stream.name(),
            measured.workers,
            measured.mib_per_second,
            modelled.mib_per_second,
            measured.mib_per_second.median() / modelled.mib_per_second,
            modelled.saturated,
            measured.core_ns,
            measured.workers_ns,
            measured.clients_ns,
        )?;
    }
    Ok(())
}
