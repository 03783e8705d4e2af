//! The dies and their queues. A die does one thing at a time; when it is free it takes what has
//! waited longest of the reads, and a write, a move or an erase only where no read waits (SSDSim's
//! rule, section 4.4 of EaD). What has begun is not interrupted.

use std::collections::VecDeque;

/// What a die is asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation<Purpose> {
    pub(super) is_read: bool,
    pub(super) time_ns: u64,
    /// What it is for; none for the work of a collection.
    pub(super) purpose: Option<Purpose>,
}

#[derive(Clone, Debug)]
struct Die<Purpose> {
    reads: VecDeque<Operation<Purpose>>,
    writes: VecDeque<Operation<Purpose>>,
    running: Option<Operation<Purpose>>,
}

/// All dies of a device.
#[derive(Debug)]
pub(super) struct Dies<Purpose>(Vec<Die<Purpose>>);

impl<Purpose: Copy> Dies<Purpose> {
    pub(super) fn new(dies: u32) -> Self {
        let idle = Die { reads: VecDeque::new(), writes: VecDeque::new(), running: None };
        Self(vec![idle; dies as usize])
    }

    /// Asks a die; when what it begins now will be done, if it begins something.
    pub(super) fn ask(
        &mut self,
        die: u32,
        operation: Operation<Purpose>,
        now_ns: u64,
    ) -> Option<u64> {
        let die = &mut self.0[die as usize];
        let queue = if operation.is_read { &mut die.reads } else { &mut die.writes };
        queue.push_back(operation);
        die.begin(now_ns)
    }

    /// What a die has done, and when what it begins now will be.
    pub(super) fn finish(&mut self, die: u32, now_ns: u64) -> (Option<Purpose>, Option<u64>) {
        let die = &mut self.0[die as usize];
        let done = die.running.take();
        (done.and_then(|operation| operation.purpose), die.begin(now_ns))
    }

    /// How much a die has before it.
    pub(super) fn waiting(&self, die: u32) -> usize {
        let die = &self.0[die as usize];
        die.reads.len() + die.writes.len() + usize::from(die.running.is_some())
    }
}

impl<Purpose: Copy> Die<Purpose> {
    fn begin(&mut self, now_ns: u64) -> Option<u64> {
        if self.running.is_some() {
            return None;
        }
        self.running = self.reads.pop_front().or_else(|| self.writes.pop_front());
        self.running.as_ref().map(|operation| now_ns + operation.time_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::{Dies, Operation};

    /// Runs one die over what comes when; what it did, and from when to when.
    fn run(asked: &[(u64, bool, u64)]) -> Vec<(usize, u64, u64)> {
        let mut dies = Dies::new(1);
        let (mut end, mut done) = (None, Vec::new());
        let mut finish = |dies: &mut Dies<usize>, at: u64| {
            let (purpose, end) = dies.finish(0, at);
            let purpose = purpose.unwrap();
            done.push((purpose, at - asked[purpose].2, at));
            end
        };
        for (purpose, &(now, is_read, time_ns)) in asked.iter().enumerate() {
            while let Some(at) = end.filter(|&at| at <= now) {
                end = finish(&mut dies, at);
            }
            let operation = Operation { is_read, time_ns, purpose: Some(purpose) };
            end = end.or(dies.ask(0, operation, now));
        }
        while let Some(at) = end {
            end = finish(&mut dies, at);
        }
        assert_eq!(dies.waiting(0), 0);
        done
    }

    proptest! {
        #[test]
        fn a_die_does_one_thing_at_a_time_and_reads_first(
            asked in vec((0..200_u64, any::<bool>(), 1..100_u64), 1..60),
        ) {
            let mut now = 0;
            let asked: Vec<_> = asked
                .into_iter()
                .map(|(after, is_read, time)| { now += after / 4; (now, is_read, time) })
                .collect();
            let done = run(&asked);
            let mut all: Vec<usize> = done.iter().map(|done| done.0).collect();
            for pair in done.windows(2) {
                prop_assert!(pair[0].2 <= pair[1].1, "two things at a time");
            }
            for (place, &(write, begun, _)) in done.iter().enumerate() {
                prop_assert!(begun >= asked[write].0, "begun before it was asked for");
                let later = done[place + 1..].iter();
                let overtaken = later.filter(|(other, _, _)| {
                    let (at, is_read, _) = asked[*other];
                    at < begun && (is_read || !asked[write].1) && *other < write
                        || at < begun && is_read && !asked[write].1
                });
                prop_assert_eq!(overtaken.count(), 0, "a read, or an older one, had to wait");
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..asked.len()).collect::<Vec<_>>(), "something was lost");
        }
    }
}
