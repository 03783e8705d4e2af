#!/usr/bin/python3
"""Who may come in, and that S3 and memcached see the same.

    memcached_accounts.py ENDPOINT ACCESS_KEY SECRET HOST PORT BUCKET OTHER
"""

import socket
import sys

import boto3
from botocore.config import Config

ENDPOINT, ACCESS, SECRET, HOST, PORT, BUCKET, OTHER = sys.argv[1:8]


class Client:
    def __init__(self):
        self.socket = socket.create_connection((HOST, int(PORT)))
        self.answers = self.socket.makefile("rb")

    def say(self, said, lines=1):
        self.socket.sendall(said)
        return b"".join(self.answers.readline() for _ in range(lines))

    def come_in(self, name, secret):
        token = f"{name} {secret}".encode()
        return self.say(b"set any 0 0 %d\r\n%s\r\n" % (len(token), token))


FAILED = b"CLIENT_ERROR authentication failure\r\n"
client = Client()
assert client.say(b"get a\r\n") == b"CLIENT_ERROR unauthenticated\r\n"
assert client.come_in(ACCESS, SECRET) == FAILED, "the account may write two buckets, and names none"
assert client.come_in(f"{ACCESS}@{BUCKET}", SECRET + "x") == FAILED
assert client.come_in(f"{ACCESS}@{BUCKET}", SECRET[:-1]) == FAILED
assert client.come_in(f"{ACCESS}@no-such-bucket", SECRET) == FAILED
assert client.come_in(f"NOBODY@{BUCKET}", SECRET) == FAILED
assert client.come_in(f"{ACCESS}@{BUCKET}", SECRET) == b"STORED\r\n"
other = Client()
assert other.come_in(f"{ACCESS}@{OTHER}", SECRET) == b"STORED\r\n"

style = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required") \
    if hasattr(Config, "request_checksum_calculation") else Config(s3={"addressing_style": "path"})
s3 = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    aws_access_key_id=ACCESS,
    aws_secret_access_key=SECRET,
    region_name="us-east-1",
    config=style,
)
assert client.say(b"set item 0 0 5\r\nhello\r\n") == b"STORED\r\n"
assert s3.get_object(Bucket=BUCKET, Key="item")["Body"].read() == b"hello"
assert other.say(b"get item\r\n") == b"END\r\n", "buckets are apart"
s3.put_object(Bucket=BUCKET, Key="object", Body=b"from S3")
assert client.say(b"get object\r\n", 3) == b"VALUE object 0 7\r\nfrom S3\r\nEND\r\n"
s3.put_object(Bucket=BUCKET, Key="item", Body=b"changed")
assert client.say(b"get item\r\n", 3) == b"VALUE item 0 7\r\nchanged\r\nEND\r\n"
s3.delete_object(Bucket=BUCKET, Key="item")
assert client.say(b"get item\r\n") == b"END\r\n"
assert client.say(b"delete object\r\n") == b"DELETED\r\n"
assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET, Prefix="object")
print("accounts: the right one comes in and no other; S3 and memcached see the same")
