//! What DedupCore takes, in cycles of its model: the tables of `docs/measurements/054-rtl.md`.
//!
//! `cargo run -p cosim --example measure` prints them all, with targets behind it (`-- D5 D6`)
//! those of the targets; `cargo xtask rtl` writes the page. The experiments are those of chapter 5
//! of the report: 32,768 buckets, 8 pages a bucket when full, batches of 16,384 operations, of 16
//! for latency.

#[cfg(not(verilator))]
fn main() {
    println!("{}", cosim::SKIPPED);
}

#[cfg(verilator)]
fn main() {
    tables::print_wanted();
}

#[cfg(verilator)]
mod tables {
    use cosim::StubbedDedup;
    use cosim::dedup::{Dice, Digest, Instruction, Op, Page, Rig, Settings, spread};

    use models::dedupcore::{
        Arrival, Dispatch, Engine, bloom_false_percent_poisson, deletion_gb, insertion_gb,
        latency_us, worst_loss_percent,
    };

    type Core = Rig<StubbedDedup>;

    const CLOCK_MHZ: f64 = 250.0;
    const FULL: u64 = 1 << 18;
    const BATCH: u64 = 16_384;
    /// The host brings a page each 80.6 cycles: 12.7 GB/s at 250 MHz (D3).
    const DMA_TENTHS: u64 = 806;
    const REPORT_GB_PER_S: f64 = 12.7;

    fn settings(fsms: u8, bloom: bool) -> Settings {
        Settings { fsms, bloom, page_tenths: DMA_TENTHS, write_cycles: 80, ..Settings::default() }
    }

    /// A table of this number of pages, each with two references: a batch of erasures frees none.
    fn table(pages: u64) -> Vec<(Digest, u32)> {
        (0..pages).map(|content| (spread(content), 2)).collect()
    }

    fn ask(core: &mut Core, op: Op, digest: Digest) {
        core.instruct(Instruction { op, tag: 0, lba: 0, pages: 1, digest });
        if op == Op::Write {
            core.bring_page(Page::told(digest));
        }
    }

    /// Cycles an operation of a batch.
    fn pace(mut core: Core, op: Op, digests: impl Iterator<Item = Digest>) -> f64 {
        let begun = core.cycles();
        let mut count = 0;
        for digest in digests {
            ask(&mut core, op, digest);
            count += 1;
        }
        let answers = core.run(count);
        let last = answers.last().map_or(begun, |answer| answer.cycle);
        (last - begun) as f64 / count as f64
    }

    fn gb_per_s(cycles_a_page: f64) -> f64 {
        4096.0 * CLOCK_MHZ / cycles_a_page / 1000.0
    }

    fn old(seed: u64, pages: u64) -> impl Iterator<Item = Digest> {
        let mut dice = Dice::new(seed);
        (0..BATCH).map(move |_| spread(dice.below(pages)))
    }

    fn new() -> impl Iterator<Item = Digest> {
        (0..BATCH).map(|content| spread((1 << 32) + content))
    }

    /// Each target with what prints its table.
    const TABLES: [(&str, fn()); 5] =
        [("D4", fsms), ("D5", worst_case), ("D6", by_share), ("D7", latency), ("D8", filters)];

    pub(super) fn print_wanted() {
        let wanted: Vec<String> = std::env::args().skip(1).collect();
        let is_wanted = |target: &str| wanted.is_empty() || wanted.iter().any(|one| one == target);
        let tables = TABLES.iter().filter(|(target, _)| is_wanted(target));
        tables.for_each(|(_, print)| print());
    }

    /// Dispatch in the words of a table and in those of the model.
    fn dispatch(ready: bool) -> (&'static str, Dispatch) {
        match ready {
            true => ("any idle", Dispatch::Ready),
            false => ("in turn", Dispatch::Ordered),
        }
    }

    fn fsms() {
        println!("## Look-ups at once, table full, old pages (D4)\n");
        println!("| FSMs | dispatch | write GB/s | model | erase, million/s | model | read |");
        println!("|---|---|---|---|---|---|---|");
        let full = table(FULL);
        for (fsms, ready) in [(2, true), (4, true), (4, false), (6, true), (6, false), (8, true)] {
            let settings = Settings { ready, ..settings(fsms, true) };
            let core = || Core::with_table(settings, &full);
            let write = gb_per_s(pace(core(), Op::Write, old(1, FULL)));
            let erase = CLOCK_MHZ / pace(core(), Op::Erase, old(2, FULL));
            let read = CLOCK_MHZ / pace(core(), Op::Read, old(3, FULL));
            let (word, dispatch) = dispatch(ready);
            let machines = usize::from(fsms);
            let write_model = insertion_gb(machines, dispatch);
            let erase_model = deletion_gb(machines, dispatch) * 1000.0 / 4096.0;
            println!(
                "| {fsms} | {word} | {write:.2} | {write_model:.2} | {erase:.2} | \
                 {erase_model:.2} | {read:.2} |"
            );
        }
        println!();
    }

    /// FSMs, filter, dispatch to any idle one.
    const WORST_CASES: [(u8, bool, bool); 9] = [
        (4, false, true),
        (4, true, true),
        (6, false, true),
        (6, true, true),
        (6, false, false),
        (6, true, false),
        (8, false, true),
        (8, true, true),
        (8, true, false),
    ];

    fn worst_case() {
        println!("## New pages into the last 16,384 places (D5)\n");
        println!("| FSMs | dispatch | filter | GB/s | of {REPORT_GB_PER_S} | model |");
        println!("|---|---|---|---|---|---|");
        let nearly = table(FULL - BATCH);
        for (fsms, bloom, ready) in WORST_CASES {
            let settings = Settings { ready, ..settings(fsms, bloom) };
            let rate = gb_per_s(pace(Core::with_table(settings, &nearly), Op::Write, new()));
            let share = 100.0 * (rate / REPORT_GB_PER_S - 1.0);
            let (turn, dispatch) = dispatch(ready);
            let engine = Engine { machines: usize::from(fsms), filters: bloom, dispatch };
            let loss = worst_loss_percent(&engine, 100);
            let word = if bloom { "yes" } else { "no" };
            println!("| {fsms} | {turn} | {word} | {rate:.2} | {share:+.0} % | {:+.0} % |", -loss);
        }
        println!();
    }

    fn by_share() {
        println!("## By share of old pages, GB/s (D6)\n");
        println!(
            "| old pages | 6 FSMs, no filter | 6 with filter | 6 with, in turn | 8 with filter |"
        );
        println!("|---|---|---|---|---|");
        let nearly = table(FULL - BATCH);
        for percent in [0, 20, 40, 60, 80, 100] {
            let cores = [(6, false, true), (6, true, true), (6, true, false), (8, true, true)];
            let rates = cores.map(|(fsms, bloom, ready)| {
                let mut dice = Dice::new(7);
                let pages = new().map(|digest| {
                    let old = spread(dice.below(FULL - BATCH));
                    if dice.below(100) < percent { old } else { digest }
                });
                let settings = Settings { ready, ..settings(fsms, bloom) };
                gb_per_s(pace(Core::with_table(settings, &nearly), Op::Write, pages))
            });
            let [plain, filtered, in_turn, eight] = rates;
            println!("| {percent} % | {plain:.2} | {filtered:.2} | {in_turn:.2} | {eight:.2} |");
        }
        println!();
    }

    fn latency() {
        println!("## Latency of 16 operations by fullness, 6 FSMs, us at 250 MHz (D7)\n");
        println!("| full | write | model | erase | model | read |");
        println!("|---|---|---|---|---|---|");
        for percent in [10, 25, 50, 75, 100] {
            let pages = FULL * percent / 100;
            let held = table(pages);
            let times = [Op::Write, Op::Erase, Op::Read].map(|op| {
                let mut core = Core::with_table(settings(6, true), &held);
                let batches = 8;
                let mut cycles = 0;
                for batch in 0..batches {
                    let begun = core.cycles();
                    old(batch + 10, pages).take(16).for_each(|page| ask(&mut core, op, page));
                    let answers = core.run(16);
                    cycles += answers.last().map_or(0, |answer| answer.cycle - begun);
                }
                cycles as f64 / batches as f64 / CLOCK_MHZ
            });
            let [write, erase, read] = times;
            let models =
                [Arrival::Page, Arrival::Fingerprint].map(|what| latency_us(what, percent));
            println!(
                "| {percent} % | {write:.1} | {:.1} | {erase:.1} | {:.1} | {read:.1} |",
                models[0], models[1]
            );
        }
        println!();
    }

    fn filters() {
        println!("## False positives of a bucket's filter, table full (D8)\n");
        let core = Core::with_table(settings(6, true), &table(FULL));
        let asked = 4 * BATCH;
        let knows = (0..asked).filter(|content| core.filter_knows(&spread((1 << 40) + content)));
        let share = 100.0 * knows.count() as f64 / asked as f64;
        let model = bloom_false_percent_poisson(8.0);
        println!(
            "{share:.1} % of {asked} pages that are not there; the formula says {model:.1} %."
        );
    }
}
