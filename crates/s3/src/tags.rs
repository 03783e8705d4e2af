//! Tags of objects.

use format::objects::record::metadata::Tags;
use objects::bucket::{Condition, TagOptions};
use s3s::S3Result;
use s3s::dto::{GetObjectTaggingInput, GetObjectTaggingOutput, PutObjectTaggingInput};

use crate::door::{DURABLE, Door, now_ms, place};
use crate::{get, metadata};

/// The tags of an object.
pub(crate) async fn get(
    door: &Door,
    input: GetObjectTaggingInput,
) -> S3Result<GetObjectTaggingOutput> {
    let info = get::info(door, input.bucket, input.key).await?;
    let tag_set = metadata::set_of_tags(&info.metadata.tags);
    Ok(GetObjectTaggingOutput { tag_set, version_id: None })
}

/// Gives an object other tags.
pub(crate) async fn put(door: &Door, input: PutObjectTaggingInput) -> S3Result<()> {
    let tags = metadata::tags_of_set(input.tagging.tag_set)?;
    set(door, input.bucket, input.key, tags).await
}

/// Sets the tags of an object.
pub(crate) async fn set(door: &Door, bucket: String, key: String, tags: Tags) -> S3Result<()> {
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let options =
            TagOptions { condition: Condition::None, durability: DURABLE, now_ms: now_ms() };
        let done = open.set_tags(key.as_bytes(), tags, &options);
        done.map(drop).map_err(|error| door.refuse(error, &place(&bucket, &key)))
    })
    .await
}
