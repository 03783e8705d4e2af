//! How objects are put and copied: what Python wishes, as the rooms below have it.

use buckets::{OpenBucket, now_unix_ms};
use format::objects::record::metadata::{ContentHeader, ContentHeaders};
use objects::bucket::{Condition, Put, PutOptions};
use store::Durability;

use crate::errors::Refused;
use crate::listing::{tags, user_metadata};

/// Bytes that a copy moves at a time, where bytes have to be moved.
const COPIED_BYTES: usize = 1 << 20;

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

/// Chunks that both buckets may share are mapped; else bytes are read and written.
pub(crate) fn copy_between(
    source: &OpenBucket,
    from: &[u8],
    target: &OpenBucket,
    to: &[u8],
    (durable, condition): (bool, Condition),
) -> Result<Put, Refused> {
    let found = source.get(from, &Condition::None, now_unix_ms())?;
    let mut reader = found.ok_or_else(|| Refused::no_object(source.name(), from))?;
    let options = PutOptions {
        metadata: reader.info().metadata.clone(),
        expires_unix_ms: reader.info().expires_unix_ms,
        condition,
        durability: durability(durable),
        now_ms: now_unix_ms(),
    };
    if let Some(put) = target.map_object(source, &mut reader, to, options.clone())? {
        return Ok(put);
    }
    let mut writer = target.put_hashed(to, options)?;
    let (mut bytes, mut offset) = (vec![0; COPIED_BYTES], 0);
    loop {
        let length = reader.read_at(offset, &mut bytes)?;
        if length == 0 {
            return Ok(writer.finish()?);
        }
        writer.write(&bytes[..length])?;
        offset += length as u64;
    }
}
