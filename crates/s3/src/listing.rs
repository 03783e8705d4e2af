//! ListObjects and ListObjectsV2.
//!
//! A token of the second is the place where the listing goes on, so a listing that is continued
//! costs no more than one that begins there.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use objects::bucket::{ListOptions, Listing, position_behind_key, position_behind_prefix};
use s3s::dto::{
    CommonPrefix, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object, ObjectStorageClass, Owner,
};
use s3s::{S3Result, s3_error};

use crate::door::{Door, now_ms, timestamp};
use crate::etags;
use crate::metadata::percent_encoded;

/// Entries of a listing.
const ENTRIES_MAX: usize = 1000;

/// What both kinds of listings ask for.
struct Asked {
    bucket: String,
    prefix: String,
    delimiter: String,
    from: Vec<u8>,
    limit: usize,
}

/// Lists from behind a key or prefix.
pub(crate) async fn list(door: &Door, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let is_url = is_url(input.encoding_type.as_ref())?;
    let (prefix, delimiter) = texts(&input.prefix, &input.delimiter);
    let marker = input.marker.clone().unwrap_or_default();
    let limit = limit_of(input.max_keys)?;
    let from = position_behind(&marker, &prefix, &delimiter);
    let bucket = input.bucket.clone();
    let listing = match from {
        Some(from) => run(door, Asked { bucket, prefix, delimiter, from, limit }).await?,
        None => Listing::default(),
    };
    let last_object = listing.objects.last().map(|listed| &listed.key);
    let last = last_object.max(listing.prefixes.last());
    let next_marker = last.filter(|_| listing.next.is_some()).map(|last| name_out(last, is_url));
    Ok(ListObjectsOutput {
        is_truncated: Some(listing.next.is_some()),
        next_marker,
        contents: Some(objects(&listing, is_url, None)),
        common_prefixes: Some(prefixes(&listing, is_url)),
        name: Some(input.bucket),
        prefix: input.prefix.map(|prefix| name_out(prefix.as_bytes(), is_url)),
        marker: Some(name_out(marker.as_bytes(), is_url)),
        delimiter: input.delimiter.map(|text| name_out(text.as_bytes(), is_url)),
        max_keys: Some(limit as i32),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    })
}

/// Lists from a token, or behind a key.
pub(crate) async fn list_v2(
    door: &Door,
    input: ListObjectsV2Input,
    owner: Owner,
) -> S3Result<ListObjectsV2Output> {
    let is_url = is_url(input.encoding_type.as_ref())?;
    let (prefix, delimiter) = texts(&input.prefix, &input.delimiter);
    let limit = limit_of(input.max_keys)?;
    let from = match &input.continuation_token {
        Some(token) => Some(position_of(token)?),
        None => {
            let after = input.start_after.as_deref().unwrap_or_default();
            position_behind(after, &prefix, &delimiter)
        }
    };
    let bucket = input.bucket.clone();
    let listing = match from {
        Some(from) => run(door, Asked { bucket, prefix, delimiter, from, limit }).await?,
        None => Listing::default(),
    };
    let owner = input.fetch_owner.unwrap_or(false).then_some(owner);
    Ok(ListObjectsV2Output {
        is_truncated: Some(listing.next.is_some()),
        next_continuation_token: listing.next.as_deref().map(token_of),
        key_count: Some((listing.objects.len() + listing.prefixes.len()) as i32),
        contents: Some(objects(&listing, is_url, owner)),
        common_prefixes: Some(prefixes(&listing, is_url)),
        name: Some(input.bucket),
        prefix: input.prefix.map(|prefix| name_out(prefix.as_bytes(), is_url)),
        start_after: input.start_after.map(|key| name_out(key.as_bytes(), is_url)),
        delimiter: input.delimiter.map(|text| name_out(text.as_bytes(), is_url)),
        continuation_token: input.continuation_token,
        max_keys: Some(limit as i32),
        encoding_type: input.encoding_type,
        ..ListObjectsV2Output::default()
    })
}

async fn run(door: &Door, asked: Asked) -> S3Result<Listing> {
    door.blocking(move |door| {
        let open = door.open(&asked.bucket)?;
        if asked.limit == 0 {
            return Ok(Listing::default());
        }
        let options = ListOptions {
            prefix: asked.prefix.into_bytes(),
            delimiter: asked.delimiter.into_bytes(),
            from: asked.from,
            limit: asked.limit,
            now_ms: now_ms(),
        };
        open.list(&options).map_err(|error| door.refuse(error, &asked.bucket))
    })
    .await
}

fn texts(prefix: &Option<String>, delimiter: &Option<String>) -> (String, String) {
    (prefix.clone().unwrap_or_default(), delimiter.clone().unwrap_or_default())
}

/// Where a listing goes on behind a marker: a key, or a prefix that was listed as one entry. None:
/// nothing can be behind it.
pub(crate) fn position_behind(marker: &str, prefix: &str, delimiter: &str) -> Option<Vec<u8>> {
    let rest = marker.strip_prefix(prefix).unwrap_or_default();
    let is_prefix = !delimiter.is_empty()
        && rest.find(delimiter).is_some_and(|at| at + delimiter.len() == rest.len());
    match marker {
        "" => Some(Vec::new()),
        _ if is_prefix => position_behind_prefix(marker.as_bytes()),
        _ => Some(position_behind_key(marker.as_bytes())),
    }
}

/// The token of a position.
pub(crate) fn token_of(position: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(position)
}

/// # Errors
/// `InvalidArgument`.
pub(crate) fn position_of(token: &str) -> S3Result<Vec<u8>> {
    let decoded = URL_SAFE_NO_PAD.decode(token);
    decoded.map_err(|_| s3_error!(InvalidArgument, "the continuation token is none of ours"))
}

pub(crate) fn is_url(encoding: Option<&EncodingType>) -> S3Result<bool> {
    match encoding.map(EncodingType::as_str) {
        None => Ok(false),
        Some(EncodingType::URL) => Ok(true),
        Some(other) => Err(s3_error!(InvalidArgument, "there is no encoding {other}")),
    }
}

/// # Errors
/// `InvalidArgument`.
pub(crate) fn limit_of(asked: Option<i32>) -> S3Result<usize> {
    let limit = asked.map_or(Ok(ENTRIES_MAX), usize::try_from);
    let limit = limit.map_err(|_| s3_error!(InvalidArgument, "a limit is no less than 0"))?;
    Ok(limit.min(ENTRIES_MAX))
}

/// A key as an answer has it. One that is no UTF-8 was put through another door, and is shown with
/// replacement characters.
pub(crate) fn name_out(key: &[u8], is_url: bool) -> String {
    let text = String::from_utf8_lossy(key);
    if is_url { percent_encoded(&text) } else { text.into_owned() }
}

fn objects(listing: &Listing, is_url: bool, owner: Option<Owner>) -> Vec<Object> {
    let listed = listing.objects.iter();
    listed
        .map(|listed| Object {
            key: Some(name_out(&listed.key, is_url)),
            size: Some(listed.info.size_bytes as i64),
            e_tag: Some(etags::outgoing(&listed.info.etag)),
            last_modified: Some(timestamp(listed.info.created_unix_ms)),
            storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
            owner: owner.clone(),
            ..Object::default()
        })
        .collect()
}

fn prefixes(listing: &Listing, is_url: bool) -> Vec<CommonPrefix> {
    let prefixes = listing.prefixes.iter();
    prefixes.map(|prefix| CommonPrefix { prefix: Some(name_out(prefix, is_url)) }).collect()
}

#[cfg(test)]
mod tests {
    use super::{limit_of, position_behind};

    #[test]
    fn a_marker_that_is_a_prefix_is_passed_over() {
        assert_eq!(position_behind("", "", "/").unwrap(), b"");
        assert_eq!(position_behind("a/", "", "/").unwrap(), b"a0");
        assert_eq!(position_behind("a/b", "", "/").unwrap(), b"a/b\0");
        assert_eq!(position_behind("a/b/", "a/", "/").unwrap(), b"a/b0");
        assert_eq!(position_behind("a/", "", "").unwrap(), b"a/\0");
    }

    #[test]
    fn limits_are_those_of_s3() {
        assert_eq!((limit_of(None).unwrap(), limit_of(Some(5000)).unwrap()), (1000, 1000));
        assert_eq!(limit_of(Some(0)).unwrap(), 0);
        assert!(limit_of(Some(-1)).is_err());
    }
}
