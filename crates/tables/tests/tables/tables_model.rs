//! The tables against plain maps, over a cache of a few pages, with cleaning, checkpoints and
//! reopening in between: every change the engine makes, by the calls the engine uses.

use format::units::{Pbn, TreeId};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, proptest};

use crate::tables_rig::{CONTAINERS, Rig};

#[derive(Clone, Debug)]
enum Op {
    /// Stores chunks of new content, as one group.
    Store(u64),
    /// Maps a run in a volume to stored chunks.
    Map(u32, u64, Vec<Option<u64>>),
    Unmap(u32, u64, u64),
    /// Forgets dead chunks, the first from here on.
    Forget(u64, usize),
    CreateVolume,
    RenameVolume(u32),
    DropVolume(u32),
    Container(u32, u32),
    /// Steps of sealing and merging.
    Merge(usize),
    Clean,
    Land(usize),
    Checkpoint,
    Reopen(bool),
}

fn lba() -> impl Strategy<Value = u64> {
    prop_oneof![0..3000_u64, (0..4_u64).prop_map(|n| n * 677 * 508 + 675), Just(1 << 50)]
}

fn op() -> impl Strategy<Value = Op> {
    let chunk = proptest::option::weighted(0.8, any::<u64>());
    prop_oneof![
        8 => (1..200_u64).prop_map(Op::Store),
        8 => (any::<u32>(), lba(), collection::vec(chunk, 1..900))
            .prop_map(|(volume, first, chunks)| Op::Map(volume, first, chunks)),
        4 => (any::<u32>(), lba(), 1..3000_u64).prop_map(|(v, l, n)| Op::Unmap(v, l, n)),
        4 => (any::<u64>(), 1_usize..150).prop_map(|(from, count)| Op::Forget(from, count)),
        3 => Just(Op::CreateVolume),
        1 => any::<u32>().prop_map(Op::RenameVolume),
        1 => any::<u32>().prop_map(Op::DropVolume),
        3 => (0..CONTAINERS as u32, 1..1_u32 << 22)
            .prop_map(|(id, bytes)| Op::Container(id, bytes)),
        6 => (1..9_usize).prop_map(Op::Merge),
        5 => Just(Op::Clean),
        5 => any::<usize>().prop_map(Op::Land),
        4 => Just(Op::Checkpoint),
        1 => any::<bool>().prop_map(Op::Reopen),
    ]
}

impl Rig {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Store(count) => self.store_chunks(*count),
            Op::Map(volume, first, chunks) => self.map(*volume, *first, chunks),
            Op::Unmap(volume, first, count) => {
                if let Some(volume) = self.volume(*volume) {
                    self.unmap(volume, *first, *count);
                }
            }
            Op::Forget(from, count) => self.forget(*from, *count),
            Op::CreateVolume => self.create_volume(),
            Op::RenameVolume(volume) => self.rename_volume(*volume),
            Op::DropVolume(volume) => self.drop_volume(*volume),
            Op::Container(id, bytes) => self.use_container(*id, *bytes),
            Op::Merge(steps) => self.merge(*steps),
            Op::Clean => {
                let writes = self.store.clean_batch(20);
                self.device.submit(writes);
            }
            Op::Land(at) => {
                if !self.device.in_flight.is_empty() {
                    let block = self.device.land(at % self.device.in_flight.len());
                    self.store.write_done(&[block]);
                }
            }
            Op::Checkpoint => self.checkpoint(),
            Op::Reopen(older) => {
                if *older && self.device.roots.len() == 2 {
                    self.device.lose_root();
                }
                self.reopen();
            }
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    #[test]
    fn the_tables_hold_what_the_models_hold(ops in collection::vec(op(), 1..120)) {
        let mut rig = Rig::new();
        ops.iter().for_each(|op| rig.apply(op));
        rig.check_all();
        rig.checkpoint();
        rig.reopen();
        rig.check_all();
    }
}

/// Everything that was ever stored can go again, and then the tables take hardly a block.
#[test]
fn an_emptied_store_takes_hardly_a_block() {
    let mut rig = Rig::new();
    rig.apply(&Op::CreateVolume);
    for round in 0..30 {
        rig.apply(&Op::Store(199));
        rig.apply(&Op::Map(0, round * 700, (0..800).map(Some).collect()));
        rig.apply(&Op::Clean);
        rig.apply(&Op::Land(0));
    }
    rig.apply(&Op::Checkpoint);
    rig.apply(&Op::DropVolume(0));
    rig.apply(&Op::Forget(0, usize::MAX));
    let count = rig.free.len();
    assert_eq!(count, 30 * 199);
    rig.merge(usize::MAX);
    for expected in rig.model.free.clone() {
        let free = &rig.free;
        let pins = rig
            .device
            .wait_for(&mut rig.store, |store, pins, reads| free.want_pop(store, pins, 1, reads));
        assert_eq!(rig.free.pop(&mut rig.store), Some(Pbn(expected)));
        rig.store.release_pins(pins);
    }
    rig.model.free.clear();
    (0..3).for_each(|_| rig.checkpoint());
    // The leaf that holds the queue's ends, and its parent, stay; entries that are young yet, and
    // the buckets of the round, which are few entries' own by now.
    let young = rig.hash.young_entries() / 50 + rig.hash.buckets() + 6;
    let queue = 2 + u64::from(rig.store.tree_root(TreeId::FREE_PBNS).depth);
    assert!(rig.store.used_blocks() <= queue + young, "{}", rig.store.used_blocks());
    assert_eq!(rig.store.tree_root(TreeId::PBN_PBA), Default::default());
}
