//! Columns of tables, near their data: a GetObject with the query `x-tamis-columns`.
//!
//! ```text
//! ?x-tamis-columns=a,b&x-tamis-filter=[["day",">=",3]]
//!   ─> footer of the Parquet object ─> parquet_footer ─> ranges
//!   <─ parts (parts.rs): the footer first, then the chunks that may match
//! ```
//!
//! One request moves what else takes three. Servers of others pass queries of this name over, as
//! Amazon does, and send what the header `Range` asks for; so a client asks for the object's end in
//! it, and goes on from there. Here the range is passed over. Why: decision 071.
//!
//! Memory: footers are read a few at a time ([`FOOTERS_AT_ONCE`]) and kept for no longer than it
//! takes to choose; a request keeps ranges, at most a mebibyte of them.

use std::ops::Range;

use objects::bucket::Reader;
use parquet_footer::{Asked, Filter, FooterError, TAIL_BYTES, footer_range, needed_ranges};
use s3s::dto::{GetObjectInput, GetObjectOutput};
use s3s::{S3Error, S3Response, S3Result, s3_error};
use tokio::runtime::Handle;

use crate::body::Unread;
use crate::conditions::Conditions;
use crate::door::{Door, place, timestamp};
use crate::etags;
use crate::get::opened;
use crate::metadata::percent_decoded;
use crate::parts::Parts;

/// Each takes [`parquet_footer::FOOTER_BYTES_MAX`] at most.
pub(crate) const FOOTERS_AT_ONCE: usize = 4;
/// What a body of parts is called; by this a client knows it from the object's bytes.
const CONTENT_TYPE: &str = "application/vnd.tamis.parts";

/// What a request asks of a table; none: it asks for an object.
///
/// # Errors
/// `InvalidArgument` for what is no filter.
pub(crate) fn asked(query: Option<&str>) -> S3Result<Option<Asked>> {
    let value_of =
        |wanted: &str| {
            let pairs = query.unwrap_or_default().split('&');
            let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
            Some(percent_decoded(value).ok_or_else(|| {
                s3_error!(InvalidArgument, "{wanted} is not encoded as queries are")
            }))
        };
    let Some(columns) = value_of("x-tamis-columns").transpose()? else { return Ok(None) };
    let columns = columns.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
    let filter = match value_of("x-tamis-filter").transpose()? {
        Some(text) => Filter::parse(&text)
            .map_err(|error| s3_error!(InvalidArgument, "x-tamis-filter: {error}"))?,
        None => Filter::default(),
    };
    Ok(Some(Asked { columns: columns.collect(), filter }))
}

/// The footer of a table, and the chunks of columns that are asked for.
pub(crate) async fn get(
    door: &Door,
    input: GetObjectInput,
    asked: Asked,
) -> S3Result<S3Response<GetObjectOutput>> {
    if input.part_number.is_some() {
        return Err(s3_error!(InvalidRequest, "columns are those of an object, not of a part"));
    }
    let conditions = Conditions {
        if_match: input.if_match,
        if_none_match: input.if_none_match,
        if_modified_since: input.if_modified_since,
        if_unmodified_since: input.if_unmodified_since,
    };
    let (bucket, key) = (input.bucket, input.key);
    let found = door.blocking(move |door| {
        let place = place(&bucket, &key);
        let open = door.open(&bucket)?;
        let mut reader = opened(door, &open, &key, &conditions, &place)?;
        let info = reader.info().clone();
        let ranges = needed(door, &mut reader, &asked, &place)?;
        let mut unread = Unread { reader, parts: Parts::told(ranges), place, _bucket: open };
        let length_bytes = unread.parts.left_bytes();
        let first = unread.next(door)?;
        Ok((info, length_bytes, first, unread))
    });
    let (info, length_bytes, first, unread) = found.await?;
    Ok(S3Response::new(GetObjectOutput {
        body: Some(door.sending(first, unread)),
        content_length: Some(length_bytes as i64),
        content_type: Some(CONTENT_TYPE.to_owned()),
        e_tag: Some(etags::outgoing(&info.etag)),
        last_modified: Some(timestamp(info.created_unix_ms)),
        ..GetObjectOutput::default()
    }))
}

/// Where the footer with its tail lies, then the chunks.
fn needed(
    door: &Door,
    reader: &mut Reader,
    asked: &Asked,
    place: &str,
) -> S3Result<Vec<Range<u64>>> {
    // It is waited for on this thread, which is the tenant's turn: who waits for one holds none.
    let turn = Handle::current().block_on(door.footers.acquire());
    let _turn = turn.map_err(|_| s3_error!(InternalError, "the server ends"))?;
    let size_bytes = reader.info().size_bytes;
    let mut read = |start: u64, out: &mut [u8]| {
        let found = reader.read_at(start, out).map_err(|error| door.refuse(error, place))?;
        assert!(found == out.len(), "an object knows how long it is");
        Ok::<_, S3Error>(())
    };
    let mut tail = [0; TAIL_BYTES as usize];
    let tail_at = size_bytes.checked_sub(TAIL_BYTES).ok_or_else(|| no(&FooterError::NotParquet))?;
    read(tail_at, &mut tail)?;
    let footer = footer_range(size_bytes, tail).map_err(|error| no(&error))?;
    let bytes = store::zeroed((footer.end - footer.start) as usize);
    let mut bytes = bytes.map_err(|error| door.refuse(error, place))?;
    read(footer.start, &mut bytes)?;
    let mut ranges = needed_ranges(&bytes, footer.start, asked).map_err(|error| no(&error))?;
    ranges.insert(0, footer.start..size_bytes);
    Ok(ranges)
}

fn no(error: &FooterError) -> S3Error {
    match error {
        FooterError::NoColumn { .. } => s3_error!(InvalidArgument, "{error}"),
        FooterError::NotParquet | FooterError::Damaged | FooterError::TooLarge => {
            s3_error!(ParquetParsingError, "{error}")
        }
    }
}
