//! Objects and buckets as Python gets them: plain tuples, of which it makes its dataclasses.

use buckets::BucketInfo;
use format::objects::record::metadata::{ContentHeader, Tags, UserMetadata};
use objects::bucket::{ListOptions, Listing, Metadata, ObjectInfo};

use crate::errors::Refused;

/// Key, bytes, ETag, version, when it was put and when it ends in milliseconds since 1970, content
/// type, metadata, tags.
pub(crate) type ObjectTuple = (
    Vec<u8>,
    u64,
    String,
    u64,
    u64,
    Option<u64>,
    Option<String>,
    Vec<(String, String)>,
    Vec<(String, String)>,
);

/// Name, mapped bytes, domain, and of a snapshot when it was taken in seconds since 1970.
pub(crate) type BucketTuple = (String, u64, Option<String>, Option<u64>);

/// Objects, common prefixes, and where the next page begins.
pub(crate) type PageTuple = (Vec<ObjectTuple>, Vec<Vec<u8>>, Option<Vec<u8>>);

pub(crate) fn object_tuple(key: Vec<u8>, info: &ObjectInfo) -> ObjectTuple {
    let Metadata { content_headers, user_metadata, tags } = &info.metadata;
    (
        key,
        info.size_bytes,
        info.etag.to_string(),
        info.version,
        info.created_unix_ms,
        info.expires_unix_ms,
        content_headers.get(ContentHeader::Type).map(str::to_owned),
        user_metadata.pairs().to_vec(),
        tags.pairs().to_vec(),
    )
}

pub(crate) fn bucket_tuple(info: BucketInfo) -> BucketTuple {
    let BucketInfo { name, mapped_bytes, domain, taken_unix_s, .. } = info;
    (name, mapped_bytes, domain, taken_unix_s)
}

pub(crate) fn page_tuple(listing: Listing) -> PageTuple {
    let objects = listing.objects.into_iter();
    let objects = objects.map(|listed| object_tuple(listed.key, &listed.info)).collect();
    (objects, listing.prefixes, listing.next)
}

pub(crate) fn list_options(
    prefix: Vec<u8>,
    delimiter: Vec<u8>,
    from: Vec<u8>,
    limit: usize,
) -> ListOptions {
    ListOptions { prefix, delimiter, from, limit, now_ms: buckets::now_unix_ms() }
}

pub(crate) fn user_metadata(pairs: Vec<(String, String)>) -> Result<UserMetadata, Refused> {
    UserMetadata::new(pairs).map_err(|error| Refused::bad_argument(error.to_string()))
}

pub(crate) fn tags(pairs: Vec<(String, String)>) -> Result<Tags, Refused> {
    Tags::new(pairs).map_err(|error| Refused::bad_argument(error.to_string()))
}
