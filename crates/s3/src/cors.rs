//! CORS: which pages of other origins a browser lets ask.
//!
//! A preflight is not signed, so it is answered before s3s. What a bucket allows is no secret:
//! without a signature it gives no access.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Result, s3_error};
use serde::{Deserialize, Serialize};

use crate::door::Door;

pub(crate) const CORS_DOCUMENT: &str = "cors";

const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// The rules of a bucket; the first that matches holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cors {
    pub(crate) rules: Vec<CorsRule>,
}

/// What pages of some origins may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CorsRule {
    pub(crate) id: Option<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) methods: Vec<String>,
    pub(crate) headers: Vec<String>,
    pub(crate) exposed: Vec<String>,
    pub(crate) max_age_s: Option<i32>,
}

impl CorsRule {
    /// # Errors
    /// `InvalidRequest`.
    pub(crate) fn check(&self) -> S3Result<()> {
        let unknown = self.methods.iter().find(|method| !METHODS.contains(&method.as_str()));
        if let Some(method) = unknown {
            return Err(s3_error!(InvalidRequest, "CORS knows no method {method}"));
        }
        let mut patterns = self.origins.iter().chain(&self.headers);
        match patterns.find(|pattern| pattern.matches('*').count() > 1) {
            Some(pattern) => Err(s3_error!(InvalidRequest, "{pattern} has more than one *")),
            None if self.origins.is_empty() || self.methods.is_empty() => {
                Err(s3_error!(MalformedXML, "a rule has an origin and a method"))
            }
            None => Ok(()),
        }
    }

    fn matches(&self, origin: &str, method: &str, headers: &[String]) -> bool {
        let allows = |header: &String| {
            self.headers.iter().any(|pattern| glob(&pattern.to_ascii_lowercase(), header))
        };
        self.origins.iter().any(|pattern| glob(pattern, origin))
            && self.methods.iter().any(|allowed| allowed == method)
            && headers.iter().all(allows)
    }
}

/// Whether a text has the form of a pattern with at most one `*`.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((front, back)) => {
            text.len() >= front.len() + back.len()
                && text.starts_with(front)
                && text.ends_with(back)
        }
    }
}

impl Cors {
    /// The headers of an answer to a page; none: the browser keeps it from the page.
    pub(crate) fn headers(
        &self,
        origin: &str,
        method: &str,
        asked: &[String],
        is_preflight: bool,
    ) -> Option<HeaderMap> {
        let rule = self.rules.iter().find(|rule| rule.matches(origin, method, asked))?;
        let allows_all = rule.origins.iter().any(|pattern| pattern == "*");
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        let shown = if allows_all { "*" } else { origin };
        set("access-control-allow-origin", shown.to_owned());
        set("access-control-allow-methods", rule.methods.join(", "));
        set("vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method".into());
        if !rule.exposed.is_empty() {
            set("access-control-expose-headers", rule.exposed.join(", "));
        }
        if is_preflight && !asked.is_empty() {
            set("access-control-allow-headers", asked.join(", "));
        }
        if let Some(seconds) = rule.max_age_s.filter(|_| is_preflight) {
            set("access-control-max-age", seconds.to_string());
        }
        Some(headers)
    }
}

impl Door {
    /// What a bucket allows; nothing where there is no such bucket.
    pub(crate) async fn cors_of(&self, bucket: String) -> Cors {
        let read = self.blocking(move |door| {
            let open = door.open(&bucket)?;
            let document = open.document(CORS_DOCUMENT);
            let document = document.map_err(|error| door.refuse(error, &bucket))?;
            Ok(document.and_then(|document| serde_json::from_slice(&document).ok()))
        });
        read.await.ok().flatten().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cors, CorsRule};

    fn rule() -> CorsRule {
        CorsRule {
            origins: vec!["https://*.example.org".to_owned()],
            methods: vec!["GET".to_owned(), "PUT".to_owned()],
            headers: vec!["x-amz-*".to_owned()],
            exposed: vec!["ETag".to_owned()],
            max_age_s: Some(60),
            ..CorsRule::default()
        }
    }

    #[test]
    fn a_rule_holds_for_its_origins_methods_and_headers() {
        let cors = Cors { rules: vec![rule()] };
        let asked = ["x-amz-date".to_owned()];
        let headers = cors.headers("https://a.example.org", "PUT", &asked, true).unwrap();
        assert_eq!(headers["access-control-allow-origin"], "https://a.example.org");
        assert_eq!(headers["access-control-max-age"], "60");
        for (origin, method, header) in [
            ("https://example.com", "PUT", "x-amz-date"),
            ("https://a.example.org", "DELETE", "x-amz-date"),
            ("https://a.example.org", "PUT", "authorization"),
        ] {
            assert_eq!(cors.headers(origin, method, &[header.to_owned()], true), None);
        }
    }

    #[test]
    fn rules_that_nothing_can_match_are_refused() {
        assert!(rule().check().is_ok());
        assert!(CorsRule { methods: vec!["PATCH".to_owned()], ..rule() }.check().is_err());
        assert!(CorsRule { origins: vec!["*.*".to_owned()], ..rule() }.check().is_err());
        assert!(CorsRule { origins: Vec::new(), ..rule() }.check().is_err());
    }
}
