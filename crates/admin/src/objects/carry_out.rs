//! The verbs of buckets and objects on a store that is open in this process.

use buckets::{
    BucketInfo, Buckets, BucketsError, CopyError, NewBucket, ObjectWriter, OpenBucket, Replication,
    now_unix_ms,
};
use format::objects::record::metadata::{ContentHeader, ContentHeaders};
use objects::bucket::{
    Condition, CopyOptions, DeleteOptions, ListOptions, ObjectInfo, Put, PutOptions, Reader,
};
use replication::ReplicaRole;
use segments::SegmentPolicy;
use store::{Durability, RequestError};

use super::ObjectKey;
use super::refusals::{no_object, of_key, of_put};
use super::verbs::{
    BucketListed, BucketShown, CloseBucket, CopyObject, CreateBucket, DeleteBucket, DeleteObjects,
    GetObject, HeadObject, ListBuckets, ListObjects, OBJECTS_LISTED_MAX, ObjectPage, ObjectPut,
    ObjectShown, PutObject, ReplicateBucket, ReplicationChange, ReplicationShown, Segments,
    SetBucket, ShowBucket,
};
use crate::error::ControlError;
use crate::protocol::{Refusal, RefusalKind};

type Done<T> = Result<T, ControlError>;

pub(crate) fn create_bucket(buckets: &Buckets, wish: CreateBucket) -> Done<BucketShown> {
    let CreateBucket { name, segments, domain, quota_bytes } = wish;
    let segments = match segments {
        Segments::Auto => SegmentPolicy::Auto,
        Segments::Fixed => SegmentPolicy::Fixed,
        Segments::Cdc => SegmentPolicy::Cdc,
    };
    buckets.create(&name, &NewBucket { segments, domain, quota_bytes })?;
    show_bucket(buckets, ShowBucket { name })
}

pub(crate) fn list_buckets(buckets: &Buckets, wish: ListBuckets) -> Done<Vec<BucketListed>> {
    let ListBuckets { after, most } = wish;
    let listed = buckets.list()?.into_iter();
    let behind = listed.filter(|info| after.as_ref().is_none_or(|after| info.name > *after));
    let shown = behind.map(|BucketInfo { name, mapped_bytes, domain, taken_unix_s, .. }| {
        BucketListed { name, mapped_bytes, domain, taken_unix_s }
    });
    Ok(shown.take(most).collect())
}

pub(crate) fn show_bucket(buckets: &Buckets, wish: ShowBucket) -> Done<BucketShown> {
    let ShowBucket { name } = wish;
    let opened = buckets.open(&name);
    let listed = buckets.list()?;
    let replication = buckets.replication(&name)?;
    let replication = replication.map(|found| replication_shown(found, opened.is_ok()));
    let bucket = match opened {
        // Of a replica, and of a primary that has not met its own, nobody may see the objects.
        Err(
            BucketsError::IsReplica { .. }
            | BucketsError::Request(RequestError::NotReplicated { .. }),
        ) => {
            let info = listed.into_iter().find(|info| info.name == name);
            let (mapped_bytes, domain) =
                info.map_or((0, None), |info| (info.mapped_bytes, info.domain));
            let read_only = true;
            let of_it = BucketShown { name, mapped_bytes, domain, read_only, ..Default::default() };
            return Ok(BucketShown { replication, ..of_it });
        }
        opened => opened?,
    };
    let prefix = format!("{name}@");
    let of_it = listed.iter().filter(|info| info.name.starts_with(&prefix));
    let snapshots = of_it.map(|info| info.name.clone()).collect();
    let info = listed.iter().find(|info| info.name == name);
    let figures = bucket.figures();
    Ok(BucketShown {
        objects: figures.objects,
        object_bytes: figures.object_bytes,
        parts: figures.parts,
        part_bytes: figures.part_bytes,
        mapped_bytes: info.map_or(0, |info| info.mapped_bytes),
        quota_bytes: bucket.quota_bytes(),
        segments: match bucket.segments() {
            SegmentPolicy::Auto => Segments::Auto,
            SegmentPolicy::Fixed => Segments::Fixed,
            SegmentPolicy::Cdc => Segments::Cdc,
        },
        domain: info.and_then(|info| info.domain.clone()),
        read_only: bucket.is_read_only(),
        taken_unix_s: info.and_then(|info| info.taken_unix_s),
        snapshots,
        name,
        replication,
    })
}

fn replication_shown(replication: Replication, objects_known: bool) -> ReplicationShown {
    let Replication { state, link } = replication;
    let role = match state.role {
        ReplicaRole::Primary => "primary",
        ReplicaRole::Secondary => "replica",
        ReplicaRole::Syncing => "syncing",
        ReplicaRole::Alone => "alone",
        ReplicaRole::Fenced => "fenced",
    };
    ReplicationShown {
        role: role.to_owned(),
        peer: state.peer,
        epoch: state.position.epoch,
        sequence: state.position.sequence,
        alone_allowed: state.may_go_on_alone,
        went_on_alone: state.went_on_alone,
        link,
        objects_known,
    }
}

pub(crate) fn replicate_bucket(buckets: &Buckets, wish: ReplicateBucket) -> Done<BucketShown> {
    let ReplicateBucket { name, change } = wish;
    match change {
        ReplicationChange::To { peer, alone_allowed } => {
            buckets.replicate(&name, &peer, alone_allowed)?;
        }
        ReplicationChange::End => buckets.end_replication(&name)?,
        ReplicationChange::Promote => buckets.promote(&name)?,
        ReplicationChange::Demote => buckets.demote(&name)?,
    }
    show_bucket(buckets, ShowBucket { name })
}

pub(crate) fn set_bucket(buckets: &Buckets, wish: SetBucket) -> Done<BucketShown> {
    let SetBucket { name, quota_bytes } = wish;
    let bucket = writable(buckets, &name)?;
    bucket.set_quota(quota_bytes, Durability::Durable)?;
    drop(bucket);
    show_bucket(buckets, ShowBucket { name })
}

pub(crate) fn delete_bucket(buckets: &Buckets, wish: DeleteBucket) -> Done<()> {
    let DeleteBucket { name, with_objects } = wish;
    Ok(buckets.delete(&name, with_objects)?)
}

pub(crate) fn close_bucket(buckets: &Buckets, wish: CloseBucket) -> Done<()> {
    Ok(buckets.close_bucket(&wish.name)?)
}

pub(crate) fn list_objects(buckets: &Buckets, wish: ListObjects) -> Done<ObjectPage> {
    let ListObjects { bucket, prefix, delimiter, from, most } = wish;
    let listing = buckets.open(&bucket)?.list(&ListOptions {
        prefix: prefix.0,
        delimiter: delimiter.into_bytes(),
        from: from.0,
        limit: most.clamp(1, OBJECTS_LISTED_MAX),
        now_ms: now_unix_ms(),
    })?;
    let objects = listing.objects.into_iter();
    Ok(ObjectPage {
        objects: objects.map(|listed| shown(ObjectKey(listed.key), &listed.info)).collect(),
        prefixes: listing.prefixes.into_iter().map(ObjectKey).collect(),
        next: listing.next.map(ObjectKey),
    })
}

pub(crate) fn head_object(buckets: &Buckets, wish: HeadObject) -> Done<ObjectShown> {
    let HeadObject { bucket, key } = wish;
    let found = buckets.open(&bucket)?.head(&key.0, &Condition::None, now_unix_ms())?;
    let info = found.ok_or_else(|| no_object(&bucket, &key))?;
    Ok(shown(key, &info))
}

pub(crate) fn delete_objects(buckets: &Buckets, wish: DeleteObjects) -> Done<Vec<bool>> {
    let DeleteObjects { bucket: name, keys } = wish;
    let bucket = writable(buckets, &name)?;
    let options = DeleteOptions { durability: Durability::Durable, now_ms: now_unix_ms() };
    let all: Vec<_> = keys.iter().map(|key| (key.0.as_slice(), Condition::None)).collect();
    let answers = bucket.delete_many(&all, options)?.into_iter().zip(&keys);
    answers
        .map(|(answer, key)| match answer {
            Ok(version) => Ok(version.is_some()),
            Err(error) => Err(of_key(&name, key, error)),
        })
        .collect()
}

pub(crate) fn copy_object(buckets: &Buckets, wish: CopyObject) -> Done<ObjectPut> {
    let CopyObject { from_bucket, from, to_bucket, to, if_absent } = wish;
    if from_bucket != to_bucket {
        return copy_between(buckets, CopyObject { from_bucket, from, to_bucket, to, if_absent });
    }
    let bucket = writable(buckets, &to_bucket)?;
    let options = CopyOptions {
        condition: condition(if_absent),
        durability: Durability::Durable,
        ..CopyOptions::new(now_unix_ms())
    };
    let copied = bucket.copy(&from.0, &to.0, options);
    let put = copied.map_err(|error| {
        // The condition is of the one key, and what is absent is the other.
        let key = match error {
            objects::bucket::BucketError::NoSuchObject => &from,
            _ => &to,
        };
        of_key(&to_bucket, key, error)
    })?;
    Ok(put_shown(&put))
}

/// Copies an object from one bucket into another.
fn copy_between(buckets: &Buckets, wish: CopyObject) -> Done<ObjectPut> {
    let CopyObject { from_bucket, from, to_bucket, to, if_absent } = wish;
    let (source, target) = (buckets.open(&from_bucket)?, writable(buckets, &to_bucket)?);
    let found = source.get(&from.0, &Condition::None, now_unix_ms())?;
    let mut reader = found.ok_or_else(|| no_object(&from_bucket, &from))?;
    let (condition, durability) = (condition(if_absent), Durability::Durable);
    let copied = target.copy_object(&source, &mut reader, &to.0, condition, durability);
    let put = copied.map_err(|error| match error {
        CopyError::Source(error) => of_key(&from_bucket, &from, error),
        CopyError::Target(error) => of_put(&to_bucket, &to, error),
    })?;
    Ok(put_shown(&put))
}

/// Opens an object to be read.
pub(crate) fn open_object(buckets: &Buckets, wish: &GetObject) -> Done<Reader> {
    let GetObject { bucket, key } = wish;
    let found = buckets.open(bucket)?.get(&key.0, &Condition::None, now_unix_ms())?;
    found.ok_or_else(|| no_object(bucket, key))
}

/// Reads from an object; fewer bytes than there is room for at its end only.
pub(crate) fn read_object(
    reader: &mut Reader,
    wish: &GetObject,
    offset_bytes: u64,
    out: &mut [u8],
) -> Done<usize> {
    let read = reader.read_at(offset_bytes, out);
    read.map_err(|error| of_key(&wish.bucket, &wish.key, error))
}

/// Begins to put an object.
pub(crate) fn begin_put(buckets: &Buckets, wish: &PutObject) -> Done<ObjectWriter> {
    let bucket = writable(buckets, &wish.bucket)?;
    let mut options = PutOptions {
        expires_unix_ms: wish.expires_unix_ms,
        condition: condition(wish.if_absent),
        durability: match wish.acknowledged {
            true => Durability::Acknowledged,
            false => Durability::Durable,
        },
        ..PutOptions::new(now_unix_ms())
    };
    if let Some(content_type) = &wish.content_type {
        let headers = vec![(ContentHeader::Type, content_type.clone())];
        let headers = ContentHeaders::new(headers).map_err(|error| Refusal {
            kind: RefusalKind::BadRequest,
            sentence: error.to_string(),
        })?;
        options.metadata.content_headers = headers;
    }
    let begun = bucket.put_hashed(&wish.key.0, options);
    begun.map_err(|error| of_put(&wish.bucket, &wish.key, error))
}

/// Appends to an object.
pub(crate) fn write_object(writer: &mut ObjectWriter, wish: &PutObject, bytes: &[u8]) -> Done<()> {
    writer.write(bytes).map_err(|error| of_put(&wish.bucket, &wish.key, error))
}

/// Ends an object; durable when this returns, if the wish says so.
pub(crate) fn finish_put(writer: ObjectWriter, wish: &PutObject) -> Done<ObjectPut> {
    let put = writer.finish().map_err(|error| of_put(&wish.bucket, &wish.key, error))?;
    Ok(put_shown(&put))
}

/// A bucket that takes changes; of one that does not the refusal says which it is.
fn writable(buckets: &Buckets, name: &str) -> Done<OpenBucket> {
    let bucket = buckets.open(name)?;
    if !bucket.is_read_only() {
        return Ok(bucket);
    }
    let why = match name.contains('@') {
        true => "is a snapshot, which does not change",
        false => "is open read-only",
    };
    let sentence = format!("bucket {name} {why}");
    Err(Refusal { kind: RefusalKind::BadRequest, sentence }.into())
}

fn condition(if_absent: bool) -> Condition {
    if if_absent { Condition::Absent } else { Condition::None }
}

fn put_shown(put: &Put) -> ObjectPut {
    let Put { version, etag, size_bytes } = *put;
    ObjectPut { size_bytes, etag: etag.to_string(), object_version: version }
}

pub(crate) fn shown(key: ObjectKey, info: &ObjectInfo) -> ObjectShown {
    let content_type = info.metadata.content_headers.get(ContentHeader::Type);
    ObjectShown {
        key,
        size_bytes: info.size_bytes,
        etag: info.etag.to_string(),
        object_version: info.version,
        created_unix_ms: info.created_unix_ms,
        expires_unix_ms: info.expires_unix_ms,
        content_type: content_type.map(str::to_owned),
    }
}
