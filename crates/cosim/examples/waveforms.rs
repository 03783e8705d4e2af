//! Three moments of DedupCore as traces, which `cargo xtask rtl --pictures` draws: `cargo run -p
//! cosim --features trace --example waveforms FOLDER`.
//!
//! Memory answers after four cycles and lands writes after six, as no memory does: so a look-up
//! fits on a page.

#[cfg(not(all(verilator, feature = "trace")))]
fn main() {
    println!("needs Verilator and `--features trace`");
}

#[cfg(all(verilator, feature = "trace"))]
fn main() {
    moments::write_all();
}

#[cfg(all(verilator, feature = "trace"))]
mod moments {
    use std::path::{Path, PathBuf};

    use cosim::StubbedDedup;
    use cosim::dedup::{Digest, Instruction, Op, Page, Rig, Settings, alike, spread};

    const SETTINGS: Settings = Settings {
        fsms: 8,
        bloom: true,
        ready: true,
        count_max: u32::MAX,
        bucket_mask: 127,
        capacity: 256,
        read_cycles: 4,
        write_cycles: 6,
        page_tenths: 640,
        jitter: false,
        seed: 1,
        mutant: 0,
    };

    pub(super) fn write_all() {
        let folder = std::env::args_os().nth(1).map_or_else(PathBuf::new, PathBuf::from);
        // The table has the page: its count is raised.
        trace(&folder.join("duplicate.vcd"), &[spread(1)], &[(Op::Write, spread(1))]);
        // Two look-ups of one bucket, and one of another bucket that overtakes the second.
        let asked = [(Op::Erase, alike(1)), (Op::Read, alike(2)), (Op::Read, spread(3))];
        trace(&folder.join("parking.vcd"), &[alike(1), alike(2), spread(3)], &asked);
        // The indices that come back overflow the on-chip FIFO and go to memory.
        let pages: Vec<Digest> = (0..200).map(spread).collect();
        let asked: Vec<(Op, Digest)> = pages.iter().map(|page| (Op::Erase, *page)).collect();
        trace(&folder.join("spill.vcd"), &pages, &asked);
    }

    fn trace(path: &Path, table: &[Digest], asked: &[(Op, Digest)]) {
        let table: Vec<(Digest, u32)> = table.iter().map(|digest| (*digest, 1)).collect();
        let mut rig: Rig<StubbedDedup> = Rig::with_table(SETTINGS, &table);
        rig.trace_to(path);
        for (op, digest) in asked {
            rig.instruct(Instruction { op: *op, tag: 0, lba: 0, pages: 1, digest: *digest });
            if *op == Op::Write {
                rig.bring_page(Page::told(*digest));
            }
        }
        rig.run(asked.len());
    }
}
