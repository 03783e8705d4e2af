//! What a check comes to: the worst of the store and of its buckets.

use engine::{CheckReport, Problem};

use super::bucket_report::Checked;
use super::{Repaired, is_lost};
use crate::error::{BucketsError, CliError, Losses};

/// What the command ends with; `left` is what a check of the store finds now.
pub(super) fn of(
    is_repair: bool,
    report: &CheckReport,
    repaired: Option<&Repaired>,
    left: &[Problem],
    buckets: &[Checked],
) -> Result<(), CliError> {
    let of_store = of_store(is_repair, report, repaired, left);
    let of_buckets = of_buckets(is_repair, buckets);
    match (&of_store, &of_buckets) {
        (Ok(()), _) => of_buckets,
        (_, Ok(())) => of_store,
        (Err(store), Err(bucket)) if badness(bucket) > badness(store) => of_buckets,
        _ => of_store,
    }
}

/// What is left is worse than what is lost, and that is worse than what is repaired.
fn badness(error: &CliError) -> u8 {
    match error {
        CliError::Repaired { .. } | CliError::Buckets(BucketsError::BucketsRepaired { .. }) => 0,
        CliError::RepairedWithLosses { .. }
        | CliError::Buckets(BucketsError::BucketsRepairedWithLosses { .. }) => 1,
        _ => 2,
    }
}

fn of_store(
    is_repair: bool,
    report: &CheckReport,
    repaired: Option<&Repaired>,
    left: &[Problem],
) -> Result<(), CliError> {
    let problems = report.problems.len();
    let Some(Repaired { report, .. }) = repaired else {
        return match (left.len(), is_repair) {
            (0, _) => Ok(()),
            (problems, true) => Err(CliError::DamageLeft { problems }),
            (problems, false) => Err(CliError::DamageFound { problems }),
        };
    };
    // A bucket's new index may name some of them no more.
    let chunks = report.lost_chunks.min(left.iter().map(lost_chunks).sum());
    let losses = Losses {
        chunks,
        records: report.lost_records,
        journal: report.lost_journal,
        short_journal: report.short_journal,
        volumes: report.given_up.clone(),
    };
    match left.iter().filter(|problem| !is_lost(problem)).count() {
        0 if losses.is_none() => Err(CliError::Repaired { problems }),
        0 => Err(CliError::RepairedWithLosses(losses)),
        problems => Err(CliError::DamageLeft { problems }),
    }
}

fn lost_chunks(problem: &Problem) -> u64 {
    match problem {
        Problem::LostChunks { count, .. } => *count,
        _ => 0,
    }
}

fn of_buckets(is_repair: bool, buckets: &[Checked]) -> Result<(), CliError> {
    let problems: u64 = buckets.iter().map(Checked::problems).sum();
    let damaged = || buckets.iter().filter(|bucket| bucket.problems() > 0);
    if problems == 0 {
        return Ok(());
    }
    if !is_repair {
        return Err(BucketsError::DamagedBuckets { problems }.into());
    }
    let repairs = || damaged().filter_map(Checked::repair);
    let (of, lost) = (repairs().count() as u64, repairs().map(|repair| repair.losses()).sum());
    let left = damaged().count() as u64 - of;
    Err(match (left, lost) {
        (0, 0) => BucketsError::BucketsRepaired { buckets: of },
        (0, lost) => BucketsError::BucketsRepairedWithLosses { buckets: of, lost },
        (left, _) => BucketsError::BucketsNotRepaired { buckets: left },
    }
    .into())
}
