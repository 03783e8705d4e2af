//! DeleteObject and DeleteObjects.

use objects::bucket::{Condition, DeleteOptions};
use s3s::dto::{
    self, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput,
    DeletedObject, ObjectIdentifier,
};
use s3s::{S3Response, S3Result, s3_error};

use crate::conditions::Conditions;
use crate::door::{DURABLE, Door, now_ms, place};

/// Keys of one DeleteObjects.
const KEYS_MAX: usize = 1000;

/// Deletes an object; that there is none is no error.
pub(crate) async fn delete(
    door: &Door,
    input: DeleteObjectInput,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    if input.if_match_last_modified_time.is_some() || input.if_match_size.is_some() {
        return Err(s3_error!(NotImplemented, "deletions know If-Match alone"));
    }
    let condition = Conditions::of_write(input.if_match, None).condition();
    let (bucket, key) = (input.bucket, input.key);
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let deleted = open.delete(key.as_bytes(), &condition, options());
        deleted.map_err(|error| door.refuse(error, &place(&bucket, &key)))?;
        let output = DeleteObjectOutput::default();
        Ok(S3Response::with_status(output, hyper::StatusCode::NO_CONTENT))
    })
    .await
}

/// Deletes many objects, each with an answer of its own.
pub(crate) async fn delete_many(
    door: &Door,
    input: DeleteObjectsInput,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let (bucket, asked) = (input.bucket, input.delete);
    if asked.objects.is_empty() || asked.objects.len() > KEYS_MAX {
        return Err(s3_error!(MalformedXML, "a deletion names 1 to {KEYS_MAX} keys"));
    }
    for object in &asked.objects {
        check_asked(object)?;
    }
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let conditions = asked.objects.iter().map(|object| {
            let etag = object.e_tag.clone().map(dto::ETagCondition::ETag);
            (object.key.as_bytes(), Conditions::of_write(etag, None).condition())
        });
        let keys: Vec<(&[u8], Condition)> = conditions.collect();
        let answers = open.delete_many(&keys, options());
        let answers = answers.map_err(|error| door.refuse(error, &bucket))?;
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for (object, answer) in asked.objects.iter().zip(answers) {
            let key = Some(object.key.clone());
            match answer {
                Ok(_) if asked.quiet == Some(true) => (),
                Ok(_) => deleted.push(DeletedObject { key, ..DeletedObject::default() }),
                Err(error) => {
                    let refused = door.refuse(error, &place(&bucket, &object.key));
                    errors.push(dto::Error {
                        key,
                        code: Some(refused.code().as_str().to_owned()),
                        message: refused.message().map(str::to_owned),
                        version_id: None,
                    });
                }
            }
        }
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: Some(deleted),
            errors: Some(errors),
            ..DeleteObjectsOutput::default()
        }))
    })
    .await
}

fn check_asked(object: &ObjectIdentifier) -> S3Result<()> {
    let version = object.version_id.as_deref().unwrap_or("null");
    match version == "null" && object.size.is_none() && object.last_modified_time.is_none() {
        true => Ok(()),
        false => Err(s3_error!(NotImplemented, "deletions know keys and ETags alone")),
    }
}

fn options() -> DeleteOptions {
    DeleteOptions { durability: DURABLE, now_ms: now_ms() }
}
