//! What a check and a repair of a bucket found, for people and for programs.

use admin::ObjectKey;
use buckets::is_being_repaired;
use objects::bucket::{BucketCheck, BucketRepair, DamagedObject, LostPart, Owner};
use serde::Serialize;

use crate::error::CliError;
use crate::output;
use crate::size::{counted, human_bytes};

/// What a check of a bucket found.
#[derive(Default, Serialize)]
pub(super) struct Checked {
    name: String,
    objects: u64,
    object_bytes: u64,
    problem_count: u64,
    /// The first of them as sentences, or that its making was cut off, which is none.
    sentences: Vec<String>,
    damaged_count: u64,
    /// Keys of the first objects of which bytes are lost.
    damaged_keys: Vec<ObjectKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repair>,
    /// The first objects of which bytes are lost, in sentences.
    #[serde(skip)]
    damaged: Vec<String>,
}

impl Checked {
    pub(super) fn of(name: String, found: &BucketCheck) -> Self {
        let of_index = found.index.damage.iter().cloned();
        let of_bucket = found.problems.iter().map(ToString::to_string);
        Self {
            name,
            objects: found.figures.objects,
            object_bytes: found.figures.object_bytes,
            problem_count: found.problem_count + found.index.damage.len() as u64,
            sentences: of_index.chain(of_bucket).collect(),
            ..Self::default()
        }
    }

    /// A crash left it so; nothing is lost.
    pub(super) fn unfinished(name: String, sentence: String) -> Self {
        Self { name, sentences: vec![sentence], ..Self::default() }
    }

    /// One that cannot be opened or walked.
    pub(super) fn damaged(name: String, sentence: String) -> Self {
        Self { name, problem_count: 1, sentences: vec![sentence], ..Self::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    /// How many places are wrong.
    pub(super) fn problems(&self) -> u64 {
        self.problem_count
    }

    /// What its repair came to.
    pub(super) fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    pub(super) fn set_repair(&mut self, repair: Repair) {
        self.repair = Some(repair);
    }

    /// Names objects that have bytes in chunks which are lost.
    pub(super) fn set_damaged(&mut self, count: u64, told: &[DamagedObject]) {
        self.damaged_count = count;
        self.damaged_keys = told.iter().filter_map(|one| key_of(&one.owner)).collect();
        self.damaged = told.iter().map(ToString::to_string).collect();
    }

    pub(super) fn add_sentence(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }
}

/// What a repair of a bucket came to.
#[derive(Serialize)]
pub(super) struct Repair {
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
    lost_count: u64,
    /// Keys of the first objects that are lost and are known one by one.
    lost_keys: Vec<ObjectKey>,
    /// What is lost, in sentences.
    pub(super) sentences: Vec<String>,
}

impl Repair {
    pub(super) fn of(report: &BucketRepair) -> Self {
        let lost = report.lost.iter().filter_map(|part| match part {
            LostPart::One { owner, .. } => key_of(owner),
            _ => None,
        });
        Self {
            objects: report.figures.objects,
            object_bytes: report.figures.object_bytes,
            lost_count: report.lost_count,
            lost_keys: lost.collect(),
            sentences: report.lost.iter().map(ToString::to_string).collect(),
        }
    }

    /// How many parts of the bucket are lost.
    pub(super) fn losses(&self) -> u64 {
        self.lost_count
    }
}

/// The key of an object; none: it is a part of an upload.
pub(super) fn key_of(owner: &Owner) -> Option<ObjectKey> {
    match owner {
        Owner::Object { key } => Some(ObjectKey(key.clone())),
        Owner::Upload { .. } | Owner::Part { .. } => None,
    }
}

/// Says what is wrong, what was repaired, and what was checked.
pub(super) fn print(checked: &[Checked]) -> Result<(), CliError> {
    for bucket in checked {
        let name = &bucket.name;
        for sentence in &bucket.sentences {
            output::print_problem(format_args!("bucket {name}: {sentence}"))?;
        }
        let held =
            |objects, bytes| format!("{} of {}", counted(objects, "object"), human_bytes(bytes));
        if let Some(repair) = &bucket.repair {
            let kept = held(repair.objects, repair.object_bytes);
            output::print_line(format_args!("bucket {name} has a new index: it keeps {kept}"))?;
            for sentence in &repair.sentences {
                output::print_problem(format_args!("bucket {name}: {sentence}"))?;
            }
        } else if bucket.sentences.is_empty() && !is_being_repaired(name) {
            let held = held(bucket.objects, bucket.object_bytes);
            let is_sound = if bucket.damaged_count > 0 { "has a sound index" } else { "is sound" };
            output::print_line(format_args!("bucket {name} {is_sound}: {held}"))?;
        }
        for sentence in &bucket.damaged {
            output::print_problem(format_args!("bucket {name}: {sentence}"))?;
        }
        let untold = bucket.damaged_count.saturating_sub(bucket.damaged.len() as u64);
        if untold > 0 {
            let more = counted(untold, "more object");
            output::print_problem(format_args!("bucket {name}: bytes of {more} are lost"))?;
        }
    }
    Ok(())
}
