"""Clients that change objects over S3 until their server dies; and the judge of what is left.

Usage: s3_over_kills.py ENDPOINT ACCESS_KEY SECRET, with orders on standard input:

    write SEED    changes objects until all connections are broken; prints `K` for each change
                  that was answered with success, and `B` at the end
    judge         reads everything and compares; prints `J` and what was found

The model knows for each key the changes that were asked for, when each was sent and when it was
answered. A change that was never answered is in doubt: it happened or it did not. A key may hold
what a change made of it if no change that was answered began after that one had ended. Everything
that may be is allowed, and nothing else: bytes, length, tag, metadata, ETag, keys, buckets, uploads
and their parts. An assertion that fails ends the process.
"""

import hashlib
import os
import random
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

ENDPOINT, ACCESS_KEY, SECRET = sys.argv[1:4]
BUCKETS = ["first", "second"]
WORKERS = 6
OWN_KEYS = 10
SHARED_KEYS = 5
CONTENTS = 400
# From this number on contents are as long as a part must be that others follow.
LONG_CONTENTS = 390
PART_BYTES_MIN = 5 << 20
NEVER = float("inf")

lock = threading.Lock()
ticks = 0


def tick():
    global ticks
    with lock:
        ticks += 1
        return ticks


def client():
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        retries={"max_attempts": 0},
        max_pool_connections=WORKERS,
    )
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=config,
    )


def content(number):
    """Bytes that follow from their number; half of them can be compressed."""
    dice = random.Random(number)
    if number >= LONG_CONTENTS:
        length = PART_BYTES_MIN + dice.randrange(100_000)
    else:
        length = int(dice.choice([0, 3, 10, 500, 4096, 20_000, 200_000, 1_000_000]))
        length += dice.randrange(length // 4 + 1)
    line = b"content %d\n" % number
    noise = dice.randbytes(length // 2)
    return (noise + line * (length // len(line) + 1))[:length]


class Value:
    """What an object holds."""

    def __init__(self, number, contents, tag=None, etag=None):
        # The number is in the object's metadata, so that what is older is seen to be so.
        self.number, self.contents, self.tag, self.etag = number, contents, tag, etag

    def bytes(self):
        return b"".join(content(number) for number in self.contents)

    def told(self):
        return (self.number, self.contents, self.tag)


class Register:
    """The changes of a key, or of a bucket's presence; None: it is not there."""

    def __init__(self):
        self.changes = [[0, 0, None]]

    def begin(self, value):
        change = [tick(), NEVER, value]
        with lock:
            self.changes.append(change)
        return change

    def possible(self, begin=NEVER, end=NEVER):
        """What a reader may be told that asked and was answered at these times."""
        with lock:
            changes = list(self.changes)
        ended = [began for began, until, _ in changes if until < begin]
        newest = max(ended)
        return [value for began, until, value in changes if began <= end and until >= newest]

    def known(self):
        """Of a key that one client alone changes, while nothing is in doubt."""
        [value] = self.possible()
        return value

    def settle(self, value):
        self.changes = [[0, 0, value]]


class Upload:
    def __init__(self, bucket, key, number):
        self.bucket, self.key, self.number = bucket, key, number
        # Parts by their numbers: what they hold, and their ETags.
        self.parts = {}
        # What was asked for and is not answered.
        self.doubt = None


registers = {}
buckets = {name: Register() for name in BUCKETS}
# By bucket and name: a name is one of its bucket.
uploads = {}
# Uploads that were asked for without an answer: bucket, key and the number of the object.
begun_in_doubt = []
numbers = 0


def register(bucket, key):
    with lock:
        return registers.setdefault((bucket, key), Register())


def new_number():
    global numbers
    with lock:
        numbers += 1
        return numbers


def of_head(head):
    return int(head["Metadata"]["number"])


class Broken(Exception):
    """The server has gone."""


class Worker:
    def __init__(self, number):
        self.number = number
        self.s3 = client()

    def work(self, seed):
        self.dice = random.Random(seed * 1000 + self.number)
        steps = [
            (self.put, 30),
            (self.put_shared, 10),
            (self.delete, 8),
            (self.delete_shared, 4),
            (self.delete_several, 4),
            (self.copy, 9),
            (self.copy_shared, 4),
            (self.upload, 16),
            (self.tag, 4),
            (self.get, 8),
            (self.get_shared, 4),
            (self.list, 4),
            (self.bucket, 2),
        ]
        calls = [call for call, _ in steps]
        weights = [weight for _, weight in steps]
        try:
            while True:
                [call] = self.dice.choices(calls, weights)
                call()
        except Broken:
            pass
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def ask(self, call, **arguments):
        """The answer; a refusal is an error, and so is a body that ends early."""
        try:
            answer = call(**arguments)
            if "Body" in answer:
                answer["Body"] = answer["Body"].read()
            return answer
        except ClientError:
            raise
        except (BotoCoreError, HTTPError, OSError) as error:
            raise Broken() from error

    def change(self, of, value, call, **arguments):
        """Changes a register by a call; in doubt until it is answered."""
        change = of.begin(value)
        answer = self.ask(call, **arguments)
        change[1] = tick()
        say("K")
        return answer

    def some_content(self):
        return self.dice.randrange(LONG_CONTENTS)

    def own(self):
        bucket = self.dice.choice(BUCKETS)
        key = f"of {self.number}/ä {self.dice.randrange(OWN_KEYS):02}"
        return bucket, key, register(bucket, key)

    def shared(self):
        bucket = self.dice.choice(BUCKETS)
        key = f"shared/{self.dice.randrange(SHARED_KEYS)}"
        return bucket, key, register(bucket, key)

    def put_at(self, bucket, key, of):
        value = Value(new_number(), (self.some_content(),))
        body = value.bytes()
        value.etag = hashlib.md5(body).hexdigest()
        self.change(
            of,
            value,
            self.s3.put_object,
            Bucket=bucket,
            Key=key,
            Body=body,
            Metadata={"number": str(value.number)},
        )

    def put(self):
        self.put_at(*self.own())

    def put_shared(self):
        self.put_at(*self.shared())

    def delete_at(self, bucket, key, of):
        self.change(of, None, self.s3.delete_object, Bucket=bucket, Key=key)

    def delete(self):
        self.delete_at(*self.own())

    def delete_shared(self):
        self.delete_at(*self.shared())

    def delete_several(self):
        chosen = {(bucket, key): of for bucket, key, of in (self.own() for _ in range(4))}
        bucket = next(iter(chosen))[0]
        keys = {key: of for (where, key), of in chosen.items() if where == bucket}
        changes = [of.begin(None) for of in keys.values()]
        objects = {"Objects": [{"Key": key} for key in keys]}
        answer = self.ask(self.s3.delete_objects, Bucket=bucket, Delete=objects)
        assert "Errors" not in answer, answer
        assert {entry["Key"] for entry in answer["Deleted"]} == set(keys), answer
        now = tick()
        for change in changes:
            change[1] = now
        say("K")

    def copy_to(self, bucket, key, of):
        source, source_key, source_of = self.own()
        found = source_of.known()
        if found is None or source_of is of:
            return
        more = {}
        value = Value(found.number, found.contents, found.tag)
        if self.dice.randrange(2):
            value.number = new_number()
            more = {"MetadataDirective": "REPLACE", "Metadata": {"number": str(value.number)}}
        source = {"Bucket": source, "Key": source_key}
        names = {"Bucket": bucket, "Key": key, "CopySource": source}
        self.change(of, value, self.s3.copy_object, **names, **more)

    def copy(self):
        self.copy_to(*self.own())

    def copy_shared(self):
        self.copy_to(*self.shared())

    def tag(self):
        bucket, key, of = self.own()
        found = of.known()
        if found is None:
            return
        tag = str(new_number())
        value = Value(found.number, found.contents, tag, found.etag)
        tags = {"TagSet": [{"Key": "tag", "Value": tag}]}
        self.change(of, value, self.s3.put_object_tagging, Bucket=bucket, Key=key, Tagging=tags)

    def bucket(self):
        name = f"of-{self.number}"
        of = buckets.setdefault(name, Register())
        call, value = self.s3.create_bucket, True
        if of.known():
            call, value = self.s3.delete_bucket, None
        self.change(of, value, call, Bucket=name)

    def upload(self):
        """One step of an upload: its begin, a part, its end."""
        mine = [upload for upload in list(uploads.values()) if self.owns(upload.key)]
        if len(mine) < 2:
            return self.begin_upload()
        upload = self.dice.choice(mine)
        if len(upload.parts) >= 2 or (upload.parts and not self.dice.randrange(3)):
            if self.dice.randrange(5):
                return self.complete(upload)
            return self.abort(upload)
        if len(mine) < 3 and not self.dice.randrange(4):
            return self.begin_upload()
        return self.put_part(upload)

    def owns(self, key):
        return key.startswith(f"of {self.number}/")

    def begin_upload(self):
        bucket, key, _ = self.own()
        upload = Upload(bucket, key, new_number())
        begun_in_doubt.append(upload)
        metadata = {"number": str(upload.number)}
        call = self.s3.create_multipart_upload
        answer = self.ask(call, Bucket=bucket, Key=key, Metadata=metadata)
        begun_in_doubt.remove(upload)
        uploads[(bucket, answer["UploadId"])] = upload
        say("K")

    def named(self, upload):
        [(_, name)] = [at for at, one in list(uploads.items()) if one is upload]
        return {"Bucket": upload.bucket, "Key": upload.key, "UploadId": name}

    def put_part(self, upload):
        """Parts 1 and 2; what is followed by another is long."""
        number = 2 if self.dice.randrange(2) else 1
        long = number == 1
        chosen = self.dice.randrange(LONG_CONTENTS, CONTENTS) if long else self.some_content()
        names = self.named(upload)
        body = content(chosen)
        upload.doubt = ("part", number, (chosen, hashlib.md5(body).hexdigest()))
        bucket, key, of = self.own()
        source = of.known()
        if not long and source and self.dice.randrange(2):
            upload.doubt = ("part", number, (source.contents, None))
            source = {"Bucket": bucket, "Key": key}
            call, more = self.s3.upload_part_copy, {"CopySource": source}
            etag = self.ask(call, PartNumber=number, **names, **more)["CopyPartResult"]["ETag"]
            upload.parts[number] = (of.known().contents, etag)
        else:
            answer = self.ask(self.s3.upload_part, PartNumber=number, Body=body, **names)
            assert "ETag" in answer, answer
            etag = answer["ETag"]
            assert etag.strip('"') == upload.doubt[2][1], etag
            upload.parts[number] = ((chosen,), etag)
        upload.doubt = None
        say("K")

    def complete(self, upload):
        names = self.named(upload)
        parts = sorted(upload.parts.items())
        listed = [{"PartNumber": number, "ETag": part[1]} for number, part in parts]
        contents = tuple(number for _, part in parts for number in part[0])
        value = Value(upload.number, contents)
        upload.doubt = ("end", value)
        of = register(upload.bucket, upload.key)
        call = self.s3.complete_multipart_upload
        self.change(of, value, call, MultipartUpload={"Parts": listed}, **names)
        del uploads[(upload.bucket, names["UploadId"])]

    def abort(self, upload):
        names = self.named(upload)
        upload.doubt = ("end", None)
        self.ask(self.s3.abort_multipart_upload, **names)
        del uploads[(upload.bucket, names["UploadId"])]
        say("K")

    def get_at(self, bucket, key, of):
        begin = tick()
        found = read(self.ask, self.s3, bucket, key)
        check_value(bucket, key, found, of.possible(begin, tick()))

    def get(self):
        self.get_at(*self.own())

    def get_shared(self):
        self.get_at(*self.shared())

    def list(self):
        bucket, prefix = self.dice.choice(BUCKETS), f"of {self.number}/"
        pages, more = {}, {}
        while True:
            page = self.ask(
                self.s3.list_objects_v2, Bucket=bucket, Prefix=prefix, MaxKeys=7, **more
            )
            pages.update((entry["Key"], entry["Size"]) for entry in page.get("Contents", []))
            if not page["IsTruncated"]:
                break
            more = {"ContinuationToken": page["NextContinuationToken"]}
        with lock:
            mine = [(at, of) for at, of in registers.items() if at[0] == bucket]
        values = {at[1]: of.known() for at, of in mine if at[1].startswith(prefix)}
        sizes = {key: len(value.bytes()) for key, value in values.items() if value}
        assert pages == sizes, (bucket, prefix, pages, sizes)


def say(line):
    with lock:
        os.write(1, (line + "\n").encode())


def read(ask, s3, bucket, key):
    """Bytes, number and ETag of an object, or None; and its tag, read by itself."""
    try:
        found = ask(s3.get_object, Bucket=bucket, Key=key)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "NoSuchKey", (bucket, key, error.response)
        return None
    return found["Body"], of_head(found), found["ETag"].strip('"')


def check_value(bucket, key, found, possible):
    """The first of the possible values that it is."""
    for value in possible:
        if value is None or found is None:
            if value is found:
                return value
            continue
        body, number, etag = found
        if number == value.number and body == value.bytes():
            assert value.etag in (None, etag), (bucket, key, etag, value.etag)
            return value
    held = found and (len(found[0]), hashlib.md5(found[0]).hexdigest(), *found[1:])
    told = [value and value.told() for value in possible]
    raise AssertionError(f"{bucket}: {key} holds {held}, which is none of {told}")


class Judge:
    """Reads everything and settles what was in doubt."""

    def __init__(self):
        self.s3 = client()
        self.doubted = 0

    def judge(self):
        self.buckets()
        objects = sum(self.objects(bucket) for bucket in BUCKETS)
        open_uploads = sum(self.uploads(bucket) for bucket in BUCKETS)
        begun_in_doubt.clear()
        say(f"J {objects} objects, {open_uploads} uploads, {self.doubted} in doubt")
        self.doubted = 0

    def settle(self, of, value):
        self.doubted += len(of.possible()) > 1
        of.settle(value)

    def buckets(self):
        found = {entry["Name"] for entry in self.s3.list_buckets()["Buckets"]}
        assert found <= set(buckets), (found, list(buckets))
        for name, of in buckets.items():
            # One whose making was cut off is listed, and is none; it can be made.
            there = True if name in found and self.is_there(name) else None
            assert there in of.possible(), (name, there)
            self.settle(of, there)

    def is_there(self, name):
        try:
            self.s3.head_bucket(Bucket=name)
            return True
        except ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 404, error.response
            return False

    def objects(self, bucket):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        listed = {entry["Key"]: entry for page in pages for entry in page.get("Contents", [])}
        mine = {key: of for (where, key), of in registers.items() if where == bucket}
        assert set(listed) <= set(mine), (bucket, set(listed) - set(mine))
        with ThreadPoolExecutor(WORKERS) as readers:
            jobs = [readers.submit(self.object, bucket, key, mine[key], listed) for key in mine]
            for job in jobs:
                job.result()
        return len(listed)

    def object(self, bucket, key, of, listed):
        ask = lambda call, **arguments: whole(call(**arguments))
        found = read(ask, self.s3, bucket, key)
        assert (found is not None) == (key in listed), (bucket, key)
        possible = of.possible()
        if found is None:
            value = check_value(bucket, key, found, possible)
        else:
            tags = self.s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
            tag = tags[0]["Value"] if tags else None
            tagged = [value for value in possible if value and value.tag == tag]
            value = check_value(bucket, key, found, tagged)
            entry = listed[key]
            assert entry["Size"] == len(found[0]), (bucket, key, entry)
            assert entry["ETag"].strip('"') == found[2], (bucket, key, entry)
        with lock:
            self.doubted += len(possible) > 1
        of.settle(value)

    def uploads(self, bucket):
        """Those that were begun and not ended, with their parts."""
        pages = self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket)
        found = {one["UploadId"]: one for page in pages for one in page.get("Uploads", [])}
        for (where, name), one in list(uploads.items()):
            if where == bucket and name not in found:
                assert one.doubt and one.doubt[0] == "end", (bucket, name, one.key, one.doubt)
                value = one.doubt[1]
                held = registers.get((one.bucket, one.key))
                held = held and held.known()
                # Only its own client changes the key, and no other change was in flight.
                assert value is None or (held and held.number == value.number), (name, one.key)
                del uploads[(bucket, name)]
        for name, one in found.items():
            known = uploads.get((bucket, name))
            assert known or self.was_begun(bucket, one), (bucket, one)
            if known:
                self.parts(name, known)
            else:
                self.s3.abort_multipart_upload(Bucket=bucket, Key=one["Key"], UploadId=name)
        return len(found)

    def was_begun(self, bucket, found):
        """Whether it may be one that was asked for and not answered."""
        for upload in begun_in_doubt:
            if (upload.bucket, upload.key) == (bucket, found["Key"]):
                begun_in_doubt.remove(upload)
                self.doubted += 1
                return True
        return False

    def parts(self, name, upload):
        if upload.doubt and upload.doubt[0] == "end" and upload.doubt[1]:
            held = registers[(upload.bucket, upload.key)].known()
            assert not held or held.number != upload.number, (upload.key, "both are there")
        listed = self.s3.list_parts(Bucket=upload.bucket, Key=upload.key, UploadId=name)
        found = {part["PartNumber"]: part["ETag"] for part in listed.get("Parts", [])}
        expected = {number: part[1] for number, part in upload.parts.items()}
        doubt, upload.doubt = upload.doubt, None
        if doubt and doubt[0] == "part" and found != expected:
            self.doubted += 1
            _, number, (contents, etag) = doubt
            new = found.get(number)
            assert new and etag in (None, new.strip('"')), (upload.key, found, expected, doubt)
            contents = contents if isinstance(contents, tuple) else (contents,)
            upload.parts[number] = (contents, new)
            expected[number] = new
        assert found == expected, (upload.key, found, expected, doubt)


def whole(answer):
    if "Body" in answer:
        answer["Body"] = answer["Body"].read()
    return answer


def main():
    workers = [Worker(number) for number in range(WORKERS)]
    judge = Judge()
    s3 = client()
    for order in sys.stdin:
        words = order.split()
        if words[0] == "judge":
            judge.judge()
            continue
        for name in BUCKETS:
            if not buckets[name].known():
                s3.create_bucket(Bucket=name)
                buckets[name].settle(True)
        threads = [
            threading.Thread(target=worker.work, args=(int(words[1]),)) for worker in workers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say("B")


main()
