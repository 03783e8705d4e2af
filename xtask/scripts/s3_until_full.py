"""Puts objects over S3 until the store refuses them, and deletes them on the full store.

Usage: s3_until_full.py ENDPOINT ACCESS_KEY SECRET, with orders on standard input:

    fill ROUND     puts until no object of any length has room; prints `F COUNT BYTES`
    judge          reads some on the full store, and all keys; prints `J`
    empty          deletes everything, of which nothing may be refused; prints `E COUNT`

An assertion that fails ends the process.
"""

import hashlib
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT, ACCESS_KEY, SECRET = sys.argv[1:4]
BUCKET = "filled"
CLIENTS = 4
LENGTHS = [2_000_000, 400_000, 40_000, 3000, 200]
# Of the shortest, whose log has room for long.
SHORT_MAX = 100
KEYS_PER_DELETION = 50
READ = 40

S3 = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    aws_access_key_id=ACCESS_KEY,
    aws_secret_access_key=SECRET,
    region_name="us-east-1",
    config=Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        retries={"max_attempts": 0},
        max_pool_connections=CLIENTS,
        read_timeout=300,
    ),
)
# Lengths and seeds by key.
held = {}
uploads = []


def body(seed, length):
    """Bytes that neither compress nor are stored already."""
    return random.Random(seed).randbytes(length)


def is_refused(call, **arguments):
    """Whether there is no room; any other refusal is an error."""
    try:
        call(Bucket=BUCKET, **arguments)
        return False
    except ClientError as error:
        assert error.response["Error"]["Code"] == "InsufficientStorage", error.response
        return True


def fill_by(client, numbers, round_number):
    """One client, which takes shorter objects when longer ones find no room."""
    dice = random.Random(round_number * 100 + client)
    lengths, shorts = list(LENGTHS), 0
    while lengths and shorts < SHORT_MAX:
        number = next(numbers)
        key, length = f"{number % 10}/{number:06}", dice.choice(lengths)
        shorts += len(lengths) == 1
        seed = round_number * 1_000_000 + number
        bytes_of = body(seed, length)
        refused = is_refused(S3.put_object, Key=key, Body=bytes_of)
        if not refused:
            held[key] = (seed, length)
            continue
        # Nothing of it is there, and shorter ones may have room.
        lengths = [shorter for shorter in lengths if shorter < length]


def fill(round_number):
    assert not held
    for number in range(3):
        # Parts that nobody completes take room as well.
        key = f"upload {number}"
        name = S3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        part = body(f"part {round_number} {number}", 300_000)
        S3.upload_part(Bucket=BUCKET, Key=key, UploadId=name, PartNumber=1, Body=part)
        uploads.append((key, name))
    numbers = count()
    with ThreadPoolExecutor(CLIENTS) as clients:
        jobs = [clients.submit(fill_by, client, numbers, round_number) for client in range(CLIENTS)]
        for job in jobs:
            job.result()
    print("F", len(held), sum(length for _, length in held.values()), flush=True)


def listed():
    pages = S3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}


def judge():
    assert listed() == {key: length for key, (_, length) in held.items()}
    for key in random.Random(len(held)).sample(sorted(held), min(READ, len(held))):
        found = S3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        seed, length = held[key]
        assert hashlib.md5(found).digest() == hashlib.md5(body(seed, length)).digest(), key
    print("J", flush=True)


def delete_some(keys):
    answer = S3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    assert "Errors" not in answer, answer


def empty():
    """The first ones one by one, while nothing has come back yet."""
    keys = sorted(held)
    random.Random(len(keys)).shuffle(keys)
    alone, others = keys[: len(keys) // 4], keys[len(keys) // 4 :]
    for key in alone:
        S3.delete_object(Bucket=BUCKET, Key=key)
    for key, name in uploads:
        S3.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=name)
    uploads.clear()
    with ThreadPoolExecutor(CLIENTS) as clients:
        starts = range(0, len(others), KEYS_PER_DELETION)
        list(clients.map(lambda at: delete_some(others[at : at + KEYS_PER_DELETION]), starts))
    held.clear()
    assert listed() == {}
    assert "Uploads" not in S3.list_multipart_uploads(Bucket=BUCKET)
    print("E", len(keys), flush=True)


def main():
    S3.create_bucket(Bucket=BUCKET)
    for order in sys.stdin:
        verb, *rest = order.split()
        if verb == "fill":
            fill(int(rest[0]))
        elif verb == "judge":
            judge()
        else:
            empty()


main()
