//! What became of a request whose answer waits for a commit.

use memcached::{Answer, Answers, Fault, Hit};
use objects::bucket::Reader;

use crate::long::{ItemReader, ItemSource};

/// An answer that is given when the changes before it are made.
pub(crate) enum Outcome {
    Answer(Answer),
    Hit(Hit, HitValue),
    Fault(Fault),
}

/// The value of an item that was read and changed.
pub(crate) enum HitValue {
    /// The client wants nothing of it.
    Unwanted {
        value_bytes: u64,
    },
    Whole(Vec<u8>),
    Long {
        value_bytes: u64,
        reader: Box<Reader>,
    },
}

impl Outcome {
    pub(crate) fn give(self, answers: &mut Answers<'_, ItemReader>) {
        match self {
            Self::Answer(answer) => answers.answer(answer),
            Self::Fault(fault) => answers.fail(&fault),
            Self::Hit(hit, value) => match value {
                HitValue::Whole(value) => answers.hit(&hit, &value),
                HitValue::Unwanted { value_bytes } => answers.hit_without_value(&hit, value_bytes),
                HitValue::Long { value_bytes, reader } => {
                    answers.hit_at(&hit, value_bytes, ItemSource(*reader));
                }
            },
        }
    }
}
