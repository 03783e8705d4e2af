//! What buckets, snapshots and a block volume of one store have held, state after state: what a
//! crash leaves must be one of them, for everything at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failure::Broken;

/// Objects by their keys.
pub(crate) type Objects = BTreeMap<Vec<u8>, Object>;

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) bytes: Arc<[u8]>,
    /// From then on there is none.
    pub(crate) expires_ms: Option<u64>,
}

impl Object {
    /// One that stays.
    pub(crate) fn of(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { bytes: bytes.into(), expires_ms: None }
    }
}

/// What a bucket holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) objects: Objects,
    pub(crate) quota_bytes: Option<u64>,
}

impl Contents {
    /// What is there at a time.
    fn at(&self, now_ms: u64) -> Self {
        let is_there = |object: &Object| object.expires_ms.is_none_or(|end_ms| end_ms > now_ms);
        let there = self.objects.iter().filter(|(_, object)| is_there(object));
        let objects = there.map(|(key, object)| (key.clone(), object.clone())).collect();
        Self { objects, quota_bytes: self.quota_bytes }
    }
}

/// What there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// By the numbers of their volumes.
    pub(crate) buckets: BTreeMap<u32, Contents>,
    /// By the numbers of snapshots: of which volume, and what it held; none: it was no bucket.
    pub(crate) snapshots: BTreeMap<u32, (u32, Option<Contents>)>,
    /// Contents of the chunks of the block volume.
    pub(crate) block: BTreeMap<u64, u64>,
}

impl State {
    /// Objects and chunks.
    pub(crate) fn count(&self) -> usize {
        let objects = self.buckets.values().map(|contents| contents.objects.len());
        objects.sum::<usize>() + self.block.len()
    }

    /// What of it is there at a time.
    pub(crate) fn at(&self, now_ms: u64) -> Self {
        let buckets = self.buckets.iter().map(|(number, held)| (*number, held.at(now_ms)));
        let at = |held: &Option<Contents>| held.as_ref().map(|held| held.at(now_ms));
        let snapshots =
            self.snapshots.iter().map(|(number, (of, held))| (*number, (*of, at(held))));
        Self {
            buckets: buckets.collect(),
            snapshots: snapshots.collect(),
            block: self.block.clone(),
        }
    }
}

/// The states since the last opening, in their order.
#[derive(Debug, Default)]
pub(crate) struct History {
    states: Vec<State>,
}

impl History {
    /// It begins with what was found.
    pub(crate) fn of(state: State) -> Self {
        Self { states: vec![state] }
    }

    pub(crate) fn now(&self) -> &State {
        match self.states.last() {
            Some(state) => state,
            None => panic!("a history has a state"),
        }
    }

    /// The number of the newest state.
    pub(crate) fn newest(&self) -> usize {
        self.states.len() - 1
    }

    pub(crate) fn push(&mut self, state: State) {
        self.states.push(state);
    }

    /// A state at or behind the durable one is what was found, but for what has expired.
    ///
    /// # Errors
    /// [`Broken::Objects`] with what differs from the nearest.
    pub(crate) fn explain(&self, durable: usize, found: &State, now_ms: u64) -> Result<(), Broken> {
        let is_found = |state: &State| state.at(now_ms) == *found;
        let allowed = &self.states[durable.min(self.newest())..];
        // The newest is the likeliest.
        if allowed.iter().rev().any(is_found) {
            return Ok(());
        }
        let known = self.states.iter().any(is_found);
        let allowed: Vec<State> = allowed.iter().map(|state| state.at(now_ms)).collect();
        let differences = allowed.iter().map(|state| differences(state, found));
        let nearest = differences.min_by_key(Vec::len).unwrap_or_default();
        let lines: Vec<String> = nearest.iter().take(6).cloned().collect();
        let what = format!(
            "none of {} states from the durable one on is what the store holds{}; the nearest \
             differs in {} places: {}",
            allowed.len(),
            if known { ", but an earlier one is: what was durable is lost" } else { "" },
            nearest.len(),
            lines.join("; ")
        );
        Err(Broken::Objects { what })
    }
}

/// Where two states differ, a sentence each.
fn differences(expected: &State, found: &State) -> Vec<String> {
    let mut all = Vec::new();
    maps(&expected.buckets, &found.buckets, &mut all, |bucket, expected, found, all| {
        let name = format!("bucket {bucket}");
        match (expected, found) {
            (Some(expected), Some(found)) => contents(&name, expected, found, all),
            (expected, _) => all.push(presence(&name, expected.is_some())),
        }
    });
    maps(&expected.snapshots, &found.snapshots, &mut all, |snapshot, expected, found, all| {
        let name = format!("snapshot {snapshot}");
        match (expected, found) {
            (Some((_, Some(expected))), Some((_, Some(found)))) => {
                contents(&name, expected, found, all);
            }
            (expected, found) if expected != found => {
                all.push(presence(&name, expected.is_some()));
            }
            _ => {}
        }
    });
    maps(&expected.block, &found.block, &mut all, |chunk, expected, found, all| {
        if expected != found {
            all.push(format!("chunk {chunk} holds {found:?} instead of {expected:?}"));
        }
    });
    all
}

fn presence(name: &str, expected: bool) -> String {
    let state = if expected { "is not there" } else { "is there" };
    format!("{name} {state}")
}

fn contents(name: &str, expected: &Contents, found: &Contents, all: &mut Vec<String>) {
    if expected.quota_bytes != found.quota_bytes {
        let (has, wanted) = (found.quota_bytes, expected.quota_bytes);
        all.push(format!("{name} has the quota {has:?} instead of {wanted:?}"));
    }
    maps(&expected.objects, &found.objects, all, |key, expected, found, all| {
        let key = String::from_utf8_lossy(key);
        match (expected, found) {
            (Some(expected), Some(found)) if expected == found => {}
            (Some(expected), Some(found)) => {
                let at = expected.bytes.iter().zip(&*found.bytes).position(|(a, b)| a != b);
                let (have, want) = (found.bytes.len(), expected.bytes.len());
                let (ends, end) = (found.expires_ms, expected.expires_ms);
                all.push(format!(
                    "{name}: {key} has {have} bytes of {want}, wrong from {at:?} on, and ends at \
                     {ends:?} instead of {end:?}"
                ));
            }
            (expected, _) => all.push(presence(&format!("{name}: {key}"), expected.is_some())),
        }
    });
}

/// Calls `look` with every key of either map.
fn maps<K: Ord, V>(
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
    all: &mut Vec<String>,
    look: impl Fn(&K, Option<&V>, Option<&V>, &mut Vec<String>),
) {
    let mut keys: Vec<&K> = expected.keys().chain(found.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().for_each(|key| look(key, expected.get(key), found.get(key), all));
}

#[cfg(test)]
mod tests {
    use super::{Contents, History, Object, State};

    fn state(content: u64) -> State {
        State { block: [(0, content)].into(), ..State::default() }
    }

    #[test]
    fn what_is_found_is_a_state_from_the_durable_one_on() {
        let mut history = History::of(state(0));
        (1..4).for_each(|content| history.push(state(content)));
        history.explain(1, &state(1), 0).unwrap();
        history.explain(1, &state(3), 0).unwrap();
        let lost = history.explain(1, &state(0), 0).unwrap_err().to_string();
        assert!(lost.contains("what was durable is lost"), "{lost}");
        let never = history.explain(1, &state(9), 0).unwrap_err().to_string();
        assert!(never.contains("chunk 0 holds Some(9)"), "{never}");
    }

    #[test]
    fn an_object_is_there_until_it_expires() {
        let state = |expires_ms| {
            let object = Object { expires_ms, ..Object::of(*b"bytes") };
            let objects = [(b"key".to_vec(), object)].into();
            let contents = Contents { objects, quota_bytes: None };
            State { buckets: [(0, contents)].into(), ..State::default() }
        };
        let history = History::of(state(Some(10)));
        history.explain(0, &state(Some(10)), 9).unwrap();
        assert!(history.explain(0, &state(Some(11)), 9).is_err());
        assert!(history.explain(0, &state(Some(10)), 10).is_err());
        history.explain(0, &state(Some(10)).at(10), 10).unwrap();
    }
}
