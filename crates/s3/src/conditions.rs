//! Conditions of requests, as RFC 9110 has their order: `If-Match` hides `If-Unmodified-Since`, and
//! `If-None-Match` hides `If-Modified-Since`.
//!
//! Writes hand theirs to `objects`, which judges them under the lock of the key. Reads judge them
//! here, against the object that they hold: what a client has already is 304, all else 412.

use objects::bucket::{Condition, ObjectInfo};
use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Error, S3Result, s3_error};

use crate::door::unix_ms;
use crate::etags;

/// The four headers of a request, or of the source of a copy.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<ETagCondition>,
    pub(crate) if_none_match: Option<ETagCondition>,
    pub(crate) if_modified_since: Option<Timestamp>,
    pub(crate) if_unmodified_since: Option<Timestamp>,
}

impl Conditions {
    /// Those of a write, which has no dates.
    pub(crate) fn of_write(
        if_match: Option<ETagCondition>,
        if_none_match: Option<ETagCondition>,
    ) -> Self {
        Self { if_match, if_none_match, ..Self::default() }
    }

    /// As `objects` has them.
    pub(crate) fn condition(&self) -> Condition {
        let mut all = Vec::new();
        match (&self.if_match, &self.if_unmodified_since) {
            (Some(ETagCondition::Any), _) => all.push(Condition::Present),
            (Some(ETagCondition::ETag(etag)), _) => all.push(Condition::ETagIn(known(etag))),
            (None, Some(since)) => all.push(Condition::UnmodifiedSince(unix_ms(since))),
            (None, None) => (),
        }
        match (&self.if_none_match, &self.if_modified_since) {
            (Some(ETagCondition::Any), _) => all.push(Condition::Absent),
            (Some(ETagCondition::ETag(etag)), _) => all.push(Condition::ETagNotIn(known(etag))),
            (None, Some(since)) => all.push(Condition::ModifiedSince(unix_ms(since))),
            (None, None) => (),
        }
        match all.len() {
            0 => Condition::None,
            _ => Condition::All(all),
        }
    }

    /// Whether a read is answered with the object.
    ///
    /// # Errors
    /// `PreconditionFailed`, or `NotModified` with the headers that belong to it.
    pub(crate) fn judge_read(&self, info: &ObjectInfo) -> S3Result<()> {
        let second = |ms: u64| ms / 1000;
        let created = second(info.created_unix_ms);
        let is = |condition: &ETagCondition| match condition {
            ETagCondition::Any => true,
            ETagCondition::ETag(etag) => etags::parse(etag.value()) == Some(info.etag),
        };
        let holds = match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) => is(condition),
            (None, Some(since)) => created <= second(unix_ms(since)),
            (None, None) => true,
        };
        if !holds {
            return Err(s3_error!(PreconditionFailed));
        }
        let is_new = match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) => !is(condition),
            (None, Some(since)) => created > second(unix_ms(since)),
            (None, None) => true,
        };
        if is_new { Ok(()) } else { Err(not_modified(info)) }
    }
}

fn known(etag: &s3s::dto::ETag) -> Vec<format::objects::record::ETag> {
    etags::parse(etag.value()).into_iter().collect()
}

fn not_modified(info: &ObjectInfo) -> S3Error {
    let mut error = s3_error!(NotModified);
    let etag = format!("\"{}\"", info.etag);
    if let Ok(etag) = etag.parse() {
        error.set_headers([(hyper::header::ETAG, etag)].into_iter().collect());
    }
    error
}

#[cfg(test)]
mod tests {
    use format::objects::record::ETag;
    use objects::bucket::{Condition, Metadata, ObjectInfo};
    use s3s::S3ErrorCode;
    use s3s::dto::ETagCondition;

    use super::Conditions;
    use crate::door::timestamp;
    use crate::etags::outgoing;

    const ETAG: ETag = ETag { md5: [7; 16], parts: None };
    const OTHER: ETag = ETag { md5: [8; 16], parts: Some(2) };

    fn info() -> ObjectInfo {
        ObjectInfo {
            version: 1,
            size_bytes: 1,
            etag: ETAG,
            created_unix_ms: 1_700_000_000_500,
            expires_unix_ms: None,
            metadata: Metadata::default(),
            checksums: Vec::new(),
        }
    }

    fn judged(conditions: Conditions) -> u16 {
        match conditions.judge_read(&info()) {
            Ok(()) => 200,
            Err(error) if *error.code() == S3ErrorCode::NotModified => 304,
            Err(_) => 412,
        }
    }

    #[test]
    fn etags_come_before_dates() {
        let is = |etag: &ETag| Some(ETagCondition::ETag(outgoing(etag)));
        let before = Some(timestamp(1_600_000_000_000));
        let same_second = Some(timestamp(1_700_000_000_000));
        let none = Conditions::default;
        assert_eq!(judged(Conditions { if_match: is(&OTHER), ..none() }), 412);
        assert_eq!(judged(Conditions { if_none_match: is(&ETAG), ..none() }), 304);
        let both =
            Conditions { if_match: is(&ETAG), if_unmodified_since: before.clone(), ..none() };
        assert_eq!(judged(both), 200);
        let both = Conditions {
            if_none_match: is(&OTHER),
            if_modified_since: same_second.clone(),
            ..none()
        };
        assert_eq!(judged(both), 200);
        assert_eq!(judged(Conditions { if_modified_since: same_second.clone(), ..none() }), 304);
        assert_eq!(judged(Conditions { if_modified_since: before.clone(), ..none() }), 200);
        assert_eq!(judged(Conditions { if_unmodified_since: before, ..none() }), 412);
        assert_eq!(judged(Conditions { if_unmodified_since: same_second, ..none() }), 200);
    }

    #[test]
    fn writes_hand_theirs_on() {
        let create = Conditions::of_write(None, Some(ETagCondition::Any));
        assert_eq!(create.condition(), Condition::All(vec![Condition::Absent]));
        let replace = Conditions::of_write(Some(ETagCondition::ETag(outgoing(&OTHER))), None);
        assert_eq!(replace.condition(), Condition::All(vec![Condition::ETagIn(vec![OTHER])]));
        assert_eq!(Conditions::default().condition(), Condition::None);
    }
}
