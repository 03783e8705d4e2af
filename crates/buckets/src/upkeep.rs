//! A thread that does for open buckets what no request waits for: it merges logs, frees what nobody
//! names, removes what has expired or a lifecycle ends, and aborts uploads that nobody finishes.
//!
//! It gives way: a step of each is short, and what finds nothing to do waits longer each time. A
//! merge is not short, but one that is late is done by a put that waits for it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::BucketsError;
use crate::lifecycle::Walk;
use crate::now_unix_ms;
use crate::opened::OpenBucket;
use crate::slots::Shared;

/// Pause between two looks at all buckets.
const LOOK_TIME: Duration = Duration::from_millis(20);
/// Pause of a bucket in which there was nothing to free or to expire, at first and at most.
const IDLE_TIME_MIN: Duration = Duration::from_millis(100);
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);
/// Objects removed in one step.
const STEP_ENTRIES: u64 = 128;
/// Ranges freed at a time, and how long a step goes on with that: a cache whose items are written
/// over frees as many as it writes. Ranges may be long, and who deletes the bucket waits for them.
const TRIM_ENTRIES: u64 = 64;
/// The same of those that changes have just released, which are short as a rule: many at a time are
/// freed together with their neighbours.
const RELEASED_ENTRIES: u64 = 1024;
const TRIM_TIME: Duration = Duration::from_millis(10);
/// Pause between two laps in which ranges are looked for, and in how many times the lap's own time:
/// it passes over every range that was freed since the last merge. What was released a moment ago
/// is freed without a lap.
const LAP_PAUSE: Duration = Duration::from_millis(300);
const LAP_TIMES: u32 = 20;

/// When a bucket is looked at next.
struct Turn {
    next: Instant,
    idle_time: Duration,
    /// When ranges are looked for next, and how long this lap has taken.
    lap_next: Instant,
    lap_time: Duration,
    walk: Walk,
}

impl Turn {
    fn new() -> Self {
        let now = Instant::now();
        let (idle_time, lap_time) = (IDLE_TIME_MIN, Duration::ZERO);
        Self { next: now, idle_time, lap_next: now, lap_time, walk: Walk::default() }
    }
}

/// Starts the thread; it ends when [`Shared::rest`] says so.
pub(crate) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, BucketsError> {
    let run = move || {
        let mut turns: HashMap<String, Turn> = HashMap::new();
        while !shared.rest(LOOK_TIME) {
            let names = shared.names();
            turns.retain(|name, _| names.contains(name));
            for name in names {
                // One at a time: who deletes a bucket does not wait for the merge of another.
                let Some(bucket) = shared.open_for_changes(&name) else { continue };
                let turn = turns.entry(name).or_insert_with(Turn::new);
                take_turn(&bucket, turn, shared.options.upload_age_max);
            }
        }
    };
    let started = thread::Builder::new().name("buckets".to_owned()).spawn(run);
    started.map_err(|source: io::Error| {
        store::MachineError { action: "start the thread of buckets", source }.into()
    })
}

fn take_turn(bucket: &OpenBucket, turn: &mut Turn, upload_age_max: Duration) {
    // A merge that fails leaves the log as it is; puts say what is wrong with the store.
    let merged = bucket.merge_if_due();
    if merged.is_err() || turn.next > Instant::now() {
        return;
    }
    match step(bucket, turn, upload_age_max) {
        Ok(Step::Worked) => turn.idle_time = IDLE_TIME_MIN,
        Ok(Step::Idle) | Err(_) => turn.idle_time = (turn.idle_time * 2).min(IDLE_TIME_MAX),
    }
    turn.next =
        Instant::now() + if turn.idle_time == IDLE_TIME_MIN { LOOK_TIME } else { turn.idle_time };
}

enum Step {
    Worked,
    Idle,
}

fn step(
    bucket: &OpenBucket,
    turn: &mut Turn,
    upload_age_max: Duration,
) -> Result<Step, BucketsError> {
    let now_ms = now_unix_ms();
    let age_ms = u64::try_from(upload_age_max.as_millis()).unwrap_or(u64::MAX);
    let expired = bucket.expire_some(now_ms, STEP_ENTRIES)?;
    let uploads = bucket.expire_uploads(now_ms.saturating_sub(age_ms), STEP_ENTRIES)?;
    let is_trimmed = trim(bucket, turn)?;
    let is_walked = turn.walk.step(bucket, now_ms)?;
    match expired.is_done && uploads.is_done && is_trimmed && is_walked {
        true => Ok(Step::Idle),
        false => Ok(Step::Worked),
    }
}

/// Frees what nobody names; true when there was nothing of it as far as was looked.
fn trim(bucket: &OpenBucket, turn: &mut Turn) -> Result<bool, BucketsError> {
    let begun = Instant::now();
    let mut freed = 0;
    while begun.elapsed() < TRIM_TIME {
        let trimmed = bucket.free_released(RELEASED_ENTRIES)?;
        freed += trimmed.entries;
        if trimmed.is_done {
            let found = look_for_more(bucket, turn)?;
            return Ok(freed + found == 0 && turn.lap_time.is_zero());
        }
    }
    Ok(false)
}

/// Goes on with a lap over all that there is to free; returns how many ranges it has freed.
fn look_for_more(bucket: &OpenBucket, turn: &mut Turn) -> Result<u64, BucketsError> {
    let begun = Instant::now();
    let mut freed = 0;
    if begun < turn.lap_next {
        return Ok(freed);
    }
    let mut is_done = false;
    while !is_done && begun.elapsed() < TRIM_TIME {
        let trimmed = bucket.trim_some(TRIM_ENTRIES)?;
        freed += trimmed.entries;
        is_done = trimmed.is_done;
    }
    turn.lap_time += begun.elapsed();
    if is_done {
        let lap_time = std::mem::take(&mut turn.lap_time);
        turn.lap_next = Instant::now() + LAP_PAUSE.max(lap_time * LAP_TIMES);
    }
    Ok(freed)
}
