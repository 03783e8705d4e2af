//! How objects are put: what Python wishes, as the rooms below have it.

use buckets::now_unix_ms;
use format::objects::record::metadata::{ContentHeader, ContentHeaders};
use objects::bucket::{Condition, PutOptions};
use store::Durability;

use crate::errors::Refused;
use crate::listing::{tags, user_metadata};

/// How an object is put, as Python says it.
#[derive(pyo3::FromPyObject)]
pub(crate) struct PutWish {
    #[pyo3(item)]
    durable: bool,
    #[pyo3(item)]
    pub(crate) if_absent: bool,
    #[pyo3(item)]
    if_version: Option<u64>,
    #[pyo3(item)]
    content_type: Option<String>,
    #[pyo3(item)]
    metadata: Vec<(String, String)>,
    #[pyo3(item)]
    tags: Vec<(String, String)>,
    #[pyo3(item)]
    expires_unix_ms: Option<u64>,
}

impl PutWish {
    pub(crate) fn into_options(self) -> Result<PutOptions, Refused> {
        let condition = match (self.if_absent, self.if_version) {
            (true, None) => Condition::Absent,
            (false, Some(version)) => Condition::Version(version),
            (false, None) => Condition::None,
            (true, Some(_)) => {
                return Err(Refused::bad_argument("if_absent and if_version exclude each other"));
            }
        };
        let mut options = PutOptions {
            condition,
            durability: durability(self.durable),
            expires_unix_ms: self.expires_unix_ms,
            ..PutOptions::new(now_unix_ms())
        };
        let headers = self.content_type.map(|value| (ContentHeader::Type, value));
        options.metadata.content_headers = ContentHeaders::new(headers.into_iter().collect())
            .map_err(|error| Refused::bad_argument(error.to_string()))?;
        options.metadata.user_metadata = user_metadata(self.metadata)?;
        options.metadata.tags = tags(self.tags)?;
        Ok(options)
    }
}

pub(crate) fn durability(durable: bool) -> Durability {
    if durable { Durability::Durable } else { Durability::Acknowledged }
}
