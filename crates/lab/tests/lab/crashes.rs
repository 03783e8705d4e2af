//! The simulator's share of every test run: fixed seeds, fresh ones that are printed, and every
//! kind of trouble with the disk.

use std::time::{SystemTime, UNIX_EPOCH};

use lab::{Look, Plan, Script, Simulation, Summary, Trouble, Verb, schedules};

fn run(plan: &Plan) -> Summary {
    match Simulation::new(plan).and_then(Simulation::run) {
        Ok(summary) => summary,
        Err(failure) => {
            panic!("{failure}\nagain: cargo run -p lab -- simulate {}", plan.arguments())
        }
    }
}

fn short(seed: u64) -> Plan {
    Plan { steps: 25, crashes: 2, ..Plan::of_seed(seed) }
}

#[test]
fn a_seed_is_a_run_to_the_byte() {
    for seed in 1..=4 {
        assert_eq!(run(&short(seed)), run(&short(seed)), "seed {seed}");
    }
}

#[test]
fn fixed_and_fresh_seeds_survive_a_crash_at_every_write() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh = now.map_or(1, |now| now.as_micros() as u64 >> 4);
    println!("fresh seeds {fresh} to {}", fresh + 3);
    let points: u64 = (100..108)
        .chain(114..116)
        .chain(fresh..fresh + 4)
        .map(|seed| run(&short(seed)).points.total())
        .sum();
    assert!(points > 300, "{points} crash points");
}

/// The power goes at every write of stores that grow, those of the growth among them.
#[test]
fn stores_that_grow_survive_a_crash_at_every_write() {
    let grows = |seed: &u64| {
        let lives = short(*seed).script().lives;
        let mut requests = lives.iter().flat_map(|life| &life.requests);
        requests.any(|request| matches!(request.verb, Verb::Grow { .. }))
    };
    let mut sum = Summary::default();
    (300..).filter(grows).take(2).for_each(|seed| sum.add(&run(&short(seed))));
    assert!(sum.points.total() > 60 && sum.grown > 0, "{sum:?}");
}

#[test]
fn long_runs_survive_their_own_crashes() {
    let mut sum = Summary::default();
    for seed in 200..208 {
        sum.add(&run(&Plan { steps: 400, every_write: false, ..Plan::of_seed(seed) }));
    }
    let Summary { collected, copied, refused, scrubbed, .. } = sum;
    assert!(collected.min(copied).min(refused).min(scrubbed) > 0, "{sum:?}");
}

/// Data zones are emptied while clients go on, and taken out, and the power goes at any write of
/// that.
#[test]
fn data_zones_leave_and_the_power_goes() {
    let mut sum = Summary::default();
    for seed in 1700..1716 {
        sum.add(&run(&Plan { crashes: 2, ..Plan::of_seed(seed) }.removing()));
    }
    assert!(sum.removed > 3 && sum.points.total() > 60, "{sum:?}");
}

/// Parts, reads and whole writes of the same chunks, one right behind the other.
#[test]
fn crowds_are_answered_and_survive_their_own_crashes() {
    for seed in 1590..1606 {
        run(&Plan { steps: 200, every_write: false, crowded: true, ..Plan::of_seed(seed) });
    }
}

/// The run of a seed, with nothing but this trouble.
fn troubled(seed: u64, kind: Trouble) -> Summary {
    let mut script: Script = Plan { steps: 40, crashes: 2, ..Plan::of_seed(seed) }.script();
    for life in &mut script.lives {
        // Nor is all trimmed: there must be something to read.
        let is_meant =
            |verb: &Verb| !matches!(verb, Verb::Trouble { .. } | Verb::Trim { first: 0, .. });
        life.requests.retain(|request| is_meant(&request.verb));
    }
    let trouble = lab::Request { verb: Verb::Trouble { kind, number: seed }, steps: 0 };
    if let [before, last] = &mut script.lives[..] {
        before.end = lab::End::Close;
        last.requests.insert(0, trouble);
        let read = |at: u64| Verb::Read { volume: 0, first: 256 * at, count: 256 };
        last.requests.extend((0..19).map(|at| lab::Request { verb: read(at), steps: 9 }));
        last.end = lab::End::of_number(0);
    }
    match Simulation::of_script(script, Look::Nowhere).and_then(Simulation::run) {
        Ok(summary) => summary,
        Err(failure) => panic!("seed {seed}, {}: {failure}", kind.name()),
    }
}

#[test]
fn a_failing_disk_costs_errors_and_nothing_else() {
    for (kind, name) in Trouble::ALL {
        let failed =
            |seeds: std::ops::Range<u64>| seeds.map(move |seed| troubled(seed, kind).failed);
        let strikes = matches!(
            kind,
            Trouble::Unreadable | Trouble::Unwritable | Trouble::Unsyncable | Trouble::Rot
        );
        // Where a trouble strikes is by chance: if none of the first did, some later one does.
        let struck = failed(0..12).sum::<u64>() > 0;
        let struck = struck || !strikes || failed(12..60).any(|failed| failed > 0);
        assert!(struck, "{name} made no request fail");
    }
}

/// What a sync should have kept is in a cache only, and the next process reads it there.
#[test]
fn a_store_whose_sync_failed_is_opened_by_the_next_process_and_loses_nothing() {
    for seed in 0..24 {
        let mut script: Script = Plan { steps: 30, crashes: 3, ..Plan::of_seed(seed) }.script();
        for life in &mut script.lives {
            life.requests.retain(|request| !matches!(request.verb, Verb::Trouble { .. }));
        }
        let trouble = Verb::Trouble { kind: Trouble::Unsyncable, number: seed };
        if let [.., fails, next] = &mut script.lives[..] {
            let at = fails.requests.len() / 2;
            fails.requests.insert(at, lab::Request { verb: trouble, steps: 0 });
            fails.end = lab::End::Kill(seed);
            next.end = lab::End::Power(disk::Loss::All, seed);
        }
        let run = Simulation::of_script(script, Look::Sometimes(4)).and_then(Simulation::run);
        assert!(run.is_ok(), "seed {seed}: {}", run.err().map_or(String::new(), |e| e.to_string()));
    }
}

/// What seeds hardly come upon: each shows known bugs to the canary, and passes without them.
#[test]
fn schedules_pass() {
    let run = |script, look| {
        let run = Simulation::of_script(script, look).and_then(Simulation::run);
        run.unwrap_or_else(|failure| panic!("{failure}"))
    };
    let lapped = run(schedules::lapped_journal(), Look::Nowhere);
    assert_eq!(lapped.slots_lost, 1, "{lapped:?}");
    assert!(lapped.checkpoints >= 3 && lapped.records_replayed > 100, "{lapped:?}");
    let in_flight = run(schedules::groups_in_flight(), Look::Everywhere);
    assert!(in_flight.points.total() > 50, "{in_flight:?}");
    let dead = run(schedules::dead_chunks_come_back(), Look::Nowhere);
    assert!(dead.collected >= 4, "{dead:?}");
    run(schedules::buckets_read_again(), Look::Nowhere);
    run(schedules::snapshot_of_pages_on_their_way(), Look::Nowhere);
    for flushed in [false, true] {
        let freed = run(schedules::freed_containers(flushed), Look::Nowhere);
        assert!(freed.collected >= 8, "{freed:?}");
    }
    let unmaps = run(schedules::unmaps_from_the_middle_of_a_leaf(), Look::Everywhere);
    assert!(unmaps.points.total() > 50, "{unmaps:?}");
    run(schedules::names_given_again(), Look::Nowhere);
    run(schedules::read_at_the_door(), Look::Nowhere);
    run(schedules::leaves_at_the_door(), Look::Nowhere);
    run(schedules::stale_frame(), Look::Nowhere);
}
