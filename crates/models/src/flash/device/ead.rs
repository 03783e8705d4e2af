//! EaD: the code as a sign, the filter, the table, the comparison, and what is read ahead for it.

use super::{Device, Event, Purpose, RequestNumber};
use crate::flash::ftl::Full;
use crate::flash::prefetch::Fetched;

impl Device<'_> {
    fn code_of(&self, number: RequestNumber) -> u32 {
        self.trace.code(self.trace.requests[number as usize].content)
    }

    fn hash_code(&mut self) -> u64 {
        self.hash_engine.ask(0, self.setup.latency.blake2_code_ns, self.now_ns)
    }

    pub(super) fn look_up_code(&mut self, number: RequestNumber) -> Result<(), Full> {
        let at_ns = self.hash_code();
        if self.bloom.insert(self.code_of(number)) {
            self.plan(at_ns, Event::CodeHashed(number));
            return Ok(());
        }
        self.figures.cases[0] += 1;
        self.store(number, true)
    }

    pub(super) fn look_up_code_hash(&mut self, number: RequestNumber) -> Result<(), Full> {
        let Some(&slot) = self.index.get(&self.code_of(number)) else {
            self.figures.cases[1] += 1;
            return self.store(number, true);
        };
        // Held, so that no collection takes it away while it is compared.
        self.ftl.refer(slot);
        self.slots.insert(number, slot);
        self.fetch(number, slot);
        Ok(())
    }

    fn fetch(&mut self, number: RequestNumber, slot: u32) {
        if !self.ftl.slot(slot).is_programmed {
            // It is still in the controller.
            return self.compare(number);
        }
        match self.cache.look_up(slot, number) {
            Fetched::Here => self.compare(number),
            Fetched::OnItsWay => {}
            Fetched::No => {
                self.figures.compare_reads += 1;
                self.ask_read(slot, Purpose::Compare(number));
            }
        }
    }

    fn compare(&mut self, number: RequestNumber) {
        let at_ns = self.comparators.ask_any(self.setup.latency.compare_ns, self.now_ns);
        self.plan(at_ns, Event::Compared(number));
    }

    /// A page has been read and checked.
    pub(super) fn checked(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Read(number) => {
                let came_ns = self.trace.requests[number as usize].time_ns;
                self.figures.reads_ns.push(self.now_ns - came_ns);
            }
            Purpose::Compare(number) => self.compare(number),
            Purpose::Prefetch(slot) => {
                self.cache.end(slot).into_iter().for_each(|number| self.compare(number));
            }
            Purpose::Program(_) => {}
        }
    }

    pub(super) fn compared(&mut self, number: RequestNumber) -> Result<(), Full> {
        let slot = self.slots[&number];
        if self.ftl.slot(slot).content != self.trace.requests[number as usize].content {
            self.figures.cases[2] += 1;
            self.ftl.release(slot);
            return self.store(number, false);
        }
        self.figures.cases[3] += 1;
        self.prefetch(slot);
        self.is_duplicate(number, slot);
        Ok(())
    }

    /// A new chunk, which was encoded already; in the table only if no other has its code.
    fn store(&mut self, number: RequestNumber, in_table: bool) -> Result<(), Full> {
        let request = &self.trace.requests[number as usize];
        let slot = self.ftl.add(request.content, request.lba);
        self.slots.insert(number, slot);
        if in_table {
            self.index.insert(self.code_of(number), slot);
        }
        self.program(number)
    }

    /// Has the chunks after this one fetched, if it was read or bears the mark.
    fn prefetch(&mut self, slot: u32) {
        let setup = self.setup.prefetch;
        let was_fetched = self.cache.holds(slot);
        if setup.distance == 0 || was_fetched && !self.cache.take_mark(slot) {
            return;
        }
        let first_lba = self.ftl.slot(slot).first_lba;
        let mut fetched = Vec::new();
        for step in 1..=setup.distance {
            let next = self.ftl.mapped(first_lba + step);
            let Some(next) = next.filter(|&next| !self.cache.holds(next)) else { continue };
            for number in self.cache.begin(next) {
                self.figures.compare_reads += 1;
                self.ask_read(self.slots[&number], Purpose::Compare(number));
            }
            self.figures.prefetch_reads += 1;
            self.ask_read(next, Purpose::Prefetch(next));
            fetched.push(next);
        }
        let before_end = fetched.iter().rev().nth(setup.trigger as usize);
        if let Some(&mark) = before_end.or(fetched.first()) {
            self.cache.mark(mark);
        }
    }
}
