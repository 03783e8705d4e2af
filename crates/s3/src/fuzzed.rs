//! The parsers of this room, for the fuzzers of the folder `fuzz`: what must hold of each is
//! asserted here, because the parsers are private.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use s3s::validation::NameValidation;

use crate::auth::BucketNames;
use crate::checksums::{Expected, Texts};
use crate::cors::Cors;
use crate::http::foreign_region;
use crate::metadata::{percent_decoded, percent_encoded, set_of_tags, tags_of_header, tags_of_set};
use crate::{columns, copy, etags, listing, refused, uploads, xml};

/// Texts of headers, queries and documents.
///
/// # Panics
/// A parser breaks its promise.
pub fn text(text: &str) {
    assert_eq!(percent_decoded(&percent_encoded(text)).as_deref(), Some(text));
    if let Some(etag) = etags::parse(text) {
        assert_eq!(etags::parse(&etag.to_string()), Some(etag));
    }
    if let Ok(range) = copy::parse_range(text) {
        assert!(range.start < range.end);
    }
    if let Ok(upload) = uploads::parse(text) {
        assert!(uploads::name_of(upload).eq_ignore_ascii_case(text));
    }
    if let Ok(tags) = tags_of_header(text) {
        assert_eq!(tags_of_set(set_of_tags(&tags)).ok(), Some(tags));
    }
    if BucketNames.validate_bucket_name(text) {
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
    }
    let position = listing::position_of(text).map(|position| listing::token_of(&position));
    assert!(position.is_err() || position.is_ok_and(|token| token == text));
    for (marker, prefix, delimiter) in [(text, "", "/"), (text, "a", ""), ("a/b", text, text)] {
        if let Some(position) = listing::position_behind(marker, prefix, delimiter) {
            assert!(position.as_slice() > marker.as_bytes() || marker.is_empty());
        }
    }
    let document = xml::well_formed(text.to_owned().into());
    let is_unwritable = |byte: &u8| *byte < 0x20 && !b"\t\n".contains(byte);
    assert!(!document.iter().any(is_unwritable) && std::str::from_utf8(&document).is_ok());
    assert_eq!(xml::well_formed(document.clone()), document);
}

/// Headers and query of a request, its body, and trailers.
///
/// # Panics
/// A parser breaks its promise.
pub fn request(pairs: &[(&str, &[u8])], query: &str, body: &[u8], trailers: &[(&str, &[u8])]) {
    let (headers, trailers) = (headers(pairs), headers(trailers));
    let _ = refused::check(&headers, Some(query));
    let _ = foreign_region(&headers, Some(query));
    let _ = columns::asked(Some(query));
    let Ok(expected) = Expected::from_headers(&headers) else { return };
    let mut hashes = expected.hashes();
    hashes.update(body);
    if let Ok((_, checksums)) = hashes.verify(Some(&trailers)) {
        let _ = Texts::new(&checksums, Some(1));
    }
}

fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
    let pairs = pairs.iter().filter_map(|(name, value)| {
        Some((HeaderName::try_from(*name).ok()?, HeaderValue::from_bytes(value).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

/// The document of a bucket's CORS, and an origin that asks.
///
/// # Panics
/// A rule allows what was not asked for.
pub fn cors(document: &[u8], origin: &str) {
    let Ok(cors) = serde_json::from_slice::<Cors>(document) else { return };
    cors.rules.iter().for_each(|rule| drop(rule.check()));
    let asked = ["x-amz-date".to_owned()];
    if let Some(allowed) = cors.headers(origin, "PUT", &asked, true) {
        assert!(allowed.get("access-control-allow-methods").is_none_or(|all| !all.is_empty()));
    }
}
