//! Lifecycle: rules of a bucket by which objects and unfinished uploads end with age.
//!
//! ```text
//! idle ─ an hour since the last walk ─> rule 0 ─ pages ─> rule 1 ─> ... ─> idle
//! ```
//!
//! A walk takes a page at a time, so it gives way; a put computes nothing. Each object is deleted
//! as the version that was listed, so one that was put meanwhile stays. After an error the walk
//! begins again an hour later; what was deleted stays so.

use objects::bucket::{
    BucketError, Condition, DeleteOptions, ListOptions, UploadId, position_behind_key,
};
use serde::{Deserialize, Serialize};
use store::Durability;

use crate::error::BucketsError;
use crate::opened::OpenBucket;

/// Name of the document that has the rules.
pub const LIFECYCLE_DOCUMENT: &str = "lifecycle";

/// Objects, or uploads, that are looked at in one step.
const STEP_ENTRIES: usize = 256;
/// Time between the beginnings of two walks.
const WALK_TIME_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * 3_600_000;

/// The rules of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    /// Each holds for itself.
    pub rules: Vec<LifecycleRule>,
}

/// What ends, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleRule {
    /// What its user calls it.
    pub id: Option<String>,
    /// Whether it is carried out.
    pub is_enabled: bool,
    /// It is about keys that begin with this.
    pub prefix: String,
    /// Days from the put of an object to its end.
    pub expire_after_days: Option<u32>,
    /// Objects that were put before end at this time, in milliseconds since 1970.
    pub expire_from_unix_ms: Option<u64>,
    /// Days from the beginning of an upload to its abort.
    pub abort_after_days: Option<u32>,
}

impl LifecycleRule {
    /// Objects that were put at or before this have ended.
    fn objects_until_ms(&self, now_ms: u64) -> Option<u64> {
        let by_age = self.expire_after_days.and_then(|days| days_ago_ms(now_ms, days));
        let by_date = self.expire_from_unix_ms.filter(|from| *from <= now_ms);
        by_age.max(by_date)
    }
}

fn days_ago_ms(now_ms: u64, days: u32) -> Option<u64> {
    now_ms.checked_sub(u64::from(days) * DAY_MS)
}

/// A walk over a bucket, or the pause before the next.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    next_ms: u64,
    going: Option<Going>,
}

#[derive(Debug)]
struct Going {
    rules: Vec<LifecycleRule>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    /// From this key on.
    Objects(Vec<u8>),
    /// Behind this upload.
    Uploads(Option<(Vec<u8>, UploadId)>),
}

impl Walk {
    /// Goes on by a page; returns whether there is nothing to do now.
    pub(crate) fn step(&mut self, bucket: &OpenBucket, now_ms: u64) -> Result<bool, BucketsError> {
        if self.going.is_none() {
            if now_ms < self.next_ms {
                return Ok(true);
            }
            self.next_ms = now_ms + WALK_TIME_MS;
            let rules = rules_of(bucket)?;
            self.going = Some(Going { rules, position: Position::Objects(Vec::new()) });
        }
        // An error ends the walk; the next begins in its time.
        let Some(mut going) = self.going.take() else { return Ok(true) };
        let is_done = going.step(bucket, now_ms)?;
        if !is_done {
            self.going = Some(going);
        }
        Ok(is_done)
    }
}

/// The rules that are carried out, the last first.
fn rules_of(bucket: &OpenBucket) -> Result<Vec<LifecycleRule>, BucketsError> {
    let document = bucket.document(LIFECYCLE_DOCUMENT)?;
    // What cannot be read deletes nothing; the door that wrote it says so when it is asked.
    let lifecycle: Lifecycle =
        document.and_then(|document| serde_json::from_slice(&document).ok()).unwrap_or_default();
    Ok(lifecycle.rules.into_iter().filter(|rule| rule.is_enabled).rev().collect())
}

impl Going {
    /// A page of the last rule; returns whether all rules have been carried out.
    fn step(&mut self, bucket: &OpenBucket, now_ms: u64) -> Result<bool, BucketsError> {
        let Some(rule) = self.rules.last() else { return Ok(true) };
        let next = match (&self.position, rule.objects_until_ms(now_ms)) {
            (Position::Objects(from), Some(until_ms)) => {
                let next = expire_page(bucket, rule, from, until_ms, now_ms)?;
                Some(next.map_or(Position::Uploads(None), Position::Objects))
            }
            (Position::Objects(_), None) => Some(Position::Uploads(None)),
            (Position::Uploads(after), _) => {
                let until_ms = rule.abort_after_days.and_then(|days| days_ago_ms(now_ms, days));
                match until_ms {
                    Some(until_ms) => abort_page(bucket, rule, after.as_ref(), until_ms)?
                        .map(|after| Position::Uploads(Some(after))),
                    None => None,
                }
            }
        };
        match next {
            Some(position) => self.position = position,
            None => {
                self.rules.pop();
                self.position = Position::Objects(Vec::new());
            }
        }
        Ok(self.rules.is_empty())
    }
}

/// Deletes the objects of a page that have ended; returns where the next page begins.
fn expire_page(
    bucket: &OpenBucket,
    rule: &LifecycleRule,
    from: &[u8],
    until_ms: u64,
    now_ms: u64,
) -> Result<Option<Vec<u8>>, BucketsError> {
    let listing = bucket.list(&ListOptions {
        prefix: rule.prefix.clone().into_bytes(),
        delimiter: Vec::new(),
        from: from.to_vec(),
        limit: STEP_ENTRIES,
        now_ms,
    })?;
    let ended = listing.objects.iter().filter(|one| one.info.created_unix_ms <= until_ms);
    let keys: Vec<(&[u8], Condition)> =
        ended.map(|one| (one.key.as_slice(), Condition::Version(one.info.version))).collect();
    if !keys.is_empty() {
        let options = DeleteOptions { durability: Durability::Acknowledged, now_ms };
        for answer in bucket.delete_many(&keys, options)? {
            match answer {
                Ok(_) | Err(BucketError::ConditionFailed { .. }) => (), // It was put again.
                Err(error) => return Err(error.into()),
            }
        }
    }
    let last = listing.objects.last().map(|last| position_behind_key(&last.key));
    Ok(last.filter(|_| listing.next.is_some()))
}

/// Aborts the uploads of a page that have ended; returns the last one of the page, if another
/// follows.
fn abort_page(
    bucket: &OpenBucket,
    rule: &LifecycleRule,
    after: Option<&(Vec<u8>, UploadId)>,
    until_ms: u64,
) -> Result<Option<(Vec<u8>, UploadId)>, BucketsError> {
    let after = after.map(|(key, upload)| (key.as_slice(), *upload));
    let listing = bucket.list_uploads(rule.prefix.as_bytes(), b"", after, STEP_ENTRIES)?;
    for one in listing.uploads.iter().filter(|one| one.info.created_unix_ms <= until_ms) {
        match bucket.abort(&one.key, one.upload, Durability::Acknowledged) {
            Ok(()) | Err(BucketError::NoSuchUpload { .. }) => (), // It was completed meanwhile.
            Err(error) => return Err(error.into()),
        }
    }
    let last = listing.uploads.last().filter(|_| listing.is_cut);
    Ok(last.map(|last| (last.key.clone(), last.upload)))
}

#[cfg(test)]
mod tests {
    use objects::bucket::{ListOptions, PartOptions, PutOptions, UploadOptions};
    use store::{CreateOptions, Durability, Options, Store};

    use super::{DAY_MS, LIFECYCLE_DOCUMENT, Lifecycle, LifecycleRule, WALK_TIME_MS, Walk};
    use crate::{Buckets, BucketsOptions, NewBucket, OpenBucket};

    /// Objects and uploads are put at this time, which the upkeep beside this test does not reach.
    const PUT_MS: u64 = 4_000_000_000_000;

    fn keys(bucket: &OpenBucket) -> Vec<String> {
        let (prefix, delimiter, from) = Default::default();
        let options = ListOptions { prefix, delimiter, from, limit: 5000, now_ms: PUT_MS };
        let listed = bucket.list(&options).unwrap().objects.into_iter();
        listed.map(|one| String::from_utf8(one.key).unwrap()).collect()
    }

    fn walk(bucket: &OpenBucket, walk: &mut Walk, now_ms: u64) {
        while !walk.step(bucket, now_ms).unwrap() {}
    }

    #[test]
    fn what_is_old_enough_ends_and_nothing_else() {
        let disk = store::create_in_memory(&CreateOptions::new(256 << 20), 1).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let options = BucketsOptions::default();
        let buckets = Buckets::start(store.client().clone(), options).unwrap();
        buckets.create("photos", &NewBucket::default()).unwrap();
        let bucket = buckets.open("photos").unwrap();
        let put = |key: String, now_ms: u64| {
            bucket.put_hashed(key.as_bytes(), PutOptions::new(now_ms)).unwrap().finish().unwrap();
        };
        (0..600).for_each(|number| put(format!("tmp/{number:04}"), PUT_MS));
        put("tmp/young".to_owned(), PUT_MS + DAY_MS);
        put("kept".to_owned(), PUT_MS);
        let begin = UploadOptions::new(PUT_MS);
        let upload = bucket.begin_upload(b"up", begin).unwrap();
        let part = PartOptions { durability: Durability::Acknowledged, now_ms: PUT_MS };
        drop(bucket.put_part(b"up", upload, 1, part).unwrap());
        let rule = |prefix: &str| LifecycleRule {
            is_enabled: true,
            prefix: prefix.to_owned(),
            ..LifecycleRule::default()
        };
        let rules = vec![
            LifecycleRule { expire_after_days: Some(7), ..rule("tmp/") },
            LifecycleRule { is_enabled: false, expire_after_days: Some(1), ..rule("") },
            LifecycleRule { abort_after_days: Some(3), ..rule("") },
        ];
        let document = serde_json::to_vec(&Lifecycle { rules }).unwrap();
        bucket.set_document(LIFECYCLE_DOCUMENT, Some(&document), Durability::Durable).unwrap();
        let mut state = Walk::default();
        let almost = PUT_MS + 7 * DAY_MS - 1;
        walk(&bucket, &mut state, PUT_MS + DAY_MS);
        let uploads = || bucket.list_uploads(b"", b"", None, 9).unwrap().uploads.len();
        assert_eq!((keys(&bucket).len(), uploads()), (602, 1));
        walk(&bucket, &mut state, almost);
        assert_eq!((keys(&bucket).len(), uploads()), (602, 0));
        // It is due, and the last walk began less than an hour ago.
        walk(&bucket, &mut state, almost + 1);
        assert_eq!(keys(&bucket).len(), 602);
        walk(&bucket, &mut state, almost + WALK_TIME_MS);
        assert_eq!(keys(&bucket), ["kept", "tmp/young"]);
        drop(bucket);
        buckets.close().unwrap();
        store.close().unwrap();
    }

    #[test]
    fn a_rule_with_a_date_holds_from_then_on() {
        let rule = LifecycleRule { expire_from_unix_ms: Some(PUT_MS), ..LifecycleRule::default() };
        assert_eq!(rule.objects_until_ms(PUT_MS - 1), None);
        assert_eq!(rule.objects_until_ms(PUT_MS + 5), Some(PUT_MS));
        let none = LifecycleRule { expire_after_days: Some(1), ..LifecycleRule::default() };
        assert_eq!(none.objects_until_ms(5), None);
    }
}
