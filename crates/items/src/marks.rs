//! What memcached keeps with a value, as an object has it.
//!
//! The version of the object is the item's `cas`, its expiry the item's. The client's flags, a
//! version that the client chose, the layout of an array, and the marks *stale* and *win sent* are
//! one pair of user metadata, which is absent where they are the defaults: `memcached` =
//! `flags=5 cas=77 layout=8 stale win`.
//! An object that S3 has put has none, so its flags are 0.

use format::objects::record::metadata::{MetadataError, UserMetadata};
use memcached::{Expiry, Item, Layout};
use objects::bucket::{Description, Metadata, ObjectInfo};

/// Name of the pair of user metadata.
const MARKS_NAME: &str = "memcached";

const MS_PER_S: u64 = 1000;

/// An item of the bucket without its value.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredItem {
    pub(crate) item: Item,
    /// Version of the object.
    pub(crate) version: u64,
    pub(crate) value_bytes: u64,
    /// All that users say of the object.
    pub(crate) metadata: Metadata,
}

impl StoredItem {
    /// The item that an object is. Nobody remembers when it was read.
    pub(crate) fn of(info: ObjectInfo) -> Self {
        let ObjectInfo { version, size_bytes, created_unix_ms, expires_unix_ms, .. } = info;
        let metadata = info.metadata;
        let plain = Item {
            cas: version,
            expires: expires_unix_ms
                .map_or(Expiry::NEVER, |ms| Expiry::from_stored(ms.div_ceil(MS_PER_S))),
            accessed_s: created_unix_ms / MS_PER_S,
            ..Item::default()
        };
        let pairs = metadata.user_metadata.pairs();
        let marks = pairs.iter().find(|(name, _)| name == MARKS_NAME);
        let item = marks.map_or(plain, |(_, marks)| with_marks(plain, marks));
        Self { item, version, value_bytes: size_bytes, metadata }
    }
}

/// The item with marks as they are stored. Words that are none are passed over: S3 clients may
/// write them.
fn with_marks(mut item: Item, marks: &str) -> Item {
    for word in marks.split_ascii_whitespace() {
        match word.split_once('=') {
            Some(("flags", number)) => item.flags = number.parse().unwrap_or(item.flags),
            Some(("cas", number)) => item.cas = number.parse().unwrap_or(item.cas),
            Some(("layout", number)) => {
                let layout = number.parse().ok().and_then(Layout::from_stored);
                item.layout = layout.unwrap_or(item.layout);
            }
            None if word == "stale" => item.stale = true,
            None if word == "win" => item.win_sent = true,
            _ => {}
        }
    }
    item
}

/// The marks of an item whose object has this version; none: they are the defaults.
fn marks_of(item: &Item, version: u64) -> Option<String> {
    let words = [
        (item.flags != 0).then(|| format!("flags={}", item.flags)),
        (item.cas != version).then(|| format!("cas={}", item.cas)),
        (item.layout != Layout::Whole).then(|| format!("layout={}", item.layout.to_stored())),
        item.stale.then(|| "stale".to_owned()),
        item.win_sent.then(|| "win".to_owned()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// When an object ends that is this item, in milliseconds since 1970.
pub(crate) fn expires_unix_ms(item: &Item) -> Option<u64> {
    item.expires.at_s().map(|at_s| at_s.saturating_mul(MS_PER_S))
}

/// What an object of this version says of itself to be this item. `kept` is what users say of it
/// beside.
///
/// # Errors
/// If the metadata of users leaves the marks no room.
pub(crate) fn description_of(
    item: &Item,
    version: u64,
    kept: Metadata,
) -> Result<Description, MetadataError> {
    let marks = marks_of(item, version);
    let has_marks = |(name, _): &(String, String)| name == MARKS_NAME;
    let mut metadata = kept;
    if marks.is_some() || metadata.user_metadata.pairs().iter().any(has_marks) {
        let pairs = metadata.user_metadata.pairs().iter().filter(|pair| !has_marks(pair));
        let marks = marks.map(|marks| (MARKS_NAME.to_owned(), marks));
        metadata.user_metadata = UserMetadata::new(pairs.cloned().chain(marks).collect())?;
    }
    Ok(Description { metadata, expires_unix_ms: expires_unix_ms(item) })
}

/// As [`description_of`], where users say nothing beside.
pub(crate) fn new_description(item: &Item, version: u64) -> Description {
    match description_of(item, version, Metadata::default()) {
        Ok(description) => description,
        Err(error) => panic!("marks alone have room: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use format::objects::record::ETag;
    use format::objects::record::metadata::UserMetadata;
    use memcached::{Expiry, Item, Layout};
    use objects::bucket::{Metadata, ObjectInfo};
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::{StoredItem, description_of};

    fn info(version: u64, metadata: Metadata, expires_unix_ms: Option<u64>) -> ObjectInfo {
        ObjectInfo {
            version,
            size_bytes: 3,
            etag: ETag { md5: [0; 16], parts: None },
            created_unix_ms: 5_000,
            expires_unix_ms,
            metadata,
            checksums: Vec::new(),
        }
    }

    fn user(pairs: &[(&str, &str)]) -> Metadata {
        let pairs = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let user_metadata = UserMetadata::new(pairs.collect()).unwrap();
        Metadata { user_metadata, ..Metadata::default() }
    }

    proptest! {
        #[test]
        fn an_item_comes_back_beside_what_users_say(
            flags in any::<u32>(),
            cas in any::<u64>(),
            expires in 0_u64..1 << 40,
            stale in any::<bool>(),
            win_sent in any::<bool>(),
            layout in select(vec![0, 1, 4096, u32::MAX]),
            version in any::<u64>(),
        ) {
            let expires = Expiry::from_stored(expires);
            let layout = Layout::from_stored(layout).unwrap();
            let (accessed_s, plain) = (5, Item::default());
            let item = Item { flags, cas, expires, accessed_s, layout, stale, win_sent, ..plain };
            let kept = user(&[("color", "red"), ("memcached", "flags=9 stale")]);
            let description = description_of(&item, version, kept).unwrap();
            let pairs = description.metadata.user_metadata.pairs();
            prop_assert_eq!(&pairs[0], &("color".to_owned(), "red".to_owned()));
            let found = info(version, description.metadata.clone(), description.expires_unix_ms);
            prop_assert_eq!(StoredItem::of(found).item, item);
        }
    }

    #[test]
    fn defaults_leave_no_marks_and_objects_of_s3_are_items() {
        let plain = StoredItem::of(info(7, user(&[("color", "red")]), Some(1_001))).item;
        assert_eq!((plain.flags, plain.cas, plain.expires.at_s()), (0, 7, Some(2)));
        let description = description_of(&plain, 7, Metadata::default()).unwrap();
        assert!(description.metadata.user_metadata.pairs().is_empty());
        let odd =
            StoredItem::of(info(7, user(&[("memcached", "flags=x cas= win stale=1 ,")]), None));
        assert_eq!((odd.item.flags, odd.item.cas, odd.item.win_sent), (0, 7, true));
        assert!(!odd.item.stale);
    }
}
