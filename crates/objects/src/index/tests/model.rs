//! Random calls, openings and crashes, against a map.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index as Pick, select};
use proptest::test_runner::Config;
use store::Store;

use super::watched::{CHUNK, Model, TestVolume, apply, create, open, set, store_of};
use crate::index::{Change, Index, Table, VolumeIndex};

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<Change>),
    Merge,
    Open,
    Crash(Pick),
    Scan(Table, Vec<u8>, usize),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(0_u8..3, 0..5)
}

fn change() -> impl Strategy<Value = Change> {
    let table = || select(vec![Table::Objects, Table::ToFree, Table::Settings]);
    prop_oneof![
        3 => (table(), key(), any::<u8>(), prop_oneof![4 => 0_usize..60, 1 => 0_usize..3000])
            .prop_map(|(table, key, byte, length)| set(table, key, vec![byte; length])),
        2 => (table(), key()).prop_map(|(table, key)| Change::Remove { table, key }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let table = select(vec![Table::Objects, Table::ToFree, Table::Settings]);
    prop_oneof![
        8 => vec(change(), 1..6).prop_map(Step::Apply),
        1 => vec(change(), 40..60).prop_map(Step::Apply),
        2 => Just(Step::Merge),
        1 => Just(Step::Open),
        1 => any::<Pick>().prop_map(Step::Crash),
        3 => (table, key(), 0_usize..9)
            .prop_map(|(table, key, limit)| Step::Scan(table, key, limit)),
    ]
}

/// An index, what it should hold, and what it held when so much had been written.
struct Run<'a> {
    store: &'a Store,
    volume: Arc<TestVolume>,
    index: VolumeIndex,
    model: Model,
    history: Vec<(usize, Model)>,
    crashes: usize,
}

impl Run<'_> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Apply(changes) => {
                self.model.apply(&changes);
                apply(&self.index, changes);
                self.history.push((self.volume.written_count(), self.model.clone()));
            }
            Step::Merge => {
                self.index.merge().unwrap();
            }
            Step::Open => self.index = open(&self.volume),
            Step::Crash(at) => self.crash(at),
            Step::Scan(table, from, limit) => {
                let found = self.index.scan(table, &from, limit).unwrap();
                let range = (table, from)..;
                let entries = self.model.0.range(range).take_while(|((of, _), _)| *of == table);
                let told =
                    entries.take(limit).map(|((_, key), value)| (key.clone(), value.clone()));
                assert_eq!(found, told.collect::<Vec<_>>());
            }
        }
    }

    /// The power fails behind one of the chunks that were written since the index was made.
    fn crash(&mut self, at: Pick) {
        let created = self.history[0].0;
        let written = self.volume.written();
        let kept = created + at.index(written.len() - created + 1);
        self.crashes += 1;
        self.volume = TestVolume::new(self.store, &format!("crash-{}", self.crashes));
        self.volume.repeat(&written[..kept]);
        self.index = open(&self.volume);
        self.history.retain(|(count, _)| *count <= kept);
        self.model = self.history.last().unwrap().1.clone();
    }
}

proptest! {
    #![proptest_config(Config { cases: 40, ..Config::default() })]
    #[test]
    fn whatever_is_called_and_whenever_it_crashes_it_is_as_the_map_says(
        steps in vec(step(), 1..60),
    ) {
        let store = store_of(64 << 20);
        let volume = TestVolume::new(&store, "bucket");
        let index = create(&volume, 200 * CHUNK as u64);
        let history = vec![(volume.written_count(), Model::default())];
        let mut run =
            Run { store: &store, volume, index, model: Model::default(), history, crashes: 0 };
        for step in steps {
            run.step(step);
        }
        assert_eq!(Model::of(&run.index), run.model);
        for ((table, key), value) in &run.model.0 {
            assert_eq!(run.index.get(*table, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(run.index.check().unwrap().damage, [""; 0]);
        assert_eq!(Model::of(&open(&run.volume)), run.model);
    }
}
