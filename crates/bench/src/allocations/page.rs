//! The counts as Markdown.

use std::fmt::{self, Display, Formatter};

use super::profile::Part;
use super::{Allocations, Counted};

impl Display for Allocations {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { operations, volume_bytes, memory_bytes, kinds } = self;
        writeln!(
            f,
            "A server in this process, and a client at its Unix socket, 32 requests in flight (1 \
             where each is flushed); 4 KiB each, half noise, at scattered places of a volume of \
             {} MiB that was written in full; {} MiB of memory, one worker. {operations} \
             operations of each kind, after as many that were not counted. The client's own are \
             left out, and what C libraries take by themselves is not seen. Something that is made \
             longer counts once more.\n",
            volume_bytes >> 20,
            memory_bytes >> 20,
        )?;
        writeln!(
            f,
            "| for each operation | allocations | bytes | core | workers | door |\n\
             |---|---|---|---|---|---|"
        )?;
        for kind in kinds {
            let (all, bytes) = (kind.each(kind.allocations), kind.each(kind.bytes));
            write!(f, "| {} | {all:.3} | {bytes:.0} |", kind.operation)?;
            for part in &kind.parts {
                write!(f, " {:.3} |", kind.each(part.allocations))?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\nThe places that allocate most often: the innermost function of ours.\n\n\
             | operation | thread | place | allocations each | bytes each |\n|---|---|---|---|---|"
        )?;
        for kind in kinds {
            for site in &kind.sites {
                let (count, bytes) = (kind.each(site.allocations), kind.each(site.bytes));
                let (thread, place) = (name(site.part), &site.place);
                let operation = kind.operation;
                writeln!(f, "| {operation} | {thread} | `{place}` | {count:.4} | {bytes:.1} |")?;
            }
        }
        Ok(())
    }
}

impl Counted {
    fn each(&self, sum: u64) -> f64 {
        sum as f64 / self.operations.max(1) as f64
    }
}

fn name(part: Part) -> &'static str {
    match part {
        Part::Core => "core",
        Part::Workers => "workers",
        Part::Door => "door",
        Part::Others => "others",
    }
}
