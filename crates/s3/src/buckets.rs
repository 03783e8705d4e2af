//! Buckets: made, listed, looked at and deleted.

use ::buckets::{BucketsError, NewBucket};
use accounts::Account;
use s3s::dto::{
    Bucket, BucketLocationConstraint, CreateBucketInput, CreateBucketOutput, GetBucketAclOutput,
    GetBucketLocationOutput, Grant, Grantee, ListBucketsInput, ListBucketsOutput, Owner,
    Permission, Type,
};
use s3s::{S3Result, s3_error};

use crate::door::{Door, timestamp};

/// Makes a bucket in the account's domain.
pub(crate) async fn create(
    door: &Door,
    input: CreateBucketInput,
    account: &Account,
) -> S3Result<CreateBucketOutput> {
    let name = input.bucket;
    let new = NewBucket { domain: account.domain.clone(), ..NewBucket::default() };
    door.blocking(move |door| {
        match door.buckets.create(&name, &new) {
            Ok(()) => (),
            // Who may make a bucket of this name may do all with it.
            Err(BucketsError::Exists { .. }) if door.buckets.open(&name).is_ok() => {
                return Err(s3_error!(BucketAlreadyOwnedByYou, "the bucket {name} is yours"));
            }
            Err(error) => return Err(door.refuse(error, &name)),
        }
        Ok(CreateBucketOutput { location: Some(format!("/{name}")) })
    })
    .await
}

/// Deletes a bucket that holds nothing.
pub(crate) async fn delete(door: &Door, bucket: String) -> S3Result<()> {
    door.blocking(move |door| {
        drop(door.open_for_changes(&bucket)?);
        door.buckets.delete(&bucket, false).map_err(|error| door.refuse(error, &bucket))
    })
    .await
}

/// The buckets that the account may read. Snapshots are opened by name and not listed: `@` is in no
/// name that clients expect.
pub(crate) async fn list(
    door: &Door,
    input: ListBucketsInput,
    account: std::sync::Arc<Account>,
) -> S3Result<ListBucketsOutput> {
    if input.continuation_token.is_some() {
        return Err(s3_error!(InvalidArgument, "the continuation token is none of ours"));
    }
    door.blocking(move |door| {
        let all = door.buckets.list().map_err(|error| door.refuse(error, "list of buckets"))?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let shown = all.into_iter().filter(|bucket| {
            let name = &bucket.name;
            !name.contains('@') && name.starts_with(prefix) && account.may_read(name)
        });
        // Clients want a date; of buckets of earlier versions nobody knows it.
        let shown = shown.map(|bucket| Bucket {
            creation_date: Some(timestamp(door.buckets.created_unix_ms(&bucket).unwrap_or(0))),
            name: Some(bucket.name),
            bucket_region: None,
        });
        Ok(ListBucketsOutput {
            buckets: Some(shown.collect()),
            owner: Some(owner(&account)),
            prefix: input.prefix,
            continuation_token: None,
        })
    })
    .await
}

/// Whether there is a bucket.
pub(crate) async fn head(door: &Door, bucket: String) -> S3Result<()> {
    door.blocking(move |door| door.open(&bucket).map(drop)).await
}

/// All buckets are where clients look without being told.
pub(crate) async fn location(door: &Door, bucket: String) -> S3Result<GetBucketLocationOutput> {
    head(door, bucket).await?;
    let nowhere = BucketLocationConstraint::from_static("");
    Ok(GetBucketLocationOutput { location_constraint: Some(nowhere) })
}

/// The account that asks has all that it has.
pub(crate) fn acl(account: &Account) -> GetBucketAclOutput {
    let owner = owner(account);
    let grantee = Grantee {
        display_name: owner.display_name.clone(),
        id: owner.id.clone(),
        type_: Type::from_static(Type::CANONICAL_USER),
        email_address: None,
        uri: None,
    };
    let permission = Some(Permission::from_static(Permission::FULL_CONTROL));
    let grant = Grant { grantee: Some(grantee), permission };
    GetBucketAclOutput { grants: Some(vec![grant]), owner: Some(owner) }
}

/// The account as S3 shows owners.
pub(crate) fn owner(account: &Account) -> Owner {
    let name = Some(account.name.clone());
    Owner { display_name: name.clone(), id: name }
}
