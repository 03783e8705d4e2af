"""A server of Tamis, over its door for S3.

Everything that S3 has is there; a snapshot is read as `BUCKET@SNAPSHOT`. To take and to delete
snapshots, to branch and to weigh is the server's (`tamis bucket`), and raises `NotSupported`.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple,
    Type, TypeVar, Union,
)
from urllib.parse import urlencode

from . import errors, near
from .errors import BadArgument, NotFound, NotSupported, TamisError
from .interface import Bucket, Reading, Store, Writing
from .tables import FOOTER_BYTES_LIKELY
from .types import Buffer, BucketInfo, Listing, ObjectInfo, SnapshotInfo, Stored, Usage

CONNECTIONS = 16
"""Ranges that are asked for at once."""
PART_BYTES = 16 << 20
"""A longer object is put in parts of this length."""
DELETED_AT_ONCE = 1000

KINDS: Dict[str, Type[TamisError]] = {
    "NoSuchBucket": errors.NotFound,
    "NoSuchKey": errors.NotFound,
    "404": errors.NotFound,
    "NoSuchUpload": errors.NotFound,
    "BucketAlreadyExists": errors.Exists,
    "BucketAlreadyOwnedByYou": errors.Exists,
    "BucketNotEmpty": errors.NotEmpty,
    "InsufficientStorage": errors.NoSpace,
    "507": errors.NoSpace,
    "QuotaExceeded": errors.QuotaExceeded,
    "PreconditionFailed": errors.ConditionFailed,
    "412": errors.ConditionFailed,
    "AccessDenied": errors.AccessDenied,
    "403": errors.AccessDenied,
    "InvalidAccessKeyId": errors.AccessDenied,
    "SignatureDoesNotMatch": errors.AccessDenied,
    "NotImplemented": errors.NotSupported,
    "InvalidBucketName": errors.BadArgument,
    "InvalidArgument": errors.BadArgument,
    "InvalidRequest": errors.BadArgument,
    "KeyTooLongError": errors.BadArgument,
    "InvalidTag": errors.BadArgument,
}

Call = TypeVar("Call", bound=Callable[..., Any])


def _told(call: Call) -> Call:
    """Raises errors of boto3 as those of this package."""

    @functools.wraps(call)
    def told(*args: Any, **options: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return call(*args, **options)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            sentence = error.response.get("Error", {}).get("Message") or code
            where = "/".join(arg for arg in args if isinstance(arg, str))
            name = getattr(args[0], "name", "") if args else ""
            place = "/".join(part for part in (name, where) if part)
            kind = KINDS.get(code, errors.Failed)
            raise kind(f"{place}: {sentence}" if place else sentence) from error
        except BotoCoreError as error:
            raise errors.Failed(str(error)) from error

    return told  # type: ignore[return-value]


class S3Store(Store):
    """The buckets of a server; `tamis.connect` makes one. Every put is durable when it returns."""

    def __init__(self, url: str, key: str, secret: str, **options: Any) -> None:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise NotSupported("a server is reached with boto3: pip install tamis[s3]") from error
        config = Config(
            max_pool_connections=CONNECTIONS,
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        session = boto3.session.Session()
        options.setdefault("region_name", "us-east-1")
        options["config"] = config.merge(options["config"]) if "config" in options else config
        self.url = url
        self._client: Any = session.client(
            "s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, **options
        )
        # Names of snapshots are none that Amazon has.
        unchecked = "before-parameter-build.s3"
        from botocore.handlers import validate_bucket_name

        self._client.meta.events.unregister(unchecked, validate_bucket_name)
        near.register(self._client.meta.events)
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="tamis")

    @_told
    def create_bucket(
        self,
        name: str,
        *,
        exist_ok: bool = False,
        segments: str = "auto",
        quota: Optional[int] = None,
    ) -> "S3Bucket":
        if segments != "auto" or quota is not None:
            raise NotSupported("S3 makes buckets as they are by default: use tamis bucket create")
        if self._has(name):
            if not exist_ok:
                raise errors.Exists(f"there is a bucket {name} already")
            return self.bucket(name)
        self._client.create_bucket(Bucket=name)
        return self.bucket(name)

    def bucket(self, name: str) -> "S3Bucket":
        return S3Bucket(self, name)

    @_told
    def buckets(self) -> List[BucketInfo]:
        return [BucketInfo(found["Name"]) for found in self._client.list_buckets()["Buckets"]]

    @_told
    def delete_bucket(self, name: str, *, with_objects: bool = False) -> None:
        if with_objects:
            bucket = self.bucket(name)
            bucket.delete(info.key for info in list(bucket.list()))
        self._client.delete_bucket(Bucket=name)

    def flush(self) -> None:
        """Nothing: every put is durable when it returns."""

    def close(self) -> None:
        self._pool.shutdown()
        self._client.close()

    def __enter__(self) -> "S3Store":
        return self

    def _has(self, name: str) -> bool:
        from botocore.exceptions import ClientError

        try:
            self._client.head_bucket(Bucket=name)
        except ClientError as error:
            # Of a name that no bucket can have, its making says so.
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 404):
                return False
            raise
        return True

    def __repr__(self) -> str:
        return f"<S3Store {self.url}>"


class S3Bucket(Bucket):
    """A bucket of a server."""

    def __init__(self, store: S3Store, name: str) -> None:
        self.store = store
        self.name = name

    @property
    def _client(self) -> Any:
        return self.store._client

    @_told
    def put(
        self,
        key: str,
        data: Buffer,
        *,
        durable: bool = False,
        if_absent: bool = False,
        if_match: Optional[ObjectInfo] = None,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        tags: Optional[Mapping[str, str]] = None,
        expires_in: Optional[timedelta] = None,
        measure: bool = False,
    ) -> Stored:
        if measure:
            raise NotSupported("S3 does not tell what a put cost: tamis stats of the server does")
        wish = _wish(content_type, metadata, tags, expires_in)
        if if_match is not None:
            wish["IfMatch"] = f'"{if_match.etag}"'
        if if_absent:
            wish["IfNoneMatch"] = "*"
        body = data if isinstance(data, bytes) else bytes(memoryview(data).cast("B"))
        put = _exists(
            if_absent, self._client.put_object, Bucket=self.name, Key=key, Body=body, **wish
        )
        return Stored(len(body), put["ETag"].strip('"'), True)

    def writing(
        self,
        key: str,
        *,
        durable: bool = False,
        if_absent: bool = False,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        tags: Optional[Mapping[str, str]] = None,
        expires_in: Optional[timedelta] = None,
    ) -> Writing:
        wish = _wish(content_type, metadata, tags, expires_in)
        return _S3Writing(self, key, if_absent, wish)

    def reading(self, key: str) -> Reading:
        return _S3Reading(self, self.head(key))

    @_told
    def reading_columns(
        self, key: str, columns: Optional[Sequence[str]], alternatives: Sequence[Sequence[Any]]
    ) -> Tuple[Reading, Sequence[Tuple[int, Buffer]]]:
        query = near.query(columns, alternatives)
        if query is None:
            return self.reading(key), []
        # Who does not know the query sends the end of the object, which is wanted next then.
        wish = {near.PARAMETER: query, "Range": f"bytes=-{FOOTER_BYTES_LIKELY}"}
        try:
            answer = self._client.get_object(Bucket=self.name, Key=key, **wish)
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in near.UNREAD:
                return self.reading(key), []
            raise
        body = memoryview(answer["Body"].read())
        if answer.get("ContentType") == near.CONTENT_TYPE:
            parts = near.parts_of(body)
            size = parts[0][0] + len(parts[0][1])
        else:
            told = answer.get("ContentRange", "").rpartition("/")[2]
            size = int(told) if told else len(body)
            parts = [(size - len(body), body)]
        info = ObjectInfo(key, size, answer["ETag"].strip('"'), answer["LastModified"])
        return _S3Reading(self, info), parts

    @_told
    def head(self, key: str) -> ObjectInfo:
        try:
            found = self._client.head_object(Bucket=self.name, Key=key)
        except self._client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise NotFound(f"bucket {self.name} has no object {key}") from error
            raise
        return ObjectInfo(
            key=key,
            size=found["ContentLength"],
            etag=found["ETag"].strip('"'),
            modified=found["LastModified"],
            content_type=found.get("ContentType"),
            metadata=found.get("Metadata", {}),
        )

    @_told
    def get(self, key: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        if length == 0:
            self.head(key)
            return b""
        return self._read(key, offset, length, None)

    @_told
    def delete(self, keys: Union[str, Iterable[str]], *, durable: bool = False) -> int:
        all_keys = [keys] if isinstance(keys, str) else list(keys)
        for start in range(0, len(all_keys), DELETED_AT_ONCE):
            some = [{"Key": key} for key in all_keys[start : start + DELETED_AT_ONCE]]
            wish = {"Objects": some, "Quiet": True}
            answer = self._client.delete_objects(Bucket=self.name, Delete=wish)
            for refused in answer.get("Errors", []):
                kind = KINDS.get(refused.get("Code", ""), errors.Failed)
                raise kind(f"{self.name}/{refused.get('Key')}: {refused.get('Message')}")
        return len(all_keys)

    @_told
    def copy(
        self,
        key: str,
        to_key: str,
        *,
        to: Optional[Bucket] = None,
        durable: bool = False,
        if_absent: bool = False,
    ) -> Stored:
        target = self if to is None else to
        if not isinstance(target, S3Bucket) or target.store is not self.store:
            raise BadArgument("a copy stays in its store: get the object and put it")
        if "@" in self.name:
            return target.put(to_key, self.get(key), if_absent=if_absent)
        size = self.head(key).size
        wish = {"IfNoneMatch": "*"} if if_absent else {}
        source = {"Bucket": self.name, "Key": key}
        copied = _exists(
            if_absent,
            self._client.copy_object,
            Bucket=target.name,
            Key=to_key,
            CopySource=source,
            **wish,
        )
        return Stored(size, copied["CopyObjectResult"]["ETag"].strip('"'), True)

    @_told
    def tags(self, key: str) -> Dict[str, str]:
        found = self._client.get_object_tagging(Bucket=self.name, Key=key)["TagSet"]
        return {tag["Key"]: tag["Value"] for tag in found}

    @_told
    def set_tags(self, key: str, tags: Mapping[str, str], *, durable: bool = False) -> None:
        wish = {"TagSet": [{"Key": name, "Value": value} for name, value in tags.items()]}
        self._client.put_object_tagging(Bucket=self.name, Key=key, Tagging=wish)

    def pages(self, prefix: str = "", delimiter: str = "", after: str = "") -> Iterator[Listing]:
        wish: Dict[str, Any] = {"Bucket": self.name, "Prefix": prefix, "Delimiter": delimiter}
        if after:
            wish["StartAfter"] = after
        while True:
            page = self._page(wish)
            objects = [_info(found) for found in page.get("Contents", [])]
            prefixes = [found["Prefix"] for found in page.get("CommonPrefixes", [])]
            yield Listing(objects, prefixes)
            if not page.get("IsTruncated"):
                return
            wish["ContinuationToken"] = page["NextContinuationToken"]

    def snapshot(self, name: str) -> Bucket:
        self._refuse("take a snapshot", "snapshot")

    def snapshots(self) -> List[SnapshotInfo]:
        self._refuse("list snapshots", "show")

    def at(self, snapshot: str) -> "S3Bucket":
        return S3Bucket(self.store, f"{self.name.split('@')[0]}@{snapshot}")

    def delete_snapshot(self, name: str) -> None:
        raise NotSupported("S3 has no snapshots: use tamis snapshot delete on the server")

    def branch(self, name: str) -> Bucket:
        self._refuse("make a branch", "branch")

    def roll_back(self, snapshot: str) -> None:
        raise NotSupported("S3 has no snapshots: use tamis snapshot rollback on the server")

    def du(self) -> List[Usage]:
        self._refuse("weigh a bucket", "show")

    def _refuse(self, what: str, verb: str) -> NoReturn:
        raise NotSupported(f"S3 cannot {what}: use tamis bucket {verb} on the server")

    def _other(self, other: Union[Bucket, str]) -> Bucket:
        return S3Bucket(self.store, other) if isinstance(other, str) else other

    def _read_ahead(self) -> int:
        return 4 << 20

    @_told
    def _page(self, wish: Dict[str, Any]) -> Dict[str, Any]:
        page: Dict[str, Any] = self._client.list_objects_v2(**wish)
        return page

    def _read(self, key: str, offset: int, length: Optional[int], etag: Optional[str]) -> bytes:
        wish: Dict[str, Any] = {"Bucket": self.name, "Key": key}
        if offset or length is not None:
            end = "" if length is None else str(offset + length - 1)
            wish["Range"] = f"bytes={offset}-{end}"
        if etag is not None:
            wish["IfMatch"] = f'"{etag}"'
        try:
            answer = self._client.get_object(**wish)
        except self._client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 416:
                return b""
            raise
        body: bytes = answer["Body"].read()
        return body


class _S3Reading(Reading):
    """Reads at the ETag that was found: `ConditionFailed` when the object is another by now."""

    def __init__(self, bucket: S3Bucket, info: ObjectInfo) -> None:
        self._bucket = bucket
        self.info = info

    @_told
    def read(self, offset: int = 0, length: Optional[int] = None) -> bytes:
        left = max(0, self.info.size - offset)
        length = left if length is None else min(length, left)
        if length == 0:
            return b""
        return self._bucket._read(self.info.key, offset, length, self.info.etag)

    def read_ranges(self, ranges: Sequence[Tuple[int, int]]) -> List[bytes]:
        pool = self._bucket.store._pool
        return list(pool.map(lambda of: self.read(of[0], of[1]), ranges))


class _S3Writing(Writing):
    """Gathers a part; what is longer than one becomes an upload of parts."""

    def __init__(
        self, bucket: S3Bucket, key: str, if_absent: bool, wish: Dict[str, Any]
    ) -> None:
        self._bucket, self._key, self._if_absent, self._wish = bucket, key, if_absent, wish
        self._gathered = bytearray()
        self._size = 0
        self._upload: Optional[str] = None
        self._parts: List[Dict[str, Any]] = []
        self._is_open = True

    @_told
    def write(self, data: Buffer) -> None:
        self._check_open()
        view = memoryview(data).cast("B")
        self._size += len(view)
        self._gathered += view
        while len(self._gathered) > PART_BYTES:
            self._send(bytes(self._gathered[:PART_BYTES]))
            del self._gathered[:PART_BYTES]

    @_told
    def finish(self) -> Stored:
        self._check_open()
        client, name, key = self._bucket._client, self._bucket.name, self._key
        condition = {"IfNoneMatch": "*"} if self._if_absent else {}
        where = {"Bucket": name, "Key": key}
        if self._upload is None:
            body = bytes(self._gathered)
            wish = {**self._wish, **condition}
            put = _exists(self._if_absent, client.put_object, Body=body, **where, **wish)
        else:
            self._send(bytes(self._gathered))
            put = _exists(
                self._if_absent,
                client.complete_multipart_upload,
                UploadId=self._upload,
                MultipartUpload={"Parts": self._parts},
                **where,
                **condition,
            )
        self._is_open = False
        return Stored(self._size, put["ETag"].strip('"'), True)

    @_told
    def discard(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None and self._is_open:
            self._bucket._client.abort_multipart_upload(
                Bucket=self._bucket.name, Key=self._key, UploadId=upload
            )
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise errors.Closed(f"the writer of {self._key} is closed")

    def _send(self, part: bytes) -> None:
        client, where = self._bucket._client, {"Bucket": self._bucket.name, "Key": self._key}
        if self._upload is None:
            upload = client.create_multipart_upload(**where, **self._wish)
            self._upload = upload["UploadId"]
        number = len(self._parts) + 1
        sent = client.upload_part(UploadId=self._upload, PartNumber=number, Body=part, **where)
        self._parts.append({"PartNumber": number, "ETag": sent["ETag"]})


def _exists(if_absent: bool, call: Callable[..., Any], **wish: Any) -> Dict[str, Any]:
    from botocore.exceptions import ClientError

    try:
        answer: Dict[str, Any] = call(**wish)
        return answer
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if if_absent and status == 412:
            raise errors.Exists(f"{wish['Bucket']}/{wish['Key']} is there already") from error
        raise


def _info(found: Dict[str, Any]) -> ObjectInfo:
    etag = found["ETag"].strip('"')
    return ObjectInfo(found["Key"], found["Size"], etag, found["LastModified"])


def _wish(
    content_type: Optional[str],
    metadata: Optional[Mapping[str, str]],
    tags: Optional[Mapping[str, str]],
    expires_in: Optional[timedelta],
) -> Dict[str, Any]:
    if expires_in is not None:
        raise NotSupported("an object of S3 does not expire by itself: give its bucket a lifecycle")
    wish: Dict[str, Any] = {}
    if content_type is not None:
        wish["ContentType"] = content_type
    if metadata:
        wish["Metadata"] = dict(metadata)
    if tags:
        wish["Tagging"] = urlencode(dict(tags))
    return wish
