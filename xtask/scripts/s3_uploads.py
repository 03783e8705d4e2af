"""What programs of boto3 see of buckets, uploads and checksums, beside s3_boto3.py.

Usage: s3_uploads.py ENDPOINT ACCESS_KEY SECRET SEED. Prints one line at the end, or an assertion.
"""

import datetime
import random
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT, ACCESS_KEY, SECRET, SEED = sys.argv[1:5]
MIB = 1 << 20
random.seed(int(SEED))
S3 = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    aws_access_key_id=ACCESS_KEY,
    aws_secret_access_key=SECRET,
    region_name="us-east-1",
    config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
)
BUCKET = "boto-uploads"
checked = 0


def check(condition, *what):
    global checked
    assert condition, what
    checked += 1


def refused(code, call, **arguments):
    try:
        answer = call(**arguments)
    except ClientError as error:
        check(error.response["Error"]["Code"] == code, code, error.response)
        return
    raise AssertionError((code, answer))


def buckets():
    S3.create_bucket(Bucket=BUCKET)
    refused("BucketAlreadyOwnedByYou", S3.create_bucket, Bucket=BUCKET)
    [made] = [one for one in S3.list_buckets()["Buckets"] if one["Name"] == BUCKET]
    age = datetime.datetime.now(datetime.timezone.utc) - made["CreationDate"]
    check(abs(age) < datetime.timedelta(hours=1), made)
    refused(
        "NotImplemented",
        S3.copy_object,
        Bucket=BUCKET,
        Key="x",
        CopySource=f"{BUCKET}@monday/x",
    )


def listings():
    begun = {}
    for key in ["a/1", "a/2", "b", "c/d/1", "z"]:
        begun[key] = S3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    found = S3.list_multipart_uploads(Bucket=BUCKET, Delimiter="/")
    check([one["Key"] for one in found["Uploads"]] == ["b", "z"], found)
    check([one["Prefix"] for one in found["CommonPrefixes"]] == ["a/", "c/"], found)
    found = S3.list_multipart_uploads(Bucket=BUCKET, Prefix="a/")
    check([one["Key"] for one in found["Uploads"]] == ["a/1", "a/2"], found)
    pages = S3.get_paginator("list_multipart_uploads").paginate(
        Bucket=BUCKET, Delimiter="/", PaginationConfig={"PageSize": 1}
    )
    names = []
    for page in pages:
        names += [one["Key"] for one in page.get("Uploads", [])]
        names += [one["Prefix"] for one in page.get("CommonPrefixes", [])]
    check(names == ["a/", "b", "c/", "z"], names)
    for key, upload in begun.items():
        S3.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)


def checksums():
    value = random.randbytes(6 * MIB)
    whole = S3.put_object(Bucket=BUCKET, Key="whole", Body=value, ChecksumAlgorithm="CRC32")
    members = S3.meta.service_model.operation_model("CreateMultipartUpload").input_shape.members
    if "ChecksumType" not in members:
        return  # An older boto3 does not know it.
    for kind in ["COMPOSITE", "FULL_OBJECT"]:
        begun = S3.create_multipart_upload(
            Bucket=BUCKET, Key="parts", ChecksumAlgorithm="CRC32", ChecksumType=kind
        )
        of = {"Bucket": BUCKET, "Key": "parts", "UploadId": begun["UploadId"]}
        parts = []
        for number, part in [(1, value[: 5 * MIB]), (2, value[5 * MIB :])]:
            put = S3.upload_part(PartNumber=number, Body=part, ChecksumAlgorithm="CRC32", **of)
            parts.append(
                {
                    "PartNumber": number,
                    "ETag": put["ETag"],
                    "ChecksumCRC32": put["ChecksumCRC32"],
                }
            )
        check(S3.list_parts(**of)["ChecksumType"] == kind)
        done = S3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **of)
        check(done["ChecksumType"] == kind, done)
        head = S3.head_object(Bucket=BUCKET, Key="parts", ChecksumMode="ENABLED")
        check(head["ChecksumType"] == kind, head)
        is_whole = head["ChecksumCRC32"] == whole["ChecksumCRC32"]
        check(is_whole == (kind == "FULL_OBJECT"), head)
    refused("NotImplemented", S3.get_object, Bucket=BUCKET, Key="parts", PartNumber=2)
    got = S3.get_object(Bucket=BUCKET, Key="whole", PartNumber=1)
    check(got["Body"].read() == value and got["ContentRange"].startswith("bytes 0-"), got)


def emptied():
    for key in ["whole", "parts"]:
        S3.delete_object(Bucket=BUCKET, Key=key)
    S3.delete_bucket(Bucket=BUCKET)


for part in [buckets, listings, checksums, emptied]:
    try:
        part()
    except BaseException:
        print(f"in {part.__name__}, behind {checked} checks", file=sys.stderr)
        raise
print(f"boto3 {boto3.__version__}: {checked} answers about buckets and uploads are what S3's are")
