//! One request: what never reaches s3s, and what is added to its answers.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue, ORIGIN,
};
use hyper::{Method, Request, StatusCode, body::Incoming};
use s3s::region::Region;
use s3s::service::S3Service;
use s3s::{Body, HttpError, HttpResponse, S3Error, S3ErrorCode, s3_error};

use crate::door::Door;
use crate::errors::other_sha256;
use crate::metadata::percent_decoded;
use crate::paced::{Paced, Seen};
use crate::passage::{Passage, Toll, Way};
use crate::xml::well_formed;

/// Most bytes of a document that a client sends: a thousand keys to delete, ten thousand parts.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 8 << 20;
/// The region that clients are told to sign for; any other that is one does as well.
const REGION: &str = "us-east-1";
const XML: HeaderValue = HeaderValue::from_static("application/xml");

/// Answers a request.
pub(crate) async fn answer(
    door: &Door,
    service: &S3Service,
    request: Request<Incoming>,
    idle_time: Duration,
) -> Result<HttpResponse, HttpError> {
    let text = |name: &str| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let origin = text(ORIGIN.as_str());
    let bucket = bucket_of(request.uri().path());
    let method = request.method().clone();
    if method == Method::OPTIONS {
        let asked = text("access-control-request-method");
        let headers = text("access-control-request-headers").unwrap_or_default();
        return preflight(door, bucket, origin, asked, &headers).await;
    }
    let waits = Waits::of(request.headers());
    if let Err(refused) = check(request.headers(), request.uri().query(), &method) {
        return refusal(refused).map(|answer| waits.end(answer));
    }
    if let Some(region) = foreign_region(request.headers(), request.uri().query()) {
        return Ok(waits.end(wrong_region(&region)));
    }
    let (head, body) = request.into_parts();
    let passage = Passage::begin();
    let toll = Toll::new(Arc::clone(&passage), Way::In);
    let (body, seen) = Paced::new(body, idle_time, toll);
    let hash = head.headers.get("x-amz-content-sha256");
    let is_streamed = hash.is_some_and(|value| value.as_bytes().starts_with(b"STREAMING-"));
    let request = Request::from_parts(head, Body::http_body(body));
    let mut answer = passage.scope(service.call(request)).await?;
    if let Some(refused) = refused_body(&answer, &seen, is_streamed) {
        answer = refusal(refused)?;
    }
    if answer.headers().get(CONTENT_TYPE) == Some(&XML)
        && let Some(document) = answer.body().bytes()
    {
        *answer.body_mut() = well_formed(document).into();
    }
    let mut answer = waits.end(answer);
    if let (Some(origin), Some(bucket)) = (origin, bucket) {
        let cors = door.cors_of(bucket).await;
        let added = cors.headers(&origin, method.as_str(), &[], false);
        answer.headers_mut().extend(added.unwrap_or_default());
    }
    Ok(passage.answered(answer))
}

/// Whether a client waits for "100 Continue" before it sends its body.
///
/// It gets none where the body is empty or the request is refused first, as HTTP allows. Then the
/// connection ends with the answer: boto3 would read the next answer on it by the status of this
/// one (issue 3755 of botocore).
struct Waits {
    expects: bool,
    has_body: bool,
}

impl Waits {
    fn of(headers: &HeaderMap) -> Self {
        let is = |name, text: &str| {
            headers
                .get(name)
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(text.as_bytes()))
        };
        Self { expects: is(EXPECT, "100-continue"), has_body: !is(CONTENT_LENGTH, "0") }
    }

    /// The answer; the connection ends with it if "100 Continue" may not have come before.
    fn end(&self, mut answer: HttpResponse) -> HttpResponse {
        if self.expects && !(self.has_body && answer.status().is_success()) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// What s3s would do and this door does not: signatures of version 2, and forms, whose files it
/// reads into memory.
fn check(headers: &HeaderMap, query: Option<&str>, method: &Method) -> Result<(), S3Error> {
    let starts = |name: &str, front: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.starts_with(front))
    };
    let has_query = |name: &str| {
        let names = query.unwrap_or_default().split('&');
        names.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name)).any(|has| has == name)
    };
    if starts("authorization", "AWS ") || has_query("AWSAccessKeyId") || has_query("Signature") {
        return Err(s3_error!(NotImplemented, "requests are signed with version 4"));
    }
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
    let is_form = content_type.is_some_and(|value| value.starts_with(b"multipart/form-data"));
    if method == Method::POST && is_form {
        return Err(s3_error!(NotImplemented, "objects are not put by forms"));
    }
    Ok(())
}

/// What an answer is that s3s calls an internal error, or another, because of the body. Its own
/// internal errors have no message, ours have one.
fn refused_body(answer: &HttpResponse, seen: &Seen, is_streamed: bool) -> Option<S3Error> {
    if answer.status().is_success() {
        return None;
    }
    if let Some(failure) = seen.failure() {
        return Some(failure.refusal());
    }
    let document = answer.body().bytes().filter(|_| seen.length_bytes() > 0)?;
    if !document.ends_with(b"<Error><Code>InternalError</Code></Error>") {
        return None;
    }
    Some(match seen.length_bytes() > DOCUMENT_BYTES_MAX as u64 {
        true => {
            s3_error!(MaxMessageLengthExceeded, "a document has at most {DOCUMENT_BYTES_MAX} bytes")
        }
        false if is_streamed => s3_error!(InvalidRequest, "the chunks of the body cannot be read"),
        false => other_sha256(),
    })
}

/// The region of a signature, when it is the name of none: `US` of an s3cmd without settings.
pub(crate) fn foreign_region(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let header = headers.get("authorization").and_then(|value| value.to_str().ok());
    let in_header = header
        .filter(|value| value.starts_with("AWS4-"))
        .and_then(|value| value.split_once("Credential=")?.1.split([',', ' ']).next())
        .map(str::to_owned);
    let in_query = || {
        let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("x-amz-credential"));
        percent_decoded(found.next()?.1)
    };
    let credential = in_header.or_else(in_query)?;
    let region = credential.split('/').nth_back(2)?;
    Region::new(region.into()).is_err().then(|| region.to_owned())
}

/// Names the region, as Amazon does: clients sign once more.
fn wrong_region(region: &str) -> HttpResponse {
    let region: String = region.chars().filter(|one| one.is_ascii_alphanumeric()).collect();
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error>\
         <Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; \
         the region '{region}' is wrong; expecting '{REGION}'</Message>\
         <Region>{REGION}</Region></Error>"
    );
    let mut answer = HttpResponse::new(document.into());
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, XML);
    headers.insert("x-amz-bucket-region", HeaderValue::from_static(REGION));
    answer
}

async fn preflight(
    door: &Door,
    bucket: Option<String>,
    origin: Option<String>,
    method: Option<String>,
    headers: &str,
) -> Result<HttpResponse, HttpError> {
    let (Some(bucket), Some(origin), Some(method)) = (bucket, origin, method) else {
        return refusal(s3_error!(
            InvalidRequest,
            "a preflight has a bucket, an origin and a method"
        ));
    };
    let asked = headers.split(',').map(|header| header.trim().to_ascii_lowercase());
    let asked: Vec<String> = asked.filter(|header| !header.is_empty()).collect();
    match door.cors_of(bucket).await.headers(&origin, &method, &asked, true) {
        Some(allowed) => {
            let mut answer = HttpResponse::new(Body::empty());
            *answer.headers_mut() = allowed;
            Ok(answer)
        }
        None => {
            let code = S3ErrorCode::Custom("AccessForbidden".into());
            let mut refused = S3Error::with_message(code, "no rule of CORS allows this");
            refused.set_status_code(StatusCode::FORBIDDEN);
            refusal(refused)
        }
    }
}

fn refusal(error: S3Error) -> Result<HttpResponse, HttpError> {
    error.to_http_response().map_err(|error| HttpError::new(Box::new(error)))
}

fn bucket_of(path: &str) -> Option<String> {
    let name = path.strip_prefix('/')?.split('/').next()?;
    percent_decoded(name).filter(|name| !name.is_empty())
}
