//! Snapshots of buckets: taken, deleted, gone back to.

use engine::{DeleteRequest, RequestError, SnapshotRequest, control};

use crate::failure::Broken;
use crate::objects::failures::said;
use crate::objects::history::State;
use crate::objects::life::Life;

/// Snapshots that there may be.
const SNAPSHOTS_MAX: usize = 2;

impl Life<'_> {
    /// A snapshot is taken, deleted, or gone back to.
    pub(super) fn change_version(&mut self, number: u32) -> Result<(), Broken> {
        let snapshots = &self.run.history.now().snapshots;
        let of_bucket = snapshots.iter().find(|(_, (of, _))| *of == number).map(|(n, _)| *n);
        self.run.summary.versions += 1;
        match of_bucket {
            Some(snapshot) if self.run.dice.once_in(2) => self.roll_back(number, snapshot),
            Some(snapshot) if snapshots.len() >= SNAPSHOTS_MAX => self.delete_snapshot(snapshot),
            _ if snapshots.len() >= SNAPSHOTS_MAX => Ok(()),
            _ => self.snapshot(number),
        }
    }

    fn name_of(&self, snapshot: u32) -> Option<String> {
        let opening = self.store.stepped.opening();
        opening.volumes.get(&snapshot).map(|volume| volume.name())
    }

    /// A change of volumes is durable when it is answered.
    fn settle_volumes(
        &mut self,
        asked: &str,
        outcome: Result<(), RequestError>,
        next: State,
    ) -> Result<bool, Broken> {
        let outcome = outcome.map_err(said);
        let done = self.settle(asked, outcome, Some(next))?;
        if done {
            self.store.stepped.note_durable();
        }
        Ok(done)
    }

    fn snapshot(&mut self, number: u32) -> Result<(), Broken> {
        let snapshot = self.run.snapshots;
        self.run.snapshots += 1;
        let mut next = self.run.history.now().clone();
        let contents = next.buckets.get(&number).cloned();
        next.snapshots.insert(snapshot, (number, contents));
        let name = format!("s{snapshot}");
        let full = format!("v{number}@{name}");
        let volumes = vec![format!("v{number}")];
        let request = SnapshotRequest { volumes, name, taken_unix_s: 1 };
        let outcome = self.store.stepped.administer(request).map(drop);
        if self.settle_volumes("a snapshot", outcome, next)? {
            self.store.open_volume(snapshot, full)?;
        }
        Ok(())
    }

    fn delete_snapshot(&mut self, snapshot: u32) -> Result<(), Broken> {
        let Some(name) = self.name_of(snapshot) else { return Ok(()) };
        let mut next = self.run.history.now().clone();
        next.snapshots.remove(&snapshot);
        self.store.stepped.opening().volumes.remove(&snapshot);
        let request = DeleteRequest { even_if_open: true, ..DeleteRequest::of(&name) };
        let outcome = self.store.stepped.administer(request).map(drop);
        let done = self.settle_volumes("the deletion of a snapshot", outcome, next)?;
        if done || self.stopped { Ok(()) } else { self.store.open_volume(snapshot, name) }
    }

    /// The bucket is closed, its volume goes back, and the bucket is opened again.
    fn roll_back(&mut self, number: u32, snapshot: u32) -> Result<(), Broken> {
        let Some(name) = self.name_of(snapshot) else { return Ok(()) };
        let mut next = self.run.history.now().clone();
        match next.snapshots.get(&snapshot).cloned() {
            Some((_, Some(contents))) => drop(next.buckets.insert(number, contents)),
            _ => drop(next.buckets.remove(&number)),
        }
        self.close(number)?;
        drop(self.store.stepped.opening().volumes.remove(&number));
        let request = control::Rollback { snapshot: name, ..control::Rollback::default() };
        let outcome = self.store.stepped.administer(request).map(drop);
        self.settle_volumes("a rollback", outcome, next)?;
        self.store.open_volume(number, format!("v{number}"))?;
        self.store.open_bucket(number)
    }
}
