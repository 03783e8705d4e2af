//! What the bucket may hold: what was acknowledged last of each key, and what nobody knows.

use std::collections::BTreeMap;

use crate::failure::Broken;

/// Number of a content; none: no object.
pub(super) type Content = Option<u64>;

/// What was asked of a key.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// In the order of all.
    number: u64,
    content: Content,
    /// Or nobody knows whether it was done.
    is_acknowledged: bool,
}

/// How much may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Nothing that was acknowledged.
    Nothing,
    /// What was acknowledged and not made durable: both have died.
    NotDurable,
}

/// All that was asked.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    keys: BTreeMap<Vec<u8>, Vec<Asked>>,
    number: u64,
    durable: u64,
}

impl Oracle {
    /// Something was asked of a key.
    pub(super) fn ask(&mut self, key: &[u8], content: Content, is_acknowledged: bool) {
        self.number += 1;
        let asked = Asked { number: self.number, content, is_acknowledged };
        self.keys.entry(key.to_vec()).or_default().push(asked);
    }

    /// All that was acknowledged up to now is durable, on both.
    pub(super) fn make_durable(&mut self) {
        self.durable = self.number;
    }

    /// Compares with what was found by an opening, which is what holds from now on.
    pub(super) fn judge(
        &mut self,
        found: &BTreeMap<Vec<u8>, u64>,
        allowed: Allowed,
        when: &str,
    ) -> Result<(), Broken> {
        self.look(found, allowed, when)?;
        let keys: Vec<Vec<u8>> = self.keys.keys().cloned().collect();
        for key in keys {
            self.ask(&key, found.get(&key).copied(), true);
        }
        Ok(())
    }

    /// Compares with what was found. A change that failed may be found later: an opening finds it
    /// in the log, and the bucket that met the error has not taken it in.
    pub(super) fn look(
        &self,
        found: &BTreeMap<Vec<u8>, u64>,
        allowed: Allowed,
        when: &str,
    ) -> Result<(), Broken> {
        let base = if allowed == Allowed::Nothing { u64::MAX } else { self.durable };
        for (key, asked) in &self.keys {
            let content = found.get(key).copied();
            let is_base = |asked: &Asked| asked.is_acknowledged && asked.number <= base;
            let from = asked.iter().rposition(is_base);
            let mut possible: Vec<Content> =
                asked[from.unwrap_or(0)..].iter().map(|asked| asked.content).collect();
            if from.is_none() {
                possible.push(None);
            }
            if !possible.contains(&content) {
                let what = format!(
                    "{when}, key {} holds {content:?}, and may hold {possible:?}",
                    String::from_utf8_lossy(key)
                );
                return Err(Broken::Objects { what });
            }
        }
        if let Some(key) = found.keys().find(|key| !self.keys.contains_key(*key)) {
            let what = format!("{when}, key {} was never put", String::from_utf8_lossy(key));
            return Err(Broken::Objects { what });
        }
        Ok(())
    }
}
