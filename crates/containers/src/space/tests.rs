//! Space against a plain model: every container's use in a list, searched from end to end.

use super::{ContainerUse, SealedUse, Space};
use crate::compaction::{WorthIt, is_worth_it};
use crate::emptiness::{class_of, worth};
use crate::usable_bytes_per_container;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Zone};
use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

const USABLE_BYTES: u64 = usable_bytes_per_container(4096);

pub(crate) fn geometry(data: &[u32]) -> Geometry {
    Geometry {
        version: 1,
        uuid: [1; 16],
        bucket_seed: [2; 16],
        chunk_bytes: 4096,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: 1 << 20,
        tables_bytes: 1 << 20,
        data: data.to_vec(),
        detection: Default::default(),
        marked: false,
        features: Default::default(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate,
    Seal { pick: usize, used_bytes: u32 },
    Live { pick: usize, added_bytes: u32, removed_bytes: u32 },
    Damage { pick: usize },
    Free { pick: usize },
    Collect,
    KnownDurable { back: u64 },
    Pin { pick: usize },
    Unpin { pick: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let pick = any::<usize>;
    prop_oneof![
        6 => proptest::strategy::Just(Step::Allocate),
        5 => (pick(), 0..CONTAINER_BYTES)
            .prop_map(|(pick, used_bytes)| Step::Seal { pick, used_bytes }),
        8 => (pick(), 0..200_000u32, 0..200_000u32).prop_map(
            |(pick, added_bytes, removed_bytes)| Step::Live { pick, added_bytes, removed_bytes }
        ),
        1 => pick().prop_map(|pick| Step::Damage { pick }),
        1 => pick().prop_map(|pick| Step::Free { pick }),
        3 => proptest::strategy::Just(Step::Collect),
        3 => (0..6u64).prop_map(|back| Step::KnownDurable { back }),
        3 => pick().prop_map(|pick| Step::Pin { pick }),
        3 => pick().prop_map(|pick| Step::Unpin { pick }),
    ]
}

#[derive(Default)]
struct Model {
    uses: Vec<ContainerUse>,
    pins: Vec<u32>,
    sequence: u32,
    record: u64,
    known_durable: u64,
}

impl Model {
    fn picked(&self, pick: usize, wanted: impl Fn(&ContainerUse) -> bool) -> Option<usize> {
        let all: Vec<_> = (0..self.uses.len()).filter(|at| wanted(&self.uses[*at])).collect();
        if all.is_empty() { None } else { Some(all[pick % all.len()]) }
    }

    /// By class the oldest, and of these the one that is worth most.
    fn victim(&self) -> Option<ContainerId> {
        let mut oldest: BTreeMap<usize, (u32, usize)> = BTreeMap::new();
        for (at, container_use) in self.uses.iter().enumerate() {
            if let ContainerUse::Sealed(sealed) = container_use
                && !sealed.damaged
            {
                let oldest = oldest.entry(class_of(sealed, USABLE_BYTES)).or_insert((u32::MAX, 0));
                *oldest = (*oldest).min((sealed.sequence, at));
            }
        }
        let worth_of = |at: usize| match self.uses[at] {
            ContainerUse::Sealed(sealed) => {
                let age = self.sequence - sealed.sequence;
                is_worth_it(&sealed, USABLE_BYTES).then(|| worth(&sealed, age))
            }
            _ => None,
        };
        let worths = oldest.values().filter_map(|&(_, at)| Some((worth_of(at)?, at)));
        let best = worths.max_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map(|(_, at)| ContainerId(at as u32))
    }

    fn collectable_bytes(&self) -> u64 {
        let mut worth_it = WorthIt::default();
        for container_use in &self.uses {
            if let ContainerUse::Sealed(sealed) = container_use
                && !sealed.damaged
                && is_worth_it(sealed, USABLE_BYTES)
            {
                worth_it.add(sealed);
            }
        }
        worth_it.gives_back_bytes()
    }

    fn count(&self, wanted: impl Fn(&ContainerUse) -> bool) -> u64 {
        self.uses.iter().filter(|container_use| wanted(container_use)).count() as u64
    }

    /// What becomes free does so here, at once.
    fn settle(&mut self) {
        for (container_use, pins) in self.uses.iter_mut().zip(&self.pins) {
            if let ContainerUse::Quarantined { record } = container_use
                && *record <= self.known_durable
                && *pins == 0
            {
                *container_use = ContainerUse::Free;
            }
        }
    }

    fn quarantine(&mut self, at: usize) -> u64 {
        self.record += 1;
        self.uses[at] = ContainerUse::Quarantined { record: self.record };
        self.record
    }
}

fn is_open(container_use: &ContainerUse) -> bool {
    matches!(container_use, ContainerUse::Open { .. })
}

fn is_sealed(container_use: &ContainerUse) -> bool {
    matches!(container_use, ContainerUse::Sealed(_))
}

fn is_quarantined(container_use: &ContainerUse) -> bool {
    matches!(container_use, ContainerUse::Quarantined { .. })
}

fn id(at: usize) -> ContainerId {
    ContainerId(at as u32)
}

fn take(space: &mut Space, model: &mut Model, step: Step) {
    match step {
        Step::Allocate => match space.allocate() {
            Some(ContainerId(at)) => {
                assert_eq!(model.uses[at as usize], ContainerUse::Free);
                model.uses[at as usize] = ContainerUse::Open { live_bytes: 0 };
            }
            None => assert_eq!(model.count(|u| *u == ContainerUse::Free), 0),
        },
        Step::Seal { pick, used_bytes } => {
            let Some(at) = model.picked(pick, is_open) else { return };
            let ContainerUse::Open { live_bytes } = model.uses[at] else { return };
            model.sequence += 1;
            let sequence = model.sequence;
            space.seal(id(at), sequence, used_bytes);
            let damaged = false;
            let sealed = SealedUse { live_bytes, used_bytes, sequence, damaged };
            model.uses[at] = ContainerUse::Sealed(sealed);
        }
        Step::Live { pick, added_bytes, removed_bytes } => {
            let Some(at) = model.picked(pick, |u| is_open(u) || is_sealed(u)) else { return };
            let (ContainerUse::Open { live_bytes }
            | ContainerUse::Sealed(SealedUse { live_bytes, .. })) = &mut model.uses[at]
            else {
                return;
            };
            let added_bytes = added_bytes.min(CONTAINER_BYTES - *live_bytes);
            let removed_bytes = removed_bytes.min(*live_bytes + added_bytes);
            *live_bytes = *live_bytes + added_bytes - removed_bytes;
            space.change_live(id(at), added_bytes, removed_bytes);
        }
        Step::Damage { pick } => {
            let Some(at) = model.picked(pick, is_sealed) else { return };
            space.mark_damaged(id(at));
            if let ContainerUse::Sealed(sealed) = &mut model.uses[at] {
                sealed.damaged = true;
            }
        }
        Step::Free { pick } => {
            let Some(at) = model.picked(pick, |u| is_open(u) || is_sealed(u)) else { return };
            space.free(id(at), model.quarantine(at));
        }
        Step::Collect => {
            let Some(victim) = space.victim(model.sequence, u32::MAX, |_, _| true) else {
                return;
            };
            space.free(victim, model.quarantine(victim.0 as usize));
        }
        Step::KnownDurable { back } => {
            let record = model.record.saturating_sub(back);
            space.known_durable(record);
            model.known_durable = model.known_durable.max(record);
        }
        Step::Pin { pick } => {
            let Some(at) = model.picked(pick, |u| *u != ContainerUse::Free) else { return };
            space.pin(id(at));
            model.pins[at] += 1;
        }
        Step::Unpin { pick } => {
            let pinned: Vec<_> = (0..model.pins.len()).filter(|at| model.pins[*at] > 0).collect();
            if pinned.is_empty() {
                return;
            }
            let at = pinned[pick % pinned.len()];
            space.unpin(id(at));
            model.pins[at] -= 1;
        }
    }
    model.settle();
}

proptest! {
    #[test]
    fn space_agrees_with_a_plain_list(
        zones in prop::collection::vec(1..12u32, 1..4),
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let count = zones.iter().sum::<u32>() as usize;
        let mut space = Space::new(&geometry(&zones), []);
        let mut model = Model {
            uses: vec![ContainerUse::Free; count],
            pins: vec![0; count],
            ..Model::default()
        };
        for step in steps {
            take(&mut space, &mut model, step);
            for (at, container_use) in model.uses.iter().enumerate() {
                prop_assert_eq!(space.container_use(id(at)), Some(*container_use));
            }
            let victim = space.victim(model.sequence, u32::MAX, |_, _| true);
            prop_assert_eq!(victim, model.victim());
            prop_assert_eq!(space.collectable_bytes(), model.collectable_bytes());
            let is_damaged = |u: &ContainerUse| matches!(u, ContainerUse::Sealed(s) if s.damaged);
            prop_assert_eq!(space.has_damaged(), model.count(is_damaged) > 0);
            let free = model.count(|u| *u == ContainerUse::Free);
            prop_assert_eq!(space.free_containers(), free);
            prop_assert_eq!(space.free_bytes(), free * usable_bytes_per_container(4096));
            prop_assert_eq!(space.quarantined_containers(), model.count(is_quarantined));
        }
    }
}

#[test]
fn containers_come_from_all_zones_in_turn() {
    let geometry = geometry(&[2, 5, 1]);
    let mut space = Space::new(&geometry, []);
    let zones: Vec<_> = std::iter::from_fn(|| space.allocate())
        .map(|id| geometry.container_zone(id).unwrap().0)
        .collect();
    let expected = [0, 1, 2, 0, 1, 1, 1, 1].map(Zone::Data);
    assert_eq!(zones, expected);
}

#[test]
fn a_freed_container_waits_until_that_is_known_and_for_its_last_read() {
    let mut space = Space::new(&geometry(&[1]), []);
    let container = space.allocate().unwrap();
    space.seal(container, 1, 100);
    space.pin(container);
    space.pin(container);
    space.free(container, 7);
    for record in [6, 7, 8] {
        space.known_durable(record);
        assert_eq!(space.allocate(), None);
    }
    space.unpin(container);
    assert_eq!(space.allocate(), None);
    space.unpin(container);
    assert_eq!(space.allocate(), Some(container));

    space.free(container, 9);
    assert_eq!(space.awaited_record(), Some(9));
    assert_eq!(space.allocate(), None);
    space.known_durable(9);
    assert_eq!((space.awaited_record(), space.allocate()), (None, Some(container)));
}

#[test]
fn what_is_old_is_worth_more_than_what_goes_on_dying_by_itself() {
    let sealed = |live_bytes, sequence| {
        let used_bytes = 4_000_000;
        ContainerUse::Sealed(SealedUse { live_bytes, used_bytes, sequence, damaged: false })
    };
    let uses = [sealed(2_000_000, 95), sealed(3_000_000, 10), sealed(3_900_000, 1)];
    let mut space = Space::new(&geometry(&[3]), uses);
    assert_eq!(space.dead(u32::MAX), None);
    // Three quarters live in it, but it is eighteen times as old; the oldest has lost too little.
    assert_eq!(space.victim(100, u32::MAX, |_, _| true), Some(ContainerId(1)));
    let is_other = |id, _: &SealedUse| id != ContainerId(1);
    assert_eq!(space.victim(100, u32::MAX, is_other), Some(ContainerId(0)));
    space.change_live(ContainerId(0), 0, 2_000_000);
    assert_eq!(space.dead(u32::MAX), Some(ContainerId(0)));
}

#[test]
fn a_store_is_opened_with_what_its_tables_say() {
    let sealed = |live_bytes, sequence| {
        let used_bytes = 4_000_000;
        ContainerUse::Sealed(SealedUse { live_bytes, used_bytes, sequence, damaged: false })
    };
    let uses = [
        sealed(500, 3),
        ContainerUse::Quarantined { record: 20 },
        ContainerUse::Open { live_bytes: 7 },
        ContainerUse::Quarantined { record: 10 },
        sealed(500, 2),
        ContainerUse::Free,
    ];
    let mut space = Space::new(&geometry(&[3, 4]), uses);
    assert_eq!(space.victim(9, u32::MAX, |_, _| true), Some(ContainerId(4)));
    assert_eq!(space.quarantined_containers(), 2);
    let mut allocated = || std::iter::from_fn(|| space.allocate()).collect::<Vec<_>>();
    assert_eq!(allocated(), [ContainerId(5), ContainerId(6)]);
    space.known_durable(10);
    assert_eq!(space.allocate(), Some(ContainerId(3)));
    space.known_durable(20);
    assert_eq!(space.allocate(), Some(ContainerId(1)));
    assert_eq!(space.container_use(ContainerId(7)), None);
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "it is asked by whoever reaches the socket")]
fn a_range_that_ends_before_it_starts_holds_no_container() {
    let mut space = Space::new(&geometry(&[4]), []);
    let container = space.allocate().unwrap();
    space.seal(container, 5, CONTAINER_BYTES);
    assert_eq!(space.oldest_in(0..6), Some(container));
    assert_eq!(space.oldest_in(6..0), None);
}
