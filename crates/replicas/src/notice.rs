//! What an operator hears of a bucket's replica: that it is in step, away, or refuses the bucket.
//!
//! A link connects ten times a second, so the same news is told once: `Nothing` or `Away` to
//! `InStep` and back, and each refusal in its own words.

use std::fmt;
use std::sync::Arc;

use crate::address::Address;

/// News for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something is to be seen to.
    Warning(String),
    /// All is well again.
    Note(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warning(text) => write!(out, "warning: {text}"),
            Self::Note(text) => write!(out, "note: {text}"),
        }
    }
}

/// Hears them.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Why a replica is away.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// There is no connection.
    Unreachable(String),
    /// It takes nothing from this bucket.
    Refusal(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    InStep,
    Away,
    Refused(String),
}

/// The news of one replica.
pub(crate) struct Notices {
    observer: Observer,
    bucket: String,
    address: Address,
    may_go_on_alone: bool,
    /// Whether answers wait for the replica, or would but for the policy.
    was_in_step: bool,
    told: Told,
}

impl Notices {
    pub(crate) fn new(
        observer: Observer,
        bucket: &str,
        address: &Address,
        (may_go_on_alone, was_in_step): (bool, bool),
    ) -> Self {
        let (bucket, address, told) = (bucket.to_owned(), address.clone(), Told::Nothing);
        Self { observer, bucket, address, may_go_on_alone, was_in_step, told }
    }

    /// The replica has what is here.
    pub(crate) fn is_in_step(&mut self) {
        self.was_in_step = true;
        if self.told != Told::InStep {
            self.told = Told::InStep;
            let Self { bucket, address, .. } = self;
            let note = format!("bucket {bucket}: its replica at {address} is in step");
            (self.observer)(&Notice::Note(note));
        }
    }

    /// There is no connection to it.
    pub(crate) fn is_away(&mut self, absence: Absence) {
        let (now, why) = match absence {
            Absence::Unreachable(why) => (Told::Away, why),
            Absence::Refusal(why) => (Told::Refused(why.clone()), why),
        };
        // A server that refuses is now and then restarted; only another answer is news.
        if self.told == now || (now == Told::Away && matches!(self.told, Told::Refused(_))) {
            return;
        }
        self.told = now;
        let meanwhile = if self.was_in_step && !self.may_go_on_alone {
            "changes wait for it, then fail"
        } else {
            "changes are on this server alone until it is in step"
        };
        let Self { bucket, address, .. } = self;
        let warning =
            format!("bucket {bucket}: its replica at {address} is away ({why}): {meanwhile}");
        (self.observer)(&Notice::Warning(warning));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Absence, Notices};

    #[test]
    fn each_change_is_told_once() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        let observer = Arc::new(move |notice: &super::Notice| {
            told.lock().unwrap().push(notice.to_string());
        });
        let address = "unix:/b".parse().unwrap();
        let mut notices = Notices::new(observer, "photos", &address, (false, false));
        let unreachable = || Absence::Unreachable("refused".to_owned());
        let mut new = |change: &mut dyn FnMut(&mut Notices)| {
            change(&mut notices);
            std::mem::take(&mut *heard.lock().unwrap()).join("\n")
        };
        let away = "warning: bucket photos: its replica at unix:/b is away (refused): ";
        assert_eq!(
            new(&mut |notices| notices.is_away(unreachable())),
            format!("{away}changes are on this server alone until it is in step")
        );
        assert_eq!(new(&mut |notices| notices.is_away(unreachable())), "");
        assert_eq!(
            new(&mut Notices::is_in_step),
            "note: bucket photos: its replica at unix:/b is in step"
        );
        assert_eq!(new(&mut Notices::is_in_step), "");
        assert_eq!(
            new(&mut |notices| notices.is_away(unreachable())),
            format!("{away}changes wait for it, then fail")
        );
        let refusal = || Absence::Refusal("it is a replica of another".to_owned());
        assert!(new(&mut |notices| notices.is_away(refusal())).contains("of another"));
        assert_eq!(new(&mut |notices| notices.is_away(refusal())), "");
        assert_eq!(new(&mut |notices| notices.is_away(unreachable())), "");
    }
}
