//! Lists objects in the order of their keys.
//!
//! What is under a delimiter is one entry of a listing, and is passed over by a new scan from
//! behind it: a scan costs as much as some entries, so only where a page of entries did not end
//! it. Pages grow while no such prefix was met.

use format::objects::record::ObjectRecord;

use super::Bucket;
use super::error::BucketError;
use super::info::{ObjectInfo, has_expired};
use crate::index::{Entry, Index, Table};

/// Entries of the first scan behind a prefix that was passed over.
const PAGE_ENTRIES_MIN: usize = 16;
/// Most entries of a scan.
const PAGE_ENTRIES_MAX: usize = 1024;

/// What is listed.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Keys that begin with it.
    pub prefix: Vec<u8>,
    /// Keys that have it behind the prefix are listed as one: up to its end. Empty: none are.
    pub delimiter: Vec<u8>,
    /// From the first key that is at or behind it: [`Listing::next`] of the listing before,
    /// [`position_behind_key`] or [`position_behind_prefix`]. Empty: from the start.
    pub from: Vec<u8>,
    /// Most objects and prefixes together.
    pub limit: usize,
    /// Milliseconds since 1970: expired objects are not listed.
    pub now_ms: u64,
}

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: Vec<u8>,
    /// The object without its bytes.
    pub info: ObjectInfo,
}

/// Objects and common prefixes, both in the order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Objects.
    pub objects: Vec<Listed>,
    /// What several keys, or one, have up to the delimiter's end.
    pub prefixes: Vec<Vec<u8>>,
    /// Where the next listing goes on; none when this is the last.
    pub next: Option<Vec<u8>>,
}

/// The first position behind a key.
#[must_use]
pub fn position_behind_key(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The first position behind all keys that begin with `prefix`; none when there is no key behind.
#[must_use]
pub fn position_behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let length = prefix.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut position = prefix[..length].to_vec();
    position[length - 1] += 1;
    Some(position)
}

impl Bucket {
    /// Lists objects.
    ///
    /// # Errors
    /// [`BucketError::Index`], [`BucketError::DamagedEntry`].
    pub fn list(&self, options: &ListOptions) -> Result<Listing, BucketError> {
        list(&*self.core.index, options)
    }
}

/// As [`Bucket::list`], of an index.
pub(super) fn list(index: &dyn Index, options: &ListOptions) -> Result<Listing, BucketError> {
    let mut walk = Walk {
        options,
        listing: Listing::default(),
        position: Some(options.from.clone().max(options.prefix.clone())),
    };
    let mut page_entries = match options.delimiter.is_empty() {
        true => options.limit.saturating_add(1).min(PAGE_ENTRIES_MAX),
        false => PAGE_ENTRIES_MIN,
    };
    while let Some(position) = walk.position.clone() {
        let entries = index.scan(Table::Objects, &position, page_entries)?;
        let is_last = entries.len() < page_entries;
        let prefixes = walk.listing.prefixes.len();
        match walk.take_page(entries)? {
            Taken::All if is_last => break,
            Taken::All => (),
            Taken::Behind => break,
            Taken::Full => {
                walk.listing.next = walk.position;
                break;
            }
        }
        page_entries = match walk.listing.prefixes.len() == prefixes {
            true => (page_entries * 2).min(PAGE_ENTRIES_MAX),
            false => PAGE_ENTRIES_MIN,
        };
    }
    Ok(walk.listing)
}

/// What became of a page of entries.
enum Taken {
    /// All were looked at.
    All,
    /// One is behind all that is to be listed.
    Behind,
    /// One has no room in the listing.
    Full,
}

struct Walk<'a> {
    options: &'a ListOptions,
    listing: Listing,
    /// Where the walk goes on; none: there is nothing behind.
    position: Option<Vec<u8>>,
}

impl Walk<'_> {
    fn take_page(&mut self, entries: Vec<Entry>) -> Result<Taken, BucketError> {
        for (key, value) in entries {
            if !key.starts_with(&self.options.prefix) {
                return Ok(Taken::Behind);
            }
            let is_behind = self.position.as_ref().is_none_or(|position| key < *position);
            if is_behind {
                continue; // It is under the prefix that was listed last.
            }
            let record = ObjectRecord::decode(&value)?;
            if has_expired(&record, self.options.now_ms) {
                self.position = Some(position_behind_key(&key));
                continue; // It is no object any more.
            }
            if self.listing.objects.len() + self.listing.prefixes.len() >= self.options.limit {
                self.position = Some(key);
                return Ok(Taken::Full);
            }
            let ListOptions { prefix, delimiter, .. } = self.options;
            match common_prefix(&key, prefix, delimiter) {
                Some(prefix) => {
                    self.position = position_behind_prefix(&prefix);
                    self.listing.prefixes.push(prefix);
                }
                None => {
                    self.position = Some(position_behind_key(&key));
                    self.listing.objects.push(Listed { key, info: record.into() });
                }
            }
        }
        Ok(Taken::All)
    }
}

/// The key up to the end of the first delimiter behind the prefix; none when it has none.
pub(super) fn common_prefix(key: &[u8], prefix: &[u8], delimiter: &[u8]) -> Option<Vec<u8>> {
    let rest = key.strip_prefix(prefix).filter(|_| !delimiter.is_empty())?;
    let at = rest.windows(delimiter.len()).position(|part| part == delimiter)?;
    Some(key[..prefix.len() + at + delimiter.len()].to_vec())
}
