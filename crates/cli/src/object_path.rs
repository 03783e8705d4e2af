//! `STORE/BUCKET/KEY`: where an object is.
//!
//! The store is the longest leading path that is one; the next component is the bucket, or
//! `BUCKET@SNAPSHOT`; all behind its `/` is the key, or the beginning of keys, byte for byte.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use admin::ObjectKey;

use crate::error::{BucketsError, CliError};
use crate::store::is_there;

/// A place in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    /// As it was written.
    pub(crate) text: String,
    /// Directory of the store.
    pub(crate) store: PathBuf,
    /// Name of the bucket, or `BUCKET@SNAPSHOT`.
    pub(crate) bucket: String,
    /// What stands behind the bucket: a key, the beginning of keys, or nothing.
    pub(crate) key: ObjectKey,
}

impl ObjectPath {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`BucketsError::NoStoreIn`], [`BucketsError::NoBucketIn`].
    pub(crate) fn parse(typed: &OsStr) -> Result<Self, CliError> {
        Self::parse_with(typed, is_there)
    }

    fn parse_with(typed: &OsStr, is_store: impl Fn(&Path) -> bool) -> Result<Self, CliError> {
        let bytes = typed.as_bytes();
        let text = typed.to_string_lossy().into_owned();
        let path = |end: usize| Path::new(OsStr::from_bytes(&bytes[..end]));
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([bytes.len()]);
        // Several slashes are one, which stands behind a name.
        let ends = ends.filter(|end| *end > 0 && bytes[*end - 1] != b'/');
        let store_end = ends.filter(|end| is_store(path(*end))).last();
        let Some(store_end) = store_end else {
            return Err(BucketsError::NoStoreIn { text }.into());
        };
        let rest = &bytes[store_end..];
        let rest = &rest[rest.iter().take_while(|byte| **byte == b'/').count()..];
        let bucket_end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let bucket = String::from_utf8_lossy(&rest[..bucket_end]).into_owned();
        if bucket.is_empty() {
            return Err(BucketsError::NoBucketIn { text }.into());
        }
        let key = ObjectKey(rest.get(bucket_end + 1..).unwrap_or_default().to_vec());
        Ok(Self { text, store: path(store_end).to_owned(), bucket, key })
    }

    /// The same, of one object.
    ///
    /// # Errors
    /// [`BucketsError::NoKeyIn`].
    pub(crate) fn with_key(self) -> Result<Self, CliError> {
        match self.key.0.is_empty() {
            true => Err(BucketsError::NoKeyIn { text: self.text }.into()),
            false => Ok(self),
        }
    }

    /// Whether it stands for what is below it: it ends in `/`, or is a bucket.
    pub(crate) fn is_prefix(&self) -> bool {
        self.key.0.last().is_none_or(|last| *last == b'/')
    }

    /// The key of what is called `name` below it.
    pub(crate) fn below(&self, name: &[u8]) -> ObjectKey {
        let separator: &[u8] = if self.is_prefix() { b"" } else { b"/" };
        ObjectKey([&self.key.0, separator, name].concat())
    }

    /// What all keys below it begin with.
    pub(crate) fn prefix(&self) -> ObjectKey {
        self.below(b"")
    }

    /// Where another object of the bucket is, for people.
    pub(crate) fn place(&self, key: &ObjectKey) -> String {
        format!("{}/{}/{key}", self.store.display(), self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::ObjectPath;

    fn parse(typed: &str, stores: &[&str]) -> Option<(String, String, String)> {
        let is_store = |path: &Path| stores.iter().any(|store| Path::new(store) == path);
        let path = ObjectPath::parse_with(OsStr::new(typed), is_store).ok()?;
        Some((path.store.display().to_string(), path.bucket, path.key.to_string()))
    }

    #[test]
    fn the_longest_store_then_the_bucket_then_the_key() {
        let found = |store: &str, bucket: &str, key: &str| {
            Some((store.to_owned(), bucket.to_owned(), key.to_owned()))
        };
        assert_eq!(parse("/s/b/k", &["/s"]), found("/s", "b", "k"));
        assert_eq!(parse("/s//b//k/", &["/s"]), found("/s", "b", "/k/"));
        assert_eq!(parse("/s/b", &["/s"]), found("/s", "b", ""));
        assert_eq!(parse("/s/in/b/k", &["/s", "/s/in"]), found("/s/in", "b", "k"));
        assert_eq!(parse("s/b@monday/a/../k", &["s"]), found("s", "b@monday", "a/../k"));
        assert_eq!(parse("/s", &["/s"]), None);
        assert_eq!(parse("/s/", &["/s"]), None);
        assert_eq!(parse("/t/b/k", &["/s"]), None);
        assert_eq!(parse("", &["/s"]), None);
    }
}
