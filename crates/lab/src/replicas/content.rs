//! Bytes that say which content they are, and all contents of a bucket.

use std::collections::BTreeMap;

use objects::bucket::{Bucket, BucketError, Condition, ListOptions};

use crate::dice::mixed;
use crate::failure::Broken;
use crate::objects::failures::broken;
use crate::replicas::side::NOW_MS;

/// Longest object.
const OBJECT_BYTES_MAX: u64 = 20_000;
/// Longest of those that are short.
const SHORT_BYTES_MAX: u64 = 100;
/// One object of this number is short.
const SHORT_ONE_IN: u64 = 3;

/// Bytes of a content, as many as chance chooses.
pub(super) fn bytes_of(content: u64, chance: u64) -> Vec<u8> {
    let is_short = chance.is_multiple_of(SHORT_ONE_IN);
    let length = 8 + chance % if is_short { SHORT_BYTES_MAX } else { OBJECT_BYTES_MAX };
    let mut bytes = content.to_le_bytes().to_vec();
    let mut at = 0;
    while (bytes.len() as u64) < length {
        at += 1;
        bytes.extend_from_slice(&mixed(content, at).to_le_bytes());
    }
    bytes
}

/// Which content they are; 0, which none is, when they are of none.
fn content_of(bytes: &[u8]) -> u64 {
    let Some((content, _)) = bytes.split_first_chunk() else { return 0 };
    let content = u64::from_le_bytes(*content);
    let mut words = bytes.chunks_exact(8).skip(1).zip(1..);
    let is_whole = words.all(|(word, at)| word == mixed(content, at).to_le_bytes());
    if is_whole { content } else { 0 }
}

/// All objects of a bucket, by their contents.
pub(super) fn contents(bucket: &Bucket) -> Result<BTreeMap<Vec<u8>, u64>, Broken> {
    read_all(bucket).map_err(|error| broken("reading a bucket", &error))
}

fn read_all(bucket: &Bucket) -> Result<BTreeMap<Vec<u8>, u64>, BucketError> {
    let mut found = BTreeMap::new();
    let options = ListOptions {
        prefix: Vec::new(),
        delimiter: Vec::new(),
        from: Vec::new(),
        limit: 1000,
        now_ms: NOW_MS,
    };
    for listed in bucket.list(&options)?.objects {
        let Some(mut reader) = bucket.get(&listed.key, &Condition::None, NOW_MS)? else {
            continue;
        };
        let mut bytes = vec![0; listed.info.size_bytes as usize];
        reader.read_at(0, &mut bytes)?;
        found.insert(listed.key, content_of(&bytes));
    }
    Ok(found)
}
