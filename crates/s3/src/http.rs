//! One request: what never reaches s3s, and what is added to its answers.

use hyper::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, Request, StatusCode, body::Incoming};
use s3s::service::S3Service;
use s3s::{Body, HttpError, HttpResponse, S3Error, S3ErrorCode, s3_error};

use crate::door::Door;
use crate::metadata::percent_decoded;

/// Answers a request.
pub(crate) async fn answer(
    door: &Door,
    service: &S3Service,
    request: Request<Incoming>,
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
    let mut answer = waits.end(service.call(request.map(Body::from)).await?);
    if let (Some(origin), Some(bucket)) = (origin, bucket) {
        let cors = door.cors_of(bucket).await;
        let added = cors.headers(&origin, method.as_str(), &[], false);
        answer.headers_mut().extend(added.unwrap_or_default());
    }
    Ok(answer)
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
    if method == Method::POST && starts("content-type", "multipart/form-data") {
        return Err(s3_error!(NotImplemented, "objects are not put by forms"));
    }
    Ok(())
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
