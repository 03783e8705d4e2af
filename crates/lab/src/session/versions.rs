//! A session's snapshots, clones and rollbacks: what they copy, the oracle copies chunk by chunk.
//!
//! A crash must keep all of a copy or none: its effects are joined.

use engine::{Ask, RequestError, SnapshotRequest, control};

use crate::failure::Broken;
use crate::oracle::{Entry, Register, Value};
use crate::session::Session;
use crate::session::doubt::Changed;
use crate::session::waiting::Waiting;
use crate::simulation::trouble::Asked;

impl Session<'_> {
    /// The entry of a volume that is no snapshot.
    pub(crate) fn changeable(&self, volume: u32) -> Option<Entry> {
        self.oracle.volume(volume).filter(|entry| !entry.is_snapshot()).cloned()
    }

    /// The same of a change that is waited for.
    pub(crate) fn change_now<A: Ask>(&mut self, verb: A, before: usize) -> Result<bool, Broken> {
        let done = self.done(Waiting::Plain, Some(self.oracle.written()));
        let tag = done.tag;
        self.opening.client.administer(verb, done);
        match self.wait_for(tag)? {
            Ok(reply) => self.take_change(&Changed::default(), &reply).map(|()| true),
            Err(RequestError::NoSpace | RequestError::NoRoomToReserve { .. })
                if self.shape.tight =>
            {
                self.refused += 1;
                self.oracle.withdraw_to(before);
                Ok(false)
            }
            Err(error) => {
                self.fail(&error, Asked::Change, &Changed::default())?;
                // What could not be written holds until the store is opened again, or never did.
                // Whatever else goes wrong, nothing of it is done.
                match self.stopped {
                    true => self.oracle.doubt_from(before),
                    false => self.oracle.withdraw_to(before),
                }
                Ok(false)
            }
        }
    }

    /// Snapshots are taken, of one volume or of two at one moment: `[volume, snapshot]` each.
    pub(crate) fn snapshot(&mut self, taken: &[[u32; 2]]) -> Result<(), Broken> {
        let own = match taken {
            [[_, first], [volume, second]] => format!("s{first}.{second}.{volume}"),
            _ => taken.iter().map(|[_, snapshot]| format!("s{snapshot}")).collect(),
        };
        let entries = taken.iter().map(|[volume, _]| {
            self.changeable(*volume).filter(|_| !self.oracle.has_doubts(*volume))
        });
        let Some(entries) = entries.collect::<Option<Vec<Entry>>>() else { return Ok(()) };
        let volumes: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        let before = self.oracle.written();
        for (&[volume, snapshot], entry) in taken.iter().zip(entries) {
            self.oracle.copy_chunks(volume, snapshot);
            let name = format!("{}@{own}", entry.name);
            let copy = Entry { name, read_only: true, quota: None, reserved: None, ..entry };
            self.oracle.write(Register::Volume(snapshot), Value::Volume(copy));
        }
        self.oracle.join_from(before);
        let names: Vec<String> = volumes.iter().map(|volume| format!("{volume}@{own}")).collect();
        let request = SnapshotRequest { volumes, name: own, taken_unix_s: 1 };
        if !self.change_now(request, before)? {
            return Ok(());
        }
        let mut opened = taken.iter().zip(names);
        opened.try_for_each(|([_, snapshot], name)| self.open_volume(*snapshot, name))
    }

    pub(crate) fn clone_volume(&mut self, snapshot: u32, volume: u32) -> Result<(), Broken> {
        let entry = self.oracle.volume(snapshot).filter(|entry| entry.is_snapshot()).cloned();
        let Some(entry) = entry else { return Ok(()) };
        let name = format!("v{volume}");
        let before = self.oracle.written();
        self.oracle.copy_chunks(snapshot, volume);
        let copy = Entry {
            name: name.clone(),
            read_only: false,
            quota: None,
            reserved: None,
            ..entry.clone()
        };
        self.oracle.write(Register::Volume(volume), Value::Volume(copy));
        self.oracle.join_from(before);
        let request = control::CloneVolume { snapshot: entry.name, name: name.clone() };
        if self.change_now(request, before)? {
            self.open_volume(volume, name)?;
        }
        Ok(())
    }

    pub(crate) fn roll_back(&mut self, snapshot: u32) -> Result<(), Broken> {
        let entry = self.oracle.volume(snapshot).filter(|entry| entry.is_snapshot()).cloned();
        let Some(entry) = entry else { return Ok(()) };
        let name = entry.name.split('@').next().unwrap_or_default().to_owned();
        let named = |volume: &u32| self.oracle.volume(*volume).is_some_and(|v| v.name == name);
        let Some(volume) = self.opening.volumes.keys().copied().find(named) else { return Ok(()) };
        let Some(old) = self.oracle.volume(volume).cloned() else { return Ok(()) };
        self.wait_for_all()?;
        self.opening.volumes.remove(&volume);
        let before = self.oracle.written();
        self.oracle.copy_chunks(snapshot, volume);
        let rolled_back = Entry { size_bytes: entry.size_bytes, ..old };
        self.oracle.write(Register::Volume(volume), Value::Volume(rolled_back));
        self.oracle.join_from(before);
        // Rolled back or not, it is there.
        let request = control::Rollback { snapshot: entry.name, ..control::Rollback::default() };
        self.change_now(request, before)?;
        self.open_volume(volume, name)
    }
}
