"""What programs of boto3 do with a bucket, each answer compared with what S3 says of it.

Usage: s3_boto3.py ENDPOINT ACCESS_KEY SECRET SEED. Prints one line at the end, or an assertion.
"""

import hashlib
import io
import random
import sys
import threading
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT, ACCESS_KEY, SECRET, SEED = sys.argv[1:5]
MIB = 1 << 20
random.seed(int(SEED))


def client(secret=SECRET, **more):
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        retries={"max_attempts": 1},
        **more,
    )
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=config,
    )


S3 = client()
BUCKET = "boto"
checked = 0


def check(condition, *what):
    global checked
    assert condition, what
    checked += 1


def refused(code, call, **arguments):
    """The call fails with this code, or this status."""
    try:
        answer = call(**arguments)
    except ClientError as error:
        said = (
            error.response["Error"]["Code"],
            error.response["ResponseMetadata"]["HTTPStatusCode"],
        )
        check(code in said, code, said)
        return error.response
    raise AssertionError((code, answer))


def body(key, **more):
    return S3.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read()


def objects():
    S3.create_bucket(Bucket=BUCKET)
    check(BUCKET in [bucket["Name"] for bucket in S3.list_buckets()["Buckets"]])
    S3.head_bucket(Bucket=BUCKET)
    refused("NoSuchBucket", S3.list_objects_v2, Bucket="no-such-bucket")
    refused(404, S3.head_bucket, Bucket="no-such-bucket")
    for size in [0, 1, 511, 4096, 4097, 100_000, 3 * MIB + 17]:
        value = random.randbytes(size)
        put = S3.put_object(Bucket=BUCKET, Key=f"sizes/{size}", Body=value)
        md5 = hashlib.md5(value).hexdigest()
        check(put["ETag"] == f'"{md5}"', put["ETag"], md5)
        got = S3.get_object(Bucket=BUCKET, Key=f"sizes/{size}")
        check(got["Body"].read() == value and got["ContentLength"] == size, size)
        if size > 10:
            got = S3.get_object(Bucket=BUCKET, Key=f"sizes/{size}", Range="bytes=3-9")
            check(got["Body"].read() == value[3:10])
            check(got["ContentRange"] == f"bytes 3-9/{size}", got["ContentRange"])
            check(body(f"sizes/{size}", Range="bytes=-5") == value[-5:])
            check(body(f"sizes/{size}", Range=f"bytes={size - 2}-") == value[-2:])
        refused(
            "InvalidRange",
            S3.get_object,
            Bucket=BUCKET,
            Key=f"sizes/{size}",
            Range=f"bytes={size}-",
        )
    # Each by itself on a connection that is used again.
    for size in [0, 5, 0, 3]:
        put = S3.put_object(Bucket=BUCKET, Key="in a row", Body=b"x" * size)
        check(put["ETag"] == f'"{hashlib.md5(b"x" * size).hexdigest()}"', put)
    refused("NoSuchBucket", S3.put_object, Bucket="no-such-bucket", Key="x", Body=b"x")
    check("ETag" in S3.put_object(Bucket=BUCKET, Key="in a row", Body=b"x"))
    for key in [
        "ä ö/ü+&=?#%",
        "a//b",
        " leading",
        "tab\tkey",
        "x" * 1024,
        "日本語",
        "a/../b",
        ".",
    ]:
        S3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
        check(body(key) == key.encode(), key)
        listed = [
            entry["Key"] for entry in S3.list_objects_v2(Bucket=BUCKET, Prefix=key)["Contents"]
        ]
        check(key in listed, key, listed)
        S3.delete_object(Bucket=BUCKET, Key=key)
        refused("NoSuchKey", S3.get_object, Bucket=BUCKET, Key=key)
    refused("KeyTooLongError", S3.put_object, Bucket=BUCKET, Key="x" * 1025, Body=b"")
    refused(404, S3.head_object, Bucket=BUCKET, Key="nothing")
    S3.delete_object(Bucket=BUCKET, Key="nothing")


def metadata():
    S3.put_object(
        Bucket=BUCKET,
        Key="described",
        Body=b"text",
        ContentType="text/plain",
        ContentEncoding="identity",
        ContentDisposition='attachment; filename="f"',
        ContentLanguage="de",
        CacheControl="no-cache",
        Metadata={"colour": "blue", "size": "4"},
        Tagging="kind=test&who=boto",
    )
    head = S3.head_object(Bucket=BUCKET, Key="described")
    check(head["ContentType"] == "text/plain" and head["ContentLanguage"] == "de", head)
    check(
        head["ContentDisposition"] == 'attachment; filename="f"'
        and head["CacheControl"] == "no-cache"
    )
    check(head["Metadata"] == {"colour": "blue", "size": "4"}, head["Metadata"])
    tags = S3.get_object_tagging(Bucket=BUCKET, Key="described")["TagSet"]
    check({tag["Key"]: tag["Value"] for tag in tags} == {"kind": "test", "who": "boto"}, tags)
    S3.put_object_tagging(
        Bucket=BUCKET, Key="described", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
    )
    check(
        S3.get_object_tagging(Bucket=BUCKET, Key="described")["TagSet"]
        == [{"Key": "a", "Value": "b"}]
    )
    S3.delete_object_tagging(Bucket=BUCKET, Key="described")
    check(S3.get_object_tagging(Bucket=BUCKET, Key="described")["TagSet"] == [])
    S3.copy_object(Bucket=BUCKET, Key="copied", CopySource={"Bucket": BUCKET, "Key": "described"})
    check(
        S3.head_object(Bucket=BUCKET, Key="copied")["Metadata"] == {"colour": "blue", "size": "4"}
    )
    S3.copy_object(
        Bucket=BUCKET,
        Key="copied",
        CopySource={"Bucket": BUCKET, "Key": "copied"},
        MetadataDirective="REPLACE",
        Metadata={"new": "one"},
    )
    check(S3.head_object(Bucket=BUCKET, Key="copied")["Metadata"] == {"new": "one"})
    check(body("copied") == b"text")
    S3.create_bucket(Bucket="boto-other")
    S3.copy_object(
        Bucket="boto-other", Key="copied", CopySource={"Bucket": BUCKET, "Key": "copied"}
    )
    check(S3.get_object(Bucket="boto-other", Key="copied")["Body"].read() == b"text")
    refused(
        "NoSuchKey",
        S3.copy_object,
        Bucket=BUCKET,
        Key="x",
        CopySource={"Bucket": BUCKET, "Key": "no"},
    )
    refused("BucketNotEmpty", S3.delete_bucket, Bucket="boto-other")
    S3.delete_object(Bucket="boto-other", Key="copied")
    S3.delete_bucket(Bucket="boto-other")


def conditions():
    S3.put_object(Bucket=BUCKET, Key="if", Body=b"1")
    etag = S3.head_object(Bucket=BUCKET, Key="if")["ETag"]
    refused("PreconditionFailed", S3.get_object, Bucket=BUCKET, Key="if", IfMatch='"0"')
    check(body("if", IfMatch=etag) == b"1")
    refused(304, S3.get_object, Bucket=BUCKET, Key="if", IfNoneMatch=etag)
    modified = S3.head_object(Bucket=BUCKET, Key="if")["LastModified"]
    refused(304, S3.get_object, Bucket=BUCKET, Key="if", IfModifiedSince=modified)
    check(body("if", IfUnmodifiedSince=modified) == b"1")
    members = S3.meta.service_model.operation_model("PutObject").input_shape.members
    if "IfNoneMatch" not in members or "IfMatch" not in members:
        return  # An older boto3 does not know them.
    refused(
        "PreconditionFailed", S3.put_object, Bucket=BUCKET, Key="if", Body=b"2", IfNoneMatch="*"
    )
    S3.put_object(Bucket=BUCKET, Key="if", Body=b"3", IfMatch=etag)
    check(body("if") == b"3")
    refused("PreconditionFailed", S3.put_object, Bucket=BUCKET, Key="if", Body=b"4", IfMatch=etag)
    winners = []

    def race(number):
        try:
            client().put_object(
                Bucket=BUCKET, Key="race", Body=str(number).encode(), IfNoneMatch="*"
            )
            winners.append(number)
        except ClientError:
            pass

    racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    [racer.start() for racer in racers]
    [racer.join() for racer in racers]
    check(len(winners) == 1 and body("race") == str(winners[0]).encode(), winners)


def uploads():
    value = random.randbytes(13 * MIB)
    S3.upload_fileobj(io.BytesIO(value), BUCKET, "parts")
    head = S3.head_object(Bucket=BUCKET, Key="parts")
    check(head["ETag"].endswith('-2"'), head["ETag"])
    check(body("parts") == value)
    check(
        body("parts", Range=f"bytes={8 * MIB - 3}-{8 * MIB + 3}")
        == value[8 * MIB - 3 : 8 * MIB + 4]
    )
    upload = S3.create_multipart_upload(Bucket=BUCKET, Key="by-hand", Metadata={"a": "b"})[
        "UploadId"
    ]
    of = {"Bucket": BUCKET, "Key": "by-hand", "UploadId": upload}
    first = S3.upload_part(PartNumber=1, Body=value[: 5 * MIB], **of)["ETag"]
    second = S3.upload_part_copy(
        PartNumber=2,
        CopySource={"Bucket": BUCKET, "Key": "parts"},
        CopySourceRange=f"bytes={5 * MIB}-{13 * MIB - 1}",
        **of,
    )["CopyPartResult"]["ETag"]
    listed = S3.list_parts(**of)["Parts"]
    check([part["PartNumber"] for part in listed] == [1, 2], listed)
    check(
        [found["UploadId"] for found in S3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]]
        == [upload]
    )
    parts = [{"PartNumber": 1, "ETag": first}, {"PartNumber": 2, "ETag": second}]
    refused(
        "InvalidPartOrder",
        S3.complete_multipart_upload,
        MultipartUpload={"Parts": parts[::-1]},
        **of,
    )
    wrong = [{"PartNumber": 1, "ETag": second}]
    refused("InvalidPart", S3.complete_multipart_upload, MultipartUpload={"Parts": wrong}, **of)
    S3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **of)
    check(body("by-hand") == value)
    check(S3.head_object(Bucket=BUCKET, Key="by-hand")["Metadata"] == {"a": "b"})
    refused("NoSuchUpload", S3.list_parts, **of)
    upload = S3.create_multipart_upload(Bucket=BUCKET, Key="aborted")["UploadId"]
    of = {"Bucket": BUCKET, "Key": "aborted", "UploadId": upload}
    S3.upload_part(PartNumber=1, Body=b"x", **of)
    S3.abort_multipart_upload(**of)
    refused("NoSuchUpload", S3.upload_part, PartNumber=2, Body=b"x", **of)
    check("Uploads" not in S3.list_multipart_uploads(Bucket=BUCKET))


def listings():
    keys = sorted(f"list/{folder}/{number:03}" for folder in "abc" for number in range(20))
    for key in keys:
        S3.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    pages = S3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="list/", PaginationConfig={"PageSize": 7}
    )
    check([entry["Key"] for page in pages for entry in page["Contents"]] == keys)
    pages = S3.get_paginator("list_objects").paginate(
        Bucket=BUCKET, Prefix="list/", PaginationConfig={"PageSize": 7}
    )
    check([entry["Key"] for page in pages for entry in page["Contents"]] == keys)
    folders = S3.list_objects_v2(Bucket=BUCKET, Prefix="list/", Delimiter="/")
    check(
        [entry["Prefix"] for entry in folders["CommonPrefixes"]]
        == ["list/a/", "list/b/", "list/c/"]
    )
    check("Contents" not in folders)
    after = S3.list_objects_v2(Bucket=BUCKET, Prefix="list/", StartAfter="list/b/018")["Contents"]
    check(after[0]["Key"] == "list/b/019", after[0])
    none = S3.list_objects_v2(Bucket=BUCKET, Prefix="nothing/")
    check(none["KeyCount"] == 0 and not none["IsTruncated"])
    gone = S3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    check(len(gone["Deleted"]) == len(keys) and "Errors" not in gone)
    check(S3.list_objects_v2(Bucket=BUCKET, Prefix="list/")["KeyCount"] == 0)


def integrity():
    for algorithm in ["CRC32", "SHA1", "SHA256"]:
        S3.put_object(Bucket=BUCKET, Key="summed", Body=b"hello", ChecksumAlgorithm=algorithm)
        head = S3.head_object(Bucket=BUCKET, Key="summed", ChecksumMode="ENABLED")
        check(f"Checksum{algorithm}" in head, algorithm, head)
        check(body("summed") == b"hello")
    refused(
        400, S3.put_object, Bucket=BUCKET, Key="wrong", Body=b"hello", ChecksumCRC32="AAAAAA=="
    )
    refused(
        "BadDigest",
        S3.put_object,
        Bucket=BUCKET,
        Key="wrong",
        Body=b"hello",
        ContentMD5="A" * 22 + "==",
    )
    refused(404, S3.head_object, Bucket=BUCKET, Key="wrong")


def access():
    refused("SignatureDoesNotMatch", client("x" * 40).list_objects_v2, Bucket=BUCKET)
    url = S3.generate_presigned_url(
        "get_object", Params={"Bucket": BUCKET, "Key": "if"}, ExpiresIn=60
    )
    check(len(urllib.request.urlopen(url).read()) == 1)
    try:
        urllib.request.urlopen(url.replace("/if?", "/race?"))
        raise AssertionError("another key by the same signature")
    except urllib.error.HTTPError as error:
        check(error.code == 403, error.code)
    try:
        urllib.request.urlopen(f"{ENDPOINT}/{BUCKET}/if")
        raise AssertionError("anonymous")
    except urllib.error.HTTPError as error:
        check(error.code == 403, error.code)
    put = S3.generate_presigned_url(
        "put_object", Params={"Bucket": BUCKET, "Key": "signed"}, ExpiresIn=60
    )
    urllib.request.urlopen(urllib.request.Request(put, data=b"by url", method="PUT"))
    check(body("signed") == b"by url")


def settings():
    rules = [
        {
            "ID": "old",
            "Status": "Enabled",
            "Filter": {"Prefix": "tmp/"},
            "Expiration": {"Days": 1},
        }
    ]
    refused("NoSuchLifecycleConfiguration", S3.get_bucket_lifecycle_configuration, Bucket=BUCKET)
    S3.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": rules})
    found = S3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
    check(found[0]["Expiration"] == {"Days": 1} and found[0]["ID"] == "old", found)
    S3.delete_bucket_lifecycle(Bucket=BUCKET)
    refused("NoSuchCORSConfiguration", S3.get_bucket_cors, Bucket=BUCKET)
    cors = [
        {"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"], "MaxAgeSeconds": 5}
    ]
    S3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": cors})
    check(
        S3.get_bucket_cors(Bucket=BUCKET)["CORSRules"][0]["AllowedOrigins"]
        == ["https://a.example"]
    )
    origin = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
    preflight = urllib.request.Request(
        f"{ENDPOINT}/{BUCKET}/if", headers=origin, method="OPTIONS"
    )
    answer = urllib.request.urlopen(preflight)
    check(answer.headers["Access-Control-Allow-Origin"] == "https://a.example", answer.headers)
    S3.delete_bucket_cors(Bucket=BUCKET)
    S3.get_bucket_location(Bucket=BUCKET)
    for call, more in [
        (S3.put_bucket_policy, {"Policy": "{}"}),
        (S3.put_bucket_website, {"WebsiteConfiguration": {"IndexDocument": {"Suffix": "i"}}}),
        (S3.get_object_retention, {"Key": "if"}),
        (S3.put_object, {"Key": "sse", "Body": b"", "ServerSideEncryption": "AES256"}),
        (S3.put_object, {"Key": "cold", "Body": b"", "StorageClass": "GLACIER"}),
    ]:
        refused("NotImplemented", call, Bucket=BUCKET, **more)


def emptied():
    pages = S3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    for page in pages:
        for entry in page.get("Contents", []):
            S3.delete_object(Bucket=BUCKET, Key=entry["Key"])
    S3.delete_bucket(Bucket=BUCKET)
    refused("NoSuchBucket", S3.list_objects_v2, Bucket=BUCKET)


for part in [
    objects,
    metadata,
    conditions,
    uploads,
    listings,
    integrity,
    access,
    settings,
    emptied,
]:
    try:
        part()
    except BaseException:
        print(f"in {part.__name__}, behind {checked} checks", file=sys.stderr)
        raise
print(f"boto3 {boto3.__version__}: {checked} answers are what S3's are")
