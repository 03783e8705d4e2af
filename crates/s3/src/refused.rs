//! What a request may not ask for: a header or query that this door does not honour is refused,
//! never passed over.

use hyper::HeaderMap;
use s3s::{S3Result, s3_error};

use crate::metadata::percent_decoded;

/// Beginnings of headers that ask for what is not done here.
const REFUSED: [&str; 11] = [
    "x-amz-server-side-encryption",
    "x-amz-copy-source-server-side-encryption",
    "x-amz-object-lock",
    "x-amz-grant-",
    "x-amz-mfa",
    "x-amz-bypass-governance-retention",
    "x-amz-write-offset-bytes",
    "x-amz-expected-bucket-owner",
    "x-amz-source-expected-bucket-owner",
    "x-amz-rename-source",
    "x-amz-security-token",
];

/// Headers that are honoured with these values alone.
const ONLY: [(&str, &[&str]); 6] = [
    ("x-amz-storage-class", &["STANDARD"]),
    ("x-amz-acl", &["private", "bucket-owner-full-control"]),
    ("x-amz-object-ownership", &["BucketOwnerEnforced"]),
    ("x-amz-bucket-object-lock-enabled", &["false"]),
    ("x-amz-transition-default-minimum-object-size", &["all_storage_classes_128K"]),
    ("x-amz-request-payer", &["requester"]),
];

/// Names of queries that some operation reads.
const QUERIES: [&str; 29] = [
    "acl",
    "attributes",
    "bucket-region",
    "continuation-token",
    "cors",
    "delete",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "lifecycle",
    "list-type",
    "location",
    "marker",
    "max-buckets",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "prefix",
    "start-after",
    "tagging",
    "upload-id-marker",
    "uploadId",
    "uploads",
    "versioning",
    "versionId",
    // Clients say with it which operation they mean.
    "x-id",
];

/// Queries of presigned URLs.
const SIGNATURE: [&str; 8] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signedheaders",
    "x-amz-signature",
    "x-amz-content-sha256",
    "x-amz-checksum-mode",
];

/// # Errors
/// `NotImplemented`, naming what is not done here.
pub(crate) fn check(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let source = headers.get("x-amz-copy-source").and_then(|value| value.to_str().ok());
    if source.and_then(percent_decoded).is_some_and(|source| is_of_snapshot(&source)) {
        return Err(s3_error!(
            NotImplemented,
            "a snapshot is no source of a copy: read the object and put it"
        ));
    }
    for (name, value) in headers {
        let name = name.as_str();
        let value = value.to_str().unwrap_or_default();
        let is_refused = REFUSED.iter().any(|refused| name.starts_with(refused))
            || ONLY.iter().any(|(only, values)| *only == name && !values.contains(&value));
        // An empty one asks for nothing: s3fs before 2021 sends such.
        let is_refused = is_refused && !value.is_empty();
        if is_refused {
            return Err(s3_error!(
                NotImplemented,
                "the header {name}: {value} is not honoured here"
            ));
        }
    }
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).try_for_each(check_query)
}

/// s3s has names of buckets in this header by Amazon's rules, and would call it no header.
fn is_of_snapshot(source: &str) -> bool {
    let source = source.strip_prefix('/').unwrap_or(source);
    source.split('/').next().is_some_and(|bucket| bucket.contains('@'))
}

fn check_query((name, value): (&str, &str)) -> S3Result<()> {
    let lower = name.to_ascii_lowercase();
    let is_known = QUERIES.contains(&name)
        || SIGNATURE.contains(&lower.as_str())
        || name.starts_with("response-")
        || lower.starts_with("x-amz-sdk-")
        || (lower.starts_with("x-") && !lower.starts_with("x-amz-"));
    match name {
        "versionId" if !["", "null"].contains(&value) => {
            Err(s3_error!(NotImplemented, "objects have no versions; snapshots of buckets have"))
        }
        _ if is_known => Ok(()),
        _ => Err(s3_error!(NotImplemented, "the query {name} is not honoured here")),
    }
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;
    use hyper::header::{HeaderName, HeaderValue};

    use super::check;

    fn header(name: &'static str, value: &'static str) -> HeaderMap {
        let pair = (HeaderName::from_static(name), HeaderValue::from_static(value));
        [pair].into_iter().collect()
    }

    #[test]
    fn what_is_not_done_is_refused_and_nothing_else() {
        for (name, value) in [
            ("x-amz-server-side-encryption", "AES256"),
            ("x-amz-server-side-encryption-customer-key", "key"),
            ("x-amz-storage-class", "GLACIER"),
            ("x-amz-acl", "public-read"),
            ("x-amz-object-lock-mode", "COMPLIANCE"),
        ] {
            assert!(check(&header(name, value), None).is_err(), "{name}");
        }
        for (name, value) in
            [("x-amz-storage-class", "STANDARD"), ("x-amz-meta-acl", "a"), ("x-amz-acl", "")]
        {
            assert!(check(&header(name, value), None).is_ok(), "{name}");
        }
        let none = HeaderMap::new();
        for query in ["policy", "versions", "object-lock=", "versionId=3", "x-amz-acl=private"] {
            assert!(check(&none, Some(query)).is_err(), "{query}");
        }
        for query in ["list-type=2&prefix=", "X-Amz-Signature=a", "x-id=PutObject", "acl", ""] {
            assert!(check(&none, Some(query)).is_ok(), "{query}");
        }
    }
}
