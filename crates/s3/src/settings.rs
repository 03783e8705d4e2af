//! What a bucket is told to be like: CORS, tags and lifecycle, each a document of the bucket.
//!
//! | document | what reads it |
//! |---|---|
//! | `cors` | `cors.rs`, for each request with an `Origin` |
//! | `tags` | nobody but clients |
//! | `lifecycle` | upkeep of room `buckets` |

use ::buckets::lifecycle::{LIFECYCLE_DOCUMENT, Lifecycle, LifecycleRule};
use s3s::dto::{self, ExpirationStatus, LifecycleExpiration, LifecycleRuleFilter};
use s3s::{S3Error, S3Result, s3_error};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cors::{CORS_DOCUMENT, Cors, CorsRule};
use crate::door::{DURABLE, Door, unix_ms};
use crate::metadata::{set_of_tags, tags_of_set};

const TAGS_DOCUMENT: &str = "tags";
/// Rules of a document.
const RULES_MAX: usize = 1000;
const CORS_RULES_MAX: usize = 100;

async fn read<T: DeserializeOwned + Send + 'static>(
    door: &Door,
    bucket: String,
    name: &'static str,
    missing: S3Error,
) -> S3Result<T> {
    door.blocking(move |door| {
        let open = door.open(&bucket)?;
        let document = open.document(name).map_err(|error| door.refuse(error, &bucket))?;
        serde_json::from_slice(&document.ok_or(missing)?).map_err(|error| {
            (door.observer)(&format!("S3: {bucket}: its {name} cannot be read: {error}"));
            s3_error!(InternalError, "the {name} of the bucket cannot be read")
        })
    })
    .await
}

async fn write(
    door: &Door,
    bucket: String,
    name: &'static str,
    document: Option<impl Serialize>,
) -> S3Result<()> {
    let bytes = document.map(|document| serde_json::to_vec(&document)).transpose();
    let bytes = bytes.map_err(|error| s3_error!(InternalError, "{error}"))?;
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let set = open.set_document(name, bytes.as_deref(), DURABLE);
        set.map_err(|error| door.refuse(error, &bucket))
    })
    .await
}

const NONE: Option<()> = None;

/// The tags of a bucket.
pub(crate) async fn tags(door: &Door, bucket: String) -> S3Result<Vec<dto::Tag>> {
    let missing = s3_error!(NoSuchTagSet);
    let pairs: Vec<(String, String)> = read(door, bucket, TAGS_DOCUMENT, missing).await?;
    let tags = pairs.into_iter();
    Ok(tags.map(|(key, value)| dto::Tag { key: Some(key), value: Some(value) }).collect())
}

/// Gives a bucket tags.
pub(crate) async fn set_tags(door: &Door, bucket: String, set: Vec<dto::Tag>) -> S3Result<()> {
    let tags = tags_of_set(set)?;
    let pairs: Vec<(String, String)> = set_of_tags(&tags)
        .into_iter()
        .map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()))
        .collect();
    write(door, bucket, TAGS_DOCUMENT, Some(pairs)).await
}

/// Takes the tags of a bucket away.
pub(crate) async fn delete_tags(door: &Door, bucket: String) -> S3Result<()> {
    write(door, bucket, TAGS_DOCUMENT, NONE).await
}

/// Which pages of other origins may ask.
pub(crate) async fn cors(door: &Door, bucket: String) -> S3Result<Vec<dto::CORSRule>> {
    let missing = s3_error!(NoSuchCORSConfiguration);
    let cors: Cors = read(door, bucket, CORS_DOCUMENT, missing).await?;
    let rules = cors.rules.into_iter();
    Ok(rules
        .map(|rule| dto::CORSRule {
            id: rule.id,
            allowed_origins: rule.origins,
            allowed_methods: rule.methods,
            allowed_headers: Some(rule.headers),
            expose_headers: Some(rule.exposed),
            max_age_seconds: rule.max_age_s,
        })
        .collect())
}

/// Sets which pages of other origins may ask.
pub(crate) async fn set_cors(
    door: &Door,
    bucket: String,
    rules: Vec<dto::CORSRule>,
) -> S3Result<()> {
    if rules.is_empty() || rules.len() > CORS_RULES_MAX {
        return Err(s3_error!(MalformedXML, "CORS has 1 to {CORS_RULES_MAX} rules"));
    }
    let rules: Vec<CorsRule> = rules
        .into_iter()
        .map(|rule| CorsRule {
            id: rule.id,
            origins: rule.allowed_origins,
            methods: rule.allowed_methods,
            headers: rule.allowed_headers.unwrap_or_default(),
            exposed: rule.expose_headers.unwrap_or_default(),
            max_age_s: rule.max_age_seconds,
        })
        .collect();
    for rule in &rules {
        rule.check()?;
    }
    write(door, bucket, CORS_DOCUMENT, Some(Cors { rules })).await
}

/// No page of another origin may ask.
pub(crate) async fn delete_cors(door: &Door, bucket: String) -> S3Result<()> {
    write(door, bucket, CORS_DOCUMENT, NONE).await
}

/// What upkeep deletes by itself.
pub(crate) async fn lifecycle(door: &Door, bucket: String) -> S3Result<Vec<dto::LifecycleRule>> {
    let missing = s3_error!(NoSuchLifecycleConfiguration);
    let lifecycle: Lifecycle = read(door, bucket, LIFECYCLE_DOCUMENT, missing).await?;
    Ok(lifecycle.rules.into_iter().map(rule_out).collect())
}

/// Sets what upkeep deletes by itself.
pub(crate) async fn set_lifecycle(
    door: &Door,
    bucket: String,
    rules: Vec<dto::LifecycleRule>,
) -> S3Result<()> {
    if rules.is_empty() || rules.len() > RULES_MAX {
        return Err(s3_error!(MalformedXML, "a lifecycle has 1 to {RULES_MAX} rules"));
    }
    let rules = rules.into_iter().map(rule_in).collect::<S3Result<_>>()?;
    write(door, bucket, LIFECYCLE_DOCUMENT, Some(Lifecycle { rules })).await
}

/// Nothing is deleted by itself.
pub(crate) async fn delete_lifecycle(door: &Door, bucket: String) -> S3Result<()> {
    write(door, bucket, LIFECYCLE_DOCUMENT, NONE).await
}

/// # Errors
/// `NotImplemented` for whatever is not expiry by prefix and age, or abortion of uploads.
fn rule_in(rule: dto::LifecycleRule) -> S3Result<LifecycleRule> {
    let other = rule.noncurrent_version_expiration.is_some()
        || rule.noncurrent_version_transitions.is_some_and(|all| !all.is_empty())
        || rule.transitions.is_some_and(|all| !all.is_empty());
    let filter = rule.filter.unwrap_or_default();
    let by_other = filter.and.is_some()
        || filter.tag.is_some()
        || filter.object_size_greater_than.is_some()
        || filter.object_size_less_than.is_some();
    let expiration = rule.expiration.unwrap_or_default();
    if other || by_other || expiration.expired_object_delete_marker.is_some() {
        return Err(s3_error!(
            NotImplemented,
            "a rule expires objects by prefix and age, or aborts uploads"
        ));
    }
    let days = |days: i32| match u32::try_from(days) {
        Ok(days) if days > 0 => Ok(days),
        _ => Err(s3_error!(InvalidArgument, "{days} is no number of days")),
    };
    let abort =
        rule.abort_incomplete_multipart_upload.and_then(|abort| abort.days_after_initiation);
    Ok(LifecycleRule {
        id: rule.id,
        is_enabled: rule.status.as_str() == ExpirationStatus::ENABLED,
        prefix: filter.prefix.or(rule.prefix).unwrap_or_default(),
        expire_after_days: expiration.days.map(days).transpose()?,
        expire_from_unix_ms: expiration.date.as_ref().map(unix_ms),
        abort_after_days: abort.map(days).transpose()?,
    })
}

fn rule_out(rule: LifecycleRule) -> dto::LifecycleRule {
    let status = match rule.is_enabled {
        true => ExpirationStatus::ENABLED,
        false => ExpirationStatus::DISABLED,
    };
    let expires = rule.expire_after_days.is_some() || rule.expire_from_unix_ms.is_some();
    let expiration = expires.then(|| LifecycleExpiration {
        days: rule.expire_after_days.and_then(|days| i32::try_from(days).ok()),
        date: rule.expire_from_unix_ms.map(crate::door::timestamp),
        expired_object_delete_marker: None,
    });
    let abort = rule.abort_after_days.map(|days| dto::AbortIncompleteMultipartUpload {
        days_after_initiation: i32::try_from(days).ok(),
    });
    dto::LifecycleRule {
        id: rule.id,
        status: ExpirationStatus::from_static(status),
        filter: Some(LifecycleRuleFilter {
            prefix: Some(rule.prefix),
            ..LifecycleRuleFilter::default()
        }),
        expiration,
        abort_incomplete_multipart_upload: abort,
        noncurrent_version_expiration: None,
        noncurrent_version_transitions: None,
        prefix: None,
        transitions: None,
    }
}
