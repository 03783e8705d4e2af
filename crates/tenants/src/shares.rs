//! How slots of a pool, or bytes of a memory, are shared by those who want them.
//!
//! ```text
//! ask ── free, and nobody waits ──> held ── give_back ──> free ──> next: who waits and holds least
//!   └─── else: waits behind its own, in the order in which it came
//! ```
//!
//! What one does not use another may have: a party may hold more than its share as long as nobody
//! waits. What it holds is not taken away; when it gives back, the party that holds least is served
//! first, until each that waits holds its share. A part of the whole can be *kept*: a party that
//! holds its share already leaves that much free, so that a newcomer need not wait for slots that
//! are held for long.
//!
//! Invariant: what is free and what the parties hold make the whole.

use std::collections::{BTreeMap, VecDeque};

/// Who asks: a tenant, or all who are of none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyId(pub(crate) u64);

impl PartyId {
    /// All who are of no tenant, together.
    pub const NOBODY: Self = Self(0);

    /// A party by a number of the caller's.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}

/// Slots or bytes, and who holds and waits for them; `T` is what is handed to who has waited.
#[derive(Debug)]
pub struct Shares<T> {
    whole: u64,
    kept: u64,
    free: u64,
    /// Those that hold or wait.
    parties: BTreeMap<PartyId, Party<T>>,
    turns: u64,
}

#[derive(Debug)]
struct Party<T> {
    held: u64,
    waiting: VecDeque<(u64, T)>,
    /// When it was served last, to tell those apart who hold as much.
    served: u64,
}

impl<T> Default for Party<T> {
    fn default() -> Self {
        Self { held: 0, waiting: VecDeque::new(), served: 0 }
    }
}

impl<T> Shares<T> {
    /// `whole` slots, of which who has its share leaves `kept` free.
    ///
    /// # Panics
    /// When nothing is left beside what is kept.
    #[must_use]
    pub fn new(whole: u64, kept: u64) -> Self {
        assert!(kept < whole, "a pool is larger than what it keeps");
        Self { whole, kept, free: whole, parties: BTreeMap::new(), turns: 0 }
    }

    /// Takes `amount` at once, if that is free and nobody has a better claim.
    ///
    /// # Errors
    /// `amount`, when it is to be waited for.
    pub fn try_take(&mut self, party: PartyId, amount: u64) -> Result<u64, u64> {
        let amount = self.possible(amount);
        let has_none_waiting = self.parties.get(&party).is_none_or(|it| it.waiting.is_empty());
        let is_new = !self.parties.contains_key(&party);
        // Who waits although slots are free holds more than its share, and so has no better claim.
        if !has_none_waiting || !self.fits(self.held_by(party), amount, is_new) {
            return Err(amount);
        }
        let least_waiting = self.least_waiting();
        if least_waiting.is_some_and(|held| held <= self.held_by(party)) {
            return Err(amount);
        }
        self.take(party, amount);
        Ok(amount)
    }

    /// Waits for `amount`; [`Shares::take_next`] hands `ticket` out.
    pub fn wait(&mut self, party: PartyId, amount: u64, ticket: T) {
        let amount = self.possible(amount);
        self.parties.entry(party).or_default().waiting.push_back((amount, ticket));
    }

    /// Gives back what was taken.
    ///
    /// # Panics
    /// When the party does not hold that much.
    pub fn give_back(&mut self, party: PartyId, amount: u64) {
        let held = self.parties.get_mut(&party).map(|it| &mut it.held);
        let held = held.filter(|held| **held >= amount);
        #[expect(clippy::expect_used, reason = "the invariant of this file")]
        let held = held.expect("who gives back holds that much");
        *held -= amount;
        self.free += amount;
        self.forget(party);
    }

    /// The next of those that wait, if its turn has come: who it is, what it holds now beside what
    /// it held, and its ticket. Call it after each [`Shares::give_back`] and [`Shares::wait`] until
    /// it returns none.
    pub fn take_next(&mut self) -> Option<(PartyId, u64, T)> {
        let mut waiting: Vec<_> = self
            .parties
            .iter()
            .filter_map(|(id, it)| Some((it.held, it.served, *id, it.waiting.front()?.0)))
            .collect();
        waiting.sort_unstable();
        for (held, _, party, amount) in waiting {
            if amount > self.free {
                return None; // Others do not overtake it, or it would wait for ever.
            }
            if self.fits(held, amount, false) {
                let ticket = self.parties.get_mut(&party)?.waiting.pop_front()?.1;
                self.take(party, amount);
                return Some((party, amount, ticket));
            }
        }
        None
    }

    /// What a party holds.
    #[must_use]
    pub fn held_by(&self, party: PartyId) -> u64 {
        self.parties.get(&party).map_or(0, |it| it.held)
    }

    /// What nobody holds.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.free
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.parties.values().map(|it| it.waiting.len()).sum()
    }

    /// What one party can hold at most.
    fn possible(&self, amount: u64) -> u64 {
        amount.min(self.whole - self.kept)
    }

    fn least_waiting(&self) -> Option<u64> {
        self.parties.values().filter(|it| !it.waiting.is_empty()).map(|it| it.held).min()
    }

    /// Whether who holds `held` may have `amount` more.
    fn fits(&self, held: u64, amount: u64, is_new: bool) -> bool {
        let parties = self.parties.len() as u64 + u64::from(is_new);
        let share = (self.whole / parties.max(1)).min(self.whole - self.kept);
        let is_in_share = held + amount <= share;
        amount <= self.free && (is_in_share || self.free - amount >= self.kept)
    }

    fn take(&mut self, party: PartyId, amount: u64) {
        self.turns += 1;
        let it = self.parties.entry(party).or_default();
        it.held += amount;
        it.served = self.turns;
        self.free -= amount;
        let held: u64 = self.parties.values().map(|it| it.held).sum();
        debug_assert_eq!(self.free + held, self.whole, "the whole is held or free");
    }

    /// Who neither holds nor waits is no party.
    fn forget(&mut self, party: PartyId) {
        if self.parties.get(&party).is_some_and(|it| it.held == 0 && it.waiting.is_empty()) {
            self.parties.remove(&party);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::prop;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::{PartyId, Shares};

    fn party(number: u64) -> PartyId {
        PartyId::new(number)
    }

    /// Asks, and hears at once.
    fn ask(shares: &mut Shares<u64>, of: u64) {
        if shares.try_take(party(of), 1).is_err() {
            shares.wait(party(of), 1, of);
        }
    }

    fn serve(shares: &mut Shares<u64>) -> Vec<u64> {
        std::iter::from_fn(|| shares.take_next().map(|(_, _, of)| of)).collect()
    }

    proptest! {
        /// Whatever each held before: when each slot that was held has been given back once, each
        /// of those that always want more holds its share.
        #[test]
        fn each_has_its_share_within_one_turn(
            whole in 1u64..40,
            parties in 1u64..8,
            before in prop::collection::vec(0u64..8, 40),
            order in prop::collection::vec(0usize..1000, 40),
        ) {
            let mut shares = Shares::new(whole, 0);
            let mut slots: Vec<u64> = (0..whole as usize).map(|at| before[at] % parties).collect();
            for of in &slots {
                prop_assert!(shares.try_take(party(*of), 1).is_ok());
            }
            for of in 0..parties {
                (0..2 * whole).for_each(|_| ask(&mut shares, of));
            }
            prop_assert!(serve(&mut shares).is_empty(), "all is held");
            let mut turn = 0;
            while !slots.is_empty() {
                let of = slots.remove(order[turn] % slots.len());
                turn += 1;
                shares.give_back(party(of), 1);
                prop_assert_eq!(serve(&mut shares).len(), 1, "no slot is idle");
            }
            for of in 0..parties {
                prop_assert!(shares.held_by(party(of)) >= whole / parties);
            }
        }

        /// Amounts of any size: nothing is lost, nobody is passed over for ever, and what is free
        /// is never refused to who is alone but for what is kept.
        #[test]
        fn all_are_served_in_the_end(
            whole in 2u64..100,
            kept_part in 0u64..100,
            steps in prop::collection::vec((0u64..5, 1u64..120), 1..80),
        ) {
            let kept = kept_part * (whole - 1) / 100;
            let mut shares = Shares::new(whole, kept);
            let mut held: Vec<(PartyId, u64)> = Vec::new();
            let (mut asked, mut served) = (0, 0);
            for (of, amount) in steps {
                asked += 1;
                match shares.try_take(party(of), amount) {
                    Ok(amount) => { held.push((party(of), amount)); served += 1; }
                    Err(amount) => shares.wait(party(of), amount, of),
                }
                while let Some((of, amount, _)) = shares.take_next() {
                    held.push((of, amount));
                    served += 1;
                }
                if asked % 3 == 0 && !held.is_empty() {
                    let (of, amount) = held.remove(0);
                    shares.give_back(of, amount);
                }
                let sum: u64 = held.iter().map(|(_, amount)| amount).sum();
                prop_assert_eq!(sum + shares.free(), whole);
            }
            loop {
                while let Some((of, amount, _)) = shares.take_next() {
                    held.push((of, amount));
                    served += 1;
                }
                if held.is_empty() {
                    break;
                }
                let (of, amount) = held.remove(0);
                shares.give_back(of, amount);
            }
            prop_assert_eq!(asked, served);
            prop_assert_eq!(shares.free(), whole);
        }

        /// Against a plain count: who comes as the n-th finds its slots free where a part is kept.
        #[test]
        fn a_newcomer_finds_what_is_kept(whole in 8u64..200, greedy in 1u64..4) {
            let kept = whole / 4;
            let mut shares: Shares<u64> = Shares::new(whole, kept);
            for of in 0..greedy {
                (0..whole).for_each(|_| ask(&mut shares, of));
            }
            let newcomer = kept.min(whole / (greedy + 1)).max(1);
            let is_first_beside = greedy == 1;
            if is_first_beside {
                for _ in 0..newcomer {
                    prop_assert!(shares.try_take(party(99), 1).is_ok());
                }
            }
        }
    }

    #[test]
    fn idle_shares_are_lent_and_taken_back() {
        let mut shares = Shares::new(4, 0);
        (0..6).for_each(|_| ask(&mut shares, 1));
        assert_eq!(shares.held_by(party(1)), 4);
        ask(&mut shares, 2);
        ask(&mut shares, 2);
        ask(&mut shares, 2);
        shares.give_back(party(1), 1);
        assert_eq!(serve(&mut shares), [2]);
        shares.give_back(party(1), 1);
        assert_eq!(serve(&mut shares), [2]);
        // Each holds two: turns are taken.
        shares.give_back(party(1), 1);
        assert_eq!(serve(&mut shares), [1]);
        shares.give_back(party(2), 1);
        assert_eq!(serve(&mut shares), [2]);
    }

    #[test]
    fn who_does_not_know_of_tenants_has_all_but_what_is_kept() {
        let mut shares: Shares<u64> = Shares::new(320, 64);
        (0..300).for_each(|_| ask(&mut shares, 0));
        assert_eq!(shares.held_by(PartyId::NOBODY), 256);
    }
}
