//! What a request goes through whatever the strategy, and the look-ups of hashes.

use super::{Device, Event, Operation, Purpose, RequestNumber};
use crate::dice::mixed;
use crate::flash::ftl::{Full, Placed};
use crate::flash::strategy::Strategy;

impl Device<'_> {
    pub(super) fn read(&mut self, number: RequestNumber) {
        let slot = self.ftl.mapped(self.trace.requests[number as usize].lba);
        match slot {
            Some(slot) => self.ask_read(slot, Purpose::Read(number)),
            // Nothing was written there: the map alone answers.
            None => self.figures.reads_ns.push(0),
        }
    }

    /// Has a programmed page read.
    pub(super) fn ask_read(&mut self, slot: u32, purpose: Purpose) {
        let Some((plane, _, _)) = self.ftl.slot(slot).at else { return };
        let time_ns = self.setup.latency.read_ns;
        let operation = Operation { is_read: true, time_ns, purpose: Some(purpose) };
        self.ask_die(self.setup.geometry.die_of(plane), operation);
    }

    pub(super) fn write(&mut self, number: RequestNumber) {
        let content = self.trace.requests[number as usize].content;
        match self.setup.strategy {
            Strategy::None => self.add_slot(number),
            Strategy::Ead => self.make_code(number),
            Strategy::Sampling => {
                // The first four bytes of a fingerprint are as good as four bytes of any hash.
                if self.samples.insert(mixed(u64::from(content), 0) as u32) {
                    self.add_slot(number);
                } else {
                    self.make_hash(number);
                }
            }
            Strategy::Sha1 | Strategy::Sha256 | Strategy::Blake2 => self.make_hash(number),
        }
    }

    fn make_hash(&mut self, number: RequestNumber) {
        self.figures.hashed += 1;
        let hash_ns = self.setup.strategy.hash_ns(&self.setup.latency);
        let at_ns = self.hash_engine.ask(0, hash_ns, self.now_ns);
        self.plan(at_ns, Event::Hashed(number));
    }

    pub(super) fn make_code(&mut self, number: RequestNumber) {
        let at_ns = self.code_engines.ask_any(self.setup.latency.code_ns, self.now_ns);
        self.plan(at_ns, Event::Coded(number));
    }

    pub(super) fn look_up_hash(&mut self, number: RequestNumber) {
        let content = self.trace.requests[number as usize].content;
        if let Some(&slot) = self.index.get(&content) {
            self.ftl.refer(slot);
            self.is_duplicate(number, slot);
        } else {
            self.add_slot(number);
            self.index.insert(content, self.slots[&number]);
        }
    }

    /// The chunk is new, and is encoded before it is programmed.
    fn add_slot(&mut self, number: RequestNumber) {
        let request = &self.trace.requests[number as usize];
        let slot = self.ftl.add(request.content, request.lba);
        self.slots.insert(number, slot);
        self.make_code(number);
    }

    /// The write shares a slot to which it holds a reference.
    pub(super) fn is_duplicate(&mut self, number: RequestNumber, slot: u32) {
        self.figures.duplicates += 1;
        self.slots.insert(number, slot);
        if self.ftl.slot(slot).is_programmed {
            self.answer(number);
        } else {
            self.waiting.entry(slot).or_default().push(number);
        }
    }

    /// Gives the slot of a write a page, and the die its work.
    pub(super) fn program(&mut self, number: RequestNumber) -> Result<(), Full> {
        let slot = self.slots[&number];
        let plane = self.idlest_plane();
        let placed = self.ftl.place(slot, plane)?;
        self.next_plane = (plane + 1) % self.setup.geometry.planes_all();
        let die = self.setup.geometry.die_of(placed.plane);
        self.collected(die, &placed);
        self.figures.programs += 1;
        let time_ns = self.setup.latency.program_ns;
        let purpose = Some(Purpose::Program(number));
        self.ask_die(die, Operation { is_read: false, time_ns, purpose });
        Ok(())
    }

    /// The plane of the die that has least to do; of several the next one round.
    fn idlest_plane(&self) -> u32 {
        let geometry = self.setup.geometry;
        let planes = geometry.planes_all();
        let around = (0..planes).map(|step| (self.next_plane + step) % planes);
        let idlest = around.min_by_key(|&plane| self.dies.waiting(geometry.die_of(plane)));
        idlest.unwrap_or(0)
    }

    /// The die has to do what a collection did to the map.
    fn collected(&mut self, die: u32, placed: &Placed) {
        let Some(moved) = placed.moved else { return };
        let latency = self.setup.latency;
        let each_ns = latency.read_ns + latency.program_ns;
        let moves = std::iter::repeat_n(each_ns, moved as usize);
        for time_ns in moves.chain([latency.erase_ns]) {
            self.ask_die(die, Operation { is_read: false, time_ns, purpose: None });
        }
        self.figures.moved += u64::from(moved);
        self.figures.erases += 1;
        for &slot in &placed.dropped {
            let content = self.ftl.slot(slot).content;
            for key in [content, self.trace.code(content)] {
                if self.index.get(&key) == Some(&slot) {
                    self.index.remove(&key);
                }
            }
        }
    }

    pub(super) fn programmed(&mut self, number: RequestNumber) {
        let slot = self.slots[&number];
        self.ftl.set_programmed(slot);
        self.answer(number);
        for waiting in self.waiting.remove(&slot).unwrap_or_default() {
            self.answer(waiting);
        }
    }

    /// A write is done: its address reads its slot.
    fn answer(&mut self, number: RequestNumber) {
        let Some(slot) = self.slots.remove(&number) else { return };
        let request = &self.trace.requests[number as usize];
        self.ftl.map(request.lba, slot, u64::from(number));
        self.figures.writes_ns.push(self.now_ns - request.time_ns);
    }
}
