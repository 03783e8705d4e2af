//! An item in memory.

use memcached::Item;

/// Values that are longer are not in memory, but their items are.
pub(crate) const HOT_VALUE_BYTES_MAX: usize = 64 << 10;

/// An item to be kept.
pub(crate) struct NewEntry {
    pub(super) item: Item,
    pub(super) version: u64,
    pub(super) value_bytes: u64,
    /// The key, and the value behind it if it is short enough.
    pub(super) key_and_value: Box<[u8]>,
    pub(super) key_bytes: usize,
}

impl NewEntry {
    /// An item with its value, which is copied unless it is too long for memory.
    pub(crate) fn new(key: &[u8], item: Item, version: u64, value: &[u8]) -> Self {
        let value_bytes = value.len() as u64;
        let value = if value.len() > HOT_VALUE_BYTES_MAX { &[] } else { value };
        let mut key_and_value = Vec::with_capacity(key.len() + value.len());
        key_and_value.extend_from_slice(key);
        key_and_value.extend_from_slice(value);
        let key_and_value = key_and_value.into_boxed_slice();
        Self { item, version, value_bytes, key_and_value, key_bytes: key.len() }
    }

    /// An item whose value, of `value_bytes`, stays in the bucket.
    pub(crate) fn without_value(key: &[u8], item: Item, version: u64, value_bytes: u64) -> Self {
        Self { value_bytes, ..Self::new(key, item, version, &[]) }
    }
}

/// An item that is found in memory.
pub(crate) struct HotItem<'a> {
    /// May be changed in what is in memory only: when it was read, and that it was.
    pub(crate) item: &'a mut Item,
    /// Version of its object.
    pub(crate) version: u64,
    pub(crate) value_bytes: u64,
    /// None: it is too long for memory.
    pub(crate) value: Option<&'a [u8]>,
}
