//! What a listing costs, counted in scans of an index that is a map.

use std::collections::BTreeMap;
use std::sync::Mutex;

use format::objects::record::{ETag, ObjectRecord, Value};
use store::Durability;

use crate::bucket::ListOptions;
use crate::bucket::list::list;
use crate::index::{Change, Entry, Index, IndexError, Table};

struct Counted {
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Entries of each scan.
    scans: Mutex<Vec<usize>>,
}

impl Index for Counted {
    fn get(&self, _: Table, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(self.map.get(key).cloned())
    }

    fn scan(&self, _: Table, from: &[u8], limit: usize) -> Result<Vec<Entry>, IndexError> {
        let found = self.map.range(from.to_vec()..).take(limit);
        let found: Vec<Entry> = found.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.scans.lock().unwrap().push(found.len());
        Ok(found)
    }

    fn apply(&self, _: Vec<Change>, _: Durability) -> Result<(), IndexError> {
        panic!("a listing changes nothing");
    }
}

fn index_of(keys: impl Iterator<Item = String>) -> Counted {
    let etag = ETag { md5: [0; 16], parts: None };
    let record = ObjectRecord::new(1, 2, etag, Value::EMPTY).encode();
    let map = keys.map(|key| (key.into_bytes(), record.clone())).collect();
    Counted { map, scans: Mutex::default() }
}

fn options(prefix: &str, delimiter: &str, limit: usize) -> ListOptions {
    ListOptions {
        prefix: prefix.as_bytes().to_vec(),
        delimiter: delimiter.as_bytes().to_vec(),
        from: Vec::new(),
        limit,
        now_ms: 0,
    }
}

#[test]
fn a_million_keys_under_a_prefix_are_passed_over() {
    let many = (0..1_000_000).map(|number| format!("many/{number:07}"));
    let keys = many.chain(["a".to_owned(), "few/x".to_owned(), "zoo".to_owned()]);
    let index = index_of(keys);
    let listing = list(&index, &options("", "/", 1000)).unwrap();
    assert_eq!((listing.objects.len(), listing.next), (2, None));
    assert_eq!(listing.prefixes, [b"few/".to_vec(), b"many/".to_vec()]);
    let scans = index.scans.into_inner().unwrap();
    assert!(scans.len() <= 3 && scans.iter().sum::<usize>() <= 64, "{scans:?}");
}

#[test]
fn a_listing_without_prefixes_takes_few_scans() {
    let index = index_of((0..20_000).map(|number| format!("{number:05}")));
    let listing = list(&index, &options("", "/", 10_000)).unwrap();
    assert_eq!(listing.objects.len(), 10_000);
    assert!(index.scans.lock().unwrap().len() < 20);
    index.scans.lock().unwrap().clear();
    let listing = list(&index, &options("1", "", 1000)).unwrap();
    assert_eq!((listing.objects.len(), listing.next.is_some()), (1000, true));
    assert_eq!(*index.scans.lock().unwrap(), [1001]);
}
