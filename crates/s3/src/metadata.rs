//! What senders say of an object, between headers and `objects`.

use format::objects::record::metadata::{
    ContentHeader, ContentHeaders, MetadataError, Tags, UserMetadata,
};
use hyper::header::{HeaderName, HeaderValue};
use objects::bucket::Metadata;
use s3s::dto::{self, Timestamp, TimestampFormat};
use s3s::{S3Result, s3_error};

/// Headers of a request that stay with its object.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) cache_control: Option<String>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) redirect: Option<String>,
    pub(crate) user: Option<dto::Metadata>,
    pub(crate) tagging: Option<String>,
}

impl Said {
    /// # Errors
    /// `MetadataTooLarge`, `InvalidTag`; `InvalidArgument` for what no header can hold.
    pub(crate) fn metadata(self) -> S3Result<Metadata> {
        let expires = self.expires.as_ref().and_then(http_date);
        let encoding = self.content_encoding.as_deref().and_then(without_framing);
        let headers = [
            (ContentHeader::Type, self.content_type),
            (ContentHeader::Encoding, encoding),
            (ContentHeader::Language, self.content_language),
            (ContentHeader::Disposition, self.content_disposition),
            (ContentHeader::CacheControl, self.cache_control),
            (ContentHeader::Expires, expires),
            (ContentHeader::Redirect, self.redirect),
        ];
        let headers = headers.into_iter().filter_map(|(name, text)| text.map(|text| (name, text)));
        let mut user: Vec<_> = self.user.unwrap_or_default().into_iter().collect();
        user.sort();
        if let Some((name, _)) = user.iter().find(|(_, value)| value.contains(is_control)) {
            return Err(s3_error!(InvalidArgument, "x-amz-meta-{name} holds a control character"));
        }
        Ok(Metadata {
            content_headers: ContentHeaders::new(headers.collect()).map_err(too_large)?,
            user_metadata: UserMetadata::new(user).map_err(too_large)?,
            tags: tags_of_header(self.tagging.as_deref().unwrap_or_default())?,
        })
    }
}

/// `aws-chunked` frames the request, not the object.
fn without_framing(encoding: &str) -> Option<String> {
    let kept: Vec<&str> = encoding
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty() && *one != "aws-chunked")
        .collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

fn http_date(timestamp: &Timestamp) -> Option<String> {
    let mut text = Vec::new();
    timestamp.format(TimestampFormat::HttpDate, &mut text).ok()?;
    String::from_utf8(text).ok()
}

fn too_large(error: MetadataError) -> s3s::S3Error {
    s3_error!(MetadataTooLarge, "{error}")
}

/// Tags of the header `x-amz-tagging`, which are written as a query is.
pub(crate) fn tags_of_header(text: &str) -> S3Result<Tags> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let decoded = pairs.map(|(key, value)| Some((percent_decoded(key)?, percent_decoded(value)?)));
    let decoded: Option<Vec<_>> = decoded.collect();
    tags_of(decoded.ok_or_else(|| s3_error!(InvalidTag, "the tags cannot be read"))?)
}

fn tags_of(pairs: Vec<(String, String)>) -> S3Result<Tags> {
    if pairs.iter().any(|(key, value)| key.contains(is_control) || value.contains(is_control)) {
        return Err(s3_error!(InvalidTag, "a tag holds a control character"));
    }
    Tags::new(pairs).map_err(|error| s3_error!(InvalidTag, "{error}"))
}

/// What neither headers nor documents can hold.
fn is_control(character: char) -> bool {
    character.is_control() && character != '\t'
}

/// Tags of a body.
pub(crate) fn tags_of_set(set: Vec<dto::Tag>) -> S3Result<Tags> {
    let pairs = set.into_iter();
    let pairs = pairs.map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
    tags_of(pairs.collect())
}

/// Tags for a body.
pub(crate) fn set_of_tags(tags: &Tags) -> Vec<dto::Tag> {
    let pairs = tags.pairs().iter().cloned();
    pairs.map(|(key, value)| dto::Tag { key: Some(key), value: Some(value) }).collect()
}

/// A content header of an object; none when what another door put cannot be one of HTTP.
pub(crate) fn header(metadata: &Metadata, header: ContentHeader) -> Option<String> {
    let text = metadata.content_headers.get(header)?;
    HeaderValue::try_from(text).is_ok().then(|| text.to_owned())
}

/// When the object says that it ends being fresh.
pub(crate) fn expires(metadata: &Metadata) -> Option<Timestamp> {
    let text = metadata.content_headers.get(ContentHeader::Expires)?;
    Timestamp::parse(TimestampFormat::HttpDate, text).ok()
}

/// User metadata for an answer, and how many pairs no header can hold: another door put them.
pub(crate) fn user(metadata: &Metadata) -> (Option<dto::Metadata>, Option<i32>) {
    let fits = |(name, value): &&(String, String)| {
        HeaderName::try_from(name).is_ok() && !value.contains(is_control)
    };
    let pairs = metadata.user_metadata.pairs();
    let shown: dto::Metadata = pairs.iter().filter(fits).cloned().collect();
    let missing = pairs.len() - pairs.iter().filter(fits).count();
    let missing = (missing > 0).then_some(missing as i32);
    ((!shown.is_empty()).then_some(shown), missing)
}

/// The text of a query; none when it is no text.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// As `encoding-type=url` has keys.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' | b'*' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::{Said, percent_decoded, percent_encoded, tags_of_header};

    #[test]
    fn texts_of_queries_come_back() {
        for text in ["a b", "é/ü", "100%", "a+b&c=d", ""] {
            assert_eq!(percent_decoded(&percent_encoded(text)).as_deref(), Some(text));
        }
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn framing_is_no_encoding_of_the_object() {
        let said = |text: &str| Said { content_encoding: Some(text.to_owned()), ..Said::default() };
        for (sent, kept) in [("aws-chunked", None), ("aws-chunked,gzip", Some("gzip"))] {
            let metadata = said(sent).metadata().unwrap();
            let header = format::objects::record::metadata::ContentHeader::Encoding;
            assert_eq!(metadata.content_headers.get(header), kept);
        }
    }

    #[test]
    fn tags_have_limits() {
        assert_eq!(tags_of_header("a=1&b=").unwrap().pairs().len(), 2);
        assert!(tags_of_header("a=1&a=2").is_err());
        assert!(tags_of_header(&format!("{}=1", "k".repeat(129))).is_err());
    }
}
